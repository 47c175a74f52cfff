#!/bin/bash
# The programs of sites that t/t3030-library.t runs, with the controllers of NNF.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='The Python library for sites, with the controllers of NNF'
. "$(dirname "$0")/../sharness.sh"
. "$DWS_SRCDIR/t/nnf/nnf.sh"
test_under_flux $NNF_NODES

site () {
	name=$1
	shift
	flux python "$DWS_SRCDIR/t/sites/$name.py" "$@"
}
begin_to_watch () {
	flux python "$DWS_SRCDIR/t/sites/watch_rabbits.py" kubeconfig \
		>watched.out 2>watched.err &
	echo $! >"$DWS_TMP/watch.pid"
}
saw () {
	grep "$1" watched.out
}
cleaned () {
	site remove_orphans kubeconfig >removed.out &&
	grep -x "$1" removed.out
}

test_expect_success 'a watcher sees the rabbits' '
	nnf_setup &&
	begin_to_watch &&
	dws_until saw "rabbit-node-2 Ready" &&
	grep "^disabled: " watched.out
'
test_expect_success 'a report has a job by its rabbit' '
	jobid=$(nnf_submit "#DW jobdw type=xfs capacity=2GiB name=scratch" -N1 \
		--requires=rank:2 sleep inf) &&
	dws_wait_event $jobid start &&
	site who_holds >out &&
	grep -A1 -Fx "rabbit-node-2 compute-[03-04] Ready" out >held &&
	grep -E "^  $(flux job id --to=f58plain $jobid) PreRun /.+" held
'
test_expect_success 'the watcher reads breakdowns, and holds the limits of the site' '
	dws_until saw "^$(dws_workflow $jobid) local" &&
	big=$(nnf_submit "#DW jobdw type=xfs capacity=30GiB name=big" -N1 true) &&
	dws_ended_well $big &&
	dws_until saw "^$(dws_workflow $big): .*30 GiB .*20 GiB" &&
	dws_until saw "^$(dws_workflow $big) deleted"
'
test_expect_success 'a workflow that nobody looks after is torn down, then deleted' '
	rig create workflows "{\"kind\": \"Workflow\", \"metadata\":
		{\"name\": \"fluxjob-4242\", \"namespace\": \"default\",
		\"finalizers\": [\"flux-framework.readthedocs.io/workflow\"]},
		\"spec\": {\"desiredState\": \"Proposal\", \"wlmID\": \"flux\",
		\"jobID\": \"f1\", \"userID\": 0, \"groupID\": 0, \"dwDirectives\":
		[\"#DW jobdw type=xfs capacity=2GiB name=left\"]}}" &&
	rig until workflows fluxjob-4242 ".status.state == \"Proposal\"" &&
	dws_until cleaned "fluxjob-4242: teardown_workflow" &&
	dws_until cleaned "fluxjob-4242: delete_workflow" &&
	dws_until saw "^fluxjob-4242 deleted"
'
# The workflow is marked as deleted, and stays until its job is released.
is_deleted () {
	site who_holds $jobid >out &&
	grep -x "$jobid True Proposal Setup DataIn PreRun PostRun DataOut Teardown" out
}

test_expect_success 'the job is ended through the module, its times can be read' '
	cat >give_up.py <<-EOF &&
	import flux, sys
	from flux.job import JobID
	from flux_k8s.workflow import WorkflowInfo
	WorkflowInfo.get(JobID(sys.argv[1])).move_to_teardown(flux.Flux())
	EOF
	flux python give_up.py $jobid &&
	dws_wait_event $jobid clean &&
	dws_until is_deleted &&
	kill $(cat "$DWS_TMP/watch.pid") &&
	rm "$DWS_TMP/watch.pid" &&
	nnf_clean
'
test_done
