#!/bin/bash
# rabbit.stage_out_retry: a job whose stage-out has failed gives its nodes back, and
# keeps its data. Its owner can have it copied once more, for a while.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Stage-outs that are tried again'
. "$(dirname "$0")/sharness.sh"
test_under_flux 4

DWS_DIRECTIVE='#DW jobdw type=gfs2 capacity=1GiB name=scratch
#DW copy_out source=$DW_JOB_scratch/out destination=/lus/global/out profile=default'

listed () {
	flux rabbit losses --json >losses && jq -e "$1" losses >listed.out
}
record () {
	flux job info $jobid rabbit_stage_out >record && jq -e "$1" record
}
fails () {
	dws_ctl fail-copy --message "dcp: quota exceeded"
}
in_state () {
	dws_ctl wait-state $(dws_workflow $jobid) $1 --timeout 300
}

test_expect_success 'stage-outs can be tried again for an hour' '
	echo "stage_out_retry = \"1h\"" >rabbit.toml &&
	dws_setup &&
	dws_ctl grant nnfdatamovements:delete &&
	dws_wait_status ".health.settled"
'
test_expect_success 'a job whose stage-out fails ends, and keeps its data' '
	fails &&
	jobid=$(dws_submit true) &&
	dws_wait_event $jobid clean &&
	flux job status $jobid &&
	flux job eventlog $jobid >eventlog &&
	grep "exception.*dws-epilog.*severity=1.*flux rabbit retry tries again until" \
		eventlog &&
	grep "dcp: quota exceeded" eventlog &&
	in_state DataOut &&
	flux run -N4 true &&
	next=$(flux submit -N1 --dependency=dws-out:$jobid true)
'
test_expect_success 'which its owner finds on the list, and in its record' '
	dws_until listed "length == 1 and .[0].until - .[0].t > 3500" &&
	flux rabbit losses --mine >out &&
	grep "RETRY UNTIL" out &&
	grep "$(flux job id --to=f58 $jobid) .*quota exceeded" out &&
	record ".state == \"failed\" and .until > .t"
'
test_expect_success 'others cannot have it tried again' '
	test_must_fail as_guest flux rabbit retry $jobid 2>err &&
	grep "no stage-out of that job can be tried again" err &&
	test_must_fail flux rabbit retry 1234 2>err &&
	grep "no stage-out of that job can be tried again" err
'
test_expect_success 'another try that fails is listed as the first was' '
	dws_ctl fail-copy --clear &&
	dws_ctl fail-copy --message "dcp: still no room" &&
	flux rabbit retry $jobid &&
	dws_until listed ".[0].text | contains(\"still no room\")" &&
	listed "length == 1 and .[0].until - .[0].t < 3600"
'
test_expect_success 'restarts of module and agent change nothing' '
	before=$(jq .[0].until losses) &&
	dws_kill_agent &&
	flux module reload dws &&
	dws_start_agent &&
	dws_wait_status ".agent.synced and .workflows == 1" &&
	dws_until listed "length == 1 and (.[0].until - $before | fabs) < 0.1" &&
	in_state DataOut
'
test_expect_success 'without the agent it says what is missing' '
	dws_kill_agent &&
	dws_wait_status ".agent.attached | not" &&
	test_must_fail flux rabbit retry $jobid 2>err &&
	grep "is flux-coral2-dws running" err &&
	dws_start_agent &&
	dws_wait_status ".agent.synced and .workflows == 1"
'
test_expect_success 'what was asked for while the module was away is done later' '
	dws_ctl fail-copy --clear &&
	flux module remove dws &&
	dws_k8s patch workflows $(dws_workflow $jobid) "{\"metadata\":
		{\"annotations\": {\"flux-framework.org/stage-out-retry\": \"1\"}}}" &&
	flux module load $DWS_MODULES/dws.so &&
	dws_clean
'
test_expect_success 'the data is out, and no loss is left' '
	listed "length == 0" &&
	record ".state == \"moved\" and (has(\"text\") | not)" &&
	flux job info $jobid rabbit_dataout_timing
'
test_expect_success 'a job that waits for the data has not been let down' '
	dws_wait_event $next clean &&
	flux job status $next
'
test_expect_success 'it is over then' '
	test_must_fail flux rabbit retry $jobid 2>err &&
	grep "no stage-out of that job can be tried again" err
'
test_expect_success 'a try that the cluster forbids is told of' '
	dws_ctl grant &&
	fails &&
	jobid=$(dws_submit true) &&
	dws_wait_event $jobid clean &&
	dws_until listed "length == 1" &&
	flux rabbit retry --json $jobid >out &&
	jq -e ".[0] == $(flux job id --to=dec $jobid)" out &&
	dws_until listed ".[0].text | test(\"cannot be tried again.*forbidden\")"
'
test_expect_success 'and one that is not works' '
	dws_ctl grant nnfdatamovements:delete &&
	dws_ctl fail-copy --clear &&
	flux rabbit retry $jobid &&
	dws_clean &&
	listed "length == 0"
'
test_expect_success 'when the time is over the data is given up' '
	fails &&
	jobid=$(dws_submit true) &&
	dws_wait_event $jobid clean &&
	dws_until listed "length == 1 and .[0].until" &&
	echo "stage_out_retry = \"1s\"" >>"$DWS_TMP/conf.d/test.toml" &&
	sed -i "/stage_out_retry = \"1h\"/d" "$DWS_TMP"/conf.d/*.toml &&
	flux config reload &&
	dws_clean &&
	listed "length == 1 and (.[0] | has(\"until\") | not)" &&
	listed ".[0].text | contains(\"quota exceeded\")" &&
	record ".state == \"lost\"" &&
	test_must_fail flux rabbit retry $jobid
'
test_done
