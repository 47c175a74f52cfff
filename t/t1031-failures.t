#!/bin/bash
# What users can get wrong, and what can go wrong for them: each directive and
# each failure once, with the words that the user reads.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Failures, as users are told of them'
. "$(dirname "$0")/sharness.sh"
test_under_flux 4

GFS2="#DW jobdw type=gfs2 capacity=10GiB name=scratch"
COPY_IN='#DW copy_in source=/lus/global/in destination=$DW_JOB_scratch/in'
COPY_OUT='#DW copy_out source=$DW_JOB_scratch/out destination=/lus/global/out'

kube () {
	"$DWS_PYTHON" "$DWS_SRCDIR/t/scripts/kube_object.py" "$PWD/kubeconfig" "$@"
}
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
	kube create persistentstorageinstances default theirs \
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
	kube delete persistentstorageinstances default theirs &&
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
		"fault: user" &&
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
test_done
