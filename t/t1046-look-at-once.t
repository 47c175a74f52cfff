#!/bin/bash
# NNF looks at the devices of a job now and then, or when Computes changes. The module
# changes it, so that nobody waits.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='A job does not wait until NNF looks by itself'
. "$(dirname "$0")/sharness.sh"
test_under_flux 4

# looked_for STATE: the last change of the job's Computes is of that state
looked_for () {
	dws_k8s get computes $name >computes.json &&
	jq -e ".metadata.annotations[\"flux-framework.org/looked-for\"]
		| startswith(\"$1 \")" computes.json &&
	jq -e ".data | length == 2" computes.json
}

# The simulator polls its devices less often than once in this test.
test_expect_success 'load everything' '
	dws_setup &&
	dws_ctl device-poll 86400
'
test_expect_success 'what is mounted in PreRun is mounted' '
	jobid=$(dws_submit sleep inf) &&
	name=$(dws_workflow $jobid) &&
	dws_wait_event $jobid start &&
	looked_for PreRun
'
test_expect_success 'and is unmounted in PostRun, with a module that has just started' '
	flux module remove dws &&
	flux cancel $jobid &&
	dws_wait_event $jobid epilog-start &&
	dws_ctl hold DataOut &&
	flux module load "$DWS_MODULES/dws.so" &&
	dws_ctl wait-state $name DataOut --timeout $DWS_LIMIT &&
	looked_for PostRun &&
	dws_ctl release DataOut &&
	dws_wait_event $jobid clean &&
	dws_clean
'
test_done
