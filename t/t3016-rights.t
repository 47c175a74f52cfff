#!/bin/bash
# The table of doc/admin/rights.rst, line by line: what the owner of the instance, the
# owner of a job and another user may do with flux rabbit.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Who may do what'
. "$(dirname "$0")/sharness.sh"

dws_config () {
	cat <<-EOF
	[access]
	allow-guest-user = true
	EOF
}
test_under_flux 4

# Two real users, where root can become them, and they get at the commands, at what
# these need, and at the socket.
socket=$(flux getattr local-uri)
socket=${socket#local://}
as_user () {
	setpriv --reuid=$1 --regid=$1 --clear-groups env HOME=/ sh -c 'cd / && "$@"' sh "${@:2}"
}
test "$(id -u)" = 0 && chmod 711 "$(flux getattr rundir)" "$DWS_TMP" &&
	as_user 65534 test -w "$socket" &&
	as_user 65534 "$FLUX" python -c "import flux.job, flux_rabbit" >nobody.out 2>&1 &&
	test_set_prereq USERS

# users_job USERID DIRECTIVE: a job of his that stays in PreRun; sets jobid
users_job () {
	dws_ctl hold PreRun &&
	flux submit --dry-run -N1 -S dw="$2" true >jobspec &&
	jobid=$(flux python "$DWS_SRCDIR/t/scripts/submit_as.py" $1 <jobspec) &&
	jobid=$(flux job id --to=dec $jobid) &&
	dws_ctl wait-state fluxjob-$jobid PreRun --timeout $DWS_LIMIT &&
	dws_ctl hold PreRun --workflow fluxjob-$jobid &&
	dws_ctl release PreRun --workflow "*"
}
# Two jobs that are held, one that is over, a file system, and two losses.
belongings () {
	users_job $1 "$DWS_DIRECTIVE" && old=$jobid &&
	flux cancel $old && dws_wait_event $old clean &&
	users_job $1 "$DWS_DIRECTIVE" && job=$jobid &&
	users_job $1 "$DWS_DIRECTIVE" && job2=$jobid &&
	dws_kube create persistentstorageinstances default theirs \
		"{\"spec\": {\"name\": \"theirs\", \"fsType\": \"lustre\",
		  \"dwDirective\": \"#DW create_persistent\", \"userID\": $1,
		  \"state\": \"Active\"}}" &&
	dws_wait_status ".persistent | length == 1" &&
	flux module remove dws &&
	flux kvs put dws.losses="[
		{\"id\": 7, \"userid\": $1, \"t\": 1.0, \"text\": \"lost\"},
		{\"id\": 8, \"userid\": $1, \"t\": 1.0, \"text\": \"lost\"}]" &&
	flux module load "$DWS_MODULES/dws.so" &&
	dws_wait_status ".synced and .agent.synced and .jobs == 2"
}
# all_rows MODE USERID OTHER
all_rows () {
	flux python "$DWS_SRCDIR/t/scripts/rights.py" $1 $2 $3 $job $job2 $old theirs
}
nothing_left () {
	dws_ctl release all && flux queue drain -t $DWS_LIMIT &&
	{ dws_kube delete persistentstorageinstances default theirs || :; } &&
	dws_clean
}

test_expect_success 'load everything' '
	echo "presets.tiny = \"#DW jobdw type=xfs capacity=1GiB name=tiny\"" >rabbit.toml &&
	dws_setup &&
	dws_ctl grant nnfstorageprofiles:list nnfcontainerprofiles:list
'
test_expect_success 'what services refuse to those who pretend to be a user' '
	belongings 65534 &&
	all_rows pretend 65534 65533
'
test_expect_success 'nothing is left of that' 'nothing_left'
test_expect_success USERS 'what real users may do' '
	belongings 65534 &&
	all_rows real 65534 65533
'
test_expect_success 'nothing is left of this' 'nothing_left'
test_done
