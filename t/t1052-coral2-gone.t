#!/bin/bash
# Jobs of flux-coral2 that end while nobody looks after them, what is left alone of what
# it has made, and the way back to it.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Between flux-coral2 and flux-dws'
. "$(dirname "$0")/sharness.sh"

if ! coral2_found; then
	skip_all='no flux-coral2 with a package kubernetes for it, or no Fluxion'
	test_done
fi
test_under_flux 8

mounted_job () {
	jobid=$(flux submit -N1 -S dw="$DWS_DIRECTIVE" sleep inf) &&
	dws_wait_event $jobid start
}
ended () {
	flux cancel $1 &&
	dws_wait_event $1 clean &&
	flux job eventlog $1 >eventlog
}

test_expect_success 'flux-coral2 serves, and two jobs run' '
	dws_start_sim --rabbits "rabbit[0-3]" && coral2_configure && coral2_start &&
	mounted_job && first=$jobid &&
	mounted_job && second=$jobid &&
	dws_until dws_mounted 2
'
test_expect_success 'its service is gone: it lets go of an epilog at once' '
	coral2_stop &&
	ended $first &&
	grep "epilog-finish.*dws-epilog.*status=1" eventlog
'
test_expect_success 'its plugin is gone: there is no epilog' '
	flux jobtap remove dws-jobtap.so &&
	ended $second &&
	test_must_fail grep dws-epilog eventlog &&
	dws_mounted 2
'
# A workflow of another instance on the cluster: no job here has this id.
test_expect_success 'somebody else has workflows, too' '
	dws_k8s create workflows "{
		\"metadata\": {\"name\": \"fluxjob-5\"},
		\"spec\": {\"desiredState\": \"Proposal\", \"wlmID\": \"flux\",
			\"jobID\": \"f6\", \"userID\": 0, \"groupID\": 0,
			\"dwDirectives\": []}}" &&
	test "$(flux job id --to=f58plain 5)" = f6
'
both_kept () {
	flux resource drain -no "{reason}" >reasons &&
	grep "^rabbit: still mounted by $(dws_workflow $first)" reasons &&
	grep "^rabbit: still mounted by $(dws_workflow $second)" reasons
}
test_expect_success 'flux-dws keeps others from their nodes until they are unmounted' '
	dws_hang on &&
	flux jobtap load "$DWS_PLUGINS/dws-jobtap.so" &&
	flux module load "$DWS_MODULES/dws.so" &&
	dws_start_agent &&
	dws_until both_kept &&
	dws_wait_status ".workflows == 2" &&
	dws_hang off &&
	dws_until dws_drained "" &&
	dws_wait_status ".jobs == 0" &&
	dws_mounted 0
'
test_expect_success 'and leaves the one of others alone' '
	dws_k8s get workflows fluxjob-5 >other &&
	jq -e ".metadata.labels == null and .spec.desiredState == \"Proposal\"" other &&
	dws_k8s delete workflows fluxjob-5
'
# Its plugin does not hear of the end of jobs that had their nodes before it came.
test_expect_success 'the way back: jobs that have nodes end, but for those in their epilog' '
	dws_crowd catch &&
	echo >go &&
	for phase in setup datain prerun running; do
		jobid=$(sed -n "s/^$phase //p" crowd) &&
		for state in Setup DataIn PreRun; do
			dws_ctl release $state --workflow $(dws_workflow $jobid) || return 1
		done &&
		dws_wait_event $jobid clean || return 1
	done &&
	dws_kill_agent && rm "$DWS_TMP/agent.pid" &&
	flux module remove dws &&
	coral2_service &&
	flux jobtap load --remove=dws-jobtap.so \
		"$CORAL2/lib/flux/job-manager/plugins/dws-jobtap.so"
'
# Its plugin asks for a workflow once more, and there is one.
test_expect_success 'jobs end as they should, but for those that are not let in yet' '
	dws_crowd release &&
	dws_crowd outcome >outcome &&
	cat >expected <<-EOF &&
	depend failed dws-create
	pending completed
	setup completed
	datain completed
	prerun completed
	running completed
	postrun completed
	dataout completed
	teardown completed
	EOF
	test_cmp expected outcome &&
	dws_ctl wait-idle --timeout 300
'
test_done
