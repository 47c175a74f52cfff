#!/bin/bash
# Programs of sites that import flux_k8s: three of them, which t/nnf/t16-library.t runs
# with the controllers of NNF.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='The Python library for sites'
. "$(dirname "$0")/sharness.sh"
test_under_flux 4

SITES=$DWS_SRCDIR/t/sites

site () {
	name=$1
	shift
	flux python "$SITES/$name.py" "$@"
}
# orphan NAME METADATA: a workflow that is not this instance's
orphan () {
	dws_k8s create workflows "{
	  \"apiVersion\": \"dataworkflowservices.github.io/v1alpha7\",
	  \"kind\": \"Workflow\",
	  \"metadata\": {\"name\": \"$1\", $2
	    \"finalizers\": [\"flux-framework.readthedocs.io/workflow\"]},
	  \"spec\": {\"desiredState\": \"Proposal\", \"wlmID\": \"flux\",
	    \"jobID\": \"f1\", \"userID\": $(id -u), \"groupID\": $(id -g),
	    \"dwDirectives\": [\"$DWS_DIRECTIVE\"]}}" >created.json
}
# cleaned REGEX [INSTANCE]: the clean-up says so
cleaned () {
	site remove_orphans kubeconfig $2 >removed.out &&
	grep -x "$1" removed.out
}
begin_to_watch () {
	flux python "$SITES/watch_rabbits.py" kubeconfig >watched.out 2>watched.err &
	echo $! >"$DWS_TMP/watch.pid"
}
# saw REGEX: the watcher did
saw () {
	grep "$1" watched.out
}
saw_twice () {
	test "$(grep -c "$1" watched.out)" = 2
}
gone () {
	dws_k8s get workflows >list.json &&
	! grep "\"$1\"" list.json
}

test_expect_success 'without the module, the programs say so' '
	dws_start_sim && dws_configure &&
	test_must_fail site who_holds 2>err &&
	grep -i "dws.status\|no service" err
'
test_expect_success 'everything is there' '
	dws_use_sched_rabbit &&
	flux module load "$DWS_MODULES/dws.so" &&
	flux jobtap load "$DWS_PLUGINS/dws-jobtap.so" &&
	dws_start_agent
'
test_expect_success 'a watcher begins' '
	begin_to_watch &&
	dws_until saw "rabbit1 Ready" &&
	saw "rabbit0 Ready" &&
	grep -Fx "disabled: []" watched.out
'
test_expect_success 'nobody holds a rabbit' '
	site who_holds >out &&
	cat >exp <<-EOF &&
	rabbit0 node[0-1] Ready
	rabbit1 node[2-3] Ready
	EOF
	test_cmp exp out
'
test_expect_success 'a job does' '
	jobid=$(flux submit -N1 --requires=rank:2 -S dw="$DWS_DIRECTIVE" sleep inf) &&
	dws_wait_event $jobid start &&
	site who_holds >out &&
	tail -n1 out | grep -E "^  $(flux job id --to=f58plain $jobid) PreRun /.+"
'
test_expect_success 'the watcher reads breakdowns, and holds the limits of the site' '
	dws_until saw "^$(dws_workflow $jobid) local" &&
	big=$(flux submit -N1 -S dw="#DW jobdw type=xfs capacity=30GiB name=big" true) &&
	dws_wait_event $big clean &&
	dws_until saw "^$(dws_workflow $big): .*30 GiB .*20 GiB" &&
	dws_until saw "^$(dws_workflow $big) deleted" &&
	lustre=$(flux submit -N1 -S dw="#DW jobdw type=lustre capacity=50GiB name=big" true) &&
	dws_wait_event $lustre clean &&
	dws_until saw "^$(dws_workflow $lustre) Lustre" &&
	test_must_fail saw "^$(dws_workflow $lustre): "
'
test_expect_success 'of a job that is over the times can be read' '
	site who_holds $big >out &&
	grep -x "$big True Proposal Setup DataIn PreRun PostRun DataOut Teardown" out
'
test_expect_success 'a workflow that nobody looks after is torn down, then deleted' '
	orphan fluxjob-4242 &&
	cleaned "fluxjob-4242: teardown_workflow" &&
	dws_ctl wait-state fluxjob-4242 Teardown --timeout 300 &&
	dws_until cleaned "fluxjob-4242: delete_workflow" &&
	dws_until gone fluxjob-4242
'
test_expect_success 'one of another instance when that is named' '
	orphan fluxjob-4243 "\"labels\": {\"flux-framework.org/instance\": \"other\"}," &&
	cleaned "kept: fluxjob-4243 belongs to the Flux instance other: .*" &&
	cleaned "fluxjob-4243: teardown_workflow" other &&
	dws_ctl wait-state fluxjob-4243 Teardown --timeout 300 &&
	dws_until cleaned "fluxjob-4243: delete_workflow" other &&
	dws_until gone fluxjob-4243
'
test_expect_success 'those of jobs are not touched' '
	test_must_fail grep $(dws_workflow $jobid) removed.out &&
	cat >take.py <<-EOF &&
	import flux, sys
	from flux_k8s import cleanup
	cleanup.setup_cleanup_thread("kubeconfig")
	for remove in cleanup.teardown_workflow, cleanup.delete_workflow:
	    try:
	        remove({"metadata": {"name": sys.argv[1]}})
	    except cleanup.CleanupError as exc:
	        print(exc)
	EOF
	flux python take.py $(dws_workflow $jobid) >out &&
	test $(grep -c "belongs to this Flux instance" out) = 2 &&
	dws_k8s patch workflows $(dws_workflow $jobid) "{\"metadata\":
		{\"labels\": null, \"annotations\": null}}" &&
	flux python take.py $(dws_workflow $jobid) >out &&
	test $(wc -l <out) = 2 &&
	test_must_fail grep -v "belongs to this Flux instance\|dws.so knows its job" out
'
test_expect_success 'a rabbit goes, and the watcher knows' '
	flux rabbit disable --reason test rabbit0 &&
	dws_until saw "rabbit0 Disabled" &&
	flux rabbit enable rabbit0 &&
	dws_until saw_twice "rabbit0 Ready"
'
test_expect_success 'a job is given up through the module' '
	cat >give_up.py <<-EOF &&
	import flux, sys
	from flux.job import JobID
	from flux_k8s.workflow import WorkflowInfo
	info = WorkflowInfo.get(JobID(sys.argv[1]))
	assert not info.toredown and info.rabbits == ["rabbit1"]
	info.notify_of_node_failure(flux.Flux(), ["node2"])
	info.move_to_teardown(flux.Flux(), reason="the site says so")
	EOF
	flux python give_up.py $jobid &&
	dws_wait_event $jobid clean &&
	flux job eventlog $jobid >eventlog &&
	grep "exception type=\"dws-node-failure\" severity=1 .*node2" eventlog &&
	grep "exception type=\"dws-release\" severity=0 .*the site says so" eventlog &&
	dws_until gone $(dws_workflow $jobid)
'
test_expect_success 'the watcher had no fault to tell of' '
	kill $(cat "$DWS_TMP/watch.pid") &&
	rm "$DWS_TMP/watch.pid" &&
	test_must_be_empty watched.err
'
test_done
