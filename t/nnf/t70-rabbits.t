#!/bin/bash
# Rabbits that are drained or offline, and back.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Rabbits drained and offline with the controllers of NNF'
. "$(dirname "$0")/../sharness.sh"
. "$DWS_SRCDIR/t/nnf/nnf.sh"
test_under_flux 4

# down RABBIT...: these are for the scheduler, and no others
down () {
	dws_wait_status ".health.settled and .health.down
		== $(printf '%s\n' "$@" | jq -cR . | jq -cs 'map(select(. != ""))')" \
		$DWS_LIMIT
}
# runs_on HOSTS: where a job for two nodes runs
runs_on () {
	jobid=$(nnf_submit "$DWS_DIRECTIVE" -N2 true) &&
	dws_ended_well $jobid &&
	test "$(flux jobs -no "{nodelist}" $jobid)" = "$1"
}

test_expect_success 'load everything' '
	nnf_setup &&
	down
'
for state in drained offline; do
	test_expect_success "a rabbit is $state: jobs avoid it" '
		rig node rabbit-node-1 $state &&
		down rabbit-node-1 &&
		runs_on "compute-[03-04]"
	'
	test_expect_success "a job that needs it waits" '
		jobid=$(nnf_submit "$DWS_DIRECTIVE" -N1 --requires=rank:0 true) &&
		dws_wait_event $jobid priority
	'
	test_expect_success "it is back: the job runs" '
		rig node rabbit-node-1 ready &&
		down &&
		dws_ended_well $jobid &&
		nnf_clean
	'
done
test_expect_success 'nodes are not drained any more' '
	test "$(flux resource drain -no "{nodelist}")" = ""
'
test_expect_success 'a rabbit is drained under a job: it ends well' '
	mkfifo go &&
	jobid=$(nnf_submit "$DWS_DIRECTIVE" -N1 --requires=rank:0 cat go) &&
	dws_wait_event $jobid start &&
	rig node rabbit-node-1 drained &&
	down rabbit-node-1 &&
	: >go &&
	dws_ended_well $jobid &&
	rig node rabbit-node-1 ready &&
	down &&
	nnf_clean
'
test_done
