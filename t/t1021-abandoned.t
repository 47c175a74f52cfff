#!/bin/bash
# Jobs that the epilog timeout has let go, with their file systems still there:
# whoever was not there to see it takes the nodes and rabbits out of use later.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Abandoned jobs are remembered by whatever restarts'
. "$(dirname "$0")/sharness.sh"
test_under_flux 4

disabled () {
	dws_ctl state >state.out &&
	jq -e ".health.Disabled == $1" <state.out >/dev/null
}
# stuck NODE: a job on all nodes, in its epilog, with one mount left
stuck () {
	jobid=$(flux submit -N4 -S dw="$DWS_DIRECTIVE" sleep inf) &&
	dws_wait_event $jobid start &&
	dws_ctl hang-mount $1 on &&
	flux cancel $jobid &&
	dws_until dws_mounted 1
}
# What the timer of the plugin does, at a time of our own.
time_out () {
	flux job raise --type=dws-epilog-timeout --severity=0 $jobid &&
	dws_wait_event $jobid clean
}
# taken_out NODE: that one is drained, the rabbits have their allocations still
taken_out () {
	dws_until dws_drained $1 &&
	flux resource drain -no "{reason}" >reason &&
	grep "^rabbit: failed to unmount in .* of $(dws_workflow $jobid)" \
		reason &&
	dws_until disabled 2
}
# mend NODES: all is well again, and the workflow goes.
mend () {
	dws_hang off &&
	dws_wait_status ".jobs == 0" &&
	dws_ctl wait-idle --timeout $DWS_LIMIT &&
	flux resource undrain "$1" &&
	dws_k8s patch storages rabbit0 "{\"spec\": {\"state\": \"Enabled\"}}" >mended &&
	dws_k8s patch storages rabbit1 "{\"spec\": {\"state\": \"Enabled\"}}" >>mended
}

test_expect_success 'load everything' '
	dws_setup
'
test_expect_success 'the module was away when the job was let go' '
	stuck node2 &&
	flux module remove dws &&
	time_out &&
	flux module load "$DWS_MODULES/dws.so" &&
	taken_out node2 &&
	mend node2
'
test_expect_success 'the agent was' '
	stuck node1 &&
	dws_kill_agent &&
	time_out &&
	dws_start_agent &&
	taken_out node1 &&
	mend node1
'
test_expect_success 'module and agent restart afterwards' '
	stuck node3 &&
	time_out &&
	taken_out node3 &&
	dws_kill_agent &&
	flux module remove dws &&
	flux module load "$DWS_MODULES/dws.so" &&
	dws_start_agent &&
	dws_drained node3 &&
	mend node3
'
test_expect_success 'the plugin was away, and finds the exception' '
	stuck node0 &&
	flux jobtap remove dws-jobtap.so &&
	flux job raise --type=dws-epilog-timeout --severity=0 $jobid &&
	flux jobtap load "$DWS_PLUGINS/dws-jobtap.so" &&
	dws_wait_event $jobid clean &&
	taken_out node0 &&
	mend node0
'
test_expect_success 'all three were, and nobody saw the job end' '
	jobid=$(flux submit -N4 -S dw="$DWS_DIRECTIVE" sleep inf) &&
	dws_wait_event $jobid start &&
	dws_kill_agent &&
	flux module remove dws &&
	dws_hang on &&
	flux cancel $jobid &&
	dws_wait_event $jobid epilog-start &&
	time_out &&
	flux module load "$DWS_MODULES/dws.so" &&
	dws_start_agent &&
	dws_until dws_drained "node[0-3]" &&
	dws_until disabled 2
'
test_expect_success 'the mounts that were left are gone when they can be' '
	mend "node[0-3]"
'
# by_guest COMMAND...: as another user, who has the rights of a guest.
by_guest () {
	FLUX_HANDLE_USERID=$(id -u nobody) FLUX_HANDLE_ROLEMASK=0x2 "$@"
}
# guest_held: a job of theirs, in its epilog. It need not have run: some engines
# cannot start tasks of other users.
guest_held () {
	dws_ctl hold Teardown &&
	flux submit --dry-run -N4 -S dw="$DWS_DIRECTIVE" true >guest.json &&
	jobid=$(flux python "$DWS_SRCDIR/t/scripts/submit_as.py" \
		$(id -u nobody) <guest.json) &&
	dws_wait_event $jobid epilog-start
}
# What comes of it is in the eventlog before what comes of the note after it.
guest_gives_up () {
	by_guest flux job raise --type=dws-epilog-timeout --severity=0 $jobid &&
	flux job raise --type=mark --severity=7 $jobid &&
	flux job wait-event -t 300 -m type=mark $jobid exception &&
	flux job eventlog $jobid >guest.log &&
	grep "type=.*dws-epilog-timeout.* userid=$(id -u nobody)" guest.log &&
	test_must_fail grep "epilog-finish.*dws-epilog" guest.log
}
# no node is drained and no rabbit disabled
untouched () {
	test -z "$(flux resource drain -no "{nodelist}")" &&
	dws_ctl state >state.out &&
	jq -e ".health.Disabled == null" <state.out >/dev/null
}
test_expect_success 'a guest cannot take nodes and rabbits out of use by it' '
	guest_held &&
	guest_gives_up &&
	dws_ctl release Teardown &&
	dws_wait_event $jobid clean &&
	dws_clean &&
	untouched
'
test_expect_success 'nor while the module is away' '
	guest_held &&
	flux module remove dws &&
	guest_gives_up &&
	dws_ctl release Teardown &&
	flux module load "$DWS_MODULES/dws.so" &&
	dws_wait_event $jobid clean &&
	dws_clean &&
	untouched
'
test_expect_success 'nor while the plugin is away' '
	guest_held &&
	flux jobtap remove dws-jobtap.so &&
	guest_gives_up &&
	flux jobtap load "$DWS_PLUGINS/dws-jobtap.so" &&
	dws_ctl release Teardown &&
	dws_wait_event $jobid clean &&
	dws_clean &&
	untouched
'
test_done
