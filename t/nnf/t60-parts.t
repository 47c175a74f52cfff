#!/bin/bash
# Parts of the cluster are killed under the jobs, and started again.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Controllers and API server killed'
. "$(dirname "$0")/../sharness.sh"
. "$DWS_SRCDIR/t/nnf/nnf.sh"
test_under_flux 4

COPY='#DW jobdw type=gfs2 capacity=1GiB name=fast
#DW copy_out source=$DW_JOB_fast/b destination=$DW_JOB_fast/c'

test_expect_success 'load everything' '
	nnf_setup
'
test_expect_success 'a job ends while our plugin is away: Flux lets go of its nodes' '
	jobid=$(nnf_submit "$COPY" -N2 sleep inf) &&
	dws_wait_event $jobid start &&
	flux jobtap remove dws-jobtap.so &&
	flux cancel $jobid &&
	dws_wait_event $jobid clean &&
	rig until workflows $(dws_workflow $jobid) ".status
		| .state == \"PreRun\" and .ready"
'
test_expect_success 'when it is back they are unmounted, and the data is copied out' '
	flux jobtap load "$DWS_PLUGINS/dws-jobtap.so" &&
	nnf_clean &&
	flux job info $jobid rabbit_postrun_timing &&
	flux job info $jobid rabbit_dataout_timing &&
	dws_until dws_drained "" &&
	test "$(flux rabbit losses --json)" = "[]"
'
for phase in setup prerun; do
	test_expect_success "the controller of a rabbit is killed in $phase" '
		nnf_crowd kill:rabbit-node-1 $phase
	'
	test_expect_success "it is started again: the job goes on" '
		rig start rabbit-node-1 &&
		nnf_all_completed
	'
done
test_expect_success 'one is dead when Setup begins: the job waits' '
	rig kill rabbit-node-1 &&
	jobid=$(nnf_submit "$DWS_DIRECTIVE" -N4 true) &&
	rig until workflows $(dws_workflow $jobid) ".status
		| .state == \"Setup\" and .ready == false and .message != null"
'
test_expect_success 'and goes on when it is back' '
	rig start rabbit-node-1 &&
	dws_ended_well $jobid &&
	nnf_clean
'
test_expect_success 'the API server is killed with jobs in many phases' '
	nnf_submit_many 6 "$DWS_DIRECTIVE" &&
	nnf_crowd kill:apiserver prerun
'
test_expect_success 'jobs that are submitted meanwhile wait' '
	nnf_submit_many 2 "$DWS_DIRECTIVE" &&
	dws_wait_status ".agent.reachable == false" $DWS_LIMIT
'
test_expect_success 'it is started again: all of them go on' '
	rig start apiserver &&
	test $(wc -l <crowd) -eq 9 &&
	nnf_all_completed
'
test_done
