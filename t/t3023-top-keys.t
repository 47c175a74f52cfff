#!/bin/bash
# The keys of flux rabbit top that are about one job.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='flux rabbit top: show and cancel a job'
. "$(dirname "$0")/sharness.sh"
test_under_flux 4

if flux python -c "import pyte" 2>/dev/null; then
	test_set_prereq PYTE
fi

test_expect_success 'load everything' '
	dws_setup
'
test_expect_success PYTE 'keys show a job, and cancel it after a question' '
	jobid=$(dws_submit sleep inf) && dws_wait_event $jobid start &&
	flux python "$DWS_SRCDIR/t/scripts/top_keys.py" &&
	dws_wait_event $jobid clean &&
	flux job eventlog $jobid | grep "exception type=\"cancel\""
'
test_done
