#!/bin/bash
# capacity=20GiB..60GiB: at least the one, and up to the other what is free when the job
# has its nodes. What others have or have been given is left alone.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Storage that is as large as there is room'
. "$(dirname "$0")/sharness.sh"
test_under_flux 8

CONFIG=$DWS_TMP/conf.d/test.toml

# storage TYPE CAPACITY [OPTIONS...]: submit a job of one node, or as the options say.
# Sets jobid.
storage () {
	dw="#DW jobdw type=$1 capacity=$2 name=scratch" && shift 2 &&
	jobid=$(flux submit -N1 "$@" -S dw="$dw" sh -c 'echo size $DW_CAPACITY_scratch')
}
in_prerun () {
	dws_ctl wait-state $(dws_workflow $1) PreRun --timeout $DWS_LIMIT
}
# size JOBID [LABEL]: GiB of each allocation
size () {
	dws_k8s get servers $(dws_workflow $1)-0 >servers.out &&
	jq -r ".spec.allocationSets[]? | select(.label == \"${2:-xfs}\")
		| .allocationSize / 1073741824 | floor" servers.out
}
ends () {
	flux cancel $1 && dws_wait_event $1 clean
}
done_well () {
	dws_wait_event $1 clean && flux job status $1
}
rpc () {
	dws_wait 300 flux python "$DWS_SRCDIR/t/scripts/rpc.py" "$@"
}
# free RABBIT LEAST MOST: so many GiB of it the scheduler can give away
free () {
	rpc sched-rabbit.stats-get >rpc.out &&
	jq -e ".rabbits.$1.free_gib | . >= $2 and . <= $3" <rpc.out >/dev/null
}
# from JOBID LEAST MOST: so many GiB has each of its allocations. The storage profile adds
# some room to what is asked for.
from () {
	gib=$(size $1) && echo "size: $gib" && test $gib -ge $2 && test $gib -le $3
}

test_expect_success 'four rabbits of 100 GiB, with two of eight nodes each' '
	dws_start_sim --rabbits "rabbit[0-3]" --capacity 113GiB &&
	dws_load && dws_start_agent &&
	dws_wait_status ".agent.synced and .health.settled"
'
# refused CAPACITY TEXT
refused () {
	test_must_fail flux submit -N1 \
		-S dw="#DW jobdw type=xfs capacity=$1 name=scratch" true 2>err &&
	grep -F -- "$2" err
}
test_expect_success 'what is no range is refused, with the word' '
	refused 40TiB..10TiB "capacity '\''40TiB..10TiB'\'': the upper bound is less" &&
	refused 10TiB.. "capacity '\''10TiB..'\'' must be a whole number followed by" &&
	refused ..10TiB "before and after '\''..'\''" &&
	refused 10..20TiB "capacity '\''10..20TiB'\'' must be a whole number" &&
	refused 0GiB..20TiB "must not be zero" &&
	test_must_fail flux submit -N1 -S dw="#DW create_persistent type=xfs \
		capacity=1GiB..2GiB name=keep" true 2>err &&
	grep "create_persistent takes one size" err
'
test_expect_success '--dw-check tells both bounds' '
	flux run -N1 --dw-check --dw="#DW jobdw type=xfs capacity=20GiB..60GiB \
		name=scratch" true >check.out &&
	grep "xfs: 1 x 20.0GiB to 60.0GiB, by what is free then, one for each node" check.out &&
	grep "DW_CAPACITY_scratch" check.out &&
	grep "reserved: 20 GiB" check.out
'
test_expect_success 'on an empty rabbit it is the upper bound' '
	dws_ctl hold PreRun &&
	storage xfs 20GiB..60GiB --requires=rank:0 && first=$jobid &&
	in_prerun $first && from $first 60 61
'
test_expect_success 'the scheduler knows, and DWS was told the lower bound' '
	dws_until free rabbit0 38 40 &&
	dws_k8s get workflows $(dws_workflow $first) >workflow.out &&
	jq -e ".spec.dwDirectives == [\"#DW jobdw type=xfs capacity=20GiB name=scratch\"]" \
		workflow.out
'
test_expect_success 'flux rabbit show says what it has got' '
	flux rabbit show $first >show.out &&
	grep "scratch: 6[01].[0-9]GiB for each node, of 20.0GiB to 60.0GiB" show.out &&
	flux rabbit show --json $first >show.json &&
	jq -e ".sizes.scratch.bytes >= 64424509440" show.json
'
test_expect_success 'the next one gets what is left' '
	storage xfs 20GiB..60GiB --requires=rank:1 && second=$jobid &&
	in_prerun $second && from $second 37 40 &&
	dws_until free rabbit0 0 1
'
test_expect_success 'both are told, after a restart of everything' '
	flux module reload dws &&
	dws_kill_agent && dws_start_agent &&
	dws_wait_status ".agent.synced" &&
	dws_until free rabbit0 0 1 &&
	dws_ctl release PreRun &&
	done_well $first && done_well $second &&
	flux job attach $first >told1 && flux job attach $second >told2 &&
	grep "^size 6[45]........." told1 && grep "^size 4[0-2]........." told2 &&
	dws_clean && dws_until free rabbit0 100 100
'
test_expect_success 'a job that has its data before it has nodes has the lower bound' '
	jobid=$(flux submit -N1 -t 1h --dw-data-first --dw="#DW jobdw type=xfs \
		capacity=20GiB..60GiB name=scratch
		#DW copy_in source=/lus/global/in destination=\$DW_JOB_scratch/" \
		sh -c "echo size \$DW_CAPACITY_scratch") &&
	dws_wait_event -m attributes.system.dw_data_first=true $jobid jobspec-update &&
	done_well $jobid && flux job attach $jobid >told && grep "^size 2[1-3]" told &&
	dws_clean
'
test_expect_success 'a restart of the module in Setup changes nothing' '
	dws_ctl hold Setup &&
	storage xfs 20GiB..60GiB --requires=rank:0 && first=$jobid &&
	dws_ctl wait-state $(dws_workflow $first) Setup --timeout $DWS_LIMIT &&
	from $first 60 61 &&
	flux module reload dws &&
	dws_wait_status ".agent.synced" &&
	storage xfs 70GiB --requires=rank:1 && later=$jobid &&
	dws_wait_event $later priority &&
	flux run -N1 --requires=rank:7 true &&
	dws_until free rabbit0 38 40 &&
	dws_ctl release Setup &&
	done_well $first && flux job attach $first >told && grep "^size 6[45]" told &&
	done_well $later &&
	dws_clean
'
test_expect_success 'of two nodes on one rabbit each has the same' '
	dws_ctl hold PreRun &&
	storage xfs 20GiB..60GiB --requires=rank:0-1 -N2 && first=$jobid &&
	in_prerun $first && from $first 49 51 &&
	ends $first
'
test_expect_success 'Lustre grows in equal parts' '
	storage xfs 70GiB --requires=rank:2 && fixed=$jobid &&
	in_prerun $fixed &&
	storage lustre 30GiB..120GiB --requires=rank:0-3 -N3 && first=$jobid &&
	in_prerun $first &&
	gib=$(size $first ost) && test $gib -gt 20 && test $gib -le 30 && echo "ost: $gib" &&
	dws_until free rabbit1 -3 1 &&
	ends $first && ends $fixed
'
# occupy: a job has the nodes of rabbit0
occupy () {
	occupant=$(flux submit -N2 --requires=rank:0-1 sleep inf) &&
	dws_wait_event $occupant start
}
# at_once JOBID...: those that wait for these nodes get them in one pass of the scheduler
at_once () {
	for id in "$@"; do
		dws_wait_event $id priority || return 1
	done &&
	flux cancel $occupant
}
test_expect_success 'two at once on one rabbit: together they have no more than it' '
	occupy &&
	storage xfs 20GiB..90GiB --requires=rank:0 && first=$jobid &&
	storage xfs 20GiB..90GiB --requires=rank:1 && second=$jobid &&
	at_once $first $second &&
	in_prerun $first && in_prerun $second &&
	one=$(size $first) && other=$(size $second) &&
	test $((one + other)) -le 100 && test $((one + other)) -ge 90 &&
	test $one -ge 20 && test $other -ge 20 &&
	ends $first && ends $second
'
test_expect_success 'one with a fixed size at the same time has its own' '
	for i in 1 2 3; do
		storage xfs 20GiB..90GiB --requires=rank:0 && first=$jobid &&
		storage xfs 50GiB --requires=rank:1 && fixed=$jobid &&
		dws_wait_event $fixed priority && in_prerun $first &&
		dws_ctl release PreRun &&
		done_well $first && done_well $fixed &&
		dws_ctl hold PreRun || return 1
	done
'
test_expect_success 'what was given to a job that has no storage yet is left alone' '
	occupy &&
	storage xfs 20GiB..90GiB --requires=rank:0 && first=$jobid &&
	storage xfs 50GiB --requires=rank:1 && fixed=$jobid &&
	at_once $first $fixed &&
	in_prerun $first && in_prerun $fixed &&
	from $first 20 50 &&
	from $fixed 50 51 &&
	ends $first && ends $fixed
'
test_expect_success 'limits stop it' '
	cat >>"$CONFIG" <<-EOF2 &&
	[rabbit.limits.everybody]
	job = "45GiB"
	EOF2
	flux config reload &&
	storage xfs 20GiB..90GiB --requires=rank:0 && first=$jobid &&
	in_prerun $first && from $first 45 46 &&
	test_must_fail flux submit -N1 \
		-S dw="#DW jobdw type=xfs capacity=50GiB..60GiB name=scratch" true 2>err &&
	grep "50 GiB of rabbit storage is more than the 45 GiB" err &&
	ends $first
'
test_expect_success 'so does what the user has already, also after a restart' '
	sed -i "s/^job = .*/total = \"80GiB\"/" "$CONFIG" &&
	flux config reload &&
	storage xfs 20GiB..60GiB --requires=rank:0 && first=$jobid &&
	in_prerun $first && from $first 60 61 &&
	flux module reload dws &&
	dws_wait_status ".agent.synced" &&
	storage xfs 10GiB..60GiB --requires=rank:2 && second=$jobid &&
	in_prerun $second && from $second 19 21 &&
	storage xfs 10GiB --requires=rank:4 && third=$jobid &&
	dws_until flux python "$DWS_SRCDIR/t/scripts/wait_note.py" $third \
		"of the 80 GiB that its user" 20 &&
	ends $third && ends $first && ends $second &&
	sed -i "/^total =/d; /rabbit.limits.everybody/d" "$CONFIG" &&
	flux config reload
'
test_expect_success 'all end' '
	dws_ctl release PreRun && dws_clean
'

dws_has_fluxion && test_set_prereq FLUXION

test_expect_success FLUXION 'Fluxion, with ten parts of 10 GiB on each' '
	flux kvs get resource.R >R &&
	flux dws2jgf -c 10 --cluster-name=c mapping.json <R >R.graph &&
	dws_use_fluxion R.graph &&
	dws_wait_status ".health.scheduler == \"fluxion\" and .health.settled"
'
# Fluxion refuses jobs with a constraint that have to wait for room, under some policies
# (doc/dev/upstream/fluxion-rabbits.rst): it must not be filled up by growth.
test_expect_success FLUXION 'a job gets what was given to it, in whole parts, and no more' '
	dws_ctl hold PreRun &&
	storage xfs 15GiB..60GiB --requires=rank:0 -t 1h && first=$jobid &&
	in_prerun $first && from $first 18 20 &&
	flux rabbit show $first >show.out &&
	grep "of 15.0GiB to 60.0GiB" show.out &&
	grep "no more than the scheduler gives" show.out
'
test_expect_success FLUXION 'so none of the rest is down' '
	dws_wait_status ".health.settled" &&
	rpc sched-fluxion-resource.find "{\"criteria\": \"status=down\",
		\"format\": \"jgf\"}" >found &&
	jq -e "[(.R // {} | .graph.nodes // [])[]] == []" found
'
test_expect_success FLUXION 'and one that asks for the rest and certain nodes runs beside it' '
	storage xfs 75GiB --requires=rank:1 -t 5m && fixed=$jobid &&
	in_prerun $fixed &&
	dws_ctl release PreRun &&
	done_well $fixed && done_well $first &&
	dws_clean
'
test_expect_success FLUXION 'unload' '
	flux module remove sched-fluxion-qmanager &&
	flux module remove sched-fluxion-resource &&
	flux module load sched-simple
'
test_done
