#!/bin/bash
# A node that does not mount, and that the job does without: nobody else's mounts
# change, and nobody waits for it in the end.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Nodes that jobs do without'
. "$(dirname "$0")/sharness.sh"
test_under_flux 4

TWO='#DW jobdw type=xfs capacity=1GiB name=one
#DW jobdw type=xfs capacity=1GiB name=the-other'
COPY='#DW jobdw type=xfs capacity=1GiB name=one
#DW copy_out source=$DW_JOB_one/ destination=/lus/global/out'

# waived DIRECTIVES COUNT COMMAND...: a job that runs without node0, when the others
# have so many mounts
waived () {
	dws_limit &&
	dws_ctl hang-mount node0 on &&
	jobid=$(flux submit -N4 -n4 -S dw="$1" -S dw_failure_tolerance=1 "${@:3}") &&
	dws_until dws_mounted $2 &&
	dws_limit prerun_timeout 0.5 &&
	dws_wait_event $jobid start &&
	dws_limit
}
# allocation NODE INDEX: which of its rabbit's allocations it has
allocation () {
	dws_kube get clientmounts $1 default-$(dws_workflow $jobid)-$2-computes \
		>clientmount.out &&
	jq ".spec.mounts[0].device.deviceReference.data // 0" clientmount.out
}
# workflow FILTER: true of the job's
workflow () {
	dws_k8s get workflows $(dws_workflow $jobid) >workflow.out &&
	jq -e "$1" workflow.out
}
is_unmounting () {
	workflow ".status.state == \"PostRun\" and (.status.ready | not)"
}

test_expect_success 'load everything' '
	dws_setup
'
test_expect_success 'a job runs without a node' '
	waived "$TWO" 6 sleep inf &&
	flux job wait-event -m type=dws-node-failure -m severity=1 $jobid exception &&
	dws_until dws_drained node0
'
test_expect_success 'PreRun was forced ready, with a note of the node' '
	workflow ".spec.forceReady and .status.state == \"PreRun\"" &&
	workflow "[.metadata.annotations[\"flux-framework.org/failed-nodes\",
		\"flux-framework.org/waived-nodes\"]] == [\"node0\", \"node0\"]"
'
test_expect_success 'the others have the mounts that they had' '
	dws_k8s get computes $(dws_workflow $jobid) >computes.out &&
	jq -e "[.data[].name] | sort == [range (4) | \"node\\(.)\"]" computes.out &&
	test "$(allocation node1 0)" = 1 &&
	test "$(allocation node1 1)" = 1
'
test_expect_success 'the job has the variables of all its file systems' '
	flux job wait-event -f json $jobid dws_environment >event &&
	jq -e ".context.variables | (.DW_JOB_one | endswith (\"-0\"))
		and (.DW_JOB_the_other | endswith (\"-1\"))
		and (.DW_JOB_XFS == .DW_JOB_one)
		and (.DW_JOBS | test (\"^one:.*-0,the-other:.*-1\$\"))" event
'
test_expect_success 'nobody waits for the node in the end, nor is it Disabled before' '
	dws_disabled &&
	flux cancel $jobid &&
	dws_wait_event $jobid clean &&
	dws_clean
'
test_expect_success 'it stays drained, and is Disabled no more' '
	dws_until dws_drained node0 &&
	dws_disabled &&
	dws_ctl hang-mount node0 off &&
	flux resource undrain node0
'
test_expect_success 'data is copied when the others are unmounted' '
	waived "$COPY" 3 true &&
	dws_wait_event $jobid clean &&
	flux job info $jobid rabbit_dataout_timing &&
	flux job eventlog $jobid >eventlog &&
	test_must_fail grep "severity=0" eventlog &&
	dws_ctl hang-mount node0 off &&
	flux resource undrain node0 &&
	dws_clean
'
test_expect_success 'a node that comes back mounts, and is one like the others' '
	waived "$TWO" 6 sleep inf &&
	dws_ctl hang-mount node0 off &&
	dws_until dws_mounted 8 &&
	test "$(allocation node0 1)" = 0 &&
	flux cancel $jobid &&
	dws_wait_event $jobid clean &&
	dws_until dws_drained node0 &&
	dws_clean &&
	flux resource undrain node0
'
test_expect_success 'when it dies again it is not waited for' '
	waived "$TWO" 6 sleep inf &&
	dws_ctl hang-mount node0 off &&
	dws_until dws_mounted 8 &&
	flux resource undrain node0 &&
	dws_ctl hang-mount node0 on &&
	dws_ctl hold Teardown &&
	flux cancel $jobid &&
	dws_until dws_mounted 2 &&
	dws_disabled node0 &&
	flux resource drain -no "{reason}" >reason &&
	grep "rabbit: still mounted by $(dws_workflow $jobid)" reason
'
test_expect_success 'nor after restarts of module and agent' '
	flux module remove dws &&
	flux module load "$DWS_MODULES/dws.so" &&
	dws_wait_status ".health.settled" &&
	dws_disabled node0 &&
	dws_kill_agent &&
	dws_start_agent &&
	dws_wait_status ".health.settled" &&
	dws_disabled node0 &&
	dws_ctl release Teardown &&
	dws_wait_event $jobid clean
'
test_expect_success 'it stays drained; what it had mounted is no more' '
	dws_clean &&
	dws_until dws_drained node0 &&
	dws_disabled &&
	dws_ctl hang-mount node0 off &&
	flux resource undrain node0
'
test_expect_success 'a node that another job uses is waited for' '
	other=$(flux submit -N1 -n1 --requires=rank:0 -S dw="$COPY" sleep inf) &&
	dws_wait_event $other start &&
	waived "$TWO" 7 sleep inf &&
	dws_ctl hang-mount node0 off &&
	dws_until dws_mounted 9 &&
	dws_ctl hang-mount node0 on &&
	flux cancel $jobid &&
	dws_until dws_mounted 6 &&
	dws_wait_status ".health.settled" &&
	dws_disabled &&
	is_unmounting &&
	dws_ctl hang-mount node0 off &&
	dws_wait_event $jobid clean &&
	flux cancel $other &&
	dws_wait_event $other clean &&
	flux resource undrain node0 &&
	dws_clean
'
# Its servers are never ready: the state is, because it is forced.
test_expect_success 'nodes of a rabbit that fails in Setup are left out of Computes' '
	dws_limit setup_timeout 1 &&
	dws_ctl rabbit rabbit0 dead &&
	jobid=$(flux submit -N4 -S dw="$TWO" -S dw_failure_tolerance=2 sleep inf) &&
	dws_wait_event $jobid start &&
	dws_k8s get computes $(dws_workflow $jobid) >computes.out &&
	jq -e "[.data[].name] | sort == [\"node2\", \"node3\"]" computes.out &&
	workflow "[.metadata.annotations[\"flux-framework.org/failed-nodes\",
		\"flux-framework.org/waived-nodes\"]] == [\"node[0-1]\", null]"
'
test_done
