#!/bin/bash
# The mount daemon of a compute node is dead, and jobs do without the node.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Compute nodes that do not mount'
. "$(dirname "$0")/../sharness.sh"
. "$DWS_SRCDIR/t/nnf/nnf.sh"
test_under_flux 4

TWO='#DW jobdw type=xfs capacity=1GiB name=one
#DW jobdw type=gfs2 capacity=1GiB name=the-other'
COPY='#DW jobdw type=xfs capacity=1GiB name=one
#DW copy_out source=$DW_JOB_one/b destination=$DW_JOB_one/c'

# mounted NODE INDEX: it has that file system of the job
mounted () {
	dws_kube get clientmounts $1 default-$(dws_workflow $jobid)-$2-computes \
		>clientmount.out &&
	jq -e ".status.mounts[0] | .state == \"mounted\" and .ready" clientmount.out
}
# allocation NODE INDEX: which of its rabbit's allocations it has
allocation () {
	mounted $1 $2 >/dev/null &&
	jq ".spec.mounts[0].device.deviceReference.data // 0" clientmount.out
}
# waived LAST DIRECTIVES COMMAND...: a job that does without the first node, when
# the others have mounted up to directive LAST
waived () {
	last=$1 &&
	dws_limit &&
	rig silence compute-01 &&
	jobid=$(nnf_submit "$2" -N4 -S dw_failure_tolerance=1 "${@:3}") &&
	for node in compute-02 compute-03 compute-04; do
		for i in $(seq 0 $last); do
			dws_until mounted $node $i || return 1
		done
	done &&
	dws_limit prerun_timeout 1 &&
	dws_wait_event $jobid start &&
	dws_limit
}

# A rig has none: without it NNF waits for nodes that are dead.
test_expect_success 'load everything' '
	rig create systemstatuses "{\"kind\": \"SystemStatus\", \"data\": {},
		\"metadata\": {\"name\": \"default\", \"namespace\": \"default\"}}" &&
	nnf_setup
'
test_expect_success 'a job runs without a node, and the others keep their mounts' '
	waived 1 "$TWO" sleep inf &&
	rig until workflows $(dws_workflow $jobid) ".spec.forceReady
		and .metadata.annotations[\"flux-framework.org/waived-nodes\"]
			== \"compute-01\"" &&
	for i in 0 1; do
		test "$(allocation compute-02 $i)" = 1 &&
		test "$(allocation compute-03 $i)" = 0 &&
		test "$(allocation compute-04 $i)" = 1 || return 1
	done
'
test_expect_success 'it has the variables of all its file systems' '
	flux job wait-event -f json $jobid dws_environment >event &&
	jq -e ".context.variables | (.DW_JOB_one | endswith (\"-0\"))
		and (.DW_JOB_the_other | endswith (\"-1\"))
		and (.DW_JOB_GFS2 == .DW_JOB_the_other)" event
'
test_expect_success 'nobody waits for the node in the end' '
	flux cancel $jobid &&
	nnf_clean &&
	dws_until dws_drained compute-01 &&
	flux resource undrain compute-01
'
test_expect_success 'data is copied out all the same' '
	waived 0 "$COPY" true &&
	nnf_clean &&
	flux job info $jobid rabbit_dataout_timing &&
	flux resource undrain compute-01
'
test_expect_success 'a node that comes back, and dies again, is passed by' '
	waived 1 "$TWO" sleep inf &&
	rig silence &&
	dws_until mounted compute-01 0 &&
	dws_until mounted compute-01 1 &&
	test "$(allocation compute-02 1)" = 1 &&
	rig silence compute-01 &&
	flux cancel $jobid &&
	nnf_clean &&
	flux job info $jobid rabbit_postrun_timing &&
	flux resource undrain compute-01
'
test_expect_success 'all is well' '
	rig silence &&
	jobid=$(nnf_submit "$TWO" -N4 true) &&
	dws_ended_well $jobid &&
	nnf_clean
'
test_done
