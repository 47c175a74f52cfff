#!/bin/bash
# flux rabbit quota: what [rabbit.limits] allows somebody, and what of it is in use.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='flux rabbit quota'
. "$(dirname "$0")/sharness.sh"
test_under_flux 4

CONFIG=$DWS_TMP/conf.d/test.toml
PLAIN=$DWS_TMP/plain.toml
ME=$(id -un)
# what the profile adds to each file system
PAD=$((300 << 20))

# limits: those of the standard input are in force from now on
limits () {
	cat "$PLAIN" - >"$CONFIG" &&
	flux config reload
}
ask () {
	gib=$1 &&
	shift &&
	flux submit -N1 "$@" -S dw="#DW jobdw type=xfs capacity=${gib}GiB name=scratch" true
}
# quota [OPTION]...: a line for each limit to the file out
quota () {
	flux rabbit quota -no "{limit}|{whose}|{max}|{used}|{free}|{jobs}|{persistent}|{waiting}|{rule}" \
		"$@" >out
}
told () {
	quota && grep -qFx "$1" out
}
in_prerun () {
	dws_ctl wait-state $(dws_workflow $1) PreRun --timeout $DWS_LIMIT
}

test_expect_success 'load everything' '
	echo "restrict_persistent_creation = false" >rabbit.toml &&
	dws_setup &&
	cp "$CONFIG" "$PLAIN"
'
test_expect_success 'without rules there is nothing to tell' '
	flux rabbit quota >out &&
	echo "no limits: there is no rule in [rabbit.limits]" | test_cmp - out &&
	limits <<-\EOF &&
	[rabbit.limits]
	contact = "me"
	EOF
	flux rabbit quota >out && grep "^no limits" out
'
test_expect_success 'what is allowed, by which rule, for each of them the first that fits' '
	limits <<-EOF &&
	[queues.batch]
	[queues.debug]
	[policy.jobspec.defaults.system]
	queue = "batch"
	[rabbit.limits.debug]
	queue = "debug"
	allow = false
	[rabbit.limits.physics]
	bank = "physics"
	node = "unlimited"
	[rabbit.limits.own]
	group = "$(id -gn)"
	job = "13GiB"
	[rabbit.limits.nobodys]
	user = "3999998"
	job = "1GiB"
	[rabbit.limits.everybody]
	total = "20GiB"
	job = "8GiB"
	node = "16GiB"
	[rabbit.limits.banks]
	total = "30GiB"
	per = "bank"
	EOF
	flux queue start --all &&
	quota &&
	cat >want <<-EOF &&
	at once|$ME|20.0GiB|0B|20.0GiB|0|0|0|everybody
	per job|$ME|13.0GiB||||||own
	per node|$ME|16.0GiB||||||everybody
	EOF
	test_cmp want out
'
test_expect_success 'in another queue, in a bank' '
	quota --queue debug && grep -Fx "allowed|$ME|no||||||debug" out &&
	quota --bank physics &&
	grep -Fx "per node|$ME|unlimited||||||physics" out &&
	grep -Fx "at once|bank physics|30.0GiB||||||banks" out
'
test_expect_success 'of somebody who is not in the group, also by number' '
	quota --user nobody &&
	grep -Fx "per job|nobody|8.0GiB||||||everybody" out &&
	quota --user 3999999 && grep -Fx "at once|3999999|20.0GiB|0B|20.0GiB|0|0|0|everybody" out
'
test_expect_success 'as a table' '
	flux rabbit quota >out &&
	grep "^LIMIT  *WHOSE  *MAX  *USED  *FREE  *JOBS  *PERSIST  *WAITING  *RULE" out &&
	grep "^at once  *$ME  *20.0GiB  *0B  *20.0GiB  *0  *0  *0  *everybody" out &&
	awk "length (\$0) > 80 { exit 1 }" out
'
test_expect_success 'jobs that have storage, and those that wait' '
	dws_ctl hold PreRun &&
	first=$(ask 4 -S bank=physics) && in_prerun $first &&
	second=$(ask 12 -S bank=biology) &&
	in_prerun $second &&
	third=$(ask 8 -S bank=physics) &&
	dws_until told "at once|$ME|20.0GiB|16.6GiB|3.4GiB|2|0|1|everybody" &&
	grep -Fx "at once|bank biology|30.0GiB|12.3GiB|17.7GiB|1||0|banks" out &&
	grep -Fx "at once|bank physics|30.0GiB|4.3GiB|25.7GiB|1||0|banks" out
'
test_expect_success 'it is the same when the module was restarted' '
	flux module reload dws &&
	dws_wait_status ".synced and .plugin and .agent.synced" &&
	dws_until told "at once|$ME|20.0GiB|16.6GiB|3.4GiB|2|0|1|everybody"
'
test_expect_success 'for programs' '
	flux rabbit quota --json >json &&
	jq -e ".known and (.limits | length == 5)" json &&
	jq -e "[.limits[] | select (.limit == \"at once\") | .used]
		== [$(((16 << 30) + 2 * PAD)), $(((12 << 30) + PAD)), $(((4 << 30) + PAD))]" json
'
test_expect_success 'the owner of the instance sees all who have something' '
	quota --all &&
	cat >want <<-EOF &&
	at once|$ME|20.0GiB|16.6GiB|3.4GiB|2|0|1|everybody
	at once|bank biology|30.0GiB|12.3GiB|17.7GiB|1||0|banks
	at once|bank physics|30.0GiB|4.3GiB|25.7GiB|1||0|banks
	EOF
	test_cmp want out &&
	flux rabbit quota --user nobody >out && test_must_fail grep physics out
'
test_expect_success 'others see what they have, and not more' '
	as_guest flux python "$DWS_SRCDIR/t/scripts/rpc.py" dws.quota >out &&
	jq -e ".users == [] and .banks == []" out &&
	test_must_fail as_guest flux rabbit quota --all 2>err &&
	grep "only the owner of the instance sees what others have" err &&
	test_must_fail as_guest flux rabbit quota --user $ME 2>err &&
	grep "only the owner" err
'
test_expect_success 'persistent storage counts for its owner, when the job that made it is over' '
	flux cancel $third && dws_ctl release PreRun &&
	for id in $first $second $third; do
		dws_wait_event $id clean || return 1
	done &&
	id=$(flux submit -N1 -S dw="#DW create_persistent type=xfs capacity=2GiB name=keep" true) &&
	dws_wait_event $id clean &&
	flux rabbit persistent --json >json &&
	size=$(jq "[.persistent[].space[]] | add" json) &&
	quota --all -no "{limit}|{whose}|{used:d}|{jobs}|{persistent}" &&
	grep -Fx "at once|$ME|$size|0|1" out
'
test_expect_success 'words that are wrong' '
	test_expect_code 1 flux rabbit quota --user no-such-user 2>err &&
	grep "there is no user no-such-user" err &&
	test_expect_code 2 flux rabbit quota --all --user root 2>err
'
test_done
