#!/bin/bash
# Somebody deletes or changes the Computes object of a job, without which NNF neither
# mounts nor unmounts, or its Servers.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Computes and Servers that are gone are made again, or named'
. "$(dirname "$0")/sharness.sh"
test_under_flux 4

# take_away JOBID: the Computes object of its workflow
take_away () {
	name=$(dws_workflow $1) &&
	dws_k8s get computes $name >computes.json &&
	dws_k8s delete computes $name >deleted
}
# same_as_before: as DWS has made it and the module had filled it in, with the
# labels that the controllers go by
same_as_before () {
	filter="{data, labels: .metadata.labels
			| with_entries(select(.key | startswith(\"dataworkflow\"))),
		owners: [.metadata.ownerReferences[] | del(.blockOwnerDeletion)]}" &&
	jq -S "$filter" computes.json >want &&
	dws_k8s get computes $name >again.json &&
	jq -S "$filter" again.json >got &&
	diff -u want got
}
named () {
	flux dmesg >dmesg.out &&
	grep "repair: Computes default/$name was deleted, .*forbidden" dmesg.out
}

test_expect_success 'load everything' '
	dws_setup &&
	dws_ctl grant computes:create
'
test_expect_success 'of a job that runs: it is made again, as it was' '
	dws_ctl hold DataOut &&
	jobid=$(dws_submit sleep inf) &&
	dws_wait_event $jobid start &&
	take_away $jobid &&
	flux job raise --type=end --severity=1 $jobid &&
	flux job kill $jobid &&
	dws_ctl wait-state $name DataOut --timeout $DWS_LIMIT &&
	same_as_before &&
	flux dmesg >dmesg.out &&
	grep "Computes was deleted, and is there again" dmesg.out &&
	dws_ctl release DataOut &&
	dws_wait_event $jobid clean &&
	dws_clean
'
test_expect_success 'before it is mounted: the job starts' '
	dws_ctl hold DataIn &&
	jobid=$(dws_submit true) &&
	dws_ctl wait-state $(dws_workflow $jobid) DataIn --timeout $DWS_LIMIT &&
	take_away $jobid &&
	dws_ctl release DataIn &&
	dws_wait_event $jobid clean &&
	flux job status $jobid &&
	dws_clean
'
test_expect_success 'of a job that was cancelled, the module is reloaded' '
	jobid=$(dws_submit sleep inf) &&
	dws_wait_event $jobid start &&
	flux module remove dws &&
	take_away $jobid &&
	flux cancel $jobid &&
	flux module load "$DWS_MODULES/dws.so" &&
	dws_wait_event $jobid clean &&
	dws_clean
'
# cut_short: a job ends while the module is away, its Computes with it, and an
# exception in its epilog has it torn down at once
cut_short () {
	jobid=$(dws_submit sleep inf) &&
	dws_wait_event $jobid start &&
	flux module remove dws &&
	take_away $jobid &&
	flux cancel $jobid &&
	dws_wait_event $jobid epilog-start &&
	flux job raise --type=enough $jobid &&
	flux module load "$DWS_MODULES/dws.so"
}
test_expect_success 'of a job that is torn down at once: it is made in Teardown' '
	cut_short &&
	dws_wait_event $jobid clean &&
	flux dmesg >dmesg.out &&
	grep "$name: Computes was deleted, and is there again" dmesg.out &&
	test_must_fail flux job info $jobid rabbit_postrun_timing &&
	dws_clean
'
told () {
	flux dmesg >dmesg.out &&
	grep "$name: $1" dmesg.out
}
# goes_on: the job that was caught starts, and ends as if nothing had been done
goes_on () {
	dws_let_go &&
	dws_wait_event $jobid clean &&
	flux job status $jobid &&
	dws_clean
}
delete () {
	dws_k8s delete $1 $2 >deleted
}
change () {
	dws_k8s patch computes $(dws_workflow $1) "{\"data\": $2}" >changed
}
for phase in depend pending; do
test_expect_success "$phase: Computes is deleted: the job starts" '
	dws_catch $phase &&
	delete computes $(dws_workflow $jobid) &&
	goes_on
'
test_expect_success "$phase: others are named in Computes" '
	dws_catch $phase &&
	change $jobid "[{\"name\": \"node3\"}]" &&
	goes_on
'
done
test_expect_success 'pending: its Servers are deleted: the job starts' '
	dws_catch pending &&
	delete servers $(dws_workflow $jobid)-0 &&
	goes_on
'
test_expect_success 'datain: its Servers are deleted: its storage stays, the job starts' '
	dws_catch datain &&
	delete servers $(dws_workflow $jobid)-0 &&
	goes_on
'
test_expect_success 'setup: none, and others, are named in Computes: it is written again' '
	dws_catch setup &&
	name=$(dws_workflow $jobid) &&
	dws_k8s get computes $name >computes.json &&
	jq -S .data computes.json >want &&
	change $jobid "[]" &&
	dws_until told "Computes was changed, and is as it was" &&
	dws_k8s get computes $name >again.json &&
	jq -S .data again.json >got &&
	diff -u want got &&
	goes_on
'
test_expect_success 'prerun: a node that does not exist is named in Computes' '
	dws_ctl hold DataIn &&
	jobid=$(dws_submit true) &&
	name=$(dws_workflow $jobid) &&
	dws_ctl wait-state $name DataIn --timeout $DWS_LIMIT &&
	change $jobid "[{\"name\": \"nowhere\"}]" &&
	dws_ctl release DataIn &&
	dws_wait_event $jobid clean &&
	flux job status $jobid &&
	told "Computes was changed, and is as it was" &&
	dws_clean
'
test_expect_success 'setup: it may not be made: all of the workflow is, and the job starts' '
	dws_ctl grant &&
	dws_catch setup &&
	name=$(dws_workflow $jobid) &&
	delete computes $name &&
	dws_until told "Computes was deleted, and the workflow is made anew" &&
	goes_on
'
test_expect_success 'without the right to make it, it is named' '
	dws_ctl grant &&
	jobid=$(dws_submit sleep inf) &&
	dws_wait_event $jobid start &&
	take_away $jobid &&
	flux cancel $jobid &&
	flux python "$DWS_SRCDIR/t/scripts/wait_note.py" $jobid \
		"Computes default/$name was deleted" &&
	dws_until named
'
test_expect_success 'a job that is released ends, and nothing is left' '
	flux rabbit release --yes $jobid &&
	dws_wait_event $jobid clean &&
	dws_ctl grant computes:create &&
	dws_wait_status ".jobs == 0" &&
	dws_ctl wait-idle --timeout $DWS_LIMIT
'
test_done
