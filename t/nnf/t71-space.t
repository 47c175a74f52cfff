#!/bin/bash
# The module's ledger of rabbits agrees with NNF's, which reports free space when a node
# controller starts.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Space on rabbits with the controllers of NNF'
. "$(dirname "$0")/../sharness.sh"
. "$DWS_SRCDIR/t/nnf/nnf.sh"
test_under_flux 4

RABBIT=rabbit-node-1

# taken: bytes of the rabbit that we know to be in use
taken () {
	flux rabbit list --json $RABBIT >list.out &&
	jq ".rabbits[0] | .used + .foreign" <list.out
}
# agrees: NNF counts as many when its node controller has started again, and
# a restart of ours changes nothing.
agrees () {
	have=$(taken) &&
	rig kill $RABBIT &&
	rig start $RABBIT &&
	rig until storages $RABBIT ".status.status == \"Ready\" and
		.status.capacity == $NNF_RAW - $have" &&
	flux module reload dws &&
	dws_wait_status ".agent.synced" $DWS_LIMIT &&
	dws_until same $have
}
same () {
	test "$(taken)" = "$1"
}
more_than () {
	test "$(taken)" -gt "$1"
}
# runs DIRECTIVE...: a job on the rabbit
runs () {
	jobid=$(nnf_submit "$1" -N1 --requires=rank:0 true) &&
	dws_ended_well $jobid
}

test_expect_success 'load everything' '
	nnf_setup &&
	test "$(jq .rabbits[\"$RABBIT\"].capacity <mapping.json)" = 35184372088832 &&
	agrees
'
test_expect_success 'a persistent file system stays when its job is over' '
	runs "#DW create_persistent type=xfs capacity=10TB name=keep" &&
	dws_until same 10000314597376 &&
	agrees
'
test_expect_success 'another client, and odd sizes' '
	rig foreign odd $RABBIT 4999MB &&
	dws_until more_than 10000314597376 &&
	agrees
'
test_expect_success 'all that is left, and no more, can be had at once' '
	left=$(flux rabbit list -no "{free:d}" $RABBIT) &&
	gib=$((left / 1073741824 - 1)) &&
	runs "#DW jobdw type=xfs capacity=${gib}GiB name=all" &&
	jobid=$(nnf_submit "#DW jobdw type=xfs capacity=$((gib + 1))GiB name=more" \
		-N1 --requires=rank:0 true) &&
	dws_wait_event $jobid priority &&
	flux cancel $jobid &&
	dws_wait_event $jobid clean
'
test_expect_success 'it is all given back' '
	runs "#DW destroy_persistent name=keep" &&
	rig remove odd &&
	dws_until same 0 &&
	agrees &&
	nnf_clean
'
test_done
