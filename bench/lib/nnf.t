#!/bin/bash
# One instance of bench/nnf: an agent and modules of FLUX_DWS_PREFIX beside the
# controllers in DWS_NNF. BENCH_CONFIG: lines of [rabbit]; BENCH_ARGS: of nnf.py;
# BENCH_CORAL2: flux-coral2 takes the place of both.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Jobs are measured with the controllers of NNF'
. "$(dirname "$0")/../../t/sharness.sh"
. "$DWS_SRCDIR/t/nnf/nnf.sh"
test_under_flux $NNF_NODES

test_expect_success 'load everything' '
	printf "%s\n" "$BENCH_CONFIG" >lines &&
	mapfile -t lines <lines &&
	if test -n "$BENCH_CORAL2"; then
		coral2_found && dws_start_sim && coral2_configure && coral2_start
	else
		nnf_setup "${lines[@]}"
	fi
'
test_expect_success 'measure' '
	flux python "$DWS_SRCDIR/bench/lib/nnf.py" $BENCH_ARGS
'
test_done
