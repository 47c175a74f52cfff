#!/bin/bash
# Contents of flux-dws' texts, by reader: only the instance owner reads of the storage
# of other users; text from outside neither begins a line of its own nor controls a
# terminal; and the texts name the user who has raised an exception.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Whose texts, told to whom'
. "$(dirname "$0")/sharness.sh"

dws_config () {
	dws_guests
}
test_under_flux 4

# Users that every system has.
ANN=$(id -u nobody)
BOB=$(id -u daemon)
LUSTRE="type=lustre capacity=10GiB"
XFS="type=xfs capacity=10GiB"

# as_user USERID DIRECTIVE: a job of that user on the first node, next to rabbit0. Its
# task is simulated. Sets jobid.
as_user () {
	flux submit --dry-run -N1 --requires=rank:0 -S exec.test.run_duration=0.01s \
		-S dw="$2" true >jobspec &&
	jobid=$(flux python "$DWS_SRCDIR/t/scripts/submit_as.py" $1 <jobspec)
}
# guest USERID COMMAND...: pretends to be that user
guest () {
	FLUX_HANDLE_USERID=$1 FLUX_HANDLE_ROLEMASK=0x2 "${@:2}"
}
# refused TEXT: what its exceptions say, of which nothing describes a file system
refused () {
	dws_wait_event $jobid clean &&
	flux job eventlog $jobid >eventlog &&
	grep " exception " eventlog >exception &&
	grep -e "$1" exception || { cat eventlog; return 1; }
}
# untold TEXT...: nor is one of these in them
untold () {
	for text in "$@"; do
		test_must_fail grep -F -e "$text" exception || return 1
	done
}
described="Active Creating nobody $ANN used"

test_expect_success 'load everything' '
	cat >rabbit.toml <<-\EOT &&
	restrict_persistent_creation = false
	EOT
	dws_setup &&
	as_user $ANN "#DW create_persistent $LUSTRE name=theirs" &&
	dws_wait_event $jobid clean && flux job status $jobid &&
	as_user $ANN "#DW create_persistent type=xfs capacity=7GiB name=lent" &&
	dws_wait_event $jobid clean && flux job status $jobid &&
	dws_k8s patch persistentstorageinstances lent "{\"metadata\": {\"annotations\":
		{\"dataworkflowservices.github.io/ignore-uid\": \"true\"}}}" >/dev/null &&
	dws_wait_status ".persistent | any(.shared)"
'
test_expect_success 'of a file system of another user no exception tells more than that it is theirs' '
	as_user $BOB "#DW destroy_persistent name=theirs" &&
	refused "belongs to another user .fault: user" &&
	untold $described lustre &&
	as_user $BOB "#DW persistentdw name=theirs" &&
	refused "User ID does not match" &&
	untold $described &&
	as_user $BOB "#DW create_persistent $LUSTRE name=theirs" &&
	refused "User ID does not match" &&
	untold $described
'
test_expect_success 'nor with what one was made that others may use' '
	as_user $BOB "#DW create_persistent type=xfs capacity=8GiB name=lent" &&
	refused "exists already, made by another user .fault: user; use it" &&
	untold $described 7GiB
'
test_expect_success 'nor which one has what only one can have' '
	as_user $BOB "#DW jobdw $LUSTRE name=scratch" &&
	refused "rabbit0 has exclusive .* of another user.s persistent storage" &&
	untold $described theirs
'
test_expect_success 'its owner is told' '
	as_user $ANN "#DW create_persistent type=xfs capacity=8GiB name=lent" &&
	refused "exists already, made by .*7GiB" &&
	as_user $ANN "#DW jobdw $LUSTRE name=scratch" &&
	refused "rabbit0 has exclusive .* of persistent storage .theirs"
'
test_expect_success 'so is the owner of the instance' '
	jobid=$(flux submit -N1 -S dw="#DW destroy_persistent name=theirs" true) &&
	refused "belongs to user nobody"
'
test_expect_success 'who makes the same at once is not told which job of another user it is' '
	dws_ctl hold Proposal &&
	as_user $ANN "#DW create_persistent $XFS name=both" && first=$jobid &&
	dws_ctl wait-state $(dws_workflow $first) Proposal --timeout $DWS_LIMIT &&
	as_user $BOB "#DW create_persistent $XFS name=both" &&
	refused "is just being created by another user" &&
	untold $first &&
	as_user $ANN "#DW create_persistent $XFS name=both" &&
	refused "is just being created by job $first" &&
	dws_ctl release Proposal &&
	dws_wait_event $first clean && flux job status $first
'
test_expect_success 'no file system is described beside an error of another' '
	dws_ctl fail Setup --severity Fatal --message "allocation failed" &&
	as_user $ANN "#DW jobdw type=xfs capacity=10GiB name=scratch
#DW persistentdw name=theirs" &&
	refused "workflow error in Setup.*allocation failed" &&
	untold theirs lustre &&
	dws_ctl fail Setup --clear
'
# A message with all harmful characters: line breaks, control sequences of terminals,
# reversal of direction, and invisible characters.
FORGED="2026-01-01T00:00:00.000000Z broker.err[0]: forged"
BAD=$(printf "failed\n$FORGED\r\033[2Jgone\xe2\x80\xaeback\xe2\x80\x8bhidden")
GOOD=$(printf "failed $FORGED \xef\xbf\xbd[2Jgone\xef\xbf\xbdback\xef\xbf\xbdhidden")
# harmless FILE
harmless () {
	test_must_fail grep -e "^2026-01-01" "$1" &&
	for bad in "\033" "\xe2\x80\xae" "\xe2\x80\x8b"; do
		test_must_fail grep -F -e "$(printf "$bad")" "$1" || return 1
	done
}
# one_line FILE: the message is in it, and only as it may be
one_line () {
	grep -F -e "$GOOD" "$1" && harmless "$1"
}
test_expect_success 'a message of Kubernetes stays in its line of the log, the eventlog and screens' '
	flux dmesg -C &&
	dws_ctl fail PreRun --severity Fatal --message "$BAD" &&
	as_user $ANN "$DWS_DIRECTIVE" &&
	refused "workflow error in PreRun" &&
	flux dmesg >dmesg && one_line dmesg &&
	flux job eventlog --format=json $jobid >eventlog.json &&
	jq -r "select(.name == \"exception\").context.note" eventlog.json >note &&
	one_line note && test $(wc -l <note) = 1 &&
	flux rabbit show $jobid >show && one_line show &&
	flux rabbit report --html report.html &&
	grep "forged.*gone.*back.*hidden" report.html && harmless report.html &&
	dws_ctl fail PreRun --clear
'
test_expect_success 'and of what users see of a job that waits' '
	dws_ctl fail PreRun --severity Minor --message "$BAD" &&
	as_user $ANN "$DWS_DIRECTIVE" &&
	flux python "$DWS_SRCDIR/t/scripts/wait_note.py" $jobid "failed" 60 &&
	flux jobs -A -no "{user.rabbit}" $jobid >memo && one_line memo &&
	dws_ctl fail PreRun --clear &&
	dws_wait_event $jobid clean && flux job status $jobid
'
test_expect_success 'an exception that a user has raised does not pass for one of ours' '
	dws_ctl fail PreRun --severity Minor --message "the true reason" &&
	as_user $ANN "$DWS_DIRECTIVE" &&
	flux python "$DWS_SRCDIR/t/scripts/wait_note.py" $jobid "the true reason" 60 &&
	note="workflow error in PreRun: rabbits are broken [fault: site; tell the administrators]" &&
	guest $ANN flux job raise --type=dws-setup --severity=0 $jobid "$note" &&
	dws_ctl fail PreRun --clear &&
	dws_wait_event $jobid clean &&
	flux rabbit show --json $jobid >show.json &&
	jq -e --arg text "raised by user nobody: dws-setup: $note" \
		".errors[0] == \$text" show.json &&
	flux rabbit report --since 1h >report &&
	grep "raised by user nobody: dws-setup: workflow error in PreRun: rabbits" report &&
	flux rabbit timeline $jobid >timeline &&
	grep "raised by user nobody: dws-setup" timeline &&
	test_must_fail flux rabbit watch $jobid >watch &&
	grep "raised by user nobody: dws-setup" watch
'
test_expect_success 'one that flux-dws has raised for that user does' '
	dws_ctl fail PreRun --severity Fatal --message "mount failed" &&
	as_user $ANN "$DWS_DIRECTIVE" &&
	refused "workflow error in PreRun" &&
	dws_ctl fail PreRun --clear &&
	flux rabbit show --json $jobid >show.json &&
	jq -e ".errors[0] | startswith(\"dws-setup: workflow error in PreRun\")" show.json
'
test_done
