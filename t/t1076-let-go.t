#!/bin/bash
# A job in its epilog is let go while its storage is still there: nothing of it is given
# to the next job in the queue before the scheduler knows that its rabbit is taken.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='The next job is not placed on a rabbit that is still taken'
. "$(dirname "$0")/sharness.sh"
test_under_flux 4

# Every node is next to the only rabbit, whose 100 GiB have no room for two of these. No
# job has a constraint: Fluxion rejects some jobs with one that should wait
# (doc/dev/upstream/fluxion-busy.rst).
DWS_DIRECTIVE='#DW jobdw type=xfs capacity=60GiB name=scratch'

submit () {
	flux submit -N1 -t 1h -S dw="$DWS_DIRECTIVE" "$@"
}
# stuck: a job in its epilog, with its mount left, and storage that is not removed. The
# next one waits for the same rabbit. Sets jobid, node and next.
stuck () {
	dws_ctl hold Teardown &&
	jobid=$(submit sleep inf) &&
	dws_wait_event $jobid start &&
	node=$(flux jobs -no "{nodelist}" $jobid) &&
	dws_ctl hang-mount $node on &&
	flux cancel $jobid &&
	dws_wait_event $jobid epilog-start &&
	dws_until dws_mounted 1 &&
	next=$(submit true) &&
	dws_wait_event $next priority
}
# looked: the scheduler has been through its queue since the job was let go
looked () {
	flux run -N3 -t 1m --urgency=31 true
}
waits () {
	test "$(flux jobs -no "{state}" $next)" = SCHED
}
disabled () {
	dws_wait_status ".rabbits.states.Disabled == 1 and .health.settled"
}
# mend: the storage goes, the rabbit is given free, and the next job runs as if nothing
# had been.
mend () {
	dws_ctl hang-mount $node off && dws_ctl release Teardown &&
	dws_wait_status ".jobs == 1" && waits &&
	flux rabbit enable rabbit0 &&
	if test -n "$(flux resource drain -no "{nodelist}")"; then
		flux resource undrain $node
	fi &&
	dws_wait_event $next clean && flux job status $next &&
	flux job eventlog $next >eventlog && test_must_fail grep " exception " eventlog &&
	dws_clean
}

test_expect_success 'a rabbit of 100 GiB' '
	dws_setup --nodes-per-rabbit 4 --capacity 113GiB &&
	dws_wait_status ".health.settled"
'
test_expect_success 'flux rabbit release disables the rabbit, and the next job waits' '
	stuck &&
	flux rabbit release --yes $jobid &&
	dws_wait_event $jobid clean &&
	disabled &&
	looked && waits
'
test_expect_success 'it runs when the storage is gone and the rabbit is enabled' '
	mend
'
test_expect_success 'so it does after the epilog timeout' '
	flux jobtap load -r dws-jobtap.so "$DWS_PLUGINS/dws-jobtap.so" epilog-timeout=3 &&
	stuck &&
	dws_wait_event $jobid clean &&
	flux job eventlog $jobid >eventlog && grep dws-epilog-timeout eventlog &&
	disabled && looked && waits &&
	flux jobtap load -r dws-jobtap.so "$DWS_PLUGINS/dws-jobtap.so" &&
	mend
'
# Without the right to disable the rabbit, all nodes of the job stay drained.
test_expect_success 'a rabbit that cannot be disabled is not given away either' '
	dws_ctl deny storages:patch &&
	stuck &&
	flux rabbit release --yes $jobid &&
	dws_wait_event $jobid clean &&
	dws_until dws_drained $node &&
	looked && waits &&
	dws_ctl deny && disabled && mend
'
test_expect_success 'nor one of which nobody hears, as the agent is away' '
	stuck &&
	dws_kill_agent &&
	flux rabbit release --yes $jobid &&
	dws_wait_event $jobid clean &&
	dws_until dws_drained $node &&
	looked && waits &&
	dws_start_agent && disabled && waits && mend
'
test_expect_success 'nor after a restart of scheduler, module and agent' '
	stuck &&
	flux rabbit release --yes $jobid &&
	dws_wait_event $jobid clean &&
	disabled &&
	dws_kill_agent && flux module reload dws &&
	if test "$DWS_SCHEDULER" != fluxion; then
		flux module reload sched-rabbit
	fi &&
	dws_start_agent &&
	dws_wait_status ".synced and .agent.synced and .health.settled" &&
	looked && waits && mend
'
test_done
