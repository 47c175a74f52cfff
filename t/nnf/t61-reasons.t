#!/bin/bash
# Errors reach the user in NNF's words, with the rabbit or node at fault.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Reasons, with the controllers of NNF'
. "$(dirname "$0")/../sharness.sh"
. "$DWS_SRCDIR/t/nnf/nnf.sh"
test_under_flux 4

SLOW="#DW jobdw type=gfs2 capacity=1GiB name=fast
#DW copy_in source=\$DW_JOB_fast/a destination=\$DW_JOB_fast/b"

# computes N HOST...: what the workflow of a job on N nodes is to mount on, put
# there by hand while data is copied in
computes () {
	jobid=$(nnf_submit "$SLOW" -N$1 --requires=rank:0-1 true) &&
	shift &&
	name=$(dws_workflow $jobid) &&
	rig until workflows $name ".status.state == \"DataIn\"" &&
	data=$(printf "{\"name\": \"%s\"}," "$@") &&
	rig patch computes $name "{\"data\": [${data%,}]}"
}
# rabbit_is STATE: what flux rabbit says of rabbit-node-2
rabbit_is () {
	flux rabbit list --json rabbit-node-2 >list.out &&
	jq -e ".rabbits[0].state == \"$1\"" list.out
}

test_expect_success 'load everything' '
	nnf_setup "prerun_timeout = 5"
'
test_expect_success 'a container profile that there is not is the fault of the user' '
	jobid=$(nnf_submit "#DW jobdw type=gfs2 capacity=1GiB name=fast
		#DW container name=cc profile=nosuch DW_JOB_foo_local_storage=fast" \
		-N1 true) &&
	nnf_refused $jobid dws-create \
		"no valid container profile found .*nosuch.*fault: user" &&
	nnf_clean
'
# stays_in_proposal NAME DIRECTIVE TEXT: what becomes of such a workflow without us
stays_in_proposal () {
	jq -n --arg name $1 --arg dw "$2" --argjson user $(id -u) "{
		apiVersion: \"dataworkflowservices.github.io/v1alpha7\", kind: \"Workflow\",
		metadata: {name: \$name, namespace: \"default\"},
		spec: {desiredState: \"Proposal\", wlmID: \"x\", jobID: \"1\", userID: \$user,
			groupID: 0, dwDirectives: [\$dw]}}" >workflow &&
	rig create workflows "$(cat workflow)" &&
	rig until workflows $1 "[.status.drivers[]? | .error // \"\" | test(\"$3\")] | any" &&
	rig get workflows $1 >workflow && jq -c .status.drivers workflow &&
	jq -e ".status.status == \"DriverWait\" and .status.ready == false" workflow &&
	rig remove $1
}
test_expect_success 'a file system is not made anew with another size' '
	kept="#DW create_persistent type=xfs capacity=%sGiB name=kept" &&
	jobid=$(nnf_submit "$(printf "$kept" 1)" -N1 true) &&
	dws_wait_event $jobid clean && flux job status $jobid &&
	jobid=$(nnf_submit "$(printf "$kept" 2)" -N1 true) &&
	nnf_refused $jobid dws-create "exists already, made by .*=1GiB.*fault: user" &&
	stays_in_proposal other-size "$(printf "$kept" 2)" "denied the request: " &&
	jobid=$(nnf_submit "$(printf "$kept" 1)" -N1 true) &&
	dws_wait_event $jobid clean && flux job status $jobid &&
	jobid=$(nnf_submit "#DW destroy_persistent name=kept" -N1 true) &&
	dws_wait_event $jobid clean && flux job status $jobid &&
	nnf_clean
'
test_expect_success 'a name that Kubernetes does not take is refused at once' '
	kept="#DW create_persistent type=xfs capacity=1GiB name=" &&
	long=$(printf "a%.0s" $(seq 64)) &&
	test_must_fail nnf_submit "${kept}trailing-" -N1 true 2>err &&
	grep "trailing-. must end in" err &&
	test_must_fail nnf_submit "$kept$long" -N1 true 2>err &&
	grep "has 64 characters" err &&
	stays_in_proposal no-name "${kept}trailing-" "is invalid: metadata.name" &&
	nnf_clean
'
test_expect_success 'a node that NNF does not know' '
	computes 2 compute-01 nobody &&
	nnf_refused $jobid dws-timeout \
		"longer than 5s: Internal error: unable to mount .*nobody.*not ready: compute-02" &&
	nnf_clean
'
test_expect_success 'more nodes than there are allocations' '
	computes 1 compute-01 compute-02 &&
	nnf_refused $jobid dws-timeout \
		"longer than 5s: pending mount .not ready: compute-01. " &&
	nnf_clean
'
test_expect_success 'the controller of a rabbit is dead: the job names it' '
	rig kill slc &&
	rig start slc NNF_CHILD_RESOURCE_TIMEOUT_SECONDS=10 &&
	rig kill rabbit-node-2 &&
	jobid=$(nnf_submit "$DWS_DIRECTIVE" -N4 true) &&
	dws_until rabbit_is Suspect &&
	nnf_refused $jobid dws-setup \
		"TransientCondition .*could not allocate storage .rabbit-node-2: .* has not been reconciled .*fault: storage"
'
test_expect_success 'Kubernetes calls it Ready, flux rabbit list does not' '
	rig get storages rabbit-node-2 >storage.json &&
	jq -e ".status.status == \"Ready\"" storage.json &&
	rabbit_is Suspect &&
	jq -r ".rabbits[0].reason" list.out >reason &&
	grep "does not answer $(dws_workflow $jobid)" reason
'
test_expect_success 'when it is back a job can use it, and it is Ready' '
	rig start rabbit-node-2 &&
	jobid=$(nnf_submit "$DWS_DIRECTIVE" -N4 true) &&
	dws_ended_well $jobid &&
	dws_until rabbit_is Ready &&
	nnf_clean
'
test_done
