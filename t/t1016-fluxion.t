#!/bin/bash
# Rabbit jobs under Fluxion: it hands out whole ssds, what it has set aside on
# each rabbit is what the job's storage goes to, and it hears of what is broken.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Rabbit jobs under Fluxion'
. "$(dirname "$0")/sharness.sh"
test_under_flux 4

LINK_REASON="rabbit: lost its PCIe link"

# settled FILTER: all have been told of what is, and the filter is true of it
settled () {
	dws_wait_status ".health.settled and (.health | $1)"
}
# find_in_graph CRITERIA TYPE: paths of the vertices of this type that meet it
find_in_graph () {
	rpc sched-fluxion-resource.find "{\"criteria\": \"$1\",
		\"format\": \"jgf\"}" >found &&
	jq -r "(.R // {} | .graph.nodes // [])[].metadata
		| select(.type == \"$2\") | .paths.containment" found | sort
}
drained_for () {
	rpc resource.status >rpc.out &&
	jq -r ".drain | to_entries[]
		| select(.value.reason == \"$1\") | .key" <rpc.out
}

# marked: node1 has the property, and no other
marked () {
	test "$(find_in_graph property=badrabbit node)" = /c/chassis0/node1
}

dws_has_fluxion && test_set_prereq FLUXION

# Of 113 GiB, 100 are available.
test_expect_success FLUXION 'rabbits of four parts of 25 GiB, in Fluxion' '
	dws_start_sim --capacity 113GiB &&
	flux kvs get resource.R >R &&
	flux dws2jgf -c 4 --cluster-name=c mapping.json <R >R.graph &&
	cat >>"$DWS_TMP/conf.d/test.toml" <<-EOF &&

	[rabbit]
	mapping = "$PWD/mapping.json"
	restrict_persistent_creation = false
	EOF
	flux config reload &&
	dws_use_fluxion R.graph &&
	flux module load "$DWS_MODULES/dws.so" &&
	flux jobtap load "$DWS_PLUGINS/dws-jobtap.so" &&
	dws_start_agent
'
test_expect_success FLUXION 'ssds, which begin as down, are up for good rabbits' '
	settled ".scheduler == \"fluxion\" and .down == []" &&
	test "$(find_in_graph status=down ssd)" = "" &&
	test "$(find_in_graph property=badrabbit node)" = ""
'
# held RABBIT GIB: the job has no more there
held () {
	jq -e "[.spec.allocationSets[] | .allocationSize as \$size | .storage[]
		| select(.name == \"$1\") | \$size * .allocationCount]
		| add <= $2 * 1073741824" servers.out
}
# 60 GiB and the other targets over 3 nodes are less than 25 for each, so each gets one
# ssd: 50 GiB are reserved on the rabbit with two of the nodes, 25 on the other. Each
# rabbit has room for a single target of 30 GiB.
test_expect_success FLUXION 'the job runs with its storage in its ssds' '
	dws_ctl hold PreRun &&
	jobid=$(flux submit -N3 --requires=rank:0-2 \
		-S dw="#DW jobdw type=lustre capacity=60GiB name=scratch" true) &&
	dws_ctl wait-state $(dws_workflow $jobid) PreRun --timeout 300 &&
	flux job info $jobid R >R.out &&
	jq -e ".scheduling.graph.nodes
		| map(select(.metadata.type == \"ssd\")) | length == 3" <R.out &&
	dws_k8s get servers $(dws_workflow $jobid)-0 >servers.out &&
	held rabbit0 50 && held rabbit1 25 &&
	dws_ctl release PreRun &&
	dws_wait_event $jobid clean &&
	flux job status $jobid
'
test_expect_success FLUXION 'one goes next to the rabbits that its user names' '
	for rabbit in 1 0; do
		jobid=$(flux submit -N2 --dw="$DWS_DIRECTIVE" --dw-rabbits=rabbit$rabbit true) &&
		dws_wait_event $jobid clean && flux job status $jobid &&
		flux jobs -no "{nodelist}" $jobid >>nodes || return 1
	done &&
	jobid=$(flux submit -N2 --dw="$DWS_DIRECTIVE" --dw-near=$jobid true) &&
	dws_wait_event $jobid clean && flux job status $jobid &&
	flux jobs -no "{nodelist}" $jobid >>nodes &&
	printf "node[%s]\n" 2-3 0-1 0-1 >expected &&
	test_cmp expected nodes
'
test_expect_success FLUXION 'all at once' '
	jobid=$(flux submit -N4 -S dw="$DWS_DIRECTIVE" true) &&
	dws_wait_event $jobid clean &&
	flux job status $jobid
'
# down_are N: so many ssds of rabbit0 are down, and it has all been told
down_are () {
	settled "true" &&
	find_in_graph status=down ssd >down &&
	test $(wc -l <down) = $1
}
test_expect_success FLUXION 'as many are down as others than jobs have' '
	dws_k8s create servers "{\"metadata\": {\"name\": \"other\"},
		\"spec\": {\"allocationSets\": [{\"label\": \"xfs\",
		\"allocationSize\": 32212254720, \"storage\": [
		{\"name\": \"rabbit0\", \"allocationCount\": 1}]}]}}" >/dev/null &&
	dws_wait_status ".rabbits.foreign == 32212254720" &&
	dws_until down_are 2 &&
	jobid=$(flux submit -N1 -t 5m --requires=rank:0 \
		-S dw="#DW jobdw type=xfs capacity=60GiB name=large" true) &&
	dws_wait_event $jobid priority &&
	other=$(flux submit -N1 -t 1m --requires=rank:1 --urgency=31 \
		-S dw="$DWS_DIRECTIVE" true) &&
	dws_wait_event $other clean &&
	flux job status $other &&
	test "$(flux jobs -no "{state}" $jobid)" = SCHED
'
test_expect_success FLUXION 'up again when it is gone' '
	dws_k8s delete servers other >/dev/null &&
	dws_wait_event $jobid clean &&
	flux job status $jobid &&
	dws_until down_are 0
'
test_expect_success FLUXION 'those of persistent storage are down when its job is over' '
	flux run -N1 -t 1m --requires=rank:0 \
		-S dw="#DW create_persistent type=xfs capacity=30GiB name=keep" true &&
	dws_until down_are 2 &&
	flux module reload dws &&
	dws_wait_status ".agent.synced" &&
	dws_until down_are 2 &&
	flux run -N1 -t 1m -S dw="#DW destroy_persistent name=keep" true &&
	dws_until down_are 0
'
test_expect_success FLUXION 'those of lost drives are down' '
	dws_ctl drive rabbit0 8 failed &&
	dws_ctl drive rabbit0 7 failed &&
	dws_ctl drive rabbit0 15 failed &&
	dws_until down_are 1 &&
	flux rabbit list -no "{name} {drives}" rabbit0 >out &&
	grep "rabbit0 15/18" out &&
	for slot in 8 7 15; do
		dws_ctl drive rabbit0 $slot ok || return 1
	done &&
	dws_until down_are 0
'
test_expect_success FLUXION 'those of a rabbit that is down are down' '
	for i in 0 1 2 3; do echo /c/chassis0/ssd$i; done >ssds &&
	dws_ctl rabbit rabbit0 down &&
	settled ".down == [\"rabbit0\"]" &&
	find_in_graph status=down ssd >down &&
	test_cmp ssds down
'
# Without a time limit Fluxion would find it unsatisfiable: there is no later.
test_expect_success FLUXION 'jobs that need them wait until they are up' '
	jobid=$(flux submit -N4 -t 1m -S dw="$DWS_DIRECTIVE" true) &&
	dws_wait_event $jobid priority &&
	other=$(flux submit -N2 -t 1m -S dw="$DWS_DIRECTIVE" --urgency=31 true) &&
	dws_wait_event $other clean &&
	test "$(flux jobs -no "{nodelist}" $other)" = "node[2-3]" &&
	test "$(flux jobs -no "{state}" $jobid)" = SCHED &&
	dws_ctl rabbit rabbit0 up &&
	dws_wait_event $jobid clean &&
	flux job status $jobid
'
test_expect_success FLUXION 'a node without a link is drained, or marked' '
	dws_ctl link node1 down &&
	settled ".badrabbit == \"node1\"" &&
	test "$(drained_for "$LINK_REASON")" = 1 &&
	test "$(find_in_graph property=badrabbit node)" = "" &&
	flux resource undrain node1 &&
	dws_until marked
'
test_expect_success FLUXION 'rabbit jobs avoid it then' '
	jobid=$(flux submit -N3 -t 1m -S dw="$DWS_DIRECTIVE" true) &&
	dws_wait_event $jobid clean &&
	test "$(flux jobs -no "{nodelist}" $jobid)" = "node[0,2-3]" &&
	flux run -N4 -t 1m true
'
test_expect_success FLUXION 'a Fluxion that is loaded again is told again' '
	dws_ctl rabbit rabbit1 down &&
	settled ".down == [\"rabbit1\"]" &&
	flux module remove sched-fluxion-qmanager &&
	flux module remove sched-fluxion-resource &&
	dws_wait_status ".health.scheduler == null" &&
	flux module load sched-fluxion-resource match-format=${DWS_MATCH_FORMAT:-rv1} &&
	flux module load sched-fluxion-qmanager &&
	settled ".scheduler == \"fluxion\"" &&
	sed s/chassis0/chassis1/ ssds >expected &&
	find_in_graph status=down ssd >down &&
	test_cmp expected down &&
	marked
'
test_expect_success FLUXION 'what a life of the module leaves goes in the next' '
	flux module remove dws &&
	dws_ctl link node1 up &&
	dws_ctl rabbit rabbit1 up &&
	marked &&
	flux module load "$DWS_MODULES/dws.so" &&
	dws_wait_status ".agent.synced" &&
	settled ".badrabbit == \"\"" &&
	test "$(find_in_graph property=badrabbit node)" = "" &&
	test "$(find_in_graph status=down ssd)" = ""
'
test_expect_success FLUXION 'where the graph has no rabbits a job ends with the reason' '
	dws_remove_scheduler &&
	dws_wait_status ".health.scheduler == null" &&
	dws_use_fluxion R &&
	settled ".scheduler == \"fluxion\"" &&
	jobid=$(dws_submit -t 1m true) &&
	dws_wait_event $jobid clean &&
	flux job eventlog $jobid >log.out &&
	grep "exception type=\"dws-create\" severity=0 .*no rabbits in its resource graph" log.out
'
test_expect_success FLUXION 'unload' '
	flux module remove sched-fluxion-qmanager &&
	flux module remove sched-fluxion-resource &&
	flux module load sched-simple
'
test_done
