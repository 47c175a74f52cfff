#!/bin/bash
# flux rabbit profiles, against what NNF makes of the profiles.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Profiles of NNF'
. "$(dirname "$0")/../sharness.sh"
. "$DWS_SRCDIR/t/nnf/nnf.sh"
test_under_flux 4

# asked JOBID: "LABEL BYTES" for each set of its breakdown
asked () {
	rig list directivebreakdowns >breakdowns &&
	jq -r --arg name "fluxjob-$(flux job id --to=dec $1)" "
		.items[] | select(.metadata.name | startswith(\$name))
		| .status.storage.allocationSets[] | \"\(.label) \(.minimumCapacity)\"" \
		breakdowns
}
# breakdown TYPE PROFILE: what NNF asks for 10 GiB, of a job that is not placed
breakdown () {
	jobid=$(flux submit --urgency=hold -N1 \
		-S dw="#DW jobdw type=$1 profile=$2 capacity=10GiB name=scratch" true) &&
	dws_wait_event $jobid priority >/dev/null &&
	asked $jobid &&
	flux cancel $jobid && dws_wait_event $jobid clean >/dev/null
}

test_expect_success 'load everything' '
	nnf_setup
'
test_expect_success 'the role that NNF installs does not allow to read them' '
	test_expect_code 1 flux rabbit profiles 2>err &&
	grep "may not read nnfstorageprofiles: its user lacks the right" err
'
test_expect_success 'with the right they are listed as NNF has them' '
	rig allow nnfstorageprofiles list && rig allow nnfcontainerprofiles list &&
	rig create nnfstorageprofiles "{\"kind\": \"NnfStorageProfile\",
		\"metadata\": {\"name\": \"wide\", \"namespace\": \"nnf-system\"},
		\"data\": {\"default\": false, \"gfs2Storage\": {}, \"rawStorage\": {},
		\"xfsStorage\": {\"capacityScalingFactor\": \"1.5\",
			\"allocationPadding\": \"10%\"},
		\"lustreStorage\": {\"mgtOptions\": {\"capacity\": \"1GiB\"},
			\"mdtOptions\": {\"capacity\": \"3GiB\"}}}}" &&
	flux rabbit profiles && flux rabbit profiles --json >json &&
	names=".metadata.name] | sort" &&
	rig list nnfstorageprofiles >all &&
	jq "[.items[] | select(.data.pinned | not)$names" all >want &&
	jq "[.storage[]$names" json >have && test_cmp want have &&
	rig list nnfcontainerprofiles >all &&
	jq "[.items[] | select(.data.pinned | not)$names" all >want &&
	jq "[.containers[]$names" json >have && test_cmp want have
'
test_expect_success 'a profile asks for what its line says' '
	flux rabbit profiles storage -no "{name}|{types}|{set}|{size}" >lines &&
	grep "^wide|xfs||capacity\*1.5+10%$" lines &&
	breakdown xfs wide >out && cat out &&
	echo "xfs $((10 * 15 * 11 * 1024 * 1024 * 1024 / 100))" >want && test_cmp want out &&
	grep "^wide|gfs2,raw||capacity$" lines &&
	breakdown raw wide >out &&
	echo "raw $((10 << 30))" >want && test_cmp want out &&
	grep "^wide|lustre|mgt|1GiB$" lines && grep "^wide|lustre|mdt|3GiB$" lines &&
	grep "^wide|lustre|ost|capacity$" lines &&
	breakdown lustre wide >out && sort out >sorted &&
	printf "%s\n" "mdt $((3 << 30))" "mgt $((1 << 30))" "ost $((10 << 30))" >want &&
	test_cmp want sorted
'
test_expect_success 'nothing is left' '
	nnf_clean
'
test_expect_success 'the role is as NNF installs it again' '
	rig forbid nnfstorageprofiles list &&
	rig forbid nnfcontainerprofiles list
'
test_done
