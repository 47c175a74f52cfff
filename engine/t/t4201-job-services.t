#!/bin/bash
# Requests to the job services: what is allowed, what is answered.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Requests to job-ingest, job-manager, job-info and job-list'
. "$(dirname "$0")/../../t/sharness.sh"

dws_config () {
	cat <<-EOF2
	[queues.batch]
	[queues.debug]
	policy.jobspec.defaults.system.duration = "10m"
	[policy.jobspec.defaults.system]
	queue = "batch"
	EOF2
}
test_under_flux 2

# A request by raw RPC: prints the answer, or fails with the error's text.
rpc () {
	flux python "$DWS_SRCDIR/engine/t/scripts/job-rpc.py" "$@"
}
clean () {
	flux job wait-event -q -t 300 $1 clean
}
context () {
	flux job eventlog -f json $1 >eventlog.out &&
	jq -c "select(.name == \"$2\").context" <eventlog.out
}

test_expect_success 'named queues begin stopped' '
	jobid=$(flux submit true) &&
	flux job wait-event -q -t 300 $jobid priority &&
	test "$(rpc job-manager.queue-status name=batch >rpc.out && jq .start <rpc.out)" = false &&
	flux queue start --all &&
	clean $jobid
'
test_expect_success 'defaults are those of the queue' '
	flux job info $jobid jobspec >spec &&
	test "$(jq -r .attributes.system.queue spec)" = batch &&
	jobid=$(flux submit -q debug true) &&
	flux job info $jobid jobspec >spec &&
	test "$(jq .attributes.system.duration spec)" = 600 &&
	clean $jobid
'
test_expect_success 'an unknown queue is refused' '
	test_must_fail flux submit -q nosuch true >err 2>&1 &&
	grep "Invalid queue .nosuch. specified" err
'
test_expect_success 'a stopped queue calls its jobs back' '
	flux run -q debug true &&
	blocker=$(flux submit -N2 --exclusive sleep inf) &&
	flux job wait-event -q -t 300 $blocker start &&
	jobid=$(flux submit -q debug true) &&
	flux job wait-event -q -t 300 $jobid priority &&
	flux queue stop debug &&
	flux cancel $blocker &&
	clean $blocker &&
	flux run true &&
	test "$(flux jobs -no "{state}" $jobid)" = SCHED &&
	flux queue start debug &&
	clean $jobid
'
test_expect_success 'a jobspec that is not one is refused' '
	for spec in "{}" "[]" "{\"version\": 2}"; do
		test_must_fail rpc submit "$spec" 2>err || return 1
	done
'
test_expect_success 'flags and urgency are checked' '
	test_must_fail rpc submit-true urgency=32 2>err &&
	grep "urgency range is" err &&
	test_must_fail rpc submit-true flags=64 2>err &&
	grep "invalid job flags" err
'
test_expect_success 'hold, release, expedite' '
	jobid=$(flux submit --urgency=hold true) &&
	flux job wait-event -q -t 300 -m priority=0 $jobid priority &&
	flux job urgency $jobid expedite &&
	flux job wait-event -q -t 300 -m priority=4294967295 $jobid priority &&
	clean $jobid
'
test_expect_success 'what cannot be is said' '
	test_must_fail rpc job-manager.urgency id=1234 urgency=1 2>err &&
	grep "unknown job" err &&
	test_must_fail rpc job-manager.raise id=1234 severity=0 type=x 2>err &&
	grep "unknown job id" err &&
	test_must_fail rpc job-manager.raise id=$jobid severity=0 type=x 2>err &&
	grep "job is inactive" err &&
	test_must_fail rpc job-manager.raise id=$jobid severity=9 type=x 2>err &&
	grep "invalid exception severity" err &&
	test_must_fail rpc job-manager.raise id=$jobid severity=0 "type=a b" 2>err &&
	grep "invalid exception type" err &&
	test_must_fail rpc job-manager.kill id=$jobid signum=15 2>err &&
	grep "job is inactive" err &&
	test_must_fail rpc job-manager.kill id=$jobid signum=1000 2>err &&
	grep "Invalid signal number" err
'
test_expect_success 'a job can be updated within limits' '
	jobid=$(flux submit --urgency=hold true) &&
	flux update $jobid duration=5m &&
	context $jobid jobspec-update |
		jq -e ".[\"attributes.system.duration\"] == 300" &&
	test_must_fail rpc job-manager.update id=$jobid \
		"updates={\"attributes.system.duration\": -5.0}" 2>err &&
	grep "must not be negative" err &&
	test_must_fail flux update $jobid foo=1 &&
	test_must_fail rpc job-manager.update id=$jobid \
		"updates={\"version\": 2}" 2>err &&
	grep "updates are invalid" err &&
	flux job info $jobid jobspec >spec &&
	jq -e ".attributes.system.duration == 300" spec
'
test_expect_success 'a memo is seen, and can be taken back' '
	flux job memo $jobid note=one other=two &&
	flux jobs -no "{user.note}" $jobid >note &&
	grep one note &&
	flux job memo $jobid note=null &&
	flux jobs -no "{user.note}{user.other}" $jobid >note2 &&
	grep -x two note2 &&
	flux cancel $jobid
'
test_expect_success 'waitable jobs are waited for once' '
	jobid=$(flux submit --flags=waitable false) &&
	test_must_fail flux job wait $jobid &&
	test_must_fail rpc job-manager.wait id=$jobid 2>err &&
	grep "not waitable" err &&
	test_must_fail rpc job-manager.wait id=-1 2>err &&
	grep "no more waitable jobs" err
'
test_expect_success 'lists can be constrained' '
	rpc list "{\"and\": [{\"states\": [\"inactive\"]},
		{\"results\": [\"failed\"]}]}" >out &&
	test "$(jq ".jobs | length" out)" -ge 1 &&
	test "$(jq "[.jobs[] | select(.result != 2)] | length" out)" = 0 &&
	rpc list "{\"not\": [{\"queue\": [\"batch\"]}]}" >out &&
	test "$(jq "[.jobs[] | select(.queue == \"batch\")] | length" out)" = 0 &&
	rpc list "{\"t_submit\": [\"<1\"]}" >out &&
	test "$(jq ".jobs | length" out)" = 0 &&
	for c in "{\"foo\": [1]}" "{\"states\": [\"foo\"]}" "{\"t_run\": [\"1\"]}" \
		"{\"userid\": [\"x\"]}" "[]"; do
		test_must_fail rpc list "$c" 2>err || return 1
	done
'
test_expect_success 'job-info has values, and says what it has not' '
	jobid=$(flux submit true) &&
	clean $jobid &&
	test "$(flux job info $jobid R >R.out && jq -r .version <R.out)" = 1 &&
	test_must_fail flux job info $jobid nosuch 2>err &&
	grep "key not found" err &&
	test_must_fail rpc job-info.lookup id=1234 "keys=[\"R\"]" flags=0 2>err &&
	grep "invalid job id" err
'
test_done
