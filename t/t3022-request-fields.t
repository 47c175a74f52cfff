#!/bin/bash
# Each request between the parts of flux-dws with each field left out, and of each
# wrong type.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Fields of requests'
. "$(dirname "$0")/sharness.sh"
test_under_flux 2

test_expect_success 'load everything, with a job that runs' '
	dws_setup &&
	jobid=$(dws_submit sleep inf) &&
	dws_wait_event $jobid start
'
test_expect_success 'a field that is not there, or of another type, is named' '
	for who in owner "any user"; do
		"$DWS_PYTHON" "$DWS_SRCDIR/scripts/lib/inputs.py" $who || return 1
	done >topics &&
	dws_wait 300 flux python "$DWS_SRCDIR/t/scripts/request_fields.py" \
		<topics >sent &&
	test $(cat sent) -gt 500
'
test_expect_success 'nothing is known of a job of these requests' '
	dws_wait_status ".jobs == 1 and .workflows == 1 and .agent.attached"
'
# named JSON: a dws.create that only this test has sent.
named () {
	rpc dws.create "{\"jobid\": 77, \"userid\": $(id -u), \"resources\": $1,
		\"dw_directives\": [\"$DWS_DIRECTIVE\"], \"failure_tolerance\": 0}"
}
test_expect_success 'a job that only dws.create has named does not stay' '
	flux job info $jobid jobspec >jobspec &&
	named "$(jq -c .resources jobspec)" &&
	dws_ctl wait-state fluxjob-77 Proposal --timeout $DWS_LIMIT &&
	dws_wait_status ".jobs == 1 and .workflows == 1" &&
	dws_k8s get workflows >workflows && jq -e ".items | length == 1" workflows
'
test_expect_success 'nor does one whose storage is refused' '
	dws_ctl fail Proposal --message "no such word" &&
	named "[]" &&
	dws_ctl wait-state fluxjob-77 Proposal --timeout $DWS_LIMIT &&
	dws_wait_status ".jobs == 1 and .workflows == 1" &&
	dws_ctl fail Proposal --clear
'
test_expect_success 'the job that runs has noticed nothing of all that' '
	flux job eventlog $jobid >eventlog &&
	test_must_fail grep exception eventlog &&
	flux cancel $jobid && dws_wait_event $jobid clean && dws_clean
'
test_done
