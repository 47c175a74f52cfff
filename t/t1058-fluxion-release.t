#!/bin/bash
# rabbit.release_nodes = "unmount" under Fluxion: a job's nodes go to others while its
# data is still staged out, and the ssds that its storage takes are down until that is
# destroyed.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Nodes that are free before the data is staged out, under Fluxion'
. "$(dirname "$0")/sharness.sh"
test_under_flux 4

dws_has_fluxion && test_set_prereq FLUXION

# Every node is next to the only rabbit, which has four ssds of 25 GiB. No job has a
# constraint: Fluxion rejects some jobs with one that should wait
# (doc/dev/upstream/fluxion-busy.rst).
DWS_DIRECTIVE='#DW jobdw type=xfs capacity=60GiB name=scratch'

# submit [OPTION...]: a job of one node
submit () {
	flux submit -N1 --exclusive -t 1h -S dw="$DWS_DIRECTIVE" "$@" true
}
# all_nodes: a job that needs no storage has all nodes
all_nodes () {
	flux run -N4 --exclusive -t 1m --urgency=31 true
}
in_state () {
	dws_ctl wait-state $(dws_workflow $1) $2 --timeout $DWS_LIMIT
}
# ssds_of JOBID: paths of those that Fluxion gave it
ssds_of () {
	flux job info $1 R >R.out &&
	jq -r ".scheduling.graph.nodes[].metadata
		| select(.type == \"ssd\") | .paths.containment" R.out | sort
}
# ssds_down: write their paths to down
ssds_down () {
	rpc sched-fluxion-resource.find \
		"{\"criteria\": \"status=down\", \"format\": \"jgf\"}" >found &&
	jq -r "(.R // {} | .graph.nodes // [])[].metadata
		| select(.type == \"ssd\") | .paths.containment" found | sort >down
}
# down_are FILE: these and no others
down_are () {
	dws_wait_status ".health.settled" && ssds_down && test_cmp "$1" down
}
count_down_alone () {
	ssds_down && test $(wc -l <down) = $1
}
count_down () {
	dws_wait_status ".health.settled" && count_down_alone $1
}
pending () {
	test "$(flux jobs -no "{state}" $1)" = SCHED
}
reload_fluxion () {
	flux module remove sched-fluxion-qmanager &&
	flux module reload sched-fluxion-resource \
		match-format=${DWS_MATCH_FORMAT:-rv1} &&
	flux module load sched-fluxion-qmanager
}

test_expect_success FLUXION 'a rabbit of 100 GiB' '
	dws_start_sim --nodes-per-rabbit 4 --capacity 113GiB &&
	echo "release_nodes = \"unmount\"" >rabbit.toml &&
	dws_load && dws_start_agent &&
	flux kvs get resource.R >R &&
	flux dws2jgf -c 4 --cluster-name=c mapping.json <R >R.graph &&
	dws_use_fluxion R.graph &&
	dws_wait_status ".health.settled and .health.scheduler == \"fluxion\"" &&
	count_down 0
'
test_expect_success FLUXION 'a job ends when its file systems are unmounted' '
	dws_ctl hold DataOut &&
	first=$(submit) &&
	dws_wait_event $first clean &&
	flux job status $first &&
	in_state $first DataOut
'
test_expect_success FLUXION 'its node is free, the ssds that it had are down' '
	all_nodes &&
	ssds_of $first >had &&
	test $(wc -l <had) = 3 &&
	down_are had
'
test_expect_success FLUXION 'a job that needs that space waits' '
	second=$(submit) &&
	dws_wait_event $second priority &&
	all_nodes &&
	pending $second
'
test_expect_success FLUXION 'one that wants less runs' '
	small=$(flux submit -N1 -t 1m --urgency=31 \
		-S dw="#DW jobdw type=xfs capacity=10GiB name=small" true) &&
	dws_wait_event $small clean &&
	flux job status $small
'
restarted () {
	dws_wait_status ".health.settled and .health.scheduler == \"fluxion\"" &&
	dws_until count_down 3 && pending $second && in_state $first DataOut
}
test_expect_success FLUXION 'nothing changes when the module and the agent restart' '
	dws_kill_agent &&
	flux module remove dws &&
	count_down_alone 3 && cp down before &&
	flux dmesg -C &&
	flux module load "$DWS_MODULES/dws.so" &&
	dws_start_agent &&
	restarted &&
	test_cmp before down
'
test_expect_success FLUXION 'and nothing is said of ssds again' '
	flux dmesg >dmesg.out &&
	grep "the scheduler is fluxion" dmesg.out &&
	test_must_fail grep "ssds change" dmesg.out
'
test_expect_success FLUXION 'nor when Fluxion is loaded again' '
	reload_fluxion &&
	restarted
'
test_expect_success FLUXION 'nor when both are' '
	flux module remove dws &&
	reload_fluxion &&
	flux module load "$DWS_MODULES/dws.so" &&
	dws_wait_status ".agent.synced" &&
	restarted
'
test_expect_success FLUXION 'when the data is out those that waited have their turn' '
	dws_ctl release DataOut &&
	dws_wait_event $second clean && flux job status $second &&
	dws_clean &&
	dws_until count_down 0 &&
	flux rabbit losses --json >losses && jq -e "length == 0" losses
'
test_expect_success FLUXION 'a job that ends while the module is away waits for it' '
	dws_ctl hold DataOut &&
	jobid=$(flux submit -N1 --exclusive -t 1h -S dw="$DWS_DIRECTIVE" sleep inf) &&
	dws_wait_event $jobid start &&
	ssds_of $jobid >had &&
	flux module remove dws &&
	flux cancel $jobid &&
	dws_wait_event $jobid epilog-start &&
	flux module load "$DWS_MODULES/dws.so" &&
	dws_wait_event $jobid clean &&
	dws_until down_are had &&
	next=$(submit) &&
	dws_wait_event $next priority &&
	all_nodes &&
	pending $next &&
	dws_ctl release DataOut &&
	dws_wait_event $next clean && flux job status $next &&
	dws_clean &&
	dws_until count_down 0
'
test_expect_success FLUXION 'many jobs, of which one at a time finds room: all have their turn' '
	jobs= &&
	for i in 1 2 3 4 5 6 7 8; do
		jobs="$jobs $(submit)" || return 1
	done &&
	for i in $jobs; do
		dws_wait_event $i clean && flux job status $i || return 1
	done &&
	dws_clean &&
	dws_until count_down 0
'
test_expect_success FLUXION 'a stage-out that has failed is kept, and what it has is down' '
	sed -i "s/^release_nodes.*/stage_out_retry = \"1h\"/" "$DWS_TMP/conf.d/test.toml" &&
	flux config reload &&
	dws_ctl grant nnfdatamovements:delete &&
	dws_ctl fail-copy --message "dcp: quota exceeded" &&
	DWS_DIRECTIVE="#DW jobdw type=gfs2 capacity=60GiB name=scratch
#DW copy_out source=\$DW_JOB_scratch/out destination=/lus/global/out profile=default" &&
	jobid=$(submit) &&
	dws_wait_event $jobid clean &&
	ssds_of $jobid >had &&
	dws_until down_are had &&
	all_nodes &&
	next=$(submit) &&
	dws_wait_event $next priority &&
	flux module reload dws &&
	dws_wait_status ".agent.synced" &&
	dws_until down_are had &&
	pending $next
'
test_expect_success FLUXION 'until the data is out' '
	dws_ctl fail-copy --clear &&
	flux rabbit retry $jobid &&
	dws_wait_event $next clean && flux job status $next &&
	dws_clean &&
	dws_until count_down 0
'
test_expect_success FLUXION 'unload' '
	flux module remove sched-fluxion-qmanager &&
	flux module remove sched-fluxion-resource &&
	flux module load sched-simple
'
test_done
