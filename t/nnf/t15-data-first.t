#!/bin/bash
# Data is staged in before a job has nodes: NNF is told of them when it is there.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Data first, nodes later, with the controllers of NNF'
. "$(dirname "$0")/../sharness.sh"
. "$DWS_SRCDIR/t/nnf/nnf.sh"
test_under_flux 4

COPY='#DW copy_in source=/lus/global/in destination=$DW_JOB_scratch/in'

# fill: no job but one on all nodes. Sets all.
fill () {
	flux cancel --all && flux queue drain &&
	all=$(flux submit -N4 -t 1h sleep inf) && dws_wait_event $all start
}

# first TYPE NODES: a job that prints where its file system is. Sets jobid.
first () {
	jobid=$(nnf_submit "#DW jobdw type=$1 capacity=10GiB name=scratch
$COPY" -N$2 -S dw_data_first bash -c 'echo $DW_JOB_scratch')
}

# in_queue JOBID: its data is there, and it waits for nodes
in_queue () {
	dws_wait_event -m attributes.system.dw_data_first=true $1 jobspec-update &&
	rig get workflows $(dws_workflow $1) >workflow &&
	jq -e ".status.state == \"DataIn\" and .status.ready" workflow &&
	rig get computes $(dws_workflow $1) >computes &&
	jq -e "(.data // []) == []" computes
}

test_expect_success 'load everything, with a global file system' '
	nnf_setup &&
	rig create lustrefilesystems "{\"apiVersion\": \"lus.cray.hpe.com/v1beta1\",
		\"kind\": \"LustreFileSystem\", \"metadata\": {\"name\": \"global\",
		\"namespace\": \"default\"}, \"spec\": {\"name\": \"global\",
		\"mgsNids\": \"10.0.0.1@tcp\", \"mountRoot\": \"/lus/global\",
		\"namespaces\": {\"default\": {\"modes\": [\"ReadWriteMany\"]}}}}"
'
for type in xfs gfs2 lustre; do
	test_expect_success "$type: staged in while another job has all nodes, then mounted" '
		fill &&
		first '$type' 3 && one=$jobid &&
		in_queue $one &&
		flux cancel $all &&
		dws_ended_well $one >out &&
		grep "^/mnt/nnf/[0-9a-f-]*-0" out
	'
done
test_expect_success 'cancelled in the queue' '
	fill &&
	first xfs 2 && in_queue $jobid &&
	flux cancel $jobid && dws_wait_event $jobid clean
'
test_expect_success 'nothing is left' '
	flux cancel $all && nnf_clean &&
	rig delete lustrefilesystems global
'
test_done
