#!/bin/bash
# Several jobs and one persistent file system, with the controllers that make and mount it.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Jobs that use one persistent file system, with NNF'
. "$(dirname "$0")/../sharness.sh"
. "$DWS_SRCDIR/t/nnf/nnf.sh"
test_under_flux 4

note () {
	flux python "$DWS_SRCDIR/t/scripts/wait_note.py" "$@" $DWS_LIMIT
}
done_well () {
	for id in "$@"; do
		dws_wait_event $id clean && flux job status $id || return 1
	done
}

test_expect_success 'load everything' '
	nnf_setup
'
test_expect_success 'who uses what is just being created gets nodes that can mount it' '
	jobid=$(nnf_submit "#DW create_persistent type=gfs2 capacity=10GiB name=new" \
		-N1 --requires=rank:3 true) &&
	user=$(nnf_submit "#DW persistentdw name=new" -N1 true) &&
	done_well $jobid $user &&
	flux job eventlog $user >eventlog && test_must_fail grep exception eventlog &&
	flux rabbit persistent --json >kept.json &&
	rabbit=$(jq -r ".persistent[0].space | keys[0]" kept.json) &&
	node=$(flux jobs -no "{nodelist}" $user) &&
	jq -e ".computes[\"$node\"] == \"$rabbit\"" mapping.json &&
	done_well $(nnf_submit "#DW destroy_persistent name=new" -N1 true) &&
	nnf_clean
'
test_expect_success 'an xfs file system is mounted for one job at a time' '
	done_well $(nnf_submit "#DW create_persistent type=xfs capacity=10GiB name=one" \
		-N1 true) &&
	jobid=$(nnf_submit "#DW persistentdw name=one" -N1 sleep inf) &&
	dws_wait_event $jobid start &&
	other=$(nnf_submit "#DW persistentdw name=one" -N1 true) &&
	note $other "xfs and mounted for one job at a time: it is in use by $jobid" &&
	flux cancel $jobid &&
	done_well $other &&
	done_well $(nnf_submit "#DW destroy_persistent name=one" -N1 true) &&
	nnf_clean
'
test_done
