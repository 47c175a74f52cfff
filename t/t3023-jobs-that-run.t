#!/bin/bash
# flux rabbit on running jobs: their paths, and the keys of its top.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='flux rabbit jobs -o paths, and the keys of flux rabbit top'
. "$(dirname "$0")/sharness.sh"
test_under_flux 4

if flux python -c "import pyte" 2>/dev/null; then
	test_set_prereq PYTE
fi

test_expect_success 'load everything' '
	dws_setup
'
test_expect_success 'jobs -o paths has the paths of those that run' '
	dws_ctl hold Setup &&
	early=$(dws_submit true) &&
	dws_ctl wait-state $(dws_workflow $early) Setup --timeout $DWS_LIMIT &&
	flux rabbit jobs -no "{id.f58}:{paths}" >out &&
	grep "^$early:$" out &&
	dws_ctl release Setup &&
	dws_wait_event $early clean &&
	jobid=$(dws_submit sleep inf) && dws_wait_event $jobid start &&
	flux job eventlog -f json $jobid >log &&
	path=$(jq -r "select(.name == \"dws_environment\") |
		.context.variables.DW_JOB_scratch" log) &&
	test -n "$path" &&
	flux rabbit jobs -o paths >out &&
	grep "PATHS" out &&
	grep "^ *$jobid .* run .* DW_JOB_scratch=$path$" out &&
	flux cancel $jobid && dws_wait_event $jobid clean
'
test_expect_success PYTE 'keys show a job, and cancel it after a question' '
	jobid=$(dws_submit sleep inf) && dws_wait_event $jobid start &&
	flux python "$DWS_SRCDIR/t/scripts/top_keys.py" &&
	dws_wait_event $jobid clean &&
	flux job eventlog $jobid >log &&
	grep "exception type=\"cancel\"" log
'
test_done
