#!/bin/bash
# A rabbit is never given more than it has left, even if the scheduler thinks
# that there is room: what other jobs hold counts.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Room left on the rabbits'
. "$(dirname "$0")/sharness.sh"
test_under_flux 4

DWS_DIRECTIVE='#DW jobdw type=xfs capacity=60GiB name=scratch'

# submit_to RANK: one node, of which two hang on each rabbit
submit_to () {
	flux submit -N1 --requires=rank:$1 -S dw="$DWS_DIRECTIVE" true
}

scheduler_says () {
	rpc sched-rabbit.stats-get >rpc.out &&
	jq -e "$1" <rpc.out
}

test_expect_success 'rabbits of 100 GiB, of which the mapping claims 1000' '
	dws_start_sim --capacity 100GiB &&
	jq ".rabbits[].capacity = 1000 * 1073741824" mapping.json >map &&
	mv map mapping.json &&
	dws_load && dws_start_agent &&
	dws_wait_status ".health.settled"
'
test_expect_success 'the scheduler hears better, but forgets it' '
	scheduler_says ".rabbits.rabbit0.capacity_gib == 88" &&
	rpc sched-rabbit.health "{\"rabbits\": {
		\"rabbit0\": {\"capacity\": 1073741824000}}}"
'
test_expect_success 'a job holds 60 GiB of one' '
	dws_ctl hold PreRun &&
	first=$(submit_to 0) &&
	dws_ctl wait-state $(dws_workflow $first) PreRun --timeout 300
'
test_expect_success 'no other job gets 60 GiB of the same' '
	second=$(submit_to 1) &&
	dws_wait_event $second clean &&
	flux job eventlog $second >eventlog &&
	grep "exception.*61 GiB are needed on rabbit rabbit0, 28 GiB are left" eventlog
'
# servers NAME WORKFLOW SPEC: an object that somebody else has made.
servers () {
	dws_k8s create servers "{
		\"metadata\": {\"name\": \"$1\", \"labels\": {
			\"dataworkflowservices.github.io/workflow.name\": \"$2\"}},
		\"spec\": $3}" >/dev/null
}
test_expect_success 'a restart of the module does not forget what is held' '
	used=$(dws_status >status.out && jq .rabbits.used <status.out) &&
	test $used -gt 0 &&
	flux module reload dws &&
	dws_wait_status ".agent.synced == true and .rabbits.used == $used"
'
# says FILTER: wait until dws.status says so of the rabbits
says () {
	dws_wait_status ".agent.synced == true and (.rabbits | $1)"
}
test_expect_success 'what others take counts, whoever that is, and at once' '
	sets="{\"allocationSets\": [{\"label\": \"xfs\",
		\"allocationSize\": 10737418240,
		\"storage\": [{\"name\": \"rabbit0\", \"allocationCount\": 1}]}]}" &&
	servers unknown fluxjob-1 "$sets" &&
	servers second $(dws_workflow $first)-0badcafe "$sets" &&
	servers empty $(dws_workflow $first) "{}" &&
	says ".used == $used and .foreign == 21474836480"
'
test_expect_success 'the scheduler is told, and counts whole GiB' '
	rpc sched-rabbit.stats-get >rpc.out &&
	jq -e ".rabbits.rabbit0.free_gib == 88 - 61 - 20" <rpc.out
'
test_expect_success 'the same after a restart of module, agent or scheduler' '
	flux module reload dws &&
	says ".used == $used and .foreign == 21474836480" &&
	dws_kill_agent && dws_start_agent &&
	says ".used == $used and .foreign == 21474836480" &&
	flux module reload sched-rabbit &&
	dws_until scheduler_says ".rabbits.rabbit0.free_gib == 88 - 61 - 20"
'
test_expect_success 'until it is gone' '
	for name in unknown second empty; do
		dws_k8s delete servers $name >/dev/null || return 1
	done &&
	says ".used == $used and .foreign == 0"
'
test_expect_success 'but of the other one' '
	third=$(submit_to 2) &&
	dws_ctl wait-state $(dws_workflow $third) PreRun --timeout 300
'
test_expect_success 'what can never fit is refused with what would' '
	flux submit -N1 -S dw="#DW jobdw type=xfs capacity=90GiB name=large" true \
		>large &&
	dws_wait_event $(cat large) clean &&
	flux job eventlog $(cat large) >eventlog &&
	grep "91 GiB of rabbit storage are needed for each node; no rabbit has more than 88 GiB" \
		eventlog
'
test_expect_success 'once the first is over there is room again' '
	dws_ctl release PreRun &&
	dws_wait_event $first clean &&
	fourth=$(submit_to 1) &&
	dws_wait_event $fourth clean &&
	flux job status $first $third $fourth &&
	dws_clean
'
test_done
