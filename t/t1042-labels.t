#!/bin/bash
# A storage profile wants rabbits with a label: jobs are placed where there are some.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Labels of rabbits that storage asks for'
. "$(dirname "$0")/sharness.sh"
test_under_flux 4

# profile NAME DATA
profile () {
	dws_kube create nnfstorageprofiles nnf-system $1 "{\"data\": $2}"
}
# runs_on NODES: the job is done, and well
runs_on () {
	dws_wait_event $jobid clean &&
	flux job status $jobid &&
	test "$(flux jobs -no "{nodelist}" $jobid)" = "$1"
}
# submit PROFILE TYPE OPTION
submit () {
	jobid=$(flux submit -S dw="#DW jobdw type=$2 capacity=1GiB name=scratch profile=$1" \
		$3 true)
}

test_expect_success 'load everything, a rabbit has a label' '
	dws_start_sim &&
	profile fast "{\"xfsStorage\": {\"storageLabels\": [\"tier=fast\"]}}" &&
	profile mixed "{\"lustreStorage\": {\"ostOptions\":
		{\"storageLabels\": [\"tier=fast\"]}}}" &&
	profile newest "{\"xfsStorage\": {\"storageLabels\": [\"tier=fast\", \"new=yes\"]}}" &&
	dws_kube patch storages default rabbit1 \
		"{\"metadata\": {\"labels\": {\"tier\": \"fast\"}}}" &&
	dws_load &&
	dws_start_agent &&
	dws_wait_status ".agent.synced"
'
test_expect_success 'a job goes to the nodes next to it' '
	submit fast xfs -N2 &&
	runs_on "node[2-3]"
'
test_expect_success 'also if only a part of its storage has to be there' '
	submit mixed lustre -N2 &&
	runs_on "node[2-3]"
'
test_expect_success 'a larger job goes to others, too, if that part is there' '
	submit mixed lustre -N3 &&
	dws_wait_event $jobid clean &&
	flux job status $jobid
'
test_expect_success 'more nodes than there are is refused at once, with the numbers' '
	submit fast xfs -N3 &&
	dws_wait_event -m type=dws-create $jobid exception >exception &&
	grep "set xfs: the rabbits with label tier=fast have 2 nodes, the job needs 3" \
		exception &&
	dws_wait_event $jobid clean &&
	flux job eventlog $jobid >eventlog &&
	test_must_fail grep alloc eventlog
'
test_expect_success 'so is what no rabbit has' '
	submit newest xfs -N1 &&
	dws_wait_event -m type=dws-create $jobid exception >exception &&
	grep "label tier=fast, new=yes have 0 nodes, the job needs 1" exception &&
	dws_clean
'
test_done
