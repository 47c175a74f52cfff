#!/bin/bash
# The agent killed and started again in every phase: the job ends well.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='The agent killed and started again in every phase'
. "$(dirname "$0")/sharness.sh"
test_under_flux 4

test_expect_success 'load everything' '
	dws_setup
'
for phase in $DWS_PHASES; do
	test_expect_success "agent: caught in $phase" '
		dws_catch $phase
	'
	test_expect_success "agent: restarted in $phase, the job ends well" '
		dws_kill_agent &&
		dws_let_go &&
		dws_start_agent &&
		if test $phase = running; then
			flux cancel $jobid
		fi &&
		dws_wait_event $jobid clean &&
		if test $phase != running; then
			flux job status $jobid
		fi &&
		dws_clean
	'
done
test_done
