#!/bin/bash
# Ids of users and groups are numbers of 32 bits without sign, from the job to its
# workflow; and a job that the dws service has not taken has no epilog.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Large user ids, and jobs that are refused'
. "$(dirname "$0")/sharness.sh"

# The group of that user has the same number.
BIG=3000000001
dws_config () {
	dws_names
	echo "$BIG ann" >"$SLOW_NAMES.names"
	dws_guests
	cat <<-EOT
	[rabbit.presets]
	named = "#DW jobdw type=xfs capacity=1GiB name=\$USER"
	[rabbit.limits.ann]
	user = "$BIG"
	job = "100GiB"
	EOT
}
test_under_flux 4

COPY="#DW jobdw type=xfs capacity=10GiB name=work
#DW copy_in source=/lus/global/in destination=\$DW_JOB_work/in"

# as_user USERID OPTION...: submit a job of that user. Sets jobid. Its task is simulated,
# as some engines cannot start those of other users.
as_user () {
	userid=$1 &&
	shift &&
	flux submit --dry-run -N1 -S exec.test.run_duration=0.01s "$@" true >jobspec &&
	jobid=$(flux python "$DWS_SRCDIR/t/scripts/submit_as.py" $userid <jobspec)
}
in_state () {
	dws_ctl wait-state $(dws_workflow $jobid) $1 --timeout $DWS_LIMIT
}
# is_over TEXT: the job has an exception that says so, and had no epilog
is_over () {
	dws_wait_event $jobid clean &&
	flux job eventlog $jobid >eventlog &&
	grep "exception.*dws-create" eventlog >exception &&
	grep -F "$1" exception &&
	test_must_fail grep epilog-start eventlog
}

test_expect_success 'load everything' '
	echo "restrict_persistent_creation = true" >rabbit.toml &&
	dws_setup
'
test_expect_success 'a job of a user with a large id gets a workflow with that id' '
	dws_ctl hold DataIn &&
	as_user $BIG -S dw="$COPY" &&
	in_state DataIn && first=$jobid &&
	dws_k8s get workflows $(dws_workflow $jobid) >workflow.json &&
	jq -e ".spec.userID == $BIG and .spec.groupID == $BIG" workflow.json &&
	flux rabbit show --json $jobid >show.json &&
	jq -e "[.. | .userid? // empty] | length > 0 and all(. == $BIG)" show.json
'
test_expect_success 'another job of that user may wait for its data' '
	as_user $BIG --dependency=dws-in:$first &&
	dws_wait_event -m description=dws-in:$(flux job id --to=f58 $first) $jobid \
		dependency-add &&
	dws_ctl release DataIn &&
	dws_wait_event $first clean && flux job status $first &&
	dws_wait_event $jobid clean && flux job status $jobid
'
test_expect_success 'a job of somebody else may not' '
	dws_ctl hold DataIn &&
	as_user $BIG -S dw="$COPY" && first=$jobid && in_state DataIn &&
	test_must_fail as_user 4300 --dependency=dws-in:$first 2>err &&
	grep "another user" err &&
	dws_ctl release DataIn && dws_wait_event $first clean
'
test_expect_success 'the name of that user is found for presets' '
	as_user $BIG -S dw=named &&
	dws_wait_event $jobid clean && flux job status $jobid &&
	flux job eventlog $jobid >eventlog && grep "name=ann" eventlog
'
test_expect_success 'the limits of that user hold' '
	test_must_fail as_user $BIG -S dw="#DW jobdw type=xfs capacity=101GiB name=work" 2>err &&
	grep "rabbit.limits.ann" err
'
test_expect_success 'one whom nobody knows is told so, and the job is over' '
	as_user 3000000002 -S dw="$DWS_DIRECTIVE" &&
	dws_wait_event $jobid clean &&
	flux job eventlog $jobid >eventlog && grep "exception.*user 3000000002" eventlog
'
test_expect_success 'a request that the service refuses leaves no epilog' '
	as_user $BIG -S dw="#DW create_persistent type=xfs capacity=1GiB name=keep" &&
	is_over "persistent"
'
test_expect_success 'nor does one that no service has heard of' '
	flux module remove dws &&
	jobid=$(dws_submit true) &&
	dws_wait_event $jobid dependency-add &&
	flux cancel $jobid &&
	dws_wait_event $jobid clean &&
	flux job eventlog $jobid >eventlog &&
	test_must_fail grep epilog-start eventlog &&
	flux module load "$DWS_MODULES/dws.so" &&
	dws_wait_status ".synced and .agent.synced"
'
test_expect_success 'one that the service knows of has one, and the service ends it' '
	dws_ctl hold Proposal &&
	jobid=$(dws_submit true) && in_state Proposal &&
	flux cancel $jobid &&
	dws_wait_event $jobid epilog-start && dws_wait_event $jobid clean &&
	dws_ctl release all && dws_clean
'
# The plugin was away when it was submitted: otherwise it would have been refused. The
# commands refuse it too, and are left out.
test_expect_success 'a number of nodes to do without that is too large is none' '
	flux submit --dry-run -N1 -S dw="$DWS_DIRECTIVE" true >sane &&
	jq ".attributes.system.dw_failure_tolerance = 3000000000" sane >jobspec &&
	flux jobtap remove dws-jobtap.so &&
	flux queue stop --all &&
	jobid=$(flux python "$DWS_SRCDIR/t/scripts/submit_as.py" $(id -u) <jobspec) &&
	dws_wait_event $jobid priority &&
	flux jobtap load "$DWS_PLUGINS/dws-jobtap.so" &&
	flux queue start --all &&
	dws_wait_event $jobid clean && flux job status $jobid && dws_clean
'
test_done
