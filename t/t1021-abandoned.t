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
# stuck NODE: a job on all nodes, in its epilog, with one mount left. The next one
# wants all nodes for itself.
stuck () {
	jobid=$(flux submit -N4 -S dw="$DWS_DIRECTIVE" sleep inf) &&
	dws_wait_event $jobid start &&
	dws_ctl hang-mount $1 on &&
	flux cancel $jobid &&
	dws_until dws_mounted 1 &&
	next=$(flux submit -N4 --exclusive true) &&
	dws_wait_event $next priority
}
# Raise the exception of the plugin's timer at a time of the test's choice.
give_up () {
	flux job raise --type=dws-epilog-timeout --severity=0 $jobid
}
time_out () {
	give_up &&
	dws_wait_event $jobid clean
}
# let_go_with RANKS: these were drained before the job was let go
let_go_with () {
	flux kvs get --raw resource.eventlog >resource.log &&
	flux python "$DWS_SRCDIR/t/scripts/drained_at.py" $jobid \
		<resource.log >ranks &&
	echo "$1" >ranks.exp &&
	test_cmp ranks.exp ranks
}
# told REGEX: what resource drain lists
told () {
	flux resource drain -no "{nodelist} {reason}" >drains &&
	grep -x "$1" drains
}
# drained NODE: that one, and it is said why
drained () {
	dws_until dws_drained $1 &&
	flux resource drain -no "{reason}" >reason &&
	grep "^rabbit: failed to unmount in .* of $(dws_workflow $jobid)" reason
}
# taken_out NODE: it is drained, the rabbits have their allocations still
taken_out () {
	drained $1 &&
	dws_until disabled 2
}
# Kubernetes was not heard for long: the allocations may be gone before we know of them.
disabled_or_free () {
	dws_ctl state >state.out &&
	jq -e ".health.Disabled == 2 or .allocated == {}" <state.out >/dev/null
}
taken_out_late () {
	drained $1 &&
	dws_until disabled_or_free
}
# mend NODES: all is well again, the workflow goes, the next job runs.
mend () {
	test "$(flux jobs -no "{state}" $next)" = SCHED &&
	dws_hang off &&
	dws_wait_status ".jobs == 0" &&
	dws_ctl wait-idle --timeout $DWS_LIMIT &&
	flux resource undrain "$1" &&
	dws_k8s patch storages rabbit0 "{\"spec\": {\"state\": \"Enabled\"}}" >mended &&
	dws_k8s patch storages rabbit1 "{\"spec\": {\"state\": \"Enabled\"}}" >>mended &&
	dws_wait_event $next clean
}

test_expect_success 'load everything' '
	dws_setup
'
test_expect_success 'the node that is stuck is drained before the job is let go' '
	stuck node1 &&
	time_out &&
	let_go_with 1 &&
	taken_out node1 &&
	mend node1
'
test_expect_success 'the module was away when the job was let go: all its nodes are' '
	stuck node2 &&
	flux module remove dws &&
	time_out &&
	let_go_with 0-3 &&
	flux resource drain -no "{reason}" >reason &&
	echo "rabbit: may be mounted by $(dws_workflow $jobid)" >expected &&
	test_cmp expected reason
'
test_expect_success 'and those that are clean are given back when it is there' '
	flux module load "$DWS_MODULES/dws.so" &&
	taken_out node2 &&
	mend node2
'
test_expect_success 'the agent was' '
	stuck node1 &&
	dws_kill_agent &&
	time_out &&
	let_go_with 0-3 &&
	flux module reload "$DWS_MODULES/dws.so" &&
	dws_drained "node[0-3]" &&
	dws_start_agent &&
	taken_out node1 &&
	mend node1
'
# unreadable: Kubernetes does not say which nodes are mounted
unreadable () {
	dws_ctl api --status 503 --count 1000000
}
test_expect_success 'nobody could say which node is stuck' '
	stuck node2 &&
	unreadable &&
	time_out &&
	let_go_with 0-3 &&
	dws_drained "node[0-3]" &&
	dws_ctl api --clear &&
	taken_out_late node2 &&
	mend node2
'
test_expect_success 'nor was one of them there to wait for that' '
	stuck node3 &&
	unreadable &&
	give_up &&
	flux jobtap load -r dws-jobtap.so "$DWS_PLUGINS/dws-jobtap.so" &&
	flux rabbit show --json $jobid >show.json &&
	flux module remove dws &&
	dws_wait_event $jobid clean &&
	let_go_with 0-3 &&
	flux module load "$DWS_MODULES/dws.so" &&
	dws_ctl api --clear &&
	taken_out_late node3 &&
	mend node3
'
test_expect_success 'module and agent restart afterwards' '
	stuck node3 &&
	time_out &&
	let_go_with 3 &&
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
	let_go_with 0 &&
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
	next=$(flux submit -N4 --exclusive true) &&
	time_out &&
	let_go_with 0-3 &&
	flux module load "$DWS_MODULES/dws.so" &&
	dws_start_agent &&
	dws_until told "node.0-3. rabbit: failed to unmount in .* of $(dws_workflow $jobid)" &&
	dws_until disabled 2
'
test_expect_success 'the mounts that were left are gone when they can be' '
	mend "node[0-3]"
'
# by_guest COMMAND...: as another user, who has the rights of a guest.
by_guest () {
	FLUX_HANDLE_USERID=$(id -u nobody) FLUX_HANDLE_ROLEMASK=0x2 "$@"
}
# guest_held: hold a guest's job in its epilog. The job may have failed before, as some
# engines cannot start tasks of other users.
guest_held () {
	dws_ctl hold Teardown &&
	flux submit --dry-run -N4 -S dw="$DWS_DIRECTIVE" true >guest.json &&
	jobid=$(flux python "$DWS_SRCDIR/t/scripts/submit_as.py" \
		$(id -u nobody) <guest.json) &&
	dws_wait_event $jobid epilog-start
}
# The mark makes sure that all effects of the exception are in the eventlog.
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
