#!/bin/bash
# A controller is away for DWS_NNF_AWAY seconds while jobs are in every state.
# SPDX-License-Identifier: LGPL-3.0-only
#
# NNF waits 300 s for a part before it says so, and t60-parts.t has what is quicker,
# so this is done by hand:
#   DWS_NNF_AWAY=330 t/nnf/run --under sched-rabbit t/nnf/t62-away.t
# DWS_NNF_PARTS names those to be killed.

test_description='Controllers away for long'
. "$(dirname "$0")/../sharness.sh"
. "$DWS_SRCDIR/t/nnf/nnf.sh"
test_under_flux 4

away=$DWS_NNF_AWAY
nnf_by_hand DWS_NNF_AWAY
parts=${DWS_NNF_PARTS:-rabbit-node-1 slc dws}

# told JOBID: it ended because of the storage, in words
told () {
	flux job eventlog $1 >eventlog &&
	grep -E "exception type=\"dws-[a-z]*\" severity=0 .*fault: (storage|site)" \
		eventlog >words &&
	cut -c1-400 words
}
# all_ended: each job of the file crowd has completed, or says why not
all_ended () {
	flux python "$DWS_SRCDIR/t/scripts/crowd.py" outcome >outcome &&
	cut -d" " -f2- outcome | sort | uniq -c &&
	sed -n "s/^[^ ]*-\([0-9]*\) failed.*/\1/p" outcome >failed &&
	for id in $(cat failed); do
		told $id || { cat eventlog; return 1; }
	done &&
	rm crowd
}

test_expect_success 'load everything' '
	nnf_setup
'
for part in $parts; do
	test_expect_success "$part is killed with jobs in every state" '
		nnf_crowd spread:$part >states &&
		cat states
	'
	test_expect_success "it is away for $away s, and more jobs come" '
		nnf_submit_many 2 "$DWS_DIRECTIVE" &&
		sleep $away
	'
	test_expect_success "it is back: all go on, or say why not; nothing is left" '
		rig start $part &&
		all_ended &&
		nnf_clean &&
		dws_until dws_drained "" &&
		test "$(flux rabbit losses --json)" = "[]"
	'
	test_expect_success "rabbits are as before" '
		flux rabbit list --json >list.out &&
		jq -e "all (.rabbits[]; .state == \"Ready\")" list.out
	'
done
test_done
