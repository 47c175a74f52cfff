#!/bin/bash
# Batch jobs with storage, each of which is an instance of its own with Fluxion where
# there is one, under each scheduler: its jobs find the file systems.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Batch jobs with storage'
. "$(dirname "$0")/sharness.sh"
test_under_flux 4

dws_has_fluxion && test_set_prereq FLUXION

# A job on all nodes, and one after the other on one, in the instance of the batch job.
cat >batch.sh <<-\EOF
	#!/bin/sh
	# flux: -N2
	#DW jobdw type=xfs capacity=10GiB name=scratch
	#DW jobdw type=gfs2 capacity=10GiB name=shared
	set -e
	flux module list
	flux run -N2 -n2 sh -c 'test -d "$DW_JOB_scratch" && test -d "$DW_JOB_shared"'
	flux submit -n1 --cc=1-8 --wait sh -c 'test -d "$DW_JOB_scratch"'
	# The inner instance cannot create storage: its jobs are rejected, or use this job's.
	inner="#DW jobdw type=xfs capacity=1GiB name=inner"
	if flux run -N1 -S dw="$inner" true 2>err.$$; then exit 1; fi
	grep "storage that this instance does not have" err.$$
	if flux submit -N1 --dw="$inner" true; then exit 1; fi
	flux run -N1 --dw="#DW jobdw type=xfs capacity=1GiB name=scratch" \
		sh -c 'test -d "$DW_JOB_scratch"' 2>err.$$
	grep "file systems of the batch job" err.$$
EOF
# batches: three at the same time, of which one waits, do well.
batches () {
	jobs= &&
	for n in 1 2 3; do
		jobs="$jobs $(flux batch -t 10m --output=batch-$n.out batch.sh)" || return 1
	done &&
	for job in $jobs; do
		dws_wait_event $job clean && flux job status $job ||
			{ cat batch-*.out; flux job eventlog $job; return 1; }
	done &&
	dws_clean
}

test_expect_success FLUX_CORE 'under sched-rabbit' '
	dws_setup && batches &&
	grep sched batch-1.out
'
test_expect_success FLUXION 'a graph for Fluxion' '
	flux kvs get resource.R >R &&
	flux dws2jgf --cluster-name=c mapping.json <R >R.graph
'
for format in rv1 rv1_shorthand; do
	test_expect_success FLUXION "under Fluxion with match-format $format" "
		DWS_MATCH_FORMAT=$format dws_use_fluxion R.graph &&
		dws_wait_status '.health | .scheduler == \"fluxion\" and .settled' &&
		batches &&
		grep sched-fluxion batch-1.out
	"
done
test_done
