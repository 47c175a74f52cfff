#!/bin/bash
# Many jobs at once, and what goes wrong with some: nothing is left of any.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Many jobs and refused ones with the controllers of NNF'
. "$(dirname "$0")/../sharness.sh"
. "$DWS_SRCDIR/t/nnf/nnf.sh"
test_under_flux 4

test_expect_success 'load everything' '
	nnf_setup
'
test_expect_success 'twenty jobs at once' '
	nnf_submit_many 20 "$DWS_DIRECTIVE" &&
	test $(wc -l <crowd) -eq 20
'
test_expect_success 'all of them do well, nothing is left' '
	nnf_all_completed
'
# A rabbit has 36 TiB in all, of which 32 can be had.
for size in 40TiB 34TiB; do
	test_expect_success "a job of $size, which no rabbit can make, is refused" '
		jobid=$(nnf_submit "#DW jobdw type=xfs capacity=$size name=big" -N1 true) &&
		nnf_refused $jobid dws-create "no rabbit has more than 32768 GiB .32 TiB." &&
		nnf_clean
	'
done
# 32 TiB fit, and 300 MiB more are needed for the file system itself.
test_expect_success 'what is too much only with what the profile adds is refused, too' '
	jobid=$(nnf_submit "#DW create_persistent type=xfs capacity=32TiB name=big" \
		-N1 true) &&
	nnf_refused $jobid dws-create "no rabbit has more than 32768 GiB .32 TiB." &&
	grep rabbit_workflow eventlog &&
	nnf_clean
'
test_expect_success 'an unknown profile ends the job in the words of NNF' '
	jobid=$(nnf_submit "$DWS_DIRECTIVE profile=none" -N1 true) &&
	nnf_refused $jobid dws-create \
		"Unable to find NnfStorageProfile: none .*fault: user" &&
	nnf_clean
'
test_expect_success 'space that somebody else holds is shown' '
	rig foreign somebody rabbit-node-1 30TiB &&
	dws_wait_status ".rabbits.foreign >= 30 * 1099511627776" $DWS_LIMIT &&
	flux rabbit df -no "{name} {foreign}" rabbit-node-1 >df.out &&
	grep "30" df.out
'
test_expect_success 'a job that needs some of it waits' '
	jobid=$(nnf_submit "#DW jobdw type=xfs capacity=20TiB name=big" \
		-N1 --requires=rank:0 true) &&
	dws_wait_event $jobid priority
'
test_expect_success 'a job that needs what is left does well meanwhile' '
	other=$(nnf_submit "$DWS_DIRECTIVE" -N1 --requires=rank:1 --urgency=31 true) &&
	dws_ended_well $other &&
	flux job eventlog $jobid >eventlog &&
	test_must_fail grep alloc eventlog
'
test_expect_success 'once it is given back it can be had' '
	rig remove somebody &&
	dws_ended_well $jobid &&
	nnf_clean
'
# Fluxion gives a rabbit away in 36 parts: these sizes are 26 and 10 of them.
# filled: every rabbit has given nearly all that it has
filled () {
	flux rabbit list --json >list.out &&
	jq -e "[.rabbits[] | .used / .capacity] | length == 2 and min > 0.98" list.out
}
test_expect_success 'large and small jobs fill the rabbits, none waits' '
	for size in 23TiB 23TiB 9000GiB 9000GiB; do
		nnf_submit "#DW jobdw type=xfs capacity=$size name=part" -N1 \
			sleep inf || return 1
	done >sleepers &&
	for jobid in $(cat sleepers); do
		dws_wait_event $jobid start || return 1
	done &&
	filled &&
	flux cancel $(cat sleepers) &&
	nnf_clean
'
test_done
