#!/bin/bash
# Data that is copied out is cut short: flux cancel in the epilog, and flux rabbit
# release --hurry.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Jobs that are in a hurry to end'
. "$(dirname "$0")/sharness.sh"
test_under_flux 4

# stage_out: a job whose data is on its way out, for an hour. Sets jobid.
stage_out () {
	jobid=$(flux submit -N2 -S dw="$DWS_DIRECTIVE
#DW copy_out source=\$DW_JOB_scratch/out destination=/lus/global/out" true) &&
	dws_ctl wait-state $(dws_workflow $jobid) DataOut --timeout $DWS_LIMIT
}
# hurried: the workflow is removed in a hurry, after which the job is over
hurried () {
	dws_ctl wait-state $(dws_workflow $jobid) Teardown --timeout $DWS_LIMIT &&
	dws_k8s get workflows $(dws_workflow $jobid) >workflow &&
	jq -e ".spec.hurry" workflow &&
	dws_ctl release Teardown &&
	dws_wait_event $jobid clean &&
	flux job eventlog $jobid >log &&
	grep "epilog-finish.*dws-epilog" log
}

test_expect_success 'load everything' '
	dws_setup &&
	dws_ctl latency copy 3600
'
test_expect_success 'release --hurry says what is lost, and has to be confirmed' '
	stage_out &&
	test_expect_code 1 flux rabbit release --hurry $jobid >out 2>err </dev/null &&
	grep "waits for: .*staging out" out &&
	grep "^  .DW_JOB_scratch/out -> /lus/global/out$" out &&
	grep "say --yes" err &&
	flux job eventlog $jobid >log &&
	test_must_fail grep " exception " log
'
test_expect_success 'it skips the copy, and the exception says what is lost' '
	dws_ctl hold Teardown &&
	flux rabbit release --hurry --yes --reason enough $jobid &&
	hurried &&
	grep "type=\"dws-release\".*enough; not copied out: .*out -> /lus/global/out" log
'
# The first one has ended the tasks; see "no node is let go" for a job that still runs.
test_expect_success 'flux cancel does the same, and says what is lost' '
	stage_out &&
	dws_ctl hold Teardown &&
	flux cancel $jobid &&
	hurried &&
	grep "type=\"cancel\" severity=0" log &&
	grep "type=\"dws-epilog\" severity=1.*ended by an exception.*not copied out" log &&
	grep "out -> /lus/global/out .fault: not known" log &&
	flux rabbit show $jobid >show && cat show &&
	grep "not copied out: .DW_JOB_scratch/out -> /lus/global/out" show
'
test_expect_success 'also when module and agent start anew in between' '
	stage_out &&
	dws_kill_agent &&
	flux module remove dws &&
	dws_ctl hold Teardown &&
	flux cancel $jobid &&
	flux module load "$DWS_MODULES/dws.so" &&
	dws_start_agent &&
	hurried
'
test_expect_success 'no node is let go that has a mount' '
	jobid=$(flux submit -N2 -S dw="$DWS_DIRECTIVE
#DW copy_out source=\$DW_JOB_scratch/out destination=/lus/global/out" sleep inf) &&
	dws_wait_event $jobid start &&
	test_expect_code 1 flux rabbit release --hurry --yes $jobid 2>err &&
	grep "not in its epilog: end it with flux cancel first" err &&
	dws_ctl hang-mount node0 on &&
	flux cancel $jobid &&
	dws_until dws_mounted 1 &&
	flux rabbit release --hurry --json --yes $jobid >json &&
	jq -e ".lost | length == 1" json &&
	dws_ctl wait-state $(dws_workflow $jobid) Teardown --timeout $DWS_LIMIT &&
	dws_mounted 1 &&
	test_expect_code 1 flux rabbit release --hurry --yes $jobid 2>err &&
	grep "nothing can be skipped" err &&
	flux job eventlog $jobid >log &&
	test_must_fail grep "epilog-finish.*dws-epilog" log &&
	dws_ctl hang-mount node0 off &&
	dws_wait_event $jobid clean &&
	flux resource drain -no "{nodelist}" >drained &&
	test_must_be_empty drained &&
	dws_clean
'
test_expect_success 'others may not hurry a job' '
	stage_out &&
	test_must_fail env FLUX_HANDLE_USERID=4242 FLUX_HANDLE_ROLEMASK=0x2 \
		flux rabbit release --hurry --yes $jobid &&
	flux job eventlog $jobid >log &&
	test_must_fail grep " exception " log &&
	flux cancel $jobid &&
	dws_wait_event $jobid clean &&
	dws_clean
'
test_done
