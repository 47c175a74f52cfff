#!/bin/bash
# Somebody deletes workflows, and changes what belongs to them.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Objects tampered with, with the controllers of NNF'
. "$(dirname "$0")/../sharness.sh"
. "$DWS_SRCDIR/t/nnf/nnf.sh"
test_under_flux 4

SLOW="#DW jobdw type=gfs2 capacity=1GiB name=fast
#DW copy_in source=\$DW_JOB_fast/a destination=\$DW_JOB_fast/b"

# tampered: a job that is about to mount on a node that there is not
tampered () {
	jobid=$(nnf_submit "$SLOW" -N2 --requires=rank:0-1 true) &&
	name=$(dws_workflow $jobid) &&
	rig until workflows $name ".status.state == \"DataIn\"" &&
	rig get computes $name >computes.json &&
	jq -c "{data}" computes.json >computes &&
	rig patch computes $name \
		"{\"data\": [{\"name\": \"compute-01\"}, {\"name\": \"nobody\"}]}" &&
	rig until workflows $name ".status.state == \"PreRun\"
		and (.status.message | contains(\"unable to mount\"))"
}

test_expect_success 'load everything' '
	nnf_setup
'
test_expect_success 'a workflow is deleted in each phase of its job' '
	nnf_crowd delete
'
test_expect_success 'each ends as it should, nothing is left' '
	nnf_outcome deleted t1014-faults.t
'
test_expect_success 'Computes are wrong: mounting waits' '
	tampered
'
test_expect_success 'they are corrected: the job does well' '
	rig patch computes $name "$(cat computes)" &&
	dws_ended_well $jobid &&
	nnf_clean
'
test_expect_success 'they are wrong for good: the job ends by the time limit' '
	tampered &&
	echo "prerun_timeout = 1" >>"$DWS_TMP/conf.d/test.toml" &&
	flux config reload &&
	nnf_refused $jobid dws-timeout "" &&
	cat eventlog &&
	nnf_clean
'
# What NNF leaves behind once in a while: see README.md.
test_expect_success 'a mount whose workflow is no more is named, and can be taken away' '
	jq ".metadata.namespace = \"rabbit-node-1\"" \
		"$DWS_SRCDIR/t/data/lost-clientmount.json" >lost.json &&
	rig create clientmounts "$(cat lost.json)" &&
	test_expect_code 3 flux rabbit selftest --types none >out &&
	grep "mounts .*of no workflow any more: rabbit-node-1/lost" out &&
	nnf_clean 2>err &&
	grep "NNF has lost rabbit-node-1/lost, taken away" err &&
	flux rabbit selftest --types none
'
test_done
