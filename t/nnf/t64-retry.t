#!/bin/bash
# NNF makes a data movement anew when a failed one is deleted, and its workflow
# leaves Error: that is what flux rabbit retry stands on.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Stage-outs that are tried again'
. "$(dirname "$0")/../sharness.sh"
. "$DWS_SRCDIR/t/nnf/nnf.sh"
test_under_flux 4

COPY='#DW jobdw type=gfs2 capacity=1GiB name=one
#DW copy_out source=$DW_JOB_one/b destination=$DW_JOB_one/c'

listed () {
	flux rabbit losses --json >losses && jq -e "$1" losses >listed.out
}

test_expect_success 'load everything' '
	nnf_setup "stage_out_retry = \"1h\""
'
test_expect_success 'a stage-out fails, and the job gives its nodes back' '
	rig kill dm &&
	jobid=$(nnf_submit "$COPY" -N4 true) &&
	rig spoil $(dws_workflow $jobid) "dcp: quota exceeded" &&
	dws_wait_event $jobid clean &&
	flux job status $jobid &&
	dws_until listed ".[0].until and (.[0].text | contains(\"quota exceeded\"))" &&
	flux run -N4 true
'
test_expect_success 'the role of a workload manager does not allow another try' '
	flux rabbit retry $jobid &&
	dws_until listed ".[0].text | test(\"cannot be tried again.*forbidden\")"
'
test_expect_success 'with one more right it does, and that may fail as well' '
	rig allow nnfdatamovements delete &&
	dws_until flux rabbit retry $jobid &&
	rig spoil $(dws_workflow $jobid) "dcp: no such directory" &&
	dws_until listed ".[0].text | contains(\"no such directory\")"
'
test_expect_success 'when what was wrong is mended the data gets out' '
	flux rabbit retry $jobid &&
	rig start dm &&
	nnf_clean &&
	listed "length == 0" &&
	flux job info $jobid rabbit_stage_out >record &&
	jq -e ".state == \"moved\"" record
'
test_expect_success 'the role is as NNF installs it again' '
	rig forbid nnfdatamovements delete
'
test_done
