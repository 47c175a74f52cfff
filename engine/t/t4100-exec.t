#!/bin/bash
# How jobs run: exit codes, cancellation, limits, signals, simulation.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='The exec service and the course of jobs'
. "$(dirname "$0")/../../t/sharness.sh"

dws_config () {
	cat <<-EOF2
	[exec]
	kill-timeout = "0.5s"
	EOF2
}
test_under_flux 4

# lines N FILE
lines () {
	test "$(wc -l <"$2")" = "$1"
}

# events JOBID [NAME...]: names of the job's events, only the given ones
events () {
	flux job eventlog -f json $1 >eventlog.out &&
	jq -r .name <eventlog.out >events.all &&
	shift &&
	grep -xE "$(IFS="|" && echo "$*")" events.all >events.out
}
context () {
	flux job eventlog -f json $1 >eventlog.out &&
	jq -c "select(.name == \"$2\").context" <eventlog.out
}

test_expect_success 'a job passes through its events in order' '
	jobid=$(flux submit true) &&
	flux job wait-event -t 300 $jobid clean &&
	events $jobid submit validate depend priority alloc start finish \
		release free clean &&
	cat >expected <<-EOF2 &&
	submit
	validate
	depend
	priority
	alloc
	start
	finish
	release
	free
	clean
	EOF2
	test_cmp expected events.out
'
# Two write it: the shells may be on their way before it says that they are started.
test_expect_success 'its exec eventlog is there when it is inactive' '
	flux job eventlog -f json -p exec $jobid >eventlog.out &&
	jq -r .name <eventlog.out >exec.all &&
	grep -xE "init|starting|complete|done" exec.all >exec.out &&
	printf "%s\n" init starting complete done >expected &&
	test_cmp expected exec.out &&
	grep -xE "init|shell.init|shell.start|complete" exec.all >shell.out &&
	printf "%s\n" init shell.init shell.start complete >expected &&
	test_cmp expected shell.out
'
test_expect_success 'the exit code is that of the command' '
	test_expect_code 3 flux run sh -c "exit 3" &&
	jobid=$(flux job last) &&
	test "$(context $jobid finish)" = "{\"status\":768}"
'
test_expect_success 'a signal counts 128 more' '
	test_expect_code 137 flux run sh -c "kill -9 \$\$" &&
	jobid=$(flux job last) &&
	test "$(context $jobid finish)" = "{\"status\":35072}"
'
test_expect_success 'of several tasks the greatest exit code counts' '
	test_expect_code 2 flux run -N2 -n4 sh -c "exit \$((FLUX_TASK_RANK % 3))"
'
test_expect_success 'a command that is not there ends the job' '
	test_expect_code 127 flux run ./no-such-command 2>err &&
	grep "no-such-command: No such file or directory" err
'
test_expect_success 'a program that may not be executed does, too' '
	echo "#!/bin/sh" >not-executable &&
	test_expect_code 126 flux run ./not-executable 2>err &&
	grep "Permission denied" err
'
test_expect_success 'a running job can be cancelled' '
	jobid=$(flux submit -N4 sleep 300) &&
	flux job wait-event -t 300 -p exec $jobid shell.start &&
	flux cancel $jobid &&
	flux job wait-event -t 300 $jobid clean &&
	context $jobid exception | jq -e ".type == \"cancel\"" &&
	test_expect_code 143 flux job attach $jobid
'
test_expect_success 'one that ignores SIGTERM is killed' '
	jobid=$(flux submit sh -c "trap \"\" TERM; echo ready; while :; do sleep 0.1; done") &&
	flux job wait-event -t 300 -p output $jobid data &&
	flux cancel $jobid &&
	flux job wait-event -t 300 $jobid clean &&
	test_expect_code 137 flux job attach $jobid
'
test_expect_success 'one that starts is cancelled, too' '
	for i in 1 2 3 4 5; do
		jobid=$(flux submit -N4 sleep 300) &&
		flux job wait-event -t 300 $jobid alloc &&
		flux cancel $jobid &&
		flux job wait-event -t 300 $jobid clean || return 1
	done
'
test_expect_success 'a time limit ends a job' '
	jobid=$(flux submit -t 1s sleep 300) &&
	flux job wait-event -t 300 $jobid clean &&
	context $jobid exception >exception &&
	jq -e ".type == \"timeout\" and .severity == 0" exception &&
	grep "resource allocation expired" exception
'
# expire ID S: the job's time is over S seconds from now
expire () {
	flux python -c "
import flux, flux.job, time
payload = {\"id\": flux.job.JobID(\"$1\"), \"expiration\": time.time() + $2}
flux.Flux().rpc(\"job-exec.expiration\", payload).get()"
}
test_expect_success 'the limit of a job that runs may change' '
	jobid=$(flux submit -t 1h sleep 300) &&
	flux job wait-event -t 300 $jobid start &&
	expire $jobid 0.1 &&
	flux job wait-event -t 300 $jobid clean &&
	context $jobid exception | jq -e ".type == \"timeout\""
'
test_expect_success 'but not that of one that is not there' '
	test_must_fail expire $jobid 10 2>err &&
	grep "No such file" err
'
test_expect_success 'a signal reaches the tasks' '
	jobid=$(flux submit -N2 sh -c "trap \"exit 7\" USR1; echo ready; while :; do sleep 0.1; done") &&
	flux job wait-event -t 300 -c 2 -p output $jobid data &&
	flux job kill -s USR1 $jobid &&
	test_expect_code 7 flux job status $jobid
'
test_expect_success 'no signal reaches a job that is not running' '
	test_must_fail flux job kill $jobid 2>err &&
	grep "job is inactive" err
'
test_expect_success 'simulated execution has no shell' '
	jobid=$(flux submit --setattr=exec.test.run_duration=0.1s ./no-such-command) &&
	flux job wait-event -t 300 $jobid clean &&
	test "$(context $jobid finish)" = "{\"status\":0}" &&
	flux job eventlog -p exec $jobid >exec.out &&
	test_must_fail grep shell exec.out
'
test_expect_success 'it can fail' '
	jobid=$(flux submit --setattr=exec.test.run_duration=0.1s \
		--setattr=exec.test.wait_status=256 true) &&
	flux job wait-event -t 300 $jobid clean &&
	test "$(context $jobid finish)" = "{\"status\":256}"
'
test_expect_success 'it can be cancelled' '
	jobid=$(flux submit --setattr=exec.test.run_duration=300s true) &&
	flux job wait-event -t 300 $jobid start &&
	flux cancel $jobid &&
	flux job wait-event -t 300 $jobid clean &&
	context $jobid finish
'
test_expect_success 'its time limit counts' '
	jobid=$(flux submit -t 1s --setattr=exec.test.run_duration=300s true) &&
	flux job wait-event -t 300 $jobid clean &&
	context $jobid exception | jq -e ".type == \"timeout\""
'
test_expect_success 'jobs that run at once do not disturb each other' '
	ids=$(for i in 1 2 3 4 5 6 7 8; do flux submit -n2 echo $i; done) &&
	flux job status $ids &&
	n=0 &&
	for jobid in $ids; do
		n=$((n + 1)) &&
		flux job attach $jobid >out &&
		test "$(sort -u out)" = $n &&
		lines 2 out || return 1
	done
'
test_expect_success 'nothing is left allocated' '
	flux resource list -s allocated -no "{nnodes}" >allocated &&
	test "$(cat allocated)" = 0
'
test_done
