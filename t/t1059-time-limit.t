#!/bin/bash
# The time limit of a job counts from the start of its tasks: what staging and mounting
# took is added to it.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Time limits, and the queue of a pending job'
. "$(dirname "$0")/sharness.sh"
dws_config () {
	cat <<-EOT
	[queues.debug]
	[queues.batch]
	[policy.jobspec.defaults.system]
	queue = "debug"
	EOT
}
test_under_flux 4

# log JOBID
log () {
	dws_wait_event $1 clean >/dev/null &&
	flux job eventlog -f json $1 >log.out &&
	jq -s . log.out >log.json &&
	flux job info $1 R >R.json
}
# event NAME FILTER: of the job whose eventlog was read last
event () {
	jq -e "map(select(.name == \"$1\"))[0] | $2" log.json
}
# synced: the plugin knows what became of all jobs before it was loaded
synced () {
	flux python -c "import flux; flux.Flux().rpc(\"job-manager.dws.sync\").get()"
}
submit () {
	jobid=$(dws_submit "$@") && dws_wait_event $jobid start >/dev/null
}

test_expect_success 'load everything' '
	flux queue start --all &&
	dws_setup &&
	dws_ctl latency PreRun 1.5
'
test_expect_success 'what the prolog took is added to the limit' '
	submit -t 1h sleep inf &&
	dws_wait_event $jobid resource-update &&
	flux jobs -no "{expiration}" $jobid >told &&
	flux cancel $jobid &&
	log $jobid &&
	event start .timestamp >start &&
	jq .execution.starttime R.json >begin &&
	event resource-update .context.expiration >expiration &&
	echo "($(cat expiration) - $(cat start) - 3600) | fabs < 0.001" >close &&
	jq -ne "$(cat close)" &&
	jq -ne "$(cat expiration) - $(cat begin) > 3601" &&
	jq -ne "($(cat told) - $(cat expiration)) | fabs < 0.001" &&
	jq -e "(.execution.expiration - $(cat expiration)) | fabs < 0.001" R.json
'
test_expect_success 'it is no failure of the job' '
	submit -t 1h true &&
	dws_wait_event $jobid resource-update &&
	log $jobid &&
	flux job status $jobid &&
	test_must_fail event exception .
'
test_expect_success 'the exec service itself adds what is much of the limit' '
	submit -t 5s true &&
	log $jobid &&
	flux job status $jobid &&
	test_must_fail event resource-update .
'
test_expect_success 'how much that is, the site says' '
	printf "[exec]\nmax-start-delay-percent = 75\n" \
		>"$DWS_TMP/conf.d/exec.toml" &&
	flux config reload &&
	submit -t 5s sh -c "flux job wait-event -t 300 \$FLUX_JOB_ID resource-update" &&
	log $jobid &&
	flux job status $jobid &&
	event resource-update .context.expiration
'
test_expect_success 'a job without a time limit has none afterwards' '
	submit true &&
	log $jobid &&
	flux job status $jobid &&
	test_must_fail event resource-update .
'
test_expect_success 'it is added once, also when the plugin is loaded again' '
	submit -t 1h sleep inf &&
	dws_wait_event $jobid resource-update &&
	flux jobtap load --remove=dws-jobtap.so "$DWS_PLUGINS/dws-jobtap.so" &&
	synced &&
	flux cancel $jobid &&
	log $jobid &&
	jq -e "map(select(.name == \"resource-update\")) | length == 1" log.json
'
test_expect_success 'no time worth it is lost, so none is added' '
	dws_ctl latency PreRun 0 &&
	submit -t 1h true &&
	log $jobid &&
	flux job status $jobid &&
	test_must_fail event resource-update .
'
# Flux moves jobs whose constraints are those of their queue. A job with new storage has
# none of ours; what the scheduler then makes of it, it makes of each job.
test_expect_success FLUX_CORE 'a pending job can be moved to another queue' '
	if test "$DWS_SCHEDULER" = fluxion; then
		flux module load sched-fluxion-feasibility
	fi &&
	blocker=$(flux submit -N4 sleep inf) &&
	dws_wait_event $blocker start &&
	jobid=$(dws_submit true) &&
	dws_wait_event $jobid priority &&
	plain=$(flux submit -N2 true) &&
	dws_wait_event $plain priority &&
	for id in $jobid $plain; do
		flux update $id queue=batch &&
		test "$(flux jobs -no "{queue}" $id)" = batch || return 1
	done &&
	flux cancel $blocker &&
	for id in $jobid $plain; do
		dws_wait_event $id clean &&
		flux jobs -no "{status} {inactive_reason}" $id >$id.end || return 1
	done &&
	test_cmp $plain.end $jobid.end
'
# Fluxion has to be told by the jobspec of each job when nodes may lose their link and
# are not drained for that.
test_expect_success FLUX_CORE 'under Fluxion not where soft_drain needs a constraint' '
	if test "$DWS_SCHEDULER" = fluxion; then
		sed "s/^mapping = .*/&\ndrain_compute_nodes = false/" \
			"$DWS_TMP/conf.d/test.toml" >soft.toml &&
		cp soft.toml "$DWS_TMP/conf.d/test.toml" &&
		flux config reload &&
		blocker=$(flux submit -N4 -t 1h sleep inf) &&
		dws_wait_event $blocker start &&
		jobid=$(dws_submit -t 1m true) &&
		dws_wait_event $jobid priority &&
		test_must_fail flux update $jobid queue=batch 2>err &&
		grep "non-queue constraints" err &&
		flux cancel $jobid $blocker
	fi
'
test_done
