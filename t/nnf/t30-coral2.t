#!/bin/bash
# Jobs of flux-coral2 on the controllers of NNF go on with flux-dws, which takes its
# place while they are in all states.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Taking over from flux-coral2 with the controllers of NNF'
. "$(dirname "$0")/../sharness.sh"
. "$DWS_SRCDIR/t/nnf/nnf.sh"

if test "$DWS_SCHEDULER" != fluxion || ! coral2_found; then
	skip_all='no flux-coral2 with a package kubernetes for it, or not under Fluxion'
	test_done
fi
test_under_flux $NNF_NODES

test_expect_success 'flux-coral2 serves' '
	dws_start_sim && coral2_configure && coral2_start
'
test_expect_success 'it is stopped with jobs in several states' '
	nnf_crowd spread:"$DWS_TMP/coral2.pid"
'
test_expect_success 'flux-dws takes its place' '
	flux jobtap load --remove=dws-jobtap.so "$DWS_PLUGINS/dws-jobtap.so" &&
	coral2_stop &&
	flux module load "$DWS_MODULES/dws.so" &&
	dws_start_agent
'
test_expect_success 'every job does well, nothing is left' '
	nnf_all_completed
'
test_expect_success 'as does a new one' '
	jobid=$(nnf_submit "#DW jobdw type=xfs capacity=1GiB name=next" -N1 true) &&
	dws_ended_well $jobid &&
	nnf_clean
'
test_done
