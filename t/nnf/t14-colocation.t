#!/bin/bash
# A storage profile wants targets to have a rabbit for themselves.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Exclusive colocation between jobs, with the controllers of NNF'
. "$(dirname "$0")/../sharness.sh"
. "$DWS_SRCDIR/t/nnf/nnf.sh"
test_under_flux 4

LUSTRE="#DW jobdw type=lustre capacity=10GiB name=scratch"
NID=10.0.0.9@tcp

# Only one Lustre with a management target of its own is possible at a time, see
# README.md: file systems on two rabbits use an external target. Profile and target stay
# in the rig.
prepare () {
	rig list nnfstorageprofiles >profiles.json || return 1
	if jq -e "any(.items[].metadata.name; . == \"alone\")" profiles.json; then
		return 0
	fi
	rig get nnfstorageprofiles default nnf-system >default.json &&
	jq ".metadata = {name: \"alone\", namespace: \"nnf-system\"} | .data.default = false
		| .data.lustreStorage.combinedMgtMdt = false
		| .data.lustreStorage.mgtOptions.externalMgs = \"$NID\"
		| .data.lustreStorage.mdtOptions.exclusive = true" \
		default.json >profile.json &&
	rig create nnfstorageprofiles "$(cat profile.json)" &&
	rig create nnflustremgts "{\"apiVersion\": \"nnf.cray.hpe.com/v1alpha11\",
		\"kind\": \"NnfLustreMGT\", \"metadata\": {\"name\": \"elsewhere\",
		\"namespace\": \"nnf-system\"}, \"spec\": {\"addresses\": [\"$NID\"],
		\"fsNameStart\": \"baaaaaaa\"}}"
}
# runs RANKS COUNT DIRECTIVE: a job that stays. Sets jobid.
runs () {
	jobid=$(nnf_submit "$3" -N$2 --requires=rank:$1 sleep inf) &&
	dws_wait_event $jobid start
}
ends () {
	flux cancel $1 && dws_wait_event $1 clean
}
# behind JOBID HOLDER KEY: it waits for what that job has on the first rabbit
behind () {
	flux python "$DWS_SRCDIR/t/scripts/wait_note.py" $1 \
		"^rabbit: waiting for exclusive .$3. on rabbit-node-1, which job $2 .$(dws_workflow $2). has\$" 90
}
# on JOBID RABBIT: the metadata target of the job is there
on () {
	rig get servers $(dws_workflow $1)-0 >servers.json &&
	jq -e "[.spec.allocationSets[] | select(.label == \"mdt\").storage[].name]
		== [\"$2\"]" servers.json
}

test_expect_success 'a profile that asks for it, and a rabbit with less room' '
	prepare &&
	rig foreign odd rabbit-node-2 4999GB &&
	nnf_setup "tc_timeout = \"1s\""
'
test_expect_success 'a Lustre file system has its management target on a rabbit' '
	runs 0 1 "$LUSTRE" && first=$jobid &&
	rig get directivebreakdowns $(dws_workflow $first)-0 >breakdown.json &&
	jq -e "[.status.storage.allocationSets[].constraints.colocation // []
		| .[] | select(.type == \"exclusive\").key] == [\"lustre-mgt\"]" \
		breakdown.json
'
test_expect_success 'the next one on that rabbit waits' '
	second=$(nnf_submit "$LUSTRE" -N1 --requires=rank:1 true) &&
	behind $second $first lustre-mgt
'
test_expect_success 'other storage does not' '
	jobid=$(nnf_submit "#DW jobdw type=gfs2 capacity=2GiB name=scratch" \
		-N1 --requires=rank:2 true) &&
	dws_ended_well $jobid
'
test_expect_success 'also when the module has been restarted' '
	flux module reload dws &&
	dws_wait_status ".agent.synced" $DWS_LIMIT &&
	behind $second $first lustre-mgt
'
test_expect_success 'and has it when the first has ended, with nothing of it left to NNF' '
	ends $first &&
	dws_ended_well $second
'
test_expect_success 'metadata targets that want to be alone: we note it in Servers' '
	runs 0 1 "$LUSTRE profile=alone" && first=$jobid &&
	on $first rabbit-node-1 &&
	jq -e ".metadata.annotations[\"flux-framework.org/colocation\"]
		== \"{\\\"mdt\\\":[\\\"\\\"]}\"" servers.json
'
test_expect_success 'a second job has it on the other rabbit' '
	runs 1-2 2 "$LUSTRE profile=alone" &&
	on $jobid rabbit-node-2 &&
	ends $jobid
'
test_expect_success 'one that has only this one gets it after that' '
	second=$(nnf_submit "$LUSTRE profile=alone" -N1 --requires=rank:1 true) &&
	behind $second $first "" &&
	ends $first &&
	dws_ended_well $second &&
	rig remove odd &&
	nnf_clean
'
test_expect_success 'persistent storage has it forever: the job is refused with its name' '
	create=$(nnf_submit "#DW create_persistent type=lustre capacity=2GiB name=lus" \
		-N1 --requires=rank:0 true) &&
	dws_ended_well $create &&
	jobid=$(nnf_submit "$LUSTRE" -N1 --requires=rank:1 true) &&
	nnf_refused $jobid dws-setup \
		"rabbit-node-1 has exclusive .lustre-mgt. of persistent storage .lus."
'
test_expect_success 'who uses it is not' '
	jobid=$(nnf_submit "#DW persistentdw name=lus" -N1 --requires=rank:1 true) &&
	dws_ended_well $jobid
'
test_expect_success 'when it has been destroyed there is a place' '
	jobid=$(nnf_submit "#DW destroy_persistent name=lus" -N1 true) &&
	dws_ended_well $jobid &&
	jobid=$(nnf_submit "$LUSTRE" -N1 --requires=rank:1 true) &&
	dws_ended_well $jobid &&
	nnf_clean
'
test_done
