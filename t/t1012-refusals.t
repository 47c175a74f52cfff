#!/bin/bash
# What is wrong with a directive reaches the user, as early as it can be known.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Refused directives'
. "$(dirname "$0")/sharness.sh"
test_under_flux 2

test_expect_success 'load everything' '
	dws_setup
'
test_expect_success 'a misspelt command is refused at submit, by name' '
	test_must_fail flux submit -N1 -S dw="#DW jobwd type=xfs capacity=1GiB name=aa" \
		true 2>err &&
	grep jobwd err
'
test_expect_success 'a misspelt key is refused at submit, by name' '
	test_must_fail flux submit -N1 -S dw="#DW jobdw type=xfs capcity=1GiB name=aa" \
		true 2>err &&
	grep capcity err
'
test_expect_success 'a bad value is refused at submit, with what is allowed' '
	test_must_fail flux submit -N1 -S dw="#DW jobdw type=zfs capacity=1GiB name=aa" \
		true 2>err &&
	grep zfs err && grep gfs2 err
'
test_expect_success 'no job is left of all that' '
	flux jobs -ano {id} >jobs &&
	test_must_fail test -s jobs
'
test_expect_success 'what only the webhook can know ends the job with its text' '
	jobid=$(flux submit -N1 \
		-S dw="#DW jobdw type=xfs capacity=1GiB name=aa zebra=striped" true) &&
	dws_wait_event $jobid clean &&
	flux job eventlog $jobid >eventlog &&
	grep "exception.*denied the request.*unsupported argument .zebra" eventlog &&
	dws_clean
'
test_expect_success 'a group that the user is not in, or that is none, is refused' '
	test_must_fail flux submit -N1 -S dw="$DWS_DIRECTIVE" -S dw_group=[] \
		true 2>err &&
	grep dw_group err &&
	jobid=$(dws_submit -S dw_group=no-such-group true) &&
	dws_wait_event $jobid clean &&
	flux job eventlog $jobid >eventlog &&
	grep "exception.*dw_group: no-such-group: there is no such" eventlog &&
	jobid=$(dws_submit -S dw_group=64999 true) &&
	dws_wait_event $jobid clean &&
	flux job eventlog $jobid >eventlog &&
	grep "exception.*is not a member of 64999" eventlog
'
test_expect_success 'his own is taken' '
	jobid=$(dws_submit -S dw_group=$(id -gn) true) &&
	dws_wait_event $jobid clean && flux job status $jobid &&
	flux job info $jobid rabbit_workflow >workflow.out &&
	jq -e ".spec.groupID == $(id -g)" <workflow.out &&
	dws_clean
'
test_done
