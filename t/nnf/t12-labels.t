#!/bin/bash
# A storage profile wants rabbits with a label.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Labels of Storages, with the controllers of NNF'
. "$(dirname "$0")/../sharness.sh"
. "$DWS_SRCDIR/t/nnf/nnf.sh"
test_under_flux 4

# profile NAME KEY: one that is like the default one, but for the label in KEY. The
# rig has it from then on.
profile () {
	rig list nnfstorageprofiles >profiles.json || return 1
	if jq -e "any(.items[].metadata.name; . == \"$1\")" profiles.json; then
		return 0
	fi
	rig get nnfstorageprofiles default nnf-system >default.json &&
	jq ".metadata = {name: \"$1\", namespace: \"nnf-system\"} | .data.default = false
		| .data.$2.storageLabels = [\"tier=fast\"]" default.json >profile.json &&
	rig create nnfstorageprofiles "$(cat profile.json)"
}
# label TEXT
label () {
	rig patch storages rabbit-node-2 "{\"metadata\": {\"labels\": {\"tier\": $1}}}"
}
submit () {
	jobid=$(nnf_submit "#DW jobdw type=$2 capacity=2GiB name=fast profile=$1" $3 true)
}

test_expect_success 'a rabbit has a label, and profiles ask for it' '
	profile fast xfsStorage &&
	profile mixed lustreStorage.ostOptions &&
	label "\"fast\"" &&
	nnf_setup
'
test_expect_success 'a job goes to the nodes next to it' '
	submit fast xfs -N2 &&
	dws_ended_well $jobid &&
	test "$(flux jobs -no "{nodelist}" $jobid)" = "compute-[03-04]"
'
test_expect_success 'also if only a part of its storage has to be there' '
	submit mixed lustre -N1 &&
	dws_ended_well $jobid &&
	flux jobs -no "{nodelist}" $jobid >nodes &&
	grep "compute-0[34]" nodes &&
	rig list storages >storages.json &&
	jq -e "[.items[] | select(.metadata.labels.tier == \"fast\")] | length == 1" \
		storages.json
'
test_expect_success 'a job for which there are too few nodes is refused with the numbers' '
	submit fast xfs -N3 &&
	nnf_refused $jobid dws-create "label tier=fast have 2 nodes, the job needs 3" &&
	label null &&
	nnf_clean
'
test_done
