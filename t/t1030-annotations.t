#!/bin/bash
# flux jobs says what a rabbit job waits for, and how far that is.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Annotations of rabbit jobs'
. "$(dirname "$0")/sharness.sh"
test_under_flux 4

GOOD="#DW jobdw type=gfs2 capacity=10GiB name=scratch"
IN='#DW copy_in source=/lus/global/in destination=$DW_JOB_scratch/in'
OUT='#DW copy_out source=$DW_JOB_scratch/out destination=/lus/global/out'

# wait_note JOBID REGEX
wait_note () {
	flux python "$DWS_SRCDIR/t/scripts/wait_note.py" "$@"
}

test_expect_success 'load everything' '
	dws_setup
'
test_expect_success 'a job in depend says what is done' '
	dws_catch depend &&
	wait_note $jobid "^rabbit: checking the directives$"
'
test_expect_success 'it says so in flux jobs' '
	flux jobs -no "{user.rabbit}" $jobid >jobs &&
	grep "^rabbit: checking the directives$" jobs
'
test_expect_success 'flux jobs takes each format that the pages show' '
	grep -rhoE "flux jobs .*-n?o \"[^\"]*\"" "$DWS_SRCDIR/doc" | sort -u >commands &&
	grep -c "user.rabbit" commands &&
	sh -e commands >out
'
test_expect_success 'in the queue it says which nodes are missing, as show does' '
	blocker=$(flux submit -N4 --urgency=31 sleep inf) &&
	dws_wait_event $blocker start &&
	dws_ctl release Proposal &&
	wait_note $jobid "^rabbit: waiting for nodes: it needs 2, 0 of 4 are free \(4 busy\)$" &&
	flux jobs -no "{user.rabbit}" $jobid >jobs &&
	flux rabbit show --json $jobid >json &&
	jq -r "\"rabbit: waiting for \" + .waiting" <json >expected &&
	test_cmp expected jobs
'
test_expect_success 'that follows what the nodes do' '
	flux resource drain node3 &&
	wait_note $jobid "^rabbit: waiting for nodes: .*3 busy, 1 down or drained\)$" &&
	flux resource undrain node3
'
test_expect_success 'a job that is held says so, one in a stopped queue too' '
	flux job urgency $jobid hold &&
	wait_note $jobid "^rabbit: waiting for its release: it is held, with urgency 0$" &&
	flux job urgency $jobid default &&
	flux queue stop --message="a quiet night" &&
	wait_note $jobid "^rabbit: waiting for its queue, which is stopped \(a quiet night\)$" &&
	flux queue start &&
	wait_note $jobid "^rabbit: waiting for nodes: "
'
test_expect_success 'while file systems are made' '
	dws_ctl hold Setup &&
	flux cancel $blocker &&
	wait_note $jobid "^rabbit: creating file systems, not ready: rabbit"
'
test_expect_success 'while nodes mount, with their number' '
	dws_ctl hang-mount node0 on &&
	dws_ctl release Setup &&
	wait_note $jobid "^rabbit: mounting 1/2 nodes$"
'
test_expect_success 'a job that has run and ended has no annotation' '
	dws_ctl hang-mount node0 off &&
	dws_wait_event $jobid clean &&
	wait_note $jobid "" &&
	flux job eventlog $jobid >eventlog &&
	test_must_fail grep "memo.*rabbit: " eventlog &&
	dws_clean
'
test_expect_success 'data that is staged in and out shows its progress' '
	dws_ctl latency copy 3600 &&
	jobid=$(flux submit -N2 -S dw="$GOOD
		$IN
		$OUT" true) &&
	wait_note $jobid "^rabbit: staging in 0%, 5.[0-9]+ MB/s, [0-9.]+[hm] left, 0/2 copies$"
'
test_expect_success 'one flux cancel ends it' '
	flux cancel $jobid &&
	dws_wait_event $jobid clean &&
	dws_clean
'
test_expect_success 'without the API server that is what they wait for' '
	dws_ctl api --status 503 --count 1000000 &&
	dws_ctl api --drop-watches &&
	dws_wait_status ".agent.reachable == false" &&
	jobid=$(dws_submit true) &&
	wait_note $jobid "^rabbit: waiting for the Kubernetes API server$" &&
	dws_ctl api --clear
'
test_expect_success 'without the agent as well' '
	dws_wait_event $jobid clean &&
	dws_kill_agent &&
	jobid=$(dws_submit true) &&
	wait_note $jobid "^rabbit: waiting for the rabbit agent" &&
	dws_start_agent &&
	dws_wait_event $jobid clean &&
	dws_clean
'
test_done
