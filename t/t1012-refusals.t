#!/bin/bash
# Errors in directives reach the user as early as possible.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Refused directives'
. "$(dirname "$0")/sharness.sh"
test_under_flux 2

test_expect_success 'load everything' '
	dws_setup
'
test_expect_success 'a misspelt command is refused at submit, by name' '
	test_must_fail flux submit -N1 -S dw="#DW jobwd type=xfs capacity=1GiB name=aa" \
		true 2>err &&
	grep jobwd err
'
test_expect_success 'a misspelt key is refused at submit, by name' '
	test_must_fail flux submit -N1 -S dw="#DW jobdw type=xfs capcity=1GiB name=aa" \
		true 2>err &&
	grep capcity err
'
test_expect_success 'a bad value is refused at submit, with what is allowed' '
	test_must_fail flux submit -N1 -S dw="#DW jobdw type=zfs capacity=1GiB name=aa" \
		true 2>err &&
	grep zfs err && grep gfs2 err
'
# own FILTER [OPTION]...: submit a job whose resources a jq filter has changed
own () {
	filter=$1 &&
	shift &&
	flux submit -N1 --dry-run "$@" true >base.json &&
	jq -c ".resources |= ($filter)" base.json >own.json &&
	flux python "$DWS_SRCDIR/t/scripts/submit_json.py" own.json
}
SSD="{type: \"ssd\", count: 5, exclusive: true}"
RABBIT="{type: \"storage_node\", count: 1,
	with: [{type: \"core\", count: 1}]}"
test_expect_success 'storage that is asked for besides directives is refused' '
	test_must_fail own ". + [$SSD]" -S dw="$DWS_DIRECTIVE" 2>err &&
	grep "resources: ssd: a job with directives" err &&
	test_must_fail own ".[0].with += [$SSD]" -S dw="$DWS_DIRECTIVE" 2>err &&
	grep "resources: ssd: a job with directives" err
'
test_expect_success 'and so are rabbits without any directive' '
	for filter in ". + [$SSD]" ".[0].with += [$SSD]" ". + [$RABBIT]"; do
		test_must_fail own "$filter" 2>err &&
		grep "rabbit.allow_rabbit_resources" err || return 1
	done &&
	for dw in "" " "; do
		test_must_fail own ". + [$RABBIT]" -S dw="$dw" 2>err &&
		grep "rabbit.allow_rabbit_resources" err || return 1
	done
'
test_expect_success 'no job is left of all that' '
	flux jobs -ano {id} >jobs &&
	test_must_fail test -s jobs
'
test_expect_success 'what only the webhook can know ends the job with its text' '
	jobid=$(flux submit -N1 \
		-S dw="#DW jobdw type=xfs capacity=1GiB name=aa zebra=striped" true) &&
	dws_wait_event $jobid clean &&
	flux job eventlog $jobid >eventlog &&
	grep "exception.*denied the request.*unsupported argument .zebra" eventlog &&
	dws_clean
'
test_expect_success 'a group that the user is not in, or that is none, is refused' '
	test_must_fail flux submit -N1 -S dw="$DWS_DIRECTIVE" -S dw_group=[] \
		true 2>err &&
	grep dw_group err &&
	jobid=$(dws_submit -S dw_group=no-such-group true) &&
	dws_wait_event $jobid clean &&
	flux job eventlog $jobid >eventlog &&
	grep "exception.*dw_group: no-such-group: there is no such" eventlog &&
	jobid=$(dws_submit -S dw_group=64999 true) &&
	dws_wait_event $jobid clean &&
	flux job eventlog $jobid >eventlog &&
	grep "exception.*is not a member of 64999" eventlog
'
test_expect_success 'his own is taken' '
	jobid=$(dws_submit -S dw_group=$(id -gn) true) &&
	dws_wait_event $jobid clean && flux job status $jobid &&
	flux job info $jobid rabbit_workflow >workflow.out &&
	jq -e ".spec.groupID == $(id -g)" <workflow.out &&
	dws_clean
'
test_expect_success 'a job whose storage is in its resources can be updated' '
	flux queue stop &&
	jobid=$(dws_submit -t 1h true) &&
	dws_wait_event $jobid jobspec-update &&
	dws_wait_event -m description=dws-create $jobid dependency-remove &&
	flux update $jobid duration=30m &&
	flux queue start && dws_wait_event $jobid clean &&
	flux job status $jobid && dws_clean
'
test_expect_success 'a site can allow rabbits without directives' '
	sed "/^\[rabbit\]/a allow_rabbit_resources = 1" \
		"$DWS_TMP/conf.d/test.toml" >allow.toml &&
	cp "$DWS_TMP/conf.d/test.toml" test.toml.before &&
	cp allow.toml "$DWS_TMP/conf.d/test.toml" &&
	test_must_fail flux config reload 2>err &&
	grep "allow_rabbit_resources" err &&
	sed "s/allow_rabbit_resources = 1/allow_rabbit_resources = true/" \
		allow.toml >"$DWS_TMP/conf.d/test.toml" &&
	flux config reload &&
	jobid=$(own ". + [$SSD]") &&
	dws_wait_event $jobid clean &&
	test_must_fail own ". + [$SSD]" -S dw="$DWS_DIRECTIVE" 2>err &&
	grep "resources: ssd: a job with directives" err &&
	cp test.toml.before "$DWS_TMP/conf.d/test.toml" &&
	flux config reload &&
	test_must_fail own ". + [$SSD]"
'
test_expect_success 'what no rabbit has is refused' '
	for dw in "jobdw type=xfs capacity=3TiB" \
		"jobdw type=lustre capacity=3TiB" \
		"create_persistent type=gfs2 capacity=911GiB"; do
		jobid=$(flux submit -N1 -S dw="#DW $dw name=big" true) &&
		dws_wait_event $jobid clean &&
		flux job eventlog $jobid >eventlog &&
		grep "exception.*dws-create.*needed for each node; no rabbit has more than 910 GiB" \
			eventlog || return 1
	done
'
test_expect_success 'several directives for a node count together' '
	jobid=$(flux submit -N1 -S dw="#DW jobdw type=xfs capacity=500GiB name=aa
		#DW jobdw type=raw capacity=500GiB name=bb" true) &&
	dws_wait_event $jobid clean &&
	flux job eventlog $jobid >eventlog &&
	grep "exception.*dws-create.*100[0-9] GiB of rabbit storage are needed" eventlog
'
test_expect_success 'what NNF adds counts' '
	jobid=$(flux submit -N1 \
		-S dw="#DW jobdw type=xfs capacity=910GiB name=aa" true) &&
	dws_wait_event $jobid clean &&
	flux job eventlog $jobid >eventlog &&
	grep "exception.*dws-create.*911 GiB of rabbit storage are needed" eventlog &&
	dws_clean
'
test_done
