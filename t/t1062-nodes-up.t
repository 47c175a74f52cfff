#!/bin/bash
# Under Fluxion rabbit jobs that need more nodes than are up stay in the queue, also when
# everything is started anew while nodes are down. Fluxion would end them with an
# exception, under its default policy fcfs.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Rabbit jobs wait until enough nodes are up under Fluxion'
. "$(dirname "$0")/sharness.sh"
test_under_flux 4

dws_has_fluxion && test_set_prereq FLUXION

submit () {
	flux submit -t 1m -S dw="$DWS_DIRECTIVE" "$@" true
}
# kept JOBID: in the queue, and not with the scheduler
kept () {
	test "$(flux jobs -no "{state} {priority}" $1)" = "SCHED 0"
}
is_kept () {
	dws_wait_event $1 priority && dws_until kept $1
}
# priorities JOBID: that it has had
priorities () {
	flux job eventlog --format=json $1 >eventlog.out &&
	jq -s -c "[.[] | select(.name == \"priority\").context.priority]" eventlog.out
}
done_well () {
	dws_wait_event $1 clean && flux job status $1
}
drain () {
	flux resource drain $1 && dws_wait_status ".health.settled"
}
undrain () {
	flux resource undrain $1
}
reload_plugin () {
	flux jobtap remove dws-jobtap.so && flux jobtap load "$DWS_PLUGINS/dws-jobtap.so" &&
	dws_wait_status ".agent.synced and .plugin and .health.settled"
}
reload_fluxion () {
	flux module remove sched-fluxion-qmanager &&
	flux module reload sched-fluxion-resource match-format=rv1 &&
	flux module load sched-fluxion-qmanager &&
	dws_wait_status ".health.settled and .health.scheduler == \"fluxion\""
}

test_expect_success FLUXION 'start' '
	dws_start_sim &&
	DWS_SCHEDULER=fluxion &&
	dws_load && dws_start_agent &&
	dws_wait_status ".health.settled and .health.scheduler == \"fluxion\""
'
test_expect_success FLUXION 'Fluxion refuses a job while all nodes are drained' '
	drain 0-3 &&
	plain=$(flux submit -N1 -t 1m true) &&
	dws_wait_event -m type=alloc $plain exception >exception &&
	grep unsatisfiable exception
'
test_expect_success FLUXION 'a rabbit job is kept from it, one with urgency 0 is as ever' '
	one=$(submit -N1) && is_kept $one &&
	held=$(submit -N1 --urgency=0) && is_kept $held &&
	test "$(priorities $one)" = "[0]"
'
test_expect_success FLUXION 'and told so' '
	flux rabbit show $one >show.out &&
	grep "nodes to come up: it needs 1, and 0 of 4 are up" show.out
'
test_expect_success FLUXION 'also when plugin, module and Fluxion are loaded again' '
	reload_plugin && kept $one &&
	flux module reload dws && dws_wait_status ".agent.synced and .health.settled" &&
	reload_fluxion && kept $one
'
test_expect_success FLUXION 'until enough nodes are up' '
	four=$(submit -N4) && is_kept $four &&
	undrain 0-2 &&
	done_well $one &&
	test "$(priorities $one)" = "[0,16]" &&
	kept $four && kept $held &&
	undrain 3 &&
	done_well $four && kept $held &&
	flux job urgency $held 16 && done_well $held && dws_clean
'
test_expect_success FLUXION 'nodes that are busy as they are drained are not up' '
	filler=$(flux submit -N4 -x -t 10m sleep inf) && dws_wait_event $filler start &&
	drain 1-3 &&
	two=$(submit -N2) && is_kept $two &&
	flux cancel $filler && dws_wait_event $filler clean &&
	kept $two &&
	undrain 1-3 && done_well $two && dws_clean
'
test_expect_success FLUXION 'one that was left with priority 0 by a plugin that is gone' '
	drain 0-3 && one=$(submit -N1) && is_kept $one &&
	flux jobtap remove dws-jobtap.so && undrain 0-3 && kept $one &&
	flux jobtap load "$DWS_PLUGINS/dws-jobtap.so" &&
	done_well $one && dws_clean
'
# refused JOBID: as the job without storage is
refused () {
	dws_wait_event -m type=alloc $1 exception >exception &&
	grep unsatisfiable exception &&
	dws_wait_event $1 clean
}
test_expect_success FLUXION 'one that needs more nodes than there are is refused at once' '
	plain=$(flux submit -N5 -t 1m true) && refused $plain &&
	for type in xfs lustre; do
		DWS_DIRECTIVE="#DW jobdw type=$type capacity=10GiB name=work" &&
		five=$(submit -N5) && refused $five || return 1
	done &&
	test "$(priorities $five)" = "[16]" && dws_clean
'
test_expect_success FLUXION 'also while nodes are down, and after a reload of the plugin' '
	drain 2-3 &&
	three=$(submit -N3) && is_kept $three &&
	five=$(submit -N5) && refused $five &&
	reload_plugin &&
	five=$(submit -N5) && refused $five &&
	kept $three &&
	undrain 2-3 && done_well $three && dws_clean
'
test_expect_success FLUXION 'one that needs more cores than a node has is refused' '
	plain=$(flux submit -N1 -n5 -t 1m true) && refused $plain &&
	one=$(submit -N1 -n5) && refused $one && dws_clean
'
# exclude IDSET: these nodes are not for jobs
exclude () {
	sed -i "/^exclude = /d; s/^\[resource\]/&\nexclude = \"$1\"/" \
		"$DWS_TMP/conf.d/test.toml" &&
	flux config reload && flux module remove sched-fluxion-qmanager &&
	flux module remove sched-fluxion-resource && flux module reload resource &&
	dws_load_fluxion &&
	dws_wait_status ".health.settled and .health.scheduler == \"fluxion\""
}
test_expect_success FLUXION 'nodes that are excluded do not count' '
	exclude 3 &&
	plain=$(flux submit -N4 -t 1m true) && refused $plain &&
	four=$(submit -N4) && refused $four &&
	three=$(submit -N3) && done_well $three &&
	drain 0-2 && three=$(submit -N3) && is_kept $three &&
	undrain 0-2 && done_well $three &&
	exclude "" && dws_clean
'
test_expect_success FLUXION 'with sched-rabbit jobs are left to the scheduler' '
	dws_use_sched_rabbit &&
	dws_wait_status ".health.settled and .health.scheduler == \"sched-rabbit\"" &&
	drain 0-3 &&
	one=$(submit -N1) && dws_wait_event $one priority &&
	test "$(priorities $one)" = "[16]" &&
	undrain 0-3 && done_well $one && dws_clean
'

test_done
