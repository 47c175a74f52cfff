#!/bin/bash
# flux rabbit show of a job that the scheduler has: what it waits for, and with --why
# what would have to change.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='flux rabbit show --why'
. "$(dirname "$0")/sharness.sh"
test_under_flux 4

BIG='#DW jobdw type=xfs capacity=600GiB name=big'

SMALL='#DW jobdw type=xfs capacity=10GiB name=small'

# queued DIRECTIVE [ARG...]: a rabbit job that gets no nodes. Sets jobid.
queued () {
	jobid=$(flux submit -S dw="$@") &&
	dws_wait_event $jobid priority
}
# other [ARG...]: a job that runs. Sets other.
other () {
	other=$(flux submit "$@" sleep inf) &&
	dws_wait_event $other start
}
# waits TEXT: show says that the job waits for that, also as JSON, as do jobs and top.
waits () {
	flux rabbit show --why $jobid >out &&
	{ grep "waits for  *$1" out || { cat out && false; }; } &&
	flux rabbit show --json $jobid >json &&
	jq -r .waiting <json >waiting &&
	grep "^$1" waiting &&
	flux rabbit jobs -no "{id.f58} {waiting}" >listed &&
	{ grep "^$jobid $1" listed || { cat listed && false; }; } &&
	flux rabbit top --json >top.json &&
	jq -r ".jobs[] | select(.id == $(flux job id --to=dec $jobid)).waiting" \
		<top.json >waiting && grep "^$1" waiting
}
# why TEXT: and that this would have to change
why () {
	grep "  $1" out || { cat out && false; }
}
# ends JOBID...: these jobs
ends () {
	flux cancel $* &&
	dws_clean
}

test_expect_success 'load everything' '
	dws_setup
'
test_expect_success 'a job waits for nodes that others have' '
	other -N3 -x &&
	queued "$BIG" -N2 true &&
	waits "nodes: it needs 2, 1 of 4 are free (3 busy)" &&
	why "rabbit0: 0 of 2 nodes and 9.*GiB free, fits 0; lacks 1 node$" &&
	why "rabbit1: 1 of 2 nodes and 9.*GiB free, fits 1; lacks 1 node, 2.*GiB$"
'
test_expect_success 'without --why the reasons are left out, in JSON they are there' '
	flux rabbit show $jobid >out &&
	test_must_fail grep "  why " out &&
	jq -e ".why | length == 2" <json
'
test_expect_success 'a user is told the same' '
	FLUX_HANDLE_ROLEMASK=0x2 flux rabbit show --json $jobid >user.json &&
	jq -e -s ".[0].waiting == .[1].waiting and .[0].why == .[1].why" json user.json
'
test_expect_success 'drained nodes have to come up' '
	flux resource drain node3 &&
	ends $jobid $other &&
	queued "$SMALL" -N4 true &&
	waits "nodes to come up: it needs 4, and 3 of 4 are up" &&
	flux resource undrain node3 &&
	dws_clean
'
test_expect_success 'a job waits for space, next to nodes that are free' '
	other -N2 -S dw="$BIG" &&
	queued "$BIG" -N1 true &&
	waits "space: it needs 1 node with 6.. GiB of the rabbit next to it, and there is room for 0" &&
	why "rabbit0: 1 of 2 nodes and 3.*GiB free, fits 0; lacks 2.*GiB$"
'
test_expect_success 'a rabbit that is disabled says so' '
	flux rabbit disable --reason=fan rabbit1 &&
	dws_wait_status ".rabbits.states.Disabled == 1" &&
	waits "space:" &&
	why "rabbit1: .*; is Disabled$" &&
	flux rabbit enable rabbit1 &&
	ends $jobid $other
'
test_expect_success 'of nodes that it may not have, nothing is said' '
	other -N1 -x --requires=rank:0 &&
	queued "$BIG" -N1 --requires=rank:0 true &&
	waits "nodes: it needs 1, 0 of 1 that it may have are free (1 busy)" &&
	jq -e "[.why[] | test (\"^rabbit0: 0 of 1 \")] == [true]" <json &&
	ends $jobid $other
'
test_expect_success 'a job that is held, and one whose queue is stopped' '
	queued "$BIG" -N1 --urgency=0 true &&
	waits "its release: it is held" &&
	flux cancel $jobid &&
	flux queue stop --message="a quiet night" &&
	queued "$BIG" -N1 true &&
	waits "its queue, which is stopped (a quiet night)" &&
	flux queue start &&
	dws_clean
'
test_done
