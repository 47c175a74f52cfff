#!/bin/bash
# Jobs at random: none fails for want of room, and what we take to be free is what
# NNF has. Only by hand, with so many jobs and rabbits as there is time for:
#   DWS_NNF_RABBITS=4 DWS_NNF_ROUNDS=30 t/nnf/run --under fluxion t/nnf/t72-random.t
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Jobs at random with the controllers of NNF'
. "$(dirname "$0")/../sharness.sh"
. "$DWS_SRCDIR/t/nnf/nnf.sh"
nnf_by_hand DWS_NNF_ROUNDS
test_under_flux $NNF_NODES

ROUNDS=$DWS_NNF_ROUNDS
SEED=${DWS_NNF_SEED:-$(date +%s)}

test_expect_success 'load everything' '
	nnf_setup
'
for round in $(seq $ROUNDS); do
	keep=
	test $((round % 2)) = 0 || keep=keep$round
	test_expect_success "ten jobs at random end well (seed $((SEED + round)))" '
		nnf_ten_jobs $((SEED + round)) "$keep"
	'
	test_expect_success 'NNF has as much left as we count' '
		nnf_agrees
	'
	test -z "$keep" || test_expect_success 'persistent storage is destroyed' '
		jobid=$(nnf_submit "#DW destroy_persistent name=$keep" -N1 true) &&
		dws_ended_well $jobid &&
		dws_wait_status ".rabbits.foreign == 0" $DWS_LIMIT
	'
done
test_expect_success 'nothing is left' '
	nnf_agrees &&
	nnf_clean
'
test_done
