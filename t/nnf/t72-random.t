#!/bin/bash
# Jobs at random: none fails for want of room, and what we take to be free is what
# NNF has. Only by hand, with so many jobs and rabbits as there is time for:
#   DWS_NNF_RABBITS=4 DWS_NNF_ROUNDS=30 t/nnf/run --under fluxion t/nnf/t72-random.t
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Jobs at random with the controllers of NNF'
. "$(dirname "$0")/../sharness.sh"
. "$DWS_SRCDIR/t/nnf/nnf.sh"
if test -z "$DWS_NNF_ROUNDS"; then
	skip_all="by hand: DWS_NNF_ROUNDS"
	test_done
fi
test_under_flux $NNF_NODES

RAW=39582418599936
# The largest job: Fluxion has 36 parts of whole GiB, and a little is padding.
LARGEST=32759
ROUNDS=$DWS_NNF_ROUNDS
SEED=${DWS_NNF_SEED:-$(date +%s)}

# agrees: each node controller that starts counts as free what we do, which is the
# same after a restart of ours
agrees () {
	flux rabbit list --json >before &&
	for rabbit in $NNF_RABBITS; do
		have=$(jq ".rabbits[] | select(.name == \"$rabbit\") | .used + .foreign" \
			before) &&
		rig kill $rabbit &&
		rig start $rabbit &&
		rig until storages $rabbit ".status.status == \"Ready\" and
			.status.capacity == $RAW - $have" || return 1
	done &&
	flux module reload dws &&
	dws_wait_status ".agent.synced and .health.settled" $DWS_LIMIT &&
	dws_until unchanged
}
unchanged () {
	flux rabbit list --json >after &&
	jq -c ".rabbits[] | [.name, .used, .foreign]" before >before.out &&
	jq -c ".rabbits[] | [.name, .used, .foreign]" after >after.out &&
	test_cmp before.out after.out
}
# ten_jobs SEED KEEP: see random_jobs.py; what they are is shown
ten_jobs () {
	rc=0
	flux python "$DWS_SRCDIR/t/nnf/random_jobs.py" $1 $(set -- $NNF_RABBITS && echo $#) 10 $LARGEST "$2" \
		>jobs.out || rc=1
	cat jobs.out
	return $rc
}
given_back () {
	dws_status >status.out &&
	jq -e ".rabbits.used == 0" <status.out
}

test_expect_success 'load everything' '
	nnf_setup
'
for round in $(seq $ROUNDS); do
	keep=
	test $((round % 2)) = 0 || keep=keep$round
	test_expect_success "ten jobs at random end well (seed $((SEED + round)))" '
		ten_jobs $((SEED + round)) "$keep"
	'
	test_expect_success 'NNF has as much left as we count' '
		dws_until given_back &&
		agrees
	'
	test -z "$keep" || test_expect_success 'persistent storage is destroyed' '
		jobid=$(nnf_submit "#DW destroy_persistent name=$keep" -N1 true) &&
		dws_ended_well $jobid &&
		dws_wait_status ".rabbits.foreign == 0" $DWS_LIMIT
	'
done
test_expect_success 'nothing is left' '
	agrees &&
	nnf_clean
'
test_done
