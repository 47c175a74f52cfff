#!/bin/bash
# The broker module reloaded in every phase: the job ends well.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='The broker module reloaded in every phase'
. "$(dirname "$0")/sharness.sh"
test_under_flux 4

test_expect_success 'load everything' '
	dws_setup
'
for phase in $DWS_PHASES; do
	test_expect_success "module: caught in $phase" '
		dws_catch $phase
	'
	test_expect_success "module: restarted in $phase, the job ends well" '
		flux module remove dws &&
		dws_let_go &&
		flux module load "$DWS_MODULES/dws.so" &&
		dws_wait_status ".agent.synced == true" &&
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
