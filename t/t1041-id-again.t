#!/bin/bash
# After a crash Flux may give a job the id of one that it forgot, whose workflow is
# still there.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='A job does not get the workflow of another that had its id'
. "$(dirname "$0")/sharness.sh"
test_under_flux 2

# left_over FILTER: the workflow of a forgotten job: that of the job JOBID,
# changed by a jq filter
left_over () {
	name=$(dws_workflow $jobid) &&
	jq -n --arg name $name --argjson instance "$(flux kvs get dws.instance)" \
		--arg line "$DWS_DIRECTIVE" --argjson user $(id -u) \
		"{apiVersion: \"dataworkflowservices.github.io/v1alpha7\",
		kind: \"Workflow\",
		metadata: {name: \$name, namespace: \"default\",
			finalizers: [\"flux-framework.readthedocs.io/workflow\"],
			labels: {\"flux-framework.org/instance\": \$instance}},
		spec: {desiredState: \"Proposal\", wlmID: \"flux\", jobID: \"a\",
			userID: \$user, groupID: 0, dwDirectives: [\$line]}}
		| $1" >forgotten.json &&
	dws_k8s create workflows "$(cat forgotten.json)" >created.json &&
	dws_ctl wait-state $name Proposal --timeout $DWS_LIMIT
}
# submit_unseen: a job that the module has not heard of yet
submit_unseen () {
	flux module remove dws &&
	jobid=$(dws_submit true) &&
	dws_wait_event $jobid dependency-add
}
# has_own FIELD: the job gets its own workflow, of which the KVS has a record
has_own () {
	dws_wait_event $jobid clean &&
	flux job status $jobid &&
	flux job info $jobid rabbit_workflow >record.json &&
	jq -e --argjson user $(id -u) --arg line "$DWS_DIRECTIVE" \
		".spec.userID == \$user and .spec.dwDirectives == [\$line]" record.json &&
	jq -r .metadata.uid created.json >forgotten.uid &&
	jq -r .metadata.uid record.json >own.uid
}

test_expect_success 'load everything' '
	dws_setup
'
test_expect_success 'that of another user is torn down first' '
	submit_unseen &&
	left_over ".spec.userID += 1" &&
	flux module load "$DWS_MODULES/dws.so" &&
	has_own &&
	test_must_fail diff forgotten.uid own.uid &&
	dws_clean
'
test_expect_success 'so is that of the same user with other directives' '
	submit_unseen &&
	left_over ".spec.dwDirectives = [\"#DW jobdw type=xfs capacity=1GiB name=other\"]" &&
	flux module load "$DWS_MODULES/dws.so" &&
	has_own &&
	test_must_fail diff forgotten.uid own.uid &&
	dws_clean
'
test_expect_success 'one that may well be its own is used' '
	submit_unseen &&
	left_over . &&
	flux module load "$DWS_MODULES/dws.so" &&
	has_own &&
	diff forgotten.uid own.uid &&
	dws_clean
'
test_done
