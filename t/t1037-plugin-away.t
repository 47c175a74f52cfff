#!/bin/bash
# Jobs that end while dws-jobtap.so is not loaded: Flux frees their nodes, where
# file systems are still mounted. The cleanup follows when the plugin is loaded
# again.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Jobs that end while the jobtap plugin is away'
. "$(dirname "$0")/sharness.sh"
test_under_flux 4

COPY="$DWS_DIRECTIVE
#DW copy_out source=\$DW_JOB_scratch/out destination=/lus/global/out"

load_plugin () {
	flux jobtap load "$DWS_PLUGINS/dws-jobtap.so"
}
# ended_alone: a job on two nodes has ended without the plugin
ended_alone () {
	jobid=$(flux submit -N2 --exclusive --requires=ranks:0-1 \
		-S dw="$COPY" sleep inf) &&
	dws_wait_event $jobid start &&
	flux jobtap remove dws-jobtap.so &&
	flux cancel $jobid &&
	dws_wait_event $jobid clean &&
	dws_until dws_mounted 2
}
in_state () {
	dws_ctl wait-state $(dws_workflow $jobid) $1 --timeout 300
}
saved () {
	flux job info $jobid rabbit_$1_timing
}
kept () {
	dws_until dws_drained "$1" &&
	flux resource drain -no "{reason}" >reason &&
	grep "^rabbit: still mounted by $(dws_workflow $jobid)" reason
}
losses () {
	flux rabbit losses --json >losses && jq -e "$1" losses
}

test_expect_success 'load everything' '
	dws_setup
'
test_expect_success 'when it is back, no other job gets the nodes until they are unmounted' '
	ended_alone &&
	dws_hang on &&
	load_plugin &&
	kept "node[0-1]" &&
	in_state PostRun &&
	test_expect_code 1 flux rabbit undrain --json "rabbit[0-1]" >json &&
	jq -e ".nodes == \"\" and (.errors | length == 1)" json &&
	test_expect_code 1 flux rabbit undrain --all "rabbit[0-1]" 2>err &&
	grep "node\[0-1\] not undrained: fluxjob-.* .* mounts there" err &&
	flux run -N2 true &&
	dws_drained "node[0-1]" &&
	dws_hang off &&
	dws_until dws_drained ""
'
test_expect_success 'the data is copied out, then all is torn down' '
	dws_clean &&
	saved postrun &&
	saved dataout &&
	losses "length == 0"
'
test_expect_success 'the same when the module is reloaded in between, and after' '
	ended_alone &&
	dws_hang on &&
	flux module remove dws &&
	load_plugin &&
	flux module load "$DWS_MODULES/dws.so" &&
	kept "node[0-1]" &&
	in_state PostRun &&
	dws_ctl hold DataOut &&
	flux module reload dws &&
	dws_wait_status ".agent.synced" &&
	dws_hang off &&
	in_state DataOut &&
	dws_until dws_drained "" &&
	dws_ctl release DataOut &&
	dws_clean &&
	saved dataout &&
	losses "length == 0"
'
test_expect_success 'data that cannot be copied out is listed as lost' '
	dws_ctl fail DataOut --severity Fatal --message "disk full" &&
	ended_alone &&
	load_plugin &&
	dws_clean &&
	losses "length == 1 and (.[0].text | contains(\"disk full\"))" &&
	flux rabbit losses --ack $jobid &&
	dws_ctl fail all --clear &&
	dws_drained ""
'
test_expect_success 'as is that of a workflow that somebody deletes' '
	ended_alone &&
	dws_k8s delete workflows $(dws_workflow $jobid) >/dev/null &&
	load_plugin &&
	dws_clean &&
	losses "length == 1 and (.[0].text | contains(\"deleted in PreRun\"))" &&
	flux rabbit losses --ack $jobid
'
test_expect_success 'a node that was drained before stays so' '
	flux resource drain node1 a fan &&
	ended_alone_on_drained () {
		flux resource undrain node1 &&
		ended_alone &&
		flux resource drain node1 a fan
	} &&
	ended_alone_on_drained &&
	load_plugin &&
	dws_clean &&
	dws_until dws_drained node1 &&
	flux resource drain -no "{reason}" >reason &&
	echo "a fan" >expected &&
	test_cmp expected reason &&
	flux resource undrain node1
'
test_expect_success 'it can be released while the plugin is away' '
	ended_alone &&
	dws_hang on &&
	test_expect_code 3 flux rabbit status >status.out &&
	grep "dws-jobtap.so is not loaded" status.out &&
	flux rabbit jobs -no "{waiting}" >jobs.out &&
	grep "may have ended" jobs.out &&
	flux rabbit release --yes $jobid >out &&
	grep "has ended" out &&
	dws_until dws_drained "node[0-1]" &&
	dws_hang off &&
	dws_wait_status ".jobs == 0" &&
	dws_ctl wait-idle --timeout 300 &&
	dws_drained "node[0-1]" &&
	flux rabbit undrain rabbit0 &&
	flux rabbit enable rabbit0 &&
	load_plugin &&
	dws_clean
'
# cancelled_in STATE: a job is there when the plugin goes, and is cancelled then
cancelled_in () {
	dws_ctl hold $1 &&
	jobid=$(dws_submit true) &&
	in_state $1 &&
	flux jobtap remove dws-jobtap.so &&
	flux cancel $jobid &&
	dws_wait_event $jobid exception
}
test_expect_success 'a job that was held in its prolog still has its epilog' '
	cancelled_in PreRun &&
	dws_ctl hold Teardown &&
	load_plugin &&
	dws_wait_event $jobid epilog-start &&
	in_state Teardown &&
	dws_ctl release all &&
	dws_wait_event $jobid clean &&
	flux job eventlog $jobid >eventlog &&
	grep "epilog-finish.*dws-epilog" eventlog &&
	dws_clean
'
# unmounting: a job is in its epilog, and stays there
unmounting () {
	dws_ctl hold PostRun &&
	jobid=$(flux submit -N2 -S dw="$COPY" true) &&
	in_state PostRun
}
# cut_short: there is nothing copied out, as a fatal exception wants it
cut_short () {
	dws_wait_event $jobid clean &&
	dws_ctl release all &&
	test_must_fail saved dataout &&
	dws_clean
}
give_up_copying () {
	flux job raise --type=enough --severity=0 $jobid &&
	dws_wait_event $jobid exception
}
test_expect_success 'an exception in the epilog is found when the plugin is back' '
	unmounting &&
	flux jobtap remove dws-jobtap.so &&
	give_up_copying &&
	load_plugin &&
	cut_short
'
test_expect_success 'and when the module is' '
	unmounting &&
	flux module remove dws &&
	give_up_copying &&
	flux module load "$DWS_MODULES/dws.so" &&
	cut_short
'
test_done
