#!/bin/bash
# Mistakes of users, and failures of their jobs: each directive and each failure once,
# with the text that the user reads.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Failures, as users are told of them'
. "$(dirname "$0")/sharness.sh"
test_under_flux 4

GFS2="#DW jobdw type=gfs2 capacity=10GiB name=scratch"
COPY_IN='#DW copy_in source=/lus/global/in destination=$DW_JOB_scratch/in'
COPY_OUT='#DW copy_out source=$DW_JOB_scratch/out destination=/lus/global/out'

# exception JOBID TYPE PATTERN...: the note of its fatal exception of that type
exception () {
	dws_wait_event -m type=$2 -m severity=0 $1 exception >exception &&
	shift 2 &&
	for pattern in "$@"; do
		grep -e "$pattern" exception || { cat exception; return 1; }
	done
}

test_expect_success 'load everything' '
	cat >rabbit.toml <<-\EOT &&
	restrict_persistent_creation = false
	save_datamovements = 5
	EOT
	dws_setup
'
test_expect_success 'somebody else has a persistent file system' '
	dws_kube create persistentstorageinstances default theirs \
		"{\"spec\": {\"name\": \"theirs\", \"fsType\": \"lustre\",
		  \"dwDirective\": \"#DW create_persistent\", \"userID\": 65533,
		  \"state\": \"Active\"}}" &&
	dws_wait_status ".persistent | length == 1"
'
test_expect_success 'directives that cannot be served' '
	flux python "$DWS_SRCDIR/t/scripts/refusals.py" \
		"$DWS_SRCDIR/t/data/refusals/directives.txt"
'
test_expect_success 'nothing is left of them' '
	dws_kube delete persistentstorageinstances default theirs &&
	dws_clean
'
test_expect_success 'more than the rabbits have' '
	jobid=$(flux submit -N1 \
		-S dw="#DW jobdw type=xfs capacity=900TiB name=aa" true) &&
	exception $jobid dws-create "no rabbit has more than 910 GiB" \
		"fault: user" &&
	dws_wait_event $jobid clean &&
	dws_clean
'
test_expect_success 'a state that fails' '
	dws_ctl fail PreRun --severity Fatal --message "mount failed" &&
	jobid=$(dws_submit true) &&
	exception $jobid dws-setup "workflow error in PreRun.*mount failed" \
		"fault: storage; submit again" &&
	dws_ctl fail PreRun --clear &&
	dws_wait_event $jobid clean &&
	dws_clean
'
test_expect_success 'a stage-in that fails brings the message of the movement' '
	dws_ctl fail-copy --message "dcp: no such file" --count 1 &&
	jobid=$(flux submit -N1 -S dw="$GFS2
		$COPY_IN" true) &&
	exception $jobid dws-setup "error in DataIn" "dcp: no such file" \
		"fault: user; check that source" &&
	dws_wait_event $jobid clean
'
test_expect_success 'so does a stage-out, and the job has run' '
	dws_ctl fail-copy --message "dcp: quota exceeded" --count 1 &&
	jobid=$(flux submit -N1 -S dw="$GFS2
		$COPY_OUT" true) &&
	exception $jobid dws-epilog "error in DataOut" "dcp: quota exceeded" \
		"fault: user; make room at the destination" &&
	flux job wait-event -t 300 $jobid finish &&
	dws_wait_event $jobid clean &&
	dws_clean
'
test_expect_success 'the movements that failed are kept with the job' '
	flux job info $jobid rabbit_datamovements >movements &&
	jq -e ".[0].status.message == \"dcp: quota exceeded\"" movements
'
test_expect_success 'a stage-out is ended by one flux cancel' '
	dws_ctl latency copy 3600 &&
	jobid=$(flux submit -N1 -S dw="$GFS2
		$COPY_OUT" true) &&
	dws_ctl wait-state $(dws_workflow $jobid) DataOut --timeout 300 &&
	flux cancel $jobid &&
	dws_wait_event $jobid clean &&
	dws_ctl latency copy 0 &&
	dws_clean
'
# xfs shows such a fault as a message, Lustre as a TransientCondition.
test_expect_success 'faults that healthy workflows pass through raise nothing' '
	dws_ctl stumble 1 &&
	for type in xfs lustre; do
		jobid=$(flux submit -N4 \
			-S dw="#DW jobdw type=$type capacity=10GiB name=scratch" true) &&
		dws_wait_event $jobid clean &&
		flux job eventlog $jobid >eventlog &&
		test_must_fail grep exception eventlog &&
		flux rabbit show $jobid >show &&
		test_must_fail grep -i "error\|  ! " show || return 1
	done &&
	dws_ctl stumble 0 &&
	dws_clean
'
# computes JOBID HOST...: what NNF is to mount on, put there by hand
computes () {
	workflow=$(dws_workflow $1) &&
	shift &&
	data=$(printf "{\"name\": \"%s\"}," "$@") &&
	dws_kube patch computes default $workflow "{\"data\": [${data%,}]}"
}
test_expect_success 'a controller that is dead: the rabbit is named' '
	dws_ctl rabbit rabbit1 dead &&
	dws_ctl child-timeout 1 &&
	dws_limit tc_timeout 0.5 &&
	jobid=$(flux submit -N4 -S dw="$DWS_DIRECTIVE" true) &&
	exception $jobid dws-setup "TransientCondition for longer than 0.5s" \
		"could not allocate storage (rabbit1: NnfNodeBlockStorage has not" \
		"(not ready: rabbit1) .fault: storage; submit again" &&
	dws_ctl rabbit rabbit1 up &&
	dws_ctl child-timeout 300 &&
	dws_limit &&
	dws_wait_event $jobid clean &&
	dws_clean
'
# stamp JOBID: since when its workflow is in TransientCondition, as noted there
stamp () {
	dws_kube get workflows default $(dws_workflow $1) >workflow &&
	jq -er ".metadata.annotations[\"flux-framework.org/transient-since\"]" \
		workflow
}
test_expect_success 'since when that lasts is noted' '
	dws_ctl rabbit rabbit1 dead &&
	dws_ctl child-timeout 1 &&
	dws_limit tc_timeout "\"1d\"" &&
	jobid=$(flux submit -N4 -S dw="$DWS_DIRECTIVE" true) &&
	dws_until stamp $jobid >noted &&
	grep "^Setup [0-9.]*$" noted
'
test_expect_success 'and not when it is over' '
	dws_ctl hold PreRun &&
	dws_ctl rabbit rabbit1 up &&
	dws_ctl wait-state $(dws_workflow $jobid) PreRun --timeout 300 &&
	no_stamp () { test_must_fail stamp $jobid; } &&
	dws_until no_stamp &&
	dws_ctl release PreRun &&
	dws_wait_event $jobid clean &&
	flux job status $jobid
'
test_expect_success 'its clock goes on when the module is loaded again' '
	dws_ctl rabbit rabbit1 dead &&
	jobid=$(flux submit -N4 -S dw="$DWS_DIRECTIVE" true) &&
	dws_until stamp $jobid &&
	flux module remove dws &&
	dws_kube patch workflows default $(dws_workflow $jobid) \
		"{\"metadata\": {\"annotations\":
		  {\"flux-framework.org/transient-since\": \"Setup 1000.0\"}}}" &&
	flux module load "$DWS_MODULES/dws.so" &&
	exception $jobid dws-setup "TransientCondition for longer than 86400s" &&
	dws_ctl rabbit rabbit1 up &&
	dws_ctl child-timeout 300 &&
	dws_limit &&
	dws_wait_event $jobid clean &&
	dws_clean
'
test_expect_success 'a node that NNF does not know' '
	dws_ctl hold DataIn &&
	jobid=$(flux submit -N1 -S dw="$DWS_DIRECTIVE" true) &&
	dws_ctl wait-state $(dws_workflow $jobid) DataIn --timeout 300 &&
	computes $jobid nosuch-compute &&
	dws_limit prerun_timeout 1 &&
	dws_ctl release DataIn &&
	exception $jobid dws-timeout "mounting file systems took longer than 1s" \
		"unable to mount file system on client nodes" \
		"namespaces .*nosuch-compute.* not found" \
		"(not ready: node0) .fault: storage" &&
	dws_wait_event $jobid clean &&
	dws_clean
'
test_expect_success 'more nodes than there are allocations' '
	dws_ctl hold DataIn &&
	jobid=$(flux submit -N1 -S dw="$DWS_DIRECTIVE" true) &&
	dws_ctl wait-state $(dws_workflow $jobid) DataIn --timeout 300 &&
	computes $jobid node0 node1 &&
	dws_ctl release DataIn &&
	exception $jobid dws-timeout "took longer than 1s: pending mount" \
		"(not ready: node0) .fault: storage" &&
	dws_limit &&
	dws_wait_event $jobid clean &&
	dws_clean
'
test_done
