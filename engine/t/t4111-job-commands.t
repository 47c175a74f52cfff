#!/bin/bash
# flux job, jobs, cancel, submit, run.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='The commands about jobs'
. "$(dirname "$0")/../../t/sharness.sh"
test_under_flux 4

test_expect_success 'wait-event finds an event, by its context if asked' '
	jobid=$(flux submit --urgency=20 true) &&
	flux job wait-event -t 300 $jobid clean &&
	flux job wait-event -f json $jobid submit >event &&
	jq -e ".name == \"submit\" and .context.urgency == 20" event &&
	flux job wait-event -m urgency=20 $jobid submit &&
	test_must_fail flux job wait-event -m urgency=1 $jobid submit &&
	flux job wait-event -q $jobid submit >out &&
	test ! -s out
'
test_expect_success 'wait-event says so if there is no such event, or job' '
	test_must_fail flux job wait-event $jobid no-such-event 2>err &&
	grep "never received" err &&
	test_must_fail flux job wait-event 123 clean 2>err &&
	grep "not found" err
'
test_expect_success 'wait-event gives up after the timeout' '
	held=$(flux submit --urgency=hold true) &&
	test_must_fail flux job wait-event -t 0.1 $held start 2>err &&
	grep "timeout" err
'
test_expect_success 'job IDs have many forms' '
	dec=$(flux job id $jobid) &&
	for form in dec hex kvs dothex f58 f58plain; do
		flux job id --to=$form $dec >id &&
		test "$(flux job id "$(cat id)")" = $dec || return 1
	done &&
	test_must_fail flux job id no-such-form
'
test_expect_success 'info prints what belongs to a job' '
	flux job info $jobid jobspec >jobspec.out &&
	jq -e ".tasks[0].command == [\"true\"]" <jobspec.out &&
	flux job info $jobid R >R.out &&
	jq -e ".execution.R_lite | length == 1" <R.out &&
	flux job info $jobid eventlog >eventlog &&
	grep submit eventlog &&
	test_must_fail flux job info $jobid no-such-key
'
test_expect_success 'urgency releases a held job' '
	flux job urgency $held 16 &&
	flux job wait-event -t 300 $held clean &&
	test_must_fail flux job urgency $held 16 &&
	test_must_fail flux job urgency $held 99
'
test_expect_success 'raise adds an exception of any type and severity' '
	held=$(flux submit --urgency=hold true) &&
	flux job raise --type=note --severity=5 -m "for the record" $held &&
	flux job wait-event -t 300 -m type=note $held exception &&
	flux jobs -no "{state}" $held >out &&
	echo SCHED >expected &&
	test_cmp expected out &&
	flux job raise $held enough of this &&
	flux job wait-event -t 300 -m note="enough of this" $held exception &&
	flux job wait-event -t 300 $held clean
'
test_expect_success 'attach prints exceptions, and fails' '
	test_must_fail flux job attach $held 2>err &&
	grep "job.exception.*type=cancel severity=0 enough of this" err
'
test_expect_success 'attach follows a job from the beginning' '
	flux submit sh -c "echo one; echo two" >id &&
	flux job attach -E $(cat id) >out 2>err &&
	printf "one\ntwo\n" >expected &&
	test_cmp expected out &&
	grep "job.submit" err &&
	grep "job.finish" err
'
test_expect_success 'attach to what is not there' '
	test_must_fail flux job attach 123
'
test_expect_success 'status exits as the worst job did' '
	ids=$(flux submit true; flux submit sh -c "exit 3"; flux submit false) &&
	test_expect_code 3 flux job status $ids &&
	held=$(flux submit --urgency=hold true) &&
	flux cancel $held &&
	test_expect_code 1 flux job status $held &&
	test_expect_code 42 flux job status -e 42 $held
'
test_expect_success 'wait collects waitable jobs' '
	good=$(flux submit --flags=waitable true) &&
	bad=$(flux submit --flags=waitable false) &&
	flux job wait $good &&
	test_must_fail flux job wait $bad 2>err &&
	grep "exit" err &&
	test_must_fail flux job wait $good &&
	flux submit --flags=waitable true &&
	flux job wait --all
'
test_expect_success 'last is the last' '
	jobid=$(flux submit true) &&
	test "$(flux job last)" = "$jobid" &&
	flux job last 3 >out &&
	test "$(wc -l <out)" = 3
'
test_expect_success 'jobs lists by state, and in any format' '
	flux queue drain -t 300 &&
	held=$(flux submit --urgency=hold --job-name=foo true) &&
	flux jobs -no "{name}:{state}" >out &&
	echo foo:SCHED >expected &&
	test_cmp expected out &&
	flux jobs --name=foo -no "{id}" >out &&
	echo $held >expected &&
	test_cmp expected out &&
	flux jobs -f failed -no "{returncode}" >out &&
	test_must_fail grep -x 0 out &&
	flux jobs -a --json >jobs.json &&
	jq -e ".jobs | length > 5" jobs.json &&
	flux jobs -a -c 2 -no "{id}" >out &&
	test "$(wc -l <out)" = 2 &&
	test_must_fail flux jobs -o "{nosuch}"
'
test_expect_success 'cancel by ID, and all' '
	flux cancel $held &&
	test_must_fail flux cancel $held 2>err &&
	grep "inactive" err &&
	for i in 1 2 3; do flux submit --urgency=hold true || return 1; done &&
	flux cancel --all -n 2>err &&
	grep "Would cancel 3 jobs" err &&
	flux cancel --all 2>err &&
	grep "Canceled 3 jobs (0 errors)" err &&
	flux queue drain -t 300 &&
	flux cancel --all 2>err &&
	grep "Matched 0 jobs" err
'
test_expect_success 'memo shows in the listing' '
	held=$(flux submit --urgency=hold true) &&
	flux job memo $held color=red &&
	flux job wait-event -t 300 $held memo &&
	flux jobs -no "{user.color}" $held >out &&
	echo red >expected &&
	test_cmp expected out
'
test_expect_success 'update changes a job that waits' '
	flux update $held duration=1h &&
	flux jobs -no "{duration}" $held >out &&
	echo 3600.0 >expected &&
	test_cmp expected out &&
	test_must_fail flux update $held duration=-2h &&
	flux cancel $held
'
test_expect_success 'submit --watch shows the output of all' '
	flux submit --cc=1-3 --watch --quiet echo x >out &&
	test "$(grep -c x out)" = 3
'
test_done
