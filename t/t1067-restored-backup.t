#!/bin/bash
# The etcd of the cluster is restored from an older backup: resource versions are lower
# than what the agent has seen, and what has come since the backup is lost.
# SPDX-License-Identifier: LGPL-3.0-only
#
# FAULT restored: Kubernetes is restored from a backup with the current workflow
#   depend pending setup datain prerun running postrun dataout teardown: completed: The job runs
#     and ends as without the fault.
# FAULT restored-without: Kubernetes is restored from a backup that is older than the workflow
#   depend pending setup datain prerun: completed: flux-dws creates the workflow again; the job
#     goes on from its phase.
#   running postrun dataout: completed: The job ends as if its file systems had been unmounted;
#     data that was not staged out yet is lost.
#   teardown: completed: The job runs and ends as without the fault.

test_description='Kubernetes goes back to an older backup'
. "$(dirname "$0")/sharness.sh"
test_under_flux 4

# others COUNT: jobs that come and go, each a hundred changes or so
others () {
	for i in $(seq $1); do
		flux submit -N1 -S dw="$DWS_DIRECTIVE" true || return 1
	done >others &&
	for id in $(cat others); do
		dws_wait_event $id clean || return 1
	done
}
test_expect_success 'load everything' '
	dws_setup
'
test_expect_success 'a job that waits, and others after the backup' '
	dws_ctl hold DataIn &&
	jobid=$(dws_submit true) &&
	dws_ctl wait-state $(dws_workflow $jobid) DataIn \
		--timeout $DWS_LIMIT &&
	dws_ctl backup >backup.out &&
	dws_ctl release DataIn &&
	dws_wait_event $jobid clean &&
	others 3
'
test_expect_success 'a workflow that is there again, of a job that is over, goes' '
	dws_ctl restore >restore.out &&
	jq -e ".was > .version" restore.out &&
	dws_until dws_clean
'
test_expect_success 'the agent hears what happens from then on' '
	dws_run_job "$DWS_DIRECTIVE" true &&
	dws_clean &&
	grep "gone back to an earlier state" agent.log
'
test_expect_success 'backup' '
	dws_ctl backup >backup.out &&
	others 1
'
dws_fault restored-without 'to before there was any of them' '
	dws_ctl restore >restore.out &&
	jq -e ".was > .version" restore.out
'
dws_fault restored 'to a moment ago' '
	dws_ctl backup >backup.out &&
	dws_k8s create computes >computes.out "{\"metadata\": {\"name\":
		\"since\", \"namespace\": \"default\"}, \"data\": []}" &&
	dws_k8s delete computes since &&
	dws_ctl restore >restore.out &&
	jq -e ".was > .version" restore.out
'
test_done
