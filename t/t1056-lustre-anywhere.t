#!/bin/bash
# With lustre_placement = "anywhere" a job's Lustre may lie on any rabbits: it can be
# larger than those next to its nodes, and waits for room when it has its nodes.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Lustre that is not bound to the nodes of its job'
. "$(dirname "$0")/sharness.sh"
test_under_flux 8

CONFIG=$DWS_TMP/conf.d/test.toml

# set_key KEY VALUE: in the table [rabbit]
set_key () {
	sed -i "/^$1 =/d; s/^\[rabbit\]/[rabbit]\n$1 = $2/" "$CONFIG" &&
	flux config reload
}
# lustre GIB [OPTIONS...]: submit a job of one node, or as the options say. Sets jobid.
lustre () {
	size=$1 && shift &&
	jobid=$(flux submit -N1 "$@" \
		-S dw="#DW jobdw type=lustre capacity=${size}GiB name=scratch" true)
}
# xfs GIB [OPTIONS...]
xfs () {
	size=$1 && shift &&
	jobid=$(flux submit -N1 "$@" \
		-S dw="#DW jobdw type=xfs capacity=${size}GiB name=scratch" true)
}
in_prerun () {
	dws_ctl wait-state $(dws_workflow $1) PreRun --timeout $DWS_LIMIT
}
# targets JOBID LABEL: the rabbits that have those of the job, and how many
targets () {
	dws_k8s get servers $(dws_workflow $1)-0 >servers.out &&
	jq -r ".spec.allocationSets[]? | select(.label == \"$2\").storage[]
		| \"\(.name):\(.allocationCount)\"" servers.out | sort | xargs
}
# note JOBID REGEX
note () {
	flux python "$DWS_SRCDIR/t/scripts/wait_note.py" "$1" "^rabbit: $2" 20
}
ends () {
	flux cancel $1 && dws_wait_event $1 clean
}
done_well () {
	dws_wait_event $1 clean && flux job status $1
}
# free RABBIT GIB: so much of it the scheduler can give away
free () {
	rpc sched-rabbit.stats-get >rpc.out &&
	jq -e ".rabbits.$1.free_gib == $2" <rpc.out
}
restart () {
	flux module reload dws &&
	dws_kill_agent && dws_start_agent &&
	dws_wait_status ".agent.synced"
}

test_expect_success 'four rabbits of 100 GiB, with two of eight nodes each' '
	dws_start_sim --rabbits "rabbit[0-3]" --capacity 113GiB &&
	dws_load && dws_start_agent &&
	dws_wait_status ".agent.synced and .health.settled"
'
test_expect_success 'next to its nodes a job of one node has no more than a rabbit' '
	lustre 150 &&
	dws_wait_event $jobid clean &&
	flux job eventlog $jobid >eventlog &&
	grep "155 GiB of rabbit storage are needed for each node; no rabbit has more than 100 GiB" \
		eventlog
'
test_expect_success 'anywhere it lies on several, in equal parts, and the scheduler knows' '
	set_key lustre_placement "\"anywhere\"" &&
	dws_ctl hold PreRun &&
	lustre 150 --requires=rank:0 && wide=$jobid &&
	in_prerun $wide &&
	test "$(targets $wide ost)" = "rabbit0:1 rabbit1:1" &&
	test "$(targets $wide mgtmdt)" = rabbit0:1 &&
	dws_until free rabbit1 25 &&
	flux job info $wide R >R.out &&
	test_must_fail grep rabbit1 R.out
'
test_expect_success 'so is one whose own rabbit is full, on the emptiest' '
	lustre 120 --requires=rank:1 && second=$jobid &&
	in_prerun $second &&
	test "$(targets $second ost)" = "rabbit2:1 rabbit3:1" &&
	test "$(targets $second mgtmdt)" = rabbit2:1 &&
	dws_until free rabbit3 40 &&
	flux rabbit jobs >jobs.out &&
	grep "$second.*rabbit\[2-3\]" jobs.out
'
test_expect_success 'one that finds no room has its node and waits, with the numbers' '
	lustre 130 --requires=rank:2 && waits=$jobid &&
	note $waits "waiting for room on rabbits: .*130 GiB are needed.*4 of 4 rabbits can be used" &&
	test "$(targets $waits ost)" = ""
'
test_expect_success 'one that comes later and wants less waits behind it' '
	lustre 10 --requires=rank:3 && later=$jobid &&
	note $later "waiting for room on rabbits: job $waits .* is to get it first" &&
	flux rabbit show $later >show.out &&
	grep "room on rabbits: job $waits" show.out
'
test_expect_success 'storage that is bound to nodes does not wait for these' '
	xfs 20 --requires=rank:4 &&
	in_prerun $jobid &&
	ends $jobid
'
test_expect_success 'the scheduler gives nobody what they have' '
	xfs 50 --requires=rank:6 && xfs=$jobid &&
	dws_wait_event $xfs priority &&
	flux run -N1 --requires=rank:7 true &&
	test "$(flux jobs -no "{state}" $xfs)" = SCHED
'
test_expect_success 'nothing of this is lost when everything restarts' '
	restart &&
	flux module reload sched-rabbit &&
	dws_until free rabbit0 20 && dws_until free rabbit1 25 &&
	dws_until free rabbit2 35 && dws_until free rabbit3 40 &&
	note $waits "waiting for room on rabbits: .*130 GiB are needed" &&
	note $later "waiting for room on rabbits: job $waits" &&
	test "$(targets $waits ost)" = "" && test "$(targets $later ost)" = "" &&
	test "$(targets $wide ost)" = "rabbit0:1 rabbit1:1" &&
	test "$(flux jobs -no "{state}" $xfs)" = SCHED
'
test_expect_success 'one ends: the first that waits is woken, then the other' '
	ends $wide &&
	in_prerun $waits &&
	in_prerun $later &&
	test "$(targets $waits ost)" = "rabbit0:1 rabbit1:1" &&
	test "$(flux jobs -no "{state}" $xfs)" = SCHED
'
test_expect_success 'another ends: so is the job that waits for the scheduler' '
	ends $second &&
	in_prerun $xfs &&
	dws_ctl release PreRun &&
	done_well $waits && done_well $later && done_well $xfs &&
	dws_clean &&
	for i in 0 1 2 3; do dws_until free rabbit$i 100 || return 1; done
'
test_expect_success 'what all rabbits together do not have is refused' '
	lustre 500 &&
	dws_wait_event $jobid clean &&
	flux job eventlog $jobid >eventlog &&
	grep "505 GiB of rabbit storage are needed; all rabbits together have 401 GiB" \
		eventlog &&
	lustre 390 &&
	dws_wait_event -m type=dws-create $jobid exception >exception &&
	grep "set ost: 390 GiB are needed, in allocations of one size" exception &&
	dws_wait_event $jobid clean
'
test_expect_success 'what no rabbit can have stays away from one that is down' '
	dws_ctl rabbit rabbit3 down &&
	dws_wait_status ".health.down == [\"rabbit3\"] and .health.settled" &&
	dws_ctl hold PreRun &&
	lustre 150 --requires=rank:0 &&
	in_prerun $jobid &&
	test "$(targets $jobid ost)" = "rabbit0:1 rabbit1:1" &&
	lustre 200 --requires=rank:1 && waits=$jobid &&
	note $waits "waiting for room on rabbits: .*3 of 4 rabbits can be used" &&
	dws_ctl rabbit rabbit3 up &&
	in_prerun $waits
'
test_expect_success 'all end' '
	dws_ctl release PreRun &&
	dws_clean
'
test_expect_success '--dw-check says the same' '
	flux run -N1 --dw-check \
		--dw="#DW jobdw type=lustre capacity=150GiB name=scratch" true >check.out &&
	grep "ost: 150GiB or more, on any rabbits together" check.out &&
	test_must_fail flux run -N1 --dw-check \
		--dw="#DW jobdw type=lustre capacity=500GiB name=scratch" true 2>check.err &&
	grep "all rabbits together have 401 GiB" check.err
'
test_expect_success 'of several directives what is bound to nodes stays next to them' '
	dws_ctl hold PreRun &&
	jobid=$(flux submit -N1 --requires=rank:4 \
		-S dw="#DW jobdw type=xfs capacity=60GiB name=local
#DW jobdw type=lustre capacity=120GiB name=wide" true) &&
	in_prerun $jobid &&
	test "$(targets $jobid xfs)" = rabbit2:1 &&
	dws_k8s get servers $(dws_workflow $jobid)-1 >servers.out &&
	jq -e ".spec.allocationSets[0].storage | map(.name) == [\"rabbit0\", \"rabbit1\"]" \
		servers.out &&
	ends $jobid
'
test_expect_success 'nobody waits longer than the site lets them' '
	set_key space_timeout "\"0.1s\"" &&
	lustre 280 --requires=rank:0 && first=$jobid &&
	in_prerun $first &&
	lustre 150 --requires=rank:1 &&
	dws_wait_event -m type=dws-setup $jobid exception >exception &&
	grep "150 GiB are needed" exception &&
	dws_wait_event $jobid clean &&
	set_key space_timeout "\"20m\"" &&
	dws_ctl release PreRun &&
	done_well $first
'
test_expect_success 'many at once, of which a few find room: all have their turn' '
	for i in 1 2 3 4; do
		lustre 180 && echo $jobid && xfs 40 && echo $jobid || return 1
	done >jobs &&
	flux module reload dws &&
	for jobid in $(cat jobs); do
		done_well $jobid || return 1
	done &&
	dws_clean
'
test_expect_success 'next to the nodes again' '
	set_key lustre_placement "\"near\"" &&
	lustre 150 &&
	dws_wait_event -m type=dws-create $jobid exception >exception &&
	grep "no rabbit has more than 100 GiB" exception &&
	dws_clean
'

dws_has_fluxion && test_set_prereq FLUXION

# down_are N: so many ssds are down in Fluxion's graph, and it has been told all
down_are () {
	dws_wait_status ".health.settled" &&
	rpc sched-fluxion-resource.find "{\"criteria\": \"status=down\",
		\"format\": \"jgf\"}" >found &&
	test $(jq "[(.R // {} | .graph.nodes // [])[]
		| select(.metadata.type == \"ssd\")] | length" found) = $1
}
test_expect_success FLUXION 'the same in Fluxion, with four parts of 25 GiB on each' '
	set_key lustre_placement "\"anywhere\"" &&
	flux kvs get resource.R >R &&
	flux dws2jgf -c 4 --cluster-name=c mapping.json <R >R.graph &&
	dws_use_fluxion R.graph &&
	dws_wait_status ".health.scheduler == \"fluxion\" and .health.settled" &&
	dws_until down_are 0
'
test_expect_success FLUXION 'what a job has on any rabbits is down' '
	dws_ctl hold PreRun &&
	lustre 150 --requires=rank:0 -t 1h && wide=$jobid &&
	in_prerun $wide &&
	test "$(targets $wide ost)" = "rabbit0:1 rabbit1:1" &&
	flux job info $wide R >R.out &&
	test_must_fail grep "\"type\": \"ssd\"" R.out &&
	dws_until down_are 7
'
test_expect_success FLUXION 'Fluxion gives it to nobody, and what is left to others' '
	xfs 40 --requires=rank:2 -t 5m && xfs=$jobid &&
	dws_wait_event $xfs priority &&
	xfs 20 --requires=rank:4 -t 5m --urgency=31 &&
	in_prerun $jobid &&
	test "$(flux jobs -no "{state}" $xfs)" = SCHED
'
test_expect_success FLUXION 'a job that finds no room waits, and what is given to others is theirs' '
	lustre 230 --requires=rank:6 -t 5m --urgency=31 && waits=$jobid &&
	note $waits "waiting for room on rabbits: .*230 GiB are needed" &&
	flux module reload dws &&
	dws_wait_status ".agent.synced" &&
	dws_until down_are 7 &&
	note $waits "waiting for room on rabbits: .*230 GiB are needed"
'
test_expect_success FLUXION 'all are woken when it ends' '
	ends $wide &&
	dws_ctl release PreRun &&
	done_well $waits && done_well $xfs &&
	dws_clean &&
	dws_until down_are 0
'
test_expect_success FLUXION 'unload' '
	flux module remove sched-fluxion-qmanager &&
	flux module remove sched-fluxion-resource &&
	flux module load sched-simple
'
test_done
