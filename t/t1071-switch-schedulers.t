#!/bin/bash
# Schedulers come and go, in each order with the mapping, the module and jobs, and count
# on rabbits what others hold there. Also what housekeeping means for rabbits.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Schedulers that start know what others hold on rabbits'
. "$(dirname "$0")/sharness.sh"
test_under_flux 4

dws_has_fluxion && test_set_prereq FLUXION

# With a policy under which jobs wait that ask for certain nodes (doc/admin/schedulers.rst).
: "${DWS_QUEUE_POLICY:=conservative}"

# Two rabbits of 100 GiB with two nodes each; with Fluxion four ssds of 25 GiB.
DWS_DIRECTIVE='#DW jobdw type=xfs capacity=60GiB name=scratch'

# submit RANK [OPTION...] COMMAND...: a job of one node there, with 60 GiB
submit () {
	where=$1
	shift
	flux submit -N1 --requires=rank:$where -t 1h -S dw="$DWS_DIRECTIVE" "$@"
}
free_gib () {
	rpc sched-rabbit.stats-get >rpc.out &&
	jq -c "[.rabbits[].free_gib]" <rpc.out
}
free_is () {
	test "$(free_gib)" = "$1"
}
pending () {
	test "$(flux jobs -no "{state}" $1)" = SCHED
}
done_well () {
	dws_wait_event $1 clean && flux job status $1
}
# settled NAME: that scheduler is loaded and knows all
settled () {
	dws_wait_status ".health.settled and .health.scheduler == \"$1\""
}
use_fluxion () {
	dws_use_fluxion R.graph && settled fluxion
}
use_sched_rabbit () {
	dws_use_sched_rabbit && settled sched-rabbit
}
reload_fluxion () {
	flux module remove sched-fluxion-qmanager &&
	flux module reload sched-fluxion-resource \
		match-format=${DWS_MATCH_FORMAT:-rv1} &&
	flux module load sched-fluxion-qmanager queue-policy=$DWS_QUEUE_POLICY &&
	settled fluxion
}
# ssds_of JOBID: that Fluxion gave it
ssds_of () {
	flux job info $1 R >R.out &&
	jq "[.scheduling.graph.nodes[].metadata | select(.type == \"ssd\")] | length" R.out
}

test_expect_success 'sched-rabbit, loaded before there is a mapping' '
	dws_use_sched_rabbit &&
	free_is "[]" &&
	dws_start_sim --capacity 113GiB &&
	echo "release_nodes = \"unmount\"" >rabbit.toml &&
	dws_configure &&
	free_is "[100,100]"
'
test_expect_success 'gives jobs the rabbits that the module has' '
	flux module load "$DWS_MODULES/dws.so" &&
	flux jobtap load "$DWS_PLUGINS/dws-jobtap.so" &&
	dws_start_agent && settled sched-rabbit &&
	one=$(submit 0 true) && done_well $one && dws_clean
'
test_expect_success 'one that is loaded while the module is away knows what is broken' '
	dws_ctl rabbit rabbit1 down &&
	dws_ctl link node1 down &&
	dws_wait_status ".health.settled and .health.down == [\"rabbit1\"]
		and .health.badrabbit == \"node[1-3]\"" &&
	flux resource undrain node1 &&
	flux module remove dws &&
	flux module reload sched-rabbit &&
	rpc sched-rabbit.stats-get >rpc.out &&
	jq -e ".rabbits.rabbit0.up and (.rabbits.rabbit1.up | not)" rpc.out &&
	flux module load "$DWS_MODULES/dws.so" &&
	dws_ctl rabbit rabbit1 up &&
	dws_ctl link node1 up &&
	dws_wait_status ".health.settled and .health.down == []
		and .health.badrabbit == \"\""
'
test_expect_success FLUXION 'from sched-rabbit to Fluxion, with no job' '
	flux kvs get resource.R >R &&
	flux dws2jgf -c 4 --cluster-name=c mapping.json <R >R.graph &&
	use_fluxion &&
	one=$(submit 0 true) && done_well $one && dws_clean
'
test_expect_success FLUXION 'from Fluxion to sched-rabbit: what a job has stays taken' '
	first=$(submit 0 sleep inf) && dws_wait_event $first start &&
	test "$(ssds_of $first)" = 3 &&
	flux module remove dws &&
	dws_use_sched_rabbit &&
	free_is "[25,100]" &&
	flux module load "$DWS_MODULES/dws.so" && settled sched-rabbit &&
	free_is "[25,100]"
'
test_expect_success FLUXION 'the next that needs it waits, and runs when it is free' '
	second=$(submit 1 true) && dws_wait_event $second priority &&
	other=$(submit 2 true) && done_well $other &&
	pending $second &&
	flux cancel $first && dws_wait_event $first clean &&
	done_well $second && dws_clean &&
	dws_until free_is "[100,100]"
'
test_expect_success FLUXION 'from sched-rabbit to Fluxion Flux ends the jobs that run' '
	first=$(submit 0 sleep inf) && dws_wait_event $first start &&
	use_fluxion &&
	dws_wait_event -m type=scheduler-restart $first exception &&
	dws_wait_event $first clean && dws_clean &&
	one=$(submit 1 true) && done_well $one && dws_clean
'
test_expect_success FLUXION 'Fluxion that is loaded again knows what jobs have' '
	first=$(submit 0 sleep inf) && dws_wait_event $first start &&
	reload_fluxion &&
	second=$(flux submit -N1 -t 1h -S dw="$DWS_DIRECTIVE" sleep inf) &&
	dws_wait_event $second start &&
	flux jobs -no "{nodelist}" $second >out && grep "node[23]" out &&
	third=$(flux submit -N1 -t 1h -S dw="$DWS_DIRECTIVE" true) &&
	dws_wait_event $third priority &&
	small=$(flux submit -N1 -t 1m --urgency=31 \
		-S dw="#DW jobdw type=xfs capacity=10GiB name=small" true) &&
	done_well $small && pending $third &&
	flux cancel $first $second && done_well $third && dws_clean
'
test_expect_success FLUXION 'storage of a job that has given its nodes back stays taken' '
	dws_ctl hold DataOut &&
	first=$(submit 0 true) && dws_wait_event $first clean &&
	flux module remove dws &&
	dws_use_sched_rabbit &&
	free_gib >before && test_must_fail grep "\[100," before &&
	flux module load "$DWS_MODULES/dws.so" && settled sched-rabbit &&
	free_gib >after && test_cmp before after &&
	second=$(submit 1 true) && dws_wait_event $second priority &&
	other=$(submit 2 true) && dws_wait_event $other clean &&
	pending $second &&
	dws_ctl release DataOut &&
	done_well $second && dws_clean &&
	dws_until free_is "[100,100]"
'
# Housekeeping, which begins when the epilog dws-epilog has ended: on rank 1 it is over at
# once, on others when something is written to the pipe waits.
housekeeping () {
	cat >"$DWS_TMP/housekeeping" <<-\EOT &&
	#!/bin/sh
	test "$(flux getattr rank)" = 1 || exec cat "$HOUSEKEEPING_WAITS"
	EOT
	chmod +x "$DWS_TMP/housekeeping" &&
	mkfifo waits &&
	cat >>"$DWS_TMP/conf.d/test.toml" <<-EOT &&
	[job-manager.housekeeping]
	command = ["env", "HOUSEKEEPING_WAITS=$PWD/waits", "$DWS_TMP/housekeeping"]
	release-after = "0"
	EOT
	flux config reload
}
in_housekeeping () {
	test "$(flux resource list -s allocated -no "{ranks}")" = "$1"
}
# torn_down: there is no storage; nodes may be in housekeeping
torn_down () {
	dws_ctl wait-idle --timeout $DWS_LIMIT && dws_wait_status ".jobs == 0"
}
two () {
	flux submit -N2 --exclusive --requires=rank:0-1 -t 1h \
		-S dw="#DW jobdw type=xfs capacity=30GiB name=scratch" "$@"
}
test_expect_success FLUX_CORE 'in housekeeping a job has its storage no more' '
	dws_use_sched_rabbit && settled sched-rabbit &&
	housekeeping &&
	first=$(two true) && dws_wait_event $first clean &&
	dws_until in_housekeeping 0 &&
	torn_down
'
test_expect_success FLUX_CORE 'and its GiB are free with the first node, for good' '
	free_is "[100,100]" &&
	flux module reload sched-rabbit && settled sched-rabbit &&
	free_is "[100,100]" &&
	second=$(submit 1 sleep inf) && dws_wait_event $second start &&
	third=$(submit 0 sleep inf) && dws_wait_event $third priority &&
	pending $third &&
	echo >waits && dws_until in_housekeeping 1 &&
	pending $third &&
	flux cancel $second $third && dws_wait_event $second clean && torn_down &&
	dws_until in_housekeeping ""
'
test_expect_success FLUXION 'with Fluxion the node is free, the ssds with the last one' '
	use_fluxion &&
	first=$(two true) && dws_wait_event $first clean &&
	dws_until in_housekeeping 0 &&
	torn_down &&
	flux run -N1 --requires=rank:1 -t 1m true &&
	second=$(submit 1 true) && dws_wait_event $second priority &&
	other=$(submit 2 true) && done_well $other &&
	pending $second &&
	echo >waits && done_well $second && torn_down &&
	dws_until in_housekeeping ""
'
test_expect_success FLUXION 'also with Fluxion that is loaded again then' '
	first=$(two true) && dws_wait_event $first clean &&
	dws_until in_housekeeping 0 &&
	reload_fluxion && in_housekeeping 0 &&
	flux run -N1 --requires=rank:1 -t 1m true &&
	second=$(submit 1 true) && dws_wait_event $second priority &&
	other=$(submit 2 true) && done_well $other &&
	pending $second &&
	echo >waits && done_well $second && torn_down &&
	dws_until in_housekeeping ""
'
test_done
