#!/bin/bash
# Somebody deletes workflows, and changes what belongs to them.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Objects tampered with, with the controllers of NNF'
. "$(dirname "$0")/../sharness.sh"
. "$DWS_SRCDIR/t/nnf/nnf.sh"
test_under_flux 4

SLOW="#DW jobdw type=gfs2 capacity=1GiB name=fast
#DW copy_in source=\$DW_JOB_fast/a destination=\$DW_JOB_fast/b"

# without_computes: a job that runs, whose Computes somebody deletes
without_computes () {
	jobid=$(nnf_submit "#DW jobdw type=xfs capacity=1GiB name=own" -N2 \
		--requires=rank:0-1 sleep inf) &&
	name=$(dws_workflow $jobid) &&
	dws_wait_event $jobid start &&
	rig get computes $name >computes.json &&
	rig delete computes $name
}
named () {
	flux dmesg >dmesg.out &&
	grep "Computes default/$name was deleted, .*forbidden" dmesg.out
}

# caught: a job in DataIn, where it stays, as the agent is stopped. Fails if it is further.
caught () {
	jobid=$(nnf_submit "$SLOW" -N2 --requires=rank:0-1 true) &&
	name=$(dws_workflow $jobid) &&
	rig until workflows $name ".status.state == \"DataIn\"" &&
	kill -STOP $(cat "$DWS_TMP/agent.pid") &&
	rig get workflows $name >workflow.json &&
	jq -e ".spec.desiredState == \"DataIn\"" workflow.json
}
# tampered: a job that is about to mount on a node that there is not.
tampered () {
	until caught; do
		kill -CONT $(cat "$DWS_TMP/agent.pid") &&
		dws_ended_well $jobid || return 1
	done &&
	rig get computes $name >computes.json &&
	jq -c "{data}" computes.json >computes &&
	rig patch computes $name \
		"{\"data\": [{\"name\": \"compute-01\"}, {\"name\": \"nobody\"}]}" &&
	kill -CONT $(cat "$DWS_TMP/agent.pid") &&
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
test_expect_success 'the label of a workflow is removed in each phase of its job' '
	rm -f crowd &&
	nnf_crowd label:
'
test_expect_success 'label removed: each ends as it would have, nothing is left' '
	nnf_outcome label-removed t1044-out-of-sight.t
'
test_expect_success 'it is changed' '
	rm -f crowd &&
	nnf_crowd label:another
'
test_expect_success 'label changed: the same' '
	nnf_outcome label-changed t1044-out-of-sight.t
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
test_expect_success 'Computes of a running job is deleted: its end waits, and names it' '
	sed -i "/^prerun_timeout/d" "$DWS_TMP/conf.d/test.toml" &&
	flux config reload &&
	without_computes &&
	flux cancel $jobid &&
	dws_until named
'
test_expect_success 'somebody with the right to makes it: the job ends' '
	jq "{metadata: {name: .metadata.name, namespace: .metadata.namespace,
			labels: .metadata.labels,
			ownerReferences: .metadata.ownerReferences},
		kind, data}" computes.json >again &&
	rig create computes "$(cat again)" &&
	dws_wait_event $jobid clean &&
	nnf_clean
'
test_expect_success 'the workload manager has that right: it is made as it was' '
	rig allow computes create &&
	without_computes &&
	flux cancel $jobid &&
	rig until workflows $name ".status.state == \"Teardown\"" &&
	dws_wait_event $jobid clean &&
	flux dmesg >dmesg.out &&
	grep "$name: Computes was deleted, and is there again" dmesg.out &&
	nnf_clean
'
test_expect_success 'also for a job that ends well' '
	without_computes &&
	flux job kill -s TERM $jobid &&
	dws_wait_event $jobid clean &&
	flux job eventlog $jobid >eventlog &&
	test_must_fail grep "exception type=\"dws" eventlog &&
	nnf_clean
'
test_expect_success 'and for one that is torn down at once' '
	without_computes &&
	flux module remove dws &&
	flux cancel $jobid &&
	dws_wait_event $jobid epilog-start &&
	flux job raise --type=enough $jobid &&
	flux module load "$DWS_MODULES/dws.so" &&
	dws_wait_event $jobid clean &&
	flux dmesg >dmesg.out &&
	grep "$name: Computes was deleted, and is there again" dmesg.out &&
	test_must_fail flux job info $jobid rabbit_postrun_timing &&
	nnf_clean
'
# NNF sometimes leaves such a ClientMount behind: see README.md.
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
test_expect_success 'the role is as NNF installs it again' '
	rig forbid computes create
'
test_done
