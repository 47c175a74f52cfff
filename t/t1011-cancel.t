#!/bin/bash
# A rabbit job cancelled in each phase becomes inactive and leaves nothing.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Cancellation in every phase'
. "$(dirname "$0")/sharness.sh"
test_under_flux 4

test_expect_success 'load everything' '
	dws_setup
'
for phase in $DWS_PHASES; do
	test_expect_success "a job cancelled in $phase ends, clean" '
		dws_catch $phase &&
		flux cancel $jobid &&
		dws_wait_event $jobid exception &&
		if test $phase = teardown || test $phase = pending; then
			dws_let_go
		fi &&
		dws_wait_event $jobid clean &&
		flux job info $jobid rabbit_workflow >workflow.$phase &&
		if test $phase != teardown && test $phase != pending; then
			dws_let_go
		fi &&
		dws_clean
	'
done
test_expect_success 'the last workflow before Teardown is recorded' '
	jq -e ".status.state == \"Proposal\"" workflow.pending &&
	jq -e ".status.state == \"PreRun\"" workflow.prerun &&
	jq -e ".status.state == \"DataOut\"" workflow.dataout
'
test_expect_success 'capacity is free: a job that needs nearly all of it runs' '
	flux run -N1 -S dw="#DW jobdw type=xfs capacity=900GiB name=big" true &&
	dws_clean
'
test_done
