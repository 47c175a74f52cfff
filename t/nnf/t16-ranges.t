#!/bin/bash
# capacity=10GiB..30GiB: what is written into Servers is more than the directive of the
# workflow asks for. DWS takes that, and NNF makes it as large.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Storage that grows, with the controllers of NNF'
. "$(dirname "$0")/../sharness.sh"
. "$DWS_SRCDIR/t/nnf/nnf.sh"
test_under_flux 4

# made: the bytes that NNF has made on all rabbits
made () {
	rig list nnfnodeblockstorages >made.out &&
	jq '[.items[].spec.allocations[].capacity] | add' made.out
}

test_expect_success 'load everything' '
	nnf_setup
'
for type in xfs gfs2 lustre; do
	label=$type && test $type != lustre || label=ost
	test_expect_success "of $type NNF makes what Servers say, and the job is told" '
		jobid=$(nnf_submit "#DW jobdw type=$type capacity=10GiB..30GiB name=wide" \
			-N2 sh -c "echo \$DW_CAPACITY_wide
				until test -e go-$type; do sleep 0.1; done") &&
		dws_wait_event $jobid start &&
		rig list servers >servers &&
		size=$(jq ".items[0].spec.allocationSets[]
			| select(.label == \"$label\").allocationSize" servers) &&
		count=$(jq "[.items[0].spec.allocationSets[]
			| select(.label == \"$label\").storage[].allocationCount] | add" servers) &&
		bytes=$(made) && echo "$count x $size: $bytes" &&
		test $bytes -ge $((size * count)) &&
		if test $type != lustre; then count=1; fi &&
		test $((size * count)) -ge $((30 << 30)) &&
		rig list workflows >workflows &&
		grep "capacity=10GiB name=wide" workflows &&
		rig list nnfstorages >storages &&
		test $(jq ".items[0].spec.allocationSets[]
			| select(.name == \"$label\").capacity" storages) = $size &&
		touch go-$type &&
		dws_ended_well $jobid >out &&
		grep -x $((size * count)) out
	'
done
test_expect_success 'nothing is left' '
	nnf_clean
'
test_done
