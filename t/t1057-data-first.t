#!/bin/bash
# A job that wants it has its data before it has nodes: it is staged in while others
# have these, and then the job waits for nodes next to it.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Data first, nodes later'
. "$(dirname "$0")/sharness.sh"
test_under_flux 8

CONFIG=$DWS_TMP/conf.d/test.toml
COPY='#DW copy_in source=/lus/global/in destination=$DW_JOB_scratch/'

# set_key KEY VALUE: in the table [rabbit]
set_key () {
	sed -i "/^$1 =/d; s/^\[rabbit\]/[rabbit]\n$1 = $2/" "$CONFIG" &&
	flux config reload
}
# stage TYPE GIB [OPTIONS...]: submit a job that has data to stage in. Sets jobid.
stage () {
	dw="#DW jobdw type=$1 capacity=${2}GiB name=scratch
$COPY" && shift 2 &&
	jobid=$(flux submit -t 1h --dw="$dw" "$@" true)
}
first () {
	stage "$@" --dw-data-first
}
# plain N [OPTIONS...]: a job without storage that has N nodes until it is cancelled
plain () {
	n=$1 && shift &&
	jobid=$(flux submit -t 2h -N$n "$@" sleep inf) && dws_wait_event $jobid start
}
in_state () {
	dws_ctl wait-state $(dws_workflow $1) $2 --timeout $DWS_LIMIT
}
# note JOBID REGEX
note () {
	flux python "$DWS_SRCDIR/t/scripts/wait_note.py" "$1" "^rabbit: $2" 20
}
# places JOBID: the rabbits of its allocations, and how many of them
places () {
	dws_k8s get servers $(dws_workflow $1)-0 >servers.out &&
	jq -r ".spec.allocationSets[]?.storage[] | \"\(.name):\(.allocationCount)\"" \
		servers.out | sort | xargs
}
log () {
	flux job eventlog $1 >eventlog
}
# staged JOBID: it waits in the queue for nodes, next to its data
staged () {
	note $1 "waiting for nodes next to its data" &&
	test "$(flux jobs -no "{state}" $1)" = SCHED
}
runs_on () {
	test "$(flux jobs -no "{nodelist}" $1)" = "$2"
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
restart_all () {
	flux module reload dws &&
	flux jobtap remove dws-jobtap.so && flux jobtap load "$DWS_PLUGINS/dws-jobtap.so" &&
	dws_kill_agent && dws_start_agent &&
	dws_wait_status ".agent.synced and .plugin"
}

test_expect_success 'four rabbits of 100 GiB, with two of eight nodes each' '
	dws_start_sim --rabbits "rabbit[0-3]" --capacity 113GiB &&
	dws_load && dws_start_agent &&
	dws_wait_status ".agent.synced and .health.settled"
'
test_expect_success 'data is staged in while another job has all nodes' '
	plain 8 && all=$jobid &&
	first xfs 20 -N2 && one=$jobid &&
	staged $one &&
	log $one &&
	test_must_fail grep alloc eventlog &&
	rabbit=$(places $one) && rabbit=${rabbit%:2} &&
	dws_until free $rabbit 59
'
test_expect_success 'its nodes are next to it, and mount it: nothing is done before that' '
	flux rabbit show $one >show.out &&
	grep "$rabbit" show.out &&
	ends $all &&
	done_well $one &&
	i=${rabbit#rabbit} && runs_on $one "node[$((2 * i))-$((2 * i + 1))]" &&
	log $one && test_must_fail grep " exception " eventlog &&
	flux job info $one R >R.out &&
	test_must_fail grep rabbit R.out &&
	dws_clean &&
	dws_until free $rabbit 100
'
test_expect_success 'nothing changes when everything restarts, in each state' '
	plain 8 && all=$jobid &&
	for state in Setup DataIn; do
		dws_ctl hold $state &&
		first xfs 20 -N2 &&
		in_state $jobid $state &&
		places=$(places $jobid) &&
		restart_all &&
		test "$(places $jobid)" = "$places" &&
		dws_ctl release $state &&
		staged $jobid &&
		restart_all &&
		staged $jobid &&
		test "$(places $jobid)" = "$places" &&
		flux module reload sched-rabbit &&
		dws_until free ${places%:2} 59 &&
		log $jobid && test_must_fail grep alloc eventlog &&
		ends $jobid || return 1
	done &&
	dws_until free ${places%:2} 100
'
test_expect_success 'a job of two chassis is next to both, with as many nodes as can mount' '
	first xfs 20 -N3 && three=$jobid &&
	staged $three &&
	test "$(places $three)" = "rabbit0:2 rabbit1:1" &&
	first gfs2 40 -N1 --dw-rabbits=rabbit1 && one=$jobid &&
	staged $one &&
	test "$(places $one)" = "rabbit1:1" &&
	log $three && grep "jobspec-update.*node\[0-2\]" eventlog &&
	ends $all &&
	done_well $three && done_well $one &&
	dws_clean
'
test_expect_success 'cancel in each state: nothing is left' '
	plain 8 && all=$jobid &&
	for state in Proposal Setup DataIn; do
		dws_ctl hold $state &&
		first xfs 20 -N2 &&
		in_state $jobid $state &&
		flux cancel $jobid &&
		dws_ctl release $state &&
		dws_wait_event $jobid clean || return 1
	done &&
	first xfs 20 -N2 && staged $jobid && ends $jobid &&
	for i in 0 1 2 3; do dws_until free rabbit$i 100 || return 1; done
'
test_expect_success 'data that cannot be staged in ends a job that has no nodes yet' '
	dws_ctl fail-copy --message "dcp: no such file" --count 1 &&
	first xfs 20 -N1 &&
	dws_wait_event -m type=dws-create $jobid exception >exception &&
	grep "no such file" exception &&
	dws_wait_event $jobid clean &&
	log $jobid && test_must_fail grep alloc eventlog
'
test_expect_success 'a job that finds no room waits, the first comes first, then others' '
	first xfs 45 -N4 --dw-rabbits="rabbit[0-1]" && big=$jobid && staged $big &&
	first xfs 20 -N1 --dw-rabbits=rabbit0 && waits=$jobid &&
	note $waits "waiting for room on rabbits: rabbits have room for the storage of 0 nodes" &&
	first xfs 20 -N1 --dw-rabbits=rabbit3 && later=$jobid &&
	note $later "waiting for room on rabbits: job $waits .* is to get it first" &&
	flux module reload dws &&
	note $later "waiting for room on rabbits: job $waits .* is to get it first" &&
	note $waits "waiting for room on rabbits" &&
	ends $big &&
	staged $waits && staged $later &&
	ends $waits && ends $later
'
test_expect_success 'for no longer than space_timeout: then it gets nodes first' '
	set_key space_timeout "\"0.1s\"" &&
	first xfs 45 -N4 --dw-rabbits="rabbit[0-1]" && big=$jobid && staged $big &&
	first xfs 20 -N1 --dw-rabbits=rabbit0 && waits=$jobid &&
	dws_wait_event -m attributes.system.dw_data_first=false $waits jobspec-update &&
	dws_wait_event $waits priority &&
	set_key space_timeout "\"20m\"" &&
	ends $big && ends $all &&
	done_well $waits && dws_clean
'
test_expect_success 'nodes that do not come in time: the data is given back, and nodes come first' '
	set_key data_first_timeout "\"1s\"" &&
	plain 8 && all=$jobid &&
	first xfs 20 -N2 && one=$jobid &&
	dws_wait_event -m attributes.system.dw_data_first=true $one jobspec-update &&
	dws_wait_event -m attributes.system.dw_data_first=false $one jobspec-update &&
	for i in 0 1 2 3; do dws_until free rabbit$i 100 || return 1; done &&
	restart_all &&
	in_state $one Proposal &&
	test "$(flux jobs -no "{state}" $one)" = SCHED &&
	set_key data_first_timeout "\"1h\"" &&
	ends $all && done_well $one &&
	flux job info $one R >R.out && grep rabbit R.out &&
	log $one && test_must_fail grep " exception " eventlog &&
	dws_clean
'
test_expect_success 'a workflow that is lost while the job is in the queue: nodes come first' '
	plain 8 && all=$jobid &&
	first xfs 20 -N2 && one=$jobid && staged $one &&
	dws_k8s delete workflows $(dws_workflow $one) &&
	dws_wait_event -m attributes.system.dw_data_first=false $one jobspec-update &&
	ends $all && done_well $one && dws_clean
'
test_expect_success 'what the user asks of nodes holds for the data, too' '
	plain 8 && all=$jobid &&
	first xfs 20 -N1 --requires=rank:5 && one=$jobid && staged $one &&
	test "$(places $one)" = rabbit2:1 &&
	first xfs 20 -N3 --requires="not rank:0" && three=$jobid && staged $three &&
	ends $all && done_well $one && done_well $three && runs_on $one node5 &&
	dws_clean
'
test_expect_success 'the rabbit with most idle nodes is taken' '
	plain 5 && some=$jobid &&
	dws_ctl hold DataIn &&
	first xfs 20 -N2 && in_state $jobid DataIn &&
	test "$(places $jobid)" = rabbit3:2 &&
	dws_ctl release DataIn &&
	done_well $jobid &&
	ends $some && dws_clean
'
test_expect_success 'Lustre lies anywhere, and the job may have any nodes' '
	plain 8 && all=$jobid &&
	first lustre 80 -N1 && one=$jobid && staged $one &&
	log $one && test_must_fail grep "jobspec-update.*hostlist" eventlog &&
	ends $all && done_well $one && dws_clean
'
test_expect_success 'a job that others hold is not staged in before they let go' '
	plain 8 && all=$jobid &&
	dws_ctl hold DataIn &&
	first xfs 20 -N1 && one=$jobid && in_state $one DataIn &&
	first xfs 20 -N1 --dependency=dws-in:$one --urgency=0 && held=$jobid &&
	note $held "waiting for its other dependencies, or to be released" &&
	restart_all &&
	dws_ctl release DataIn && staged $one &&
	dws_wait_event -m description=dws-in:$one $held dependency-remove &&
	note $held "waiting for its other dependencies, or to be released" &&
	test "$(places $held)" = "" &&
	flux job urgency $held 16 &&
	staged $held &&
	ends $all && done_well $one && done_well $held && dws_clean
'
test_expect_success FLUX_CORE 'nor one that waits for the end of another job' '
	plain 8 && all=$jobid &&
	first xfs 20 -N1 --dependency=afterany:$all && one=$jobid &&
	note $one "waiting for its other dependencies, or to be released" &&
	test "$(places $one)" = "" &&
	ends $all && done_well $one && dws_clean
'
load_again () {
	flux module load "$DWS_MODULES/dws.so" && dws_wait_status ".agent.synced and .plugin"
}
test_expect_success 'rabbits are chosen only when it is known what others were given there' '
	plain 8 && all=$jobid &&
	stage xfs 40 -N2 --requires=rank:0-1 && two=$jobid && dws_wait_event $two priority &&
	flux module remove dws &&
	ends $all && dws_wait_event $two alloc &&
	R=$(flux job id --to=kvs $two).R && flux kvs get $R >R && flux kvs unlink $R &&
	load_again &&
	first xfs 20 -N2 --dw-rabbits=rabbit0 && one=$jobid && note $one "choosing rabbits" &&
	stage xfs 20 -N1 --requires=rank:7 && done_well $jobid &&
	test "$(places $one)" = "" &&
	flux kvs put $R="$(cat R)" &&
	done_well $two && done_well $one && dws_clean
'
# A scheduler that learns too late of taken storage allocates it again. Data that blocks
# idle nodes is kept for a thirtieth of data_first_timeout: 12 s of 6 minutes here, for
# which no test waits.
test_expect_success 'two that have come to the same storage: the one with nodes gets it' '
	set_key data_first_timeout "\"6m\"" &&
	plain 8 && all=$jobid &&
	first xfs 40 -N2 --dw-rabbits=rabbit0 && one=$jobid && staged $one &&
	stage xfs 40 -N2 --requires=rank:0-1 --urgency=20 && two=$jobid &&
	dws_wait_event $two priority &&
	flux module remove dws &&
	flux kvs unlink dws.held && flux module reload sched-rabbit &&
	ends $all && dws_wait_event $two alloc &&
	load_again &&
	dws_wait_event -m attributes.system.dw_data_first=false $one jobspec-update &&
	done_well $two && done_well $one && dws_clean
'
test_expect_success 'the site decides for all jobs with copy_in, but those that do not want it' '
	set_key data_first "\"always\"" &&
	plain 8 && all=$jobid &&
	stage xfs 20 -N1 && one=$jobid && staged $one &&
	stage xfs 20 -N1 -S dw_data_first=0 && two=$jobid &&
	in_state $two Proposal && dws_wait_event $two priority &&
	ends $all && done_well $one && done_well $two &&
	set_key data_first "\"never\"" &&
	first xfs 20 -N1 &&
	dws_wait_event -m type=dws-create $jobid exception >exception &&
	grep "dw_data_first: here jobs get their nodes before their data" exception &&
	set_key data_first "\"asked\"" && dws_clean
'
test_expect_success 'one that stages nothing in may ask for its storage first' '
	plain 8 && all=$jobid &&
	jobid=$(flux submit -N1 -t 1h --dw="$DWS_DIRECTIVE" --dw-data-first true) &&
	staged $jobid && in_state $jobid DataIn &&
	ends $all && done_well $jobid && dws_clean
'
# refused DIRECTIVES TEXT: at once
refused () {
	test_must_fail flux submit -N1 --dw="$1" --dw-data-first true 2>err &&
	grep "$2" err
}
test_expect_success 'what cannot be is refused when it is submitted' '
	refused "#DW persistentdw name=keep" "dw_data_first: there is no jobdw directive" &&
	refused "$DWS_DIRECTIVE
$COPY
#DW persistentdw name=keep" "dw_data_first: only jobdw, copy_in and copy_out" &&
	test_must_fail flux submit -N1 --dw="$DWS_DIRECTIVE
$COPY" -S dw_data_first=yes true 2>err &&
	grep "dw_data_first must be true or false" err &&
	test_must_fail flux submit -N1 --dw-data-first true 2>err &&
	grep "dw-data-first: there are no #DW directives" err
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
	flux kvs get resource.R >R &&
	flux dws2jgf -c 4 --cluster-name=c mapping.json <R >R.graph &&
	dws_use_fluxion R.graph &&
	dws_wait_status ".health.scheduler == \"fluxion\" and .health.settled" &&
	dws_until down_are 0
'
test_expect_success FLUXION 'ssds are down for the data of jobs that have no nodes' '
	plain 8 && all=$jobid &&
	first xfs 20 -N3 && three=$jobid && staged $three &&
	test "$(places $three)" = "rabbit0:2 rabbit1:1" &&
	dws_until down_are 3 &&
	restart_all &&
	dws_until down_are 3 && staged $three &&
	ends $all && done_well $three &&
	runs_on $three "node[0-2]" &&
	flux job info $three R >R.out && test_must_fail grep "\"type\": \"ssd\"" R.out &&
	dws_clean && dws_until down_are 0
'
test_expect_success FLUXION 'data is given back in the queue, and nodes come with ssds' '
	set_key data_first_timeout "\"1s\"" &&
	plain 8 && all=$jobid &&
	first xfs 20 -N2 && one=$jobid &&
	dws_wait_event -m attributes.system.dw_data_first=true $one jobspec-update &&
	dws_wait_event -m attributes.system.dw_data_first=false $one jobspec-update &&
	dws_until down_are 0 &&
	set_key data_first_timeout "\"1h\"" &&
	ends $all && done_well $one &&
	flux job info $one R >R.out && grep "\"type\": \"ssd\"" R.out &&
	log $one && test_must_fail grep " exception " eventlog &&
	dws_clean
'
# Fluxion's default policy, fcfs, lets nobody pass the first in the queue.
test_expect_success FLUXION 'it is given back while nodes are idle and another waits for its storage' '
	set_key data_first_timeout "\"6m\"" &&
	plain 8 && all=$jobid &&
	first xfs 40 -N8 && one=$jobid && staged $one &&
	two=$(flux submit -t 1h -N2 --urgency=20 -S dw="$DWS_DIRECTIVE" true) &&
	dws_wait_event $two priority &&
	ends $all &&
	dws_wait_event -m attributes.system.dw_data_first=false $one jobspec-update &&
	done_well $two && done_well $one &&
	dws_clean
'
test_expect_success FLUXION 'unload' '
	flux module remove sched-fluxion-qmanager &&
	flux module remove sched-fluxion-resource &&
	flux module load sched-simple
'
test_done
