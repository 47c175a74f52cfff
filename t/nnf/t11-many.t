#!/bin/bash
# Many jobs at once, and what goes wrong with some: nothing is left of any.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Many jobs and refused ones with the controllers of NNF'
. "$(dirname "$0")/../sharness.sh"
. "$DWS_SRCDIR/t/nnf/nnf.sh"
test_under_flux 4

test_expect_success 'load everything' '
	nnf_setup
'
test_expect_success 'twenty jobs at once' '
	nnf_submit_many 20 "$DWS_DIRECTIVE" &&
	test $(wc -l <crowd) -eq 20
'
test_expect_success 'all of them do well, nothing is left' '
	nnf_all_completed
'
# A rabbit has 36 TiB in all.
test_expect_success 'a job that no rabbit can hold is refused' '
	jobid=$(nnf_submit "#DW jobdw type=xfs capacity=40TiB name=big" -N1 true) &&
	nnf_refused $jobid alloc "" &&
	nnf_clean
'
test_expect_success 'an unknown profile ends the job in the words of NNF' '
	jobid=$(nnf_submit "$DWS_DIRECTIVE profile=none" -N1 true) &&
	nnf_refused $jobid dws-create \
		"Unable to find NnfStorageProfile: none .*fault: user" &&
	nnf_clean
'
# What is left of a rabbit is not what can be had: one allocation has to fit into
# 16 of 18 drives evenly.
test_expect_success 'capacity that Setup finds not to be there' '
	jobid=$(nnf_submit "#DW jobdw type=xfs capacity=34TiB name=big" -N1 true) &&
	nnf_refused $jobid dws-setup "WLM error: .*fault: site" &&
	nnf_clean
'
test_expect_success 'space that somebody else holds' '
	rig foreign somebody rabbit-node-1 30TiB &&
	jobid=$(nnf_submit "#DW jobdw type=xfs capacity=20TiB name=big" \
		-N1 --requires=rank:0 true) &&
	nnf_refused $jobid dws-setup \
		"rabbit-node-1: insufficient capacity available .*fault: site"
'
test_expect_success 'a job that needs what is left does well meanwhile' '
	jobid=$(nnf_submit "$DWS_DIRECTIVE" -N1 --requires=rank:0 true) &&
	dws_ended_well $jobid
'
test_expect_success 'once it is given back it can be had' '
	rig remove somebody &&
	jobid=$(nnf_submit "#DW jobdw type=xfs capacity=20TiB name=big" \
		-N1 --requires=rank:0 true) &&
	dws_ended_well $jobid &&
	nnf_clean
'
test_done
