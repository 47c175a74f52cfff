#!/bin/bash
# flux rabbit report: what became of the rabbit jobs that ended lately.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='flux rabbit report'
. "$(dirname "$0")/sharness.sh"
test_under_flux 2

# told: as flux rabbit report has it, once job-list knows of as many jobs
told () {
	flux rabbit report --json >json && jq -e ".jobs == $1" json
}

test_expect_success 'no job yet' '
	dws_setup &&
	flux rabbit report >out && grep "^no rabbit job ended from 20" out &&
	flux rabbit report --json >json && jq -e ".jobs == 0 and .wait == null" json
'
test_expect_success 'jobs that end well, that fail by themselves, by a fault, and cancelled' '
	for n in 1 2; do
		jobid=$(dws_submit true) && dws_wait_event $jobid clean || return 1
	done &&
	plain=$(flux submit -N1 true) &&
	jobid=$(dws_submit false) && dws_wait_event $jobid clean &&
	for n in 1 2; do
		dws_ctl fail Setup --message "no such pool $n" --severity Fatal &&
		broken=$(dws_submit true) && dws_wait_event $broken clean && dws_ctl fail Setup --clear || return 1
	done &&
	jobid=$(dws_submit sleep inf) && dws_wait_event $jobid start &&
	flux cancel $jobid && dws_wait_event $jobid clean &&
	dws_until told 6
'
test_expect_success 'they are counted, and faults that differ in a number are one' '
	jq -e ".results == {completed: 2, failed: 3, canceled: 1}" json &&
	jq -e ".users == {\"$(id -un)\": 6}" json &&
	jq -e "[.failures[] | .jobs | length] == [2, 1]" json &&
	jq -e ".failures[0].cause | test (\"no such pool #\")" json &&
	jq -e --arg id $broken ".failures[0].jobs | index (\$id)" json &&
	jq -e ".failures[1].cause == \"its own tasks\"" json &&
	jq -e "[.days[]] | last == {completed: 2, failed: 3, canceled: 1}" json &&
	jq -e ".days | length == 8" json
'
test_expect_success 'times: waiting, in each state, and what nodes did' '
	jq -e ".wait.count == 6 and .wait.min > 0" json &&
	jq -e "[.states[].state] == [\"Proposal\", \"Setup\", \"DataIn\", \"PreRun\",
		\"PostRun\", \"DataOut\", \"Teardown\"]" json &&
	jq -e ".node_seconds | .held > 0 and .before > 0 and .after > 0
		and .before + .after < .held" json
'
test_expect_success 'on a screen' '
	flux rabbit report >out &&
	grep "jobs  *6 ended: 3 failed, 2 completed, 1 canceled" out &&
	grep "wait  *from submission to nodes: median " out &&
	grep "nodes  *0.0 node-hours: storage took .* % before the tasks, .* % after" out &&
	grep "^Setup  *[46] " out &&
	grep "^     2  *$broken  .*no such pool #.*fault: storage" out &&
	awk "length (\$0) > 80 && !/$broken/ { exit 1 }" out
'
test_expect_success 'as a page with plots, which needs nothing else' '
	flux rabbit report --since 3d --html report.html >out && grep -Fx report.html out &&
	test $(grep -c "<svg" report.html) = 2 &&
	grep "no such pool #" report.html && grep "<td>its own tasks</td>" report.html &&
	test_must_fail grep -E "src=|href=|@import" report.html
'
test_expect_success 'only of a time' '
	flux rabbit report --since 0s >out && grep "^no rabbit job ended" out &&
	test_expect_code 2 flux rabbit report --since soon 2>err &&
	grep "'"'soon' is not a time, such as 12h or 7d"'" err
'
test_done
