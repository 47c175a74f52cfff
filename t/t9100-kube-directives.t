#!/bin/bash
# Jobs of every directive against a real API server (scripts/check kube).
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Every directive on a real API server'
. "$(dirname "$0")/sharness.sh"
test -n "$DWS_KUBE" || {
	skip_all='no real API server: scripts/check kube starts one'
	test_done
}
test_under_flux 4

dws_start_sim () {
	cp "$DWS_KUBE/kubeconfig" "$DWS_KUBE/mapping.json" .
}
kube_clean () {
	dws_kube_clean workflows directivebreakdowns servers computes
}

# take [--needed] [RESOURCE:VERB...]: the role of the agent without these.
take () {
	flux python "$DWS_SRCDIR/t/kube/role.py" "$DWS_KUBE/kubeconfig" "$@"
}

test_expect_success 'load everything, with the rights that are asked for' '
	take --needed &&
	cat >rabbit.toml <<-\EOF &&
	restrict_persistent_creation = false
	EOF
	dws_setup
'
for type in xfs gfs2 raw lustre; do
	test_expect_success "jobdw type=$type" '
		dws_run_job "#DW jobdw type=$type capacity=10GiB name=scratch" \
			"test -e \"\$DW_JOB_scratch\" && echo there" >out &&
		grep there out
	'
done
test_expect_success 'create_persistent' '
	dws_run_job "#DW create_persistent type=gfs2 capacity=1GiB name=kept" true
'
test_expect_success 'persistentdw' '
	dws_run_job "#DW persistentdw name=kept" "test -d \"\$DW_PERSISTENT_kept\""
'
test_expect_success 'destroy_persistent' '
	dws_run_job "#DW destroy_persistent name=kept" true
'
test_expect_success 'copy_in and copy_out' '
	dws_run_job "#DW jobdw type=gfs2 capacity=1GiB name=scratch
#DW copy_in source=/lus/global/in destination=\$DW_JOB_scratch/in
#DW copy_out source=\$DW_JOB_scratch/out destination=/lus/global/out" true
'
test_expect_success 'container, with its environment and token' '
	dws_run_job "#DW jobdw type=gfs2 capacity=1GiB name=local requires=user-container-auth
#DW container name=mine profile=example-server DW_JOB_foo_local_storage=local" \
		"test -n \"\$NNF_CONTAINER_PORTS\" && test -n \"\$DW_WORKFLOW_TOKEN\""
'
test_expect_success 'what the webhook refuses ends the job in its words' '
	jobid=$(flux submit -N1 -S dw="#DW jobdw type=xfs capacity=1GiB name=one profile=none" true) &&
	dws_wait_event $jobid clean &&
	flux job eventlog $jobid >eventlog.out &&
	grep " exception " <eventlog.out >exception &&
	grep -i "profile" exception
'
test_expect_success 'ten jobs at once all end clean' '
	for i in $(seq 10); do
		flux submit -N1 -S dw="$DWS_DIRECTIVE" true || return 1
	done >jobids &&
	for id in $(cat jobids); do
		dws_wait_event $id clean || return 1
	done
'
test_expect_success 'nothing is left' '
	kube_clean
'
test_expect_success 'flux rabbit selftest finds all rights that are needed' '
	{ flux rabbit selftest --types none >check || :; } &&
	grep "permissions" check &&
	test_must_fail grep "may not" check
'
# wait_note JOBID REGEX
wait_note () {
	flux python "$DWS_SRCDIR/t/scripts/wait_note.py" "$@"
}
test_expect_success 'without the right to create, the job says which is missing' '
	take workflows:create &&
	jobid=$(dws_submit true) &&
	wait_note $jobid "has trouble: .* cannot create resource .workflows." &&
	take &&
	dws_wait_event $jobid clean
'
test_expect_success 'without the right to patch Servers too' '
	take servers:patch &&
	jobid=$(dws_submit true) &&
	wait_note $jobid "has trouble: .* cannot patch resource .servers." &&
	take &&
	dws_wait_event $jobid clean
'
test_expect_success 'nothing is left of them' '
	kube_clean
'
test_expect_success 'nothing that Kubernetes sent was refused' '
	dws_wait_status ".agent.api.requests > 40 and .agent.api.refused == 0"
'
test_done
