#!/bin/bash
# The scheduler, the broker module dws and the agent are killed at random under jobs at
# random: none is lost, no node given twice, and NNF's account of what is taken is ours.
# Only by hand, with as many rounds as there is time for:
#   DWS_NNF_SEED=$(date +%s) DWS_NNF_ROUNDS=30 t/nnf/run --under fluxion t/nnf/t75-kills.t
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Parts of ours and the scheduler killed at random under jobs'
. "$(dirname "$0")/../sharness.sh"
. "$DWS_SRCDIR/t/nnf/nnf.sh"
nnf_by_hand DWS_NNF_ROUNDS
test_under_flux $NNF_NODES

SEED=${DWS_NNF_SEED:-1}
BETWEEN_S=6 # from the end of one kill to the next, at most

reload_scheduler () {
	if test "$DWS_SCHEDULER" = fluxion; then
		flux module remove sched-fluxion-qmanager &&
		flux module remove sched-fluxion-resource &&
		dws_load_fluxion
	else
		flux module reload sched-rabbit
	fi
}
reload_module () {
	flux module reload dws
}
restart_agent () {
	dws_kill_agent && dws_start_agent
}
# kill_until FILE: one part at a time at random moments, until the file is there
kill_until () {
	parts=(reload_scheduler reload_module restart_agent)
	until test -e "$1"; do
		# Any moment will do.
		sleep $((RANDOM % BETWEEN_S)).$((RANDOM % 10)) &&
		part=${parts[RANDOM % 3]} && echo $part && $part || return 1
	done
}
# under_kills SEED: ten jobs meanwhile; every part has been killed
under_kills () {
	RANDOM=$1 && rm -f stop && : >killed.out &&
	{ kill_until "$PWD/stop" >killed.out 2>killed.err & } && killer=$! &&
	{ nnf_ten_jobs $1; rc=$?; } &&
	touch stop && wait $killer && sort killed.out | uniq -c && test $rc = 0
}

test_expect_success 'load everything' '
	nnf_setup "data_first_timeout = \"5m\""
'
for round in $(seq $DWS_NNF_ROUNDS); do
	test_expect_success "ten jobs at random end well (seed $((SEED + round)))" '
		under_kills $((SEED + round))
	'
	test_expect_success 'NNF has as much left as we count' '
		nnf_agrees
	'
done
test_expect_success 'nothing is left' '
	nnf_clean
'
test_done
