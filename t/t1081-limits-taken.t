#!/bin/bash
# Limits, quota and policies count the bytes that are taken of rabbits: those of the
# ledger, with what NNF adds to what was asked for.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Limits count what is taken'
. "$(dirname "$0")/sharness.sh"
test_under_flux 8

CONFIG=$DWS_TMP/conf.d/test.toml
PLAIN=$DWS_TMP/plain.toml
ME=$(id -un)
# Bytes of four jobs that ask for 1 MiB, and of one that asks for 10 GiB, with the padding of
# the template profile.
LITTLE=$((4 * (301 << 20)))
PADDED=$(((10 << 30) + (300 << 20)))

# limits: those of the standard input are in force from now on
limits () {
	cat "$PLAIN" - >"$CONFIG" &&
	flux config reload
}
# ask SIZE [OPTION]...: submit a job on one node that asks for so much. Sets jobid.
ask () {
	size=$1 &&
	shift &&
	jobid=$(flux submit -N1 "$@" \
		-S dw="#DW jobdw type=xfs capacity=$size name=scratch" true)
}
ends_with () {
	dws_wait_event $jobid clean &&
	flux job eventlog $jobid >eventlog &&
	grep "exception.*dws-create" eventlog >exception &&
	grep -F "$1" exception || { cat eventlog; return 1; }
}
in_prerun () {
	dws_ctl wait-state $(dws_workflow $1) PreRun --timeout $DWS_LIMIT
}
done_well () {
	dws_wait_event $1 clean && flux job status $1
}
# waits JOBID REGEX: its owner is told why
waits () {
	flux python "$DWS_SRCDIR/t/scripts/wait_note.py" "$1" "^rabbit: waiting for $2\$" 20
}
# quota: the bytes in use by the user, as flux rabbit quota has them
quota () {
	flux rabbit quota --all --json >quota.json &&
	jq "[.limits[] | select (.limit == \"at once\" and .whose == \"$ME\") | .used] | add // 0" quota.json
}
# ledger: what is taken on all rabbits, by jobs and by what is nobodys
ledger () {
	flux rabbit df --json >df.json &&
	jq "[.rabbits[] | .used + .foreign] | add" df.json
}
# agree BYTES: both say that so much is taken
agree () {
	quota >is.quota && ledger >is.ledger &&
	test "$(cat is.quota)" -eq "$1" && test "$(cat is.ledger)" -eq "$1"
}
# same: both say the same, and that is not nothing
same () {
	quota >is.quota && ledger >is.ledger && test_cmp is.ledger is.quota &&
	test "$(cat is.ledger)" -gt 0
}
synced () {
	dws_wait_status ".synced and .plugin and .agent.synced"
}

test_expect_success 'load everything' '
	echo "restrict_persistent_creation = false" >rabbit.toml &&
	dws_setup &&
	cp "$CONFIG" "$PLAIN"
'
test_expect_success 'who asks for little takes more, and that counts' '
	limits <<-\EOF &&
	[rabbit.limits.everybody]
	total = "1300MiB"
	EOF
	dws_ctl hold PreRun &&
	for i in 1 2 3 4; do
		ask 1MiB && eval "job$i=$jobid" && in_prerun $jobid || return 1
	done &&
	dws_until agree $LITTLE &&
	ask 1MiB && waiting=$jobid &&
	waits $waiting "1 MiB, and 300 MiB of NNF.s own: 1.176 GiB of the 1300 MiB that its user may have are in use by 4 jobs .rabbit.limits.everybody.total."
'
test_expect_success 'the same when the module is restarted' '
	flux module reload dws && synced &&
	dws_until agree $LITTLE &&
	waits $waiting "1 MiB, .*: 1.176 GiB of the 1300 MiB .*"
'
test_expect_success 'when one has given its storage back the next has its turn' '
	flux cancel $job1 && dws_wait_event $job1 clean &&
	in_prerun $waiting && dws_until agree $LITTLE &&
	dws_ctl release PreRun &&
	done_well $job2 && done_well $job3 && done_well $job4 && done_well $waiting &&
	dws_clean
'
test_expect_success 'a size is refused for what NNF adds to it, and both are told' '
	limits <<-\EOF &&
	[rabbit.limits.everybody]
	job = "500GiB"
	[rabbit.limits.nodes]
	node = "40GiB"
	EOF
	ask 20GiB && done_well $jobid &&
	ask 40GiB &&
	ends_with "40 GiB of rabbit storage per node, and 300 MiB of NNF'\''s own: more than the 40 GiB that a job may have per node by rabbit.limits.nodes.node; ask the admins" &&
	limits <<-\EOF &&
	[rabbit.limits.everybody]
	job = "500GiB"
	EOF
	ask 500GiB &&
	ends_with "500 GiB of rabbit storage, and 300 MiB of NNF'\''s own: more than the 500 GiB that a job may have by rabbit.limits.everybody.job; ask the admins"
'
test_expect_success 'so are targets for metadata' '
	jobid=$(flux submit -N1 -S dw="#DW jobdw type=lustre capacity=496GiB name=aa" true) &&
	ends_with "496 GiB of rabbit storage, and 5 GiB of NNF'\''s own: more than the 500 GiB"
'
test_expect_success 'and at once where the smallest target that NNF makes is too much' '
	limits <<-\EOF &&
	[rabbit.limits.everybody]
	node = "3GiB"
	EOF
	test_must_fail flux submit -N1 -S dw="#DW jobdw type=lustre capacity=1GiB name=aa" \
		true 2>err &&
	grep "1 GiB of rabbit storage per node, and 2.725 GiB of NNF.s own: more than the 3 GiB" err
'
test_expect_success 'a maximum of a type is one of what is taken' '
	sed "s/^\[rabbit\]/&\npolicy.maximums.xfs = 40.25/" "$PLAIN" >"$CONFIG" &&
	flux config reload &&
	ask 40GiB &&
	ends_with "40 GiB of xfs storage per node, and 300 MiB of NNF'\''s own: more than the 40.25 GiB that this system allows (rabbit.policy.maximums.xfs)" &&
	ask 39GiB && done_well $jobid && dws_clean
'
test_expect_success 'jobs that were let in with less than they take do not get more than all may' '
	limits <<-\EOF &&
	[rabbit.limits.everybody]
	total = "20GiB"
	EOF
	dws_ctl hold Proposal &&
	dws_ctl hold PreRun &&
	ask 10GiB && first=$jobid &&
	dws_ctl wait-state $(dws_workflow $first) Proposal --timeout $DWS_LIMIT &&
	ask 10GiB && second=$jobid &&
	dws_ctl wait-state $(dws_workflow $second) Proposal --timeout $DWS_LIMIT &&
	dws_ctl release Proposal &&
	in_prerun $first &&
	waits $second "10 GiB, and 300 MiB of NNF.s own: 10.29 GiB of the 20 GiB that its user may have are in use by 1 job .*" &&
	dws_until agree $PADDED
'
test_expect_success 'the same when the module is restarted' '
	flux module reload dws && synced &&
	waits $second "10 GiB, and 300 MiB of NNF.s own: 10.29 GiB of the 20 GiB .*" &&
	dws_until agree $PADDED
'
test_expect_success 'the second gets it when the first has ended' '
	flux cancel $first && dws_wait_event $first clean &&
	in_prerun $second && dws_until agree $PADDED &&
	dws_ctl release PreRun && done_well $second && dws_clean
'
test_expect_success 'any mix of jobs takes what quota says' '
	limits <<-\EOF &&
	[rabbit.limits.everybody]
	total = "unlimited"
	EOF
	dws_kube create nnfstorageprofiles nnf-system odd \
		"{\"data\": {\"xfsStorage\": {\"allocationPadding\": \"3.5%\"}}}" &&
	jobid=$(flux submit -N2 -S dw="#DW create_persistent type=gfs2 capacity=5GiB name=keep" true) &&
	done_well $jobid && dws_until same &&
	jobid=$(flux submit -N2 -S dw="#DW create_persistent type=xfs capacity=20GB name=more" true) &&
	done_well $jobid && dws_until same &&
	dws_ctl hold PreRun &&
	flux submit -N1 -S dw="#DW jobdw type=xfs capacity=6GB name=aa profile=odd
#DW persistentdw name=keep" true >ids &&
	flux submit -N3 -S dw="#DW jobdw type=raw capacity=7001MB name=aa
#DW jobdw type=lustre capacity=12345MB name=bb" true >>ids &&
	for jobid in $(cat ids); do in_prerun $jobid || return 1; done &&
	dws_until same &&
	flux module reload dws && synced && dws_until same
'
test_expect_success 'when they are over what stays counts' '
	dws_ctl release PreRun &&
	for jobid in $(cat ids); do done_well $jobid || return 1; done &&
	dws_until same &&
	flux submit -N1 -S dw="#DW destroy_persistent name=keep" true >ids &&
	flux submit -N1 -S dw="#DW destroy_persistent name=more" true >>ids &&
	for jobid in $(cat ids); do done_well $jobid || return 1; done &&
	dws_until agree 0
'
test_done
