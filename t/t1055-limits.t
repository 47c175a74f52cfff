#!/bin/bash
# [rabbit.limits] bounds rabbit storage: a job beyond a limit is rejected at once, or
# waits until other jobs have freed storage.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Limits of rabbit storage'
. "$(dirname "$0")/sharness.sh"
test_under_flux 8

CONFIG=$DWS_TMP/conf.d/test.toml
PLAIN=$DWS_TMP/plain.toml

# limits: those of the standard input are in force from now on
limits () {
	cat "$PLAIN" - >"$CONFIG" &&
	flux config reload
}
# ask GIB [OPTION]...: submit a job on one node that asks for so much. Sets jobid.
ask () {
	gib=$1 &&
	shift &&
	jobid=$(flux submit -N1 "$@" \
		-S dw="#DW jobdw type=xfs capacity=${gib}GiB name=scratch" true)
}
# refused TEXT GIB [OPTION]...: that is refused when it is submitted
refused () {
	text=$1 &&
	shift &&
	test_must_fail ask "$@" 2>err &&
	grep -F "$text" err || { cat err; return 1; }
}
# ends_with TEXT: the job is refused after that
ends_with () {
	dws_wait_event $jobid clean &&
	flux job eventlog $jobid >eventlog &&
	grep "exception.*dws-create" eventlog >exception &&
	grep -F "$1" exception || { cat eventlog; return 1; }
}
done_well () {
	dws_wait_event $1 clean && flux job status $1
}
in_prerun () {
	dws_ctl wait-state $(dws_workflow $1) PreRun --timeout $DWS_LIMIT
}
# waits JOBID REGEX: it has no workflow, and its owner is told why
waits () {
	flux python "$DWS_SRCDIR/t/scripts/wait_note.py" "$1" "^rabbit: waiting for $2\$" 20 &&
	test_must_fail dws_k8s get workflows $(dws_workflow $1)
}
ends () {
	flux cancel $1 && dws_wait_event $1 clean
}
# room ASKED USED JOBS: the reason to wait. NNF adds 300 MiB to each file system.
room () {
	plural=s &&
	if test $3 -eq 1; then plural=; fi &&
	echo "$1: $2 GiB of the 20 GiB that its user may have are in use by $3 job$plural .rabbit.limits.everybody.total."
}
logged () {
	flux dmesg >dmesg.out && grep -F "$1" dmesg.out
}
synced () {
	dws_wait_status ".synced and .plugin and .agent.synced"
}

test_expect_success 'load everything' '
	echo "restrict_persistent_creation = false" >rabbit.toml &&
	dws_setup &&
	cp "$CONFIG" "$PLAIN"
'
test_expect_success 'a rule that makes no sense is refused, and the old ones stay' '
	test_must_fail limits 2>err <<-\EOF &&
	[rabbit.limits.all]
	job = "5 apples"
	EOF
	grep "rabbit.limits.all.job: expected a size" err &&
	test_must_fail limits 2>err <<-\EOF &&
	[rabbit.limits.all]
	jobs = "5TiB"
	EOF
	grep "rabbit.limits.all.jobs: unknown key" err
'
test_expect_success 'what a job may have, and per node, over all directives and nodes' '
	limits <<-\EOF &&
	[rabbit.limits]
	contact = "storage@example.org"
	[rabbit.limits.sizes]
	job = "20GiB"
	node = "12GiB"
	EOF
	refused "13 GiB of rabbit storage per node is more than the 12 GiB that a job may have per node by rabbit.limits.sizes.node; ask storage@example.org" 13 &&
	refused "21 GiB of rabbit storage is more than the 20 GiB that a job may have by rabbit.limits.sizes.job; ask storage@example.org" 7 -N3 &&
	test_must_fail flux submit -N1 -S dw="#DW jobdw type=xfs capacity=8GiB name=aa
#DW jobdw type=lustre capacity=5GiB name=bb" true 2>err &&
	grep "13 GiB of rabbit storage per node" err &&
	test_must_fail flux submit -N4 -S dw="#DW jobdw type=lustre capacity=21GiB name=aa" \
		true 2>err &&
	grep "21 GiB of rabbit storage is more" err &&
	ask 9 -N2 && done_well $jobid
'
test_expect_success 'no job is left of those that were refused' '
	flux jobs -ano {id} >jobs &&
	test $(wc -l <jobs) -eq 1
'
test_expect_success 'none at all: but what there is can be destroyed' '
	jobid=$(flux submit -N1 -S dw="#DW create_persistent type=xfs capacity=8GiB name=keep" true) &&
	done_well $jobid &&
	limits <<-\EOF &&
	[rabbit.limits.nobody]
	allow = false
	EOF
	refused "rabbit storage is not allowed for this job by rabbit.limits.nobody.allow; ask the admins of this machine" 1 &&
	test_must_fail flux submit -N1 -S dw="#DW persistentdw name=keep" true &&
	flux submit -N1 true &&
	jobid=$(flux submit -N1 -S dw="#DW destroy_persistent name=keep" true) &&
	done_well $jobid
'
test_expect_success 'the first rule in the file that fits decides, for each key' '
	limits <<-EOF &&
	[rabbit.limits.zz-physics]
	bank = "physics"
	job = "unlimited"
	[rabbit.limits.mm-own]
	user = "$(id -un)"
	node = "9GiB"
	[rabbit.limits.aa-all]
	job = "4GiB"
	node = "6GiB"
	EOF
	ask 8 -S bank=physics && done_well $jobid &&
	refused "more than the 4 GiB that a job may have by rabbit.limits.aa-all.job" 5 -S bank=biology &&
	ask 10 -S bank=physics &&
	ends_with "more than the 9 GiB that a job may have per node by rabbit.limits.mm-own.node"
'
test_expect_success 'a job without a bank may get one: it is refused a moment later' '
	ask 5 && ends_with "rabbit.limits.aa-all.job"
'
test_expect_success 'a queue' '
	limits <<-\EOF &&
	[queues.batch]
	[queues.debug]
	[rabbit.limits.debug]
	queue = "debug"
	allow = false
	EOF
	flux queue start --all &&
	refused "rabbit.limits.debug.allow" 1 -q debug &&
	ask 1 -q batch && done_well $jobid
'
test_expect_success FLUX_CORE 'nobody gets there by way of another queue' '
	dws_ctl hold Proposal &&
	ask 1 -q batch &&
	dws_wait_event -m description=dws-create $jobid dependency-add &&
	test_must_fail flux update $jobid queue=debug 2>err &&
	grep "rabbit.limits.debug.allow" err &&
	flux update $jobid duration=1m &&
	dws_ctl release Proposal &&
	done_well $jobid
'
test_expect_success FLUX_CORE 'a limit that is new binds no other update of a job in the queue' '
	limits </dev/null &&
	blocker=$(flux submit -N8 --exclusive sleep inf) &&
	dws_wait_event $blocker start &&
	ask 5 && dws_wait_event $jobid priority &&
	limits <<-EOF &&
	[rabbit.limits.everybody]
	job = "4GiB"
	EOF
	env FLUX_HANDLE_ROLEMASK=0x2 FLUX_HANDLE_USERID=$(id -u) \
		flux update $jobid duration=1m &&
	ends $blocker && done_well $jobid
'
test_expect_success 'the user by number, and the group, are found out about' '
	limits <<-EOF &&
	[rabbit.limits.others]
	user = "54321"
	allow = false
	[rabbit.limits.nobodys]
	group = "54321"
	allow = false
	[rabbit.limits.own]
	group = "$(id -gn)"
	job = "4GiB"
	EOF
	ask 5 &&
	ends_with "more than the 4 GiB that a job may have by rabbit.limits.own.job" &&
	ask 3 && done_well $jobid &&
	limits <<-EOF &&
	[rabbit.limits.own]
	user = "$(id -u)"
	allow = false
	EOF
	refused "rabbit.limits.own.allow" 1
'
test_expect_success 'names that there are none of are refused' '
	limits </dev/null &&
	for kind in user group; do
		limits <<-EOF 2>err
		[rabbit.limits.aa]
		$kind = "no-such-$kind"
		allow = false
		EOF
		test $? -ne 0 &&
		grep "rabbit.limits.aa.$kind: there is no $kind no-such-$kind" err || return 1
	done &&
	ask 1 && done_well $jobid &&
	dws_clean
'
test_expect_success 'what the jobs of a user may have at one time: more than that is refused' '
	limits <<-\EOF &&
	[rabbit.limits.everybody]
	total = "20GiB"
	EOF
	refused "21 GiB of rabbit storage is more than the 20 GiB that a user may have at one time by rabbit.limits.everybody.total" 7 -N3
'
test_expect_success 'and what is too much only now waits, and its owner is told why' '
	dws_ctl hold PreRun &&
	ask 12 && first=$jobid && in_prerun $first &&
	ask 10 && second=$jobid &&
	waits $second "$(room "10 GiB" 12.29 1)"
'
test_expect_success 'so are administrators' '
	flux rabbit show $second >show.out &&
	grep "12.29 GiB of the 20 GiB that its user may have are in use by 1 job" show.out
'
test_expect_success 'what came later does not pass it, and what needs no storage does' '
	ask 2 && third=$jobid &&
	waits $third "$(room "2 GiB" 12.29 1)" &&
	flux run -N1 true
'
all_wait () {
	waits $second "$(room "10 GiB" 12.29 1)" && waits $third "$(room "2 GiB" 12.29 1)"
}
test_expect_success 'it is the same when the module is restarted' '
	flux module reload dws && synced && all_wait
'
test_expect_success 'the agent' '
	dws_kill_agent && dws_start_agent && synced && all_wait
'
test_expect_success 'the plugin' '
	flux jobtap remove dws-jobtap.so &&
	flux jobtap load "$DWS_PLUGINS/dws-jobtap.so" && synced && all_wait
'
test_expect_success 'and both, while neither is there' '
	dws_kill_agent &&
	flux jobtap remove dws-jobtap.so && flux module remove dws &&
	flux module load "$DWS_MODULES/dws.so" &&
	flux jobtap load "$DWS_PLUGINS/dws-jobtap.so" &&
	dws_start_agent && synced && all_wait
'
test_expect_success 'the storage of the first is torn down: those that waited go on in turn' '
	dws_ctl hold Teardown &&
	flux cancel $first &&
	dws_ctl wait-state $(dws_workflow $first) Teardown --timeout $DWS_LIMIT &&
	all_wait &&
	dws_ctl release Teardown &&
	in_prerun $second && in_prerun $third
'
test_expect_success 'one that waits is cancelled: it goes at once, and the next has its turn' '
	ask 10 && fourth=$jobid && waits $fourth "$(room "10 GiB" 12.59 2)" &&
	ask 5 && fifth=$jobid && waits $fifth "$(room "5 GiB" 12.59 2)" &&
	ends $fourth &&
	in_prerun $fifth
'
test_expect_success 'a smaller total leaves those that were let in, a larger one lets others in' '
	ask 4 && sixth=$jobid && waits $sixth "$(room "4 GiB" 17.88 3)" &&
	limits <<-\EOF &&
	[rabbit.limits.everybody]
	total = "5GiB"
	EOF
	waits $sixth "4 GiB: 17.88 GiB of the 5 GiB that its user may have are in use by 3 jobs .rabbit.limits.everybody.total." &&
	limits <<-\EOF &&
	[rabbit.limits.everybody]
	total = "24GiB"
	EOF
	in_prerun $sixth &&
	dws_ctl release PreRun &&
	done_well $second && done_well $third && done_well $fifth && done_well $sixth
'
test_expect_success 'who waits when limits come that refuse it is refused' '
	dws_ctl hold PreRun &&
	ask 20 && first=$jobid && in_prerun $first &&
	ask 5 && waits $jobid "5 GiB: 20.29 GiB of the 24 GiB .*" &&
	limits <<-\EOF &&
	[rabbit.limits.everybody]
	job = "1GiB"
	EOF
	ends_with "by rabbit.limits.everybody.job" &&
	dws_ctl release PreRun && done_well $first && dws_clean
'
test_expect_success 'persistent storage counts, when the job that made it is over' '
	limits <<-\EOF &&
	[rabbit.limits.everybody]
	total = "20GiB"
	EOF
	jobid=$(flux submit -N1 -S dw="#DW create_persistent type=xfs capacity=10GiB name=keep" true) &&
	done_well $jobid &&
	ask 15 && waiting=$jobid &&
	waits $waiting "15 GiB: 10.29 GiB of the 20 GiB that its user may have are in use by 0 jobs and 1 persistent file system .rabbit.limits.everybody.total." &&
	flux module reload dws && synced &&
	waits $waiting "15 GiB: .* by 0 jobs and 1 persistent file system .*" &&
	jobid=$(flux submit -N1 -S dw="#DW persistentdw name=keep" true) &&
	done_well $jobid
'
test_expect_success 'until it is destroyed' '
	jobid=$(flux submit -N1 -S dw="#DW destroy_persistent name=keep" true) &&
	done_well $jobid && done_well $waiting && dws_clean
'
test_expect_success 'a bank: the jobs of others are not held up' '
	limits <<-\EOF &&
	[rabbit.limits.banks]
	total = "20GiB"
	per = "bank"
	[rabbit.limits.users]
	total = "40GiB"
	EOF
	dws_ctl hold PreRun &&
	ask 12 -S bank=physics && first=$jobid && in_prerun $first &&
	ask 10 -S bank=physics && second=$jobid &&
	waits $second "10 GiB: 12.29 GiB of the 20 GiB that bank physics may have are in use by 1 job .rabbit.limits.banks.total." &&
	ask 15 -S bank=biology && other=$jobid && in_prerun $other &&
	ask 5 && none=$jobid && in_prerun $none
'
test_expect_success 'who waits for both is let in when there is room in both' '
	flux module reload dws && synced &&
	waits $second "10 GiB: 32.88 GiB of the 40 GiB that its user may have are in use by 3 jobs .rabbit.limits.users.total." &&
	ends $none &&
	waits $second "10 GiB: 12.29 GiB of the 20 GiB that bank physics may have are in use by 1 job .rabbit.limits.banks.total." &&
	ends $first &&
	in_prerun $second &&
	dws_ctl release PreRun && done_well $second && done_well $other && dws_clean
'
test_done
