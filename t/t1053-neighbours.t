#!/bin/bash
# Parts of two neighbouring releases work together while a site replaces one after
# the other: in each order, with a job in every phase, and the way back.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Parts of neighbouring releases'
. "$(dirname "$0")/sharness.sh"

if ! neighbour_found; then
	skip_all='the release before this one is not built (scripts/setup --tests builds it from history)'
	test_done
fi
# Compute nodes come last: their shells have the plugin of the release before.
DWS_SHELL_PLUGINS=$NEIGHBOUR/shell
test_under_flux 4

RELEASE=$(flux python -c 'from flux_k8s.release import RELEASE; print(RELEASE)')
BEFORE=$(neighbour_python -c 'from flux_k8s.release import RELEASE; print(RELEASE)')

# passable: the commands of both releases say how it is, a job runs through.
passable () {
	flux rabbit status &&
	neighbour_python "$NEIGHBOUR/cmd/flux-rabbit.py" status &&
	dws_run_job "$DWS_DIRECTIVE" "test -d \"\$DW_JOB_scratch\""
}
# releases MODULE PLUGIN AGENT: these are known.
releases () {
	dws_wait_status "[.releases | .module, .plugin, .agent] == [$1, $2, $3]"
}
# journey old|new PART...: replaces them in that order, with a job in every phase.
journey () {
	test_expect_success "$1 parts, in order ${*:2}: a job in every phase" '
		dws_crowd catch
	'
	for part in "${@:2}"; do
		test_expect_success "the $part is $1 now" "
			use $1 $part && passable
		"
	done
	test_expect_success 'all jobs end well' '
		dws_crowd release &&
		dws_crowd outcome >outcome &&
		cat outcome &&
		test_must_fail grep -v " completed$" outcome &&
		dws_clean
	'
}

test_expect_success 'the release before runs' '
	dws_start_sim && dws_configure && dws_use_sched_rabbit &&
	use old module && use old plugin && use old agent &&
	passable
'
# Upgrade and downgrade twice, so that each mixture of three parts occurs once.
journey new agent module plugin
test_expect_success 'each part has said which it is' '
	flux rabbit selftest --types=none >selftest.out &&
	cat selftest.out &&
	grep "all parts are of $RELEASE" selftest.out
'
journey old plugin module agent
journey new module plugin agent
journey old module agent plugin

# give_up: a job whose node does not unmount is let go when its time is over, the node is
# drained, and an admin mends it.
give_up () {
	jobid=$(flux submit -N1 --requires=rank:0 -S dw="$DWS_DIRECTIVE" sleep inf) &&
	dws_wait_event $jobid start &&
	dws_ctl hang-mount node0 on &&
	flux cancel $jobid &&
	dws_wait_event $jobid epilog-start &&
	flux job raise --type=dws-epilog-timeout --severity=0 $jobid &&
	dws_wait_event $jobid clean &&
	dws_until dws_drained "$(flux jobs -no "{nodelist}" $jobid)" &&
	dws_ctl hang-mount node0 off &&
	dws_ctl wait-idle --timeout $DWS_LIMIT &&
	flux resource undrain 0 &&
	dws_k8s patch storages rabbit0 "{\"spec\": {\"state\": \"Enabled\"}}" >mended &&
	dws_clean
}
test_expect_success 'a new plugin gives up an epilog of an old module' '
	use new plugin && give_up
'
test_expect_success 'an old plugin gives up an epilog of a new module' '
	use old plugin && use new module &&
	releases "\"$RELEASE\"" "\"$BEFORE\"" "\"$BEFORE\"" &&
	give_up
'
test_done
