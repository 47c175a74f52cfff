#!/bin/bash
# Under Fluxion a rabbit job waits for nodes that are busy, also with jobs that have no
# time limit, and is not refused. Fluxion refuses a job with a constraint then, under
# the queue policies fcfs, its default, and easy.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Rabbit jobs wait for busy nodes under Fluxion'
. "$(dirname "$0")/sharness.sh"
test_under_flux 4

dws_has_fluxion && test_set_prereq FLUXION

updates () {
	flux job eventlog --format=json $1 >eventlog.out &&
	jq -es "[.[] | select(.name == \"jobspec-update\").context]
		| add | $2" <eventlog.out
}
# policy NAME: of Fluxion's queue, which has no jobs
policy () {
	flux module remove sched-fluxion-qmanager &&
	flux module load sched-fluxion-qmanager queue-policy=$1
}
# fill: jobs without a time limit, and without storage, have all nodes
fill () {
	fillers= &&
	for i in 0 1 2 3; do
		id=$(flux submit -N1 -x sleep inf) &&
		dws_wait_event $id start || return 1
		fillers="$fillers $id"
	done
}
# waits JOBID: it waits for them, is not refused, and runs
waits () {
	dws_wait_event $1 priority &&
	other=$(flux submit -N1 -x -t 1m true) &&
	dws_wait_event $other priority &&
	test "$(flux jobs -no "{state}" $1)" = SCHED &&
	flux cancel $fillers &&
	dws_wait_event $1 clean &&
	flux job status $1 &&
	dws_wait_event $other clean
}

test_expect_success FLUXION 'start' '
	dws_start_sim &&
	DWS_SCHEDULER=fluxion &&
	echo "restrict_persistent_creation = false" >rabbit.toml &&
	dws_kube create nnfstorageprofiles nnf-system fast \
		"{\"data\": {\"xfsStorage\": {\"storageLabels\": [\"tier=fast\"]}}}" &&
	dws_kube patch storages default rabbit1 \
		"{\"metadata\": {\"labels\": {\"tier\": \"fast\"}}}" &&
	dws_load &&
	dws_start_agent &&
	dws_wait_status ".health.settled and .health.scheduler == \"fluxion\""
'
test_expect_success FLUXION 'a job with storage of its own has no constraint' '
	fill &&
	jobid=$(flux submit -N2 -S dw="$DWS_DIRECTIVE" true) &&
	waits $jobid &&
	updates $jobid "has (\"attributes.system.constraints\") | not"
'
test_expect_success FLUXION 'twelve jobs without a time limit run on four nodes' '
	ids=$(flux submit --cc=1-12 -N1 -x -S dw="$DWS_DIRECTIVE" true) &&
	for id in $ids; do
		dws_wait_event $id clean && flux job status $id || return 1
	done
'
test_expect_success FLUXION 'a constraint of the user stays as it is' '
	jobid=$(flux submit -N1 -t 1m --requires=rank:1 -S dw="$DWS_DIRECTIVE" true) &&
	dws_wait_event $jobid clean &&
	updates $jobid "has (\"attributes.system.constraints\") | not" &&
	test "$(flux jobs -no "{nodelist}" $jobid)" = node1
'
test_expect_success FLUXION 'one that uses storage next to nodes waits for them' '
	policy conservative &&
	flux run -N1 -t 1m -S dw="#DW create_persistent type=xfs capacity=1GiB name=keep" \
		true &&
	fill &&
	jobid=$(flux submit -N1 -S dw="#DW persistentdw name=keep" true) &&
	waits $jobid &&
	updates $jobid ".[\"attributes.system.constraints\"]"
'
test_expect_success FLUXION 'so does one that needs rabbits with a label' '
	fill &&
	jobid=$(flux submit -N2 -S dw="$DWS_DIRECTIVE profile=fast" true) &&
	waits $jobid &&
	updates $jobid ".[\"attributes.system.constraints\"]" &&
	test "$(flux jobs -no "{nodelist}" $jobid)" = "node[2-3]"
'
test_expect_success FLUXION 'so does one of a user who asks for certain nodes' '
	fill &&
	jobid=$(flux submit -N2 --requires=rank:1-2 -S dw="$DWS_DIRECTIVE" true) &&
	waits $jobid &&
	test "$(flux jobs -no "{nodelist}" $jobid)" = "node[1-2]"
'
test_expect_success FLUXION 'so does one of these for room on their rabbit' '
	holder=$(flux submit -N1 -t 1h --requires=rank:1 \
		-S dw="#DW jobdw type=xfs capacity=600GiB name=large" sleep inf) &&
	dws_wait_event $holder start &&
	fillers=$holder &&
	jobid=$(flux submit -N1 -t 5m --requires=rank:0 \
		-S dw="#DW jobdw type=xfs capacity=600GiB name=large" true) &&
	waits $jobid &&
	test "$(flux jobs -no "{nodelist}" $jobid)" = node0
'
# next_to RANK: submit a job of 600 GiB there
next_to () {
	flux submit -N1 -t 5m --requires=rank:$1 \
		-S dw="#DW jobdw type=xfs capacity=600GiB name=large" "${@:2}"
}
# not_refused JOBID...: they wait when Fluxion has looked at them, and runs another job
not_refused () {
	flux run -N1 -t 1m --urgency=31 true &&
	for id in "$@"; do
		test "$(flux jobs -no "{state}" $id)" = SCHED || return 1
	done
}
run_well () {
	for id in "$@"; do
		dws_wait_event $id clean && flux job status $id || return 1
	done
}
for policy in fcfs easy conservative; do
	test_expect_success FLUXION "$policy: next to each node they wait for room" '
		policy $policy &&
		holder=$(next_to 0 sleep inf) &&
		dws_wait_event $holder start &&
		first=$(next_to 1 true) && second=$(next_to 0 true) &&
		dws_wait_event $second priority &&
		not_refused $first $second &&
		flux cancel $holder && run_well $first $second
	'
done
test_expect_success FLUXION 'and for a rabbit that is down' '
	dws_ctl rabbit rabbit0 down &&
	dws_wait_status ".health.settled and .health.down == [\"rabbit0\"]" &&
	first=$(next_to 0 true) && second=$(next_to 1 true) &&
	dws_wait_event $second priority &&
	not_refused $first $second
'
test_expect_success FLUXION 'also when Fluxion is loaded again, with all ssds down' '
	flux module remove sched-fluxion-qmanager &&
	flux module reload sched-fluxion-resource match-format=rv1 &&
	flux module load sched-fluxion-qmanager queue-policy=conservative &&
	not_refused $first $second &&
	dws_ctl rabbit rabbit0 up &&
	run_well $first $second &&
	dws_wait_status ".health.settled and .health.down == []"
'
test_expect_success FLUXION 'while a node has no link, jobs avoid it' '
	dws_ctl link node1 down &&
	dws_wait_status ".health.settled and .health.badrabbit == \"node1\"" &&
	flux resource undrain node1 &&
	fill &&
	jobid=$(flux submit -N3 -S dw="$DWS_DIRECTIVE" true) &&
	waits $jobid &&
	updates $jobid ".[\"attributes.system.constraints\"].not" &&
	test "$(flux jobs -no "{nodelist}" $jobid)" = "node[0,2-3]" &&
	dws_ctl link node1 up &&
	dws_wait_status ".health.settled and .health.badrabbit == \"\""
'
# asks JOBID: for nodes without the property
asks () {
	dws_wait_event $1 priority &&
	updates $1 ".[\"attributes.system.constraints\"] | tostring" >asked &&
	grep badrabbit asked
}
# with LINE...: in the table [rabbit], and after it
with () {
	sed "s/^mapping = .*/&\n$1/" before.toml >"$DWS_TMP/conf.d/test.toml" &&
	printf "%s\n" "${@:2}" >>"$DWS_TMP/conf.d/test.toml" &&
	flux config reload
}
test_expect_success FLUXION 'and where no node is drained for its link' '
	cp "$DWS_TMP/conf.d/test.toml" before.toml &&
	with "drain_compute_nodes = false" &&
	jobid=$(flux submit -N1 -t 1m -S dw="$DWS_DIRECTIVE" true) &&
	asks $jobid &&
	dws_wait_event $jobid clean
'
test_expect_success FLUXION 'or not all of them' '
	with "drain_queues = [\"some\"]" "[queues.some]" "requires = [\"fast\"]" &&
	jobid=$(flux submit -N1 -t 1m --queue=some -S dw="$DWS_DIRECTIVE" true) &&
	asks $jobid
'
test_done
