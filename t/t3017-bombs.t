#!/bin/bash
# Bounds on memory that a guest can make the services allocate (doc/protocol.md): each
# request is sent too large, too deep, too often, and as a stream that is never ended,
# while the agent is silent.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Bombs of guests'
. "$(dirname "$0")/sharness.sh"

dws_config () {
	dws_guests
}
test_under_flux 4

GUEST=4242
AUTH="#DW jobdw type=gfs2 capacity=1GiB name=local requires=user-container-auth
#DW container name=mine profile=example-success DW_JOB_foo_local_storage=local"
COPY="#DW jobdw type=gfs2 capacity=1GiB name=scratch
#DW copy_out source=\$DW_JOB_scratch/out destination=/lus/global/out profile=default"

# guests_job SECONDS DIRECTIVE: sets jobid
guests_job () {
	flux submit --dry-run -N1 -S exec.test.run_duration=$1 -S dw="$2" true >jobspec &&
	jobid=$(flux python "$DWS_SRCDIR/t/scripts/submit_as.py" $GUEST <jobspec) &&
	jobid=$(flux job id --to=dec $jobid)
}
# The processes of the instance, but for those of this test, and the agent.
family () {
	for child in $(cat /proc/$1/task/*/children); do
		test $child = $$ || { echo $child && family $child; }
	done
}
processes () {
	broker=$(flux getattr broker.pid) &&
	{ echo $broker && family $broker && cat "$DWS_TMP/agent.pid"; } |
		sort -u | paste -sd,
}
signal_agent () {
	kill -$1 $(cat "$DWS_TMP/agent.pid")
}
said () {
	jq -e ".answers | $1" bombs.json
}

test_expect_success 'load everything' '
	echo "stage_out_retry = \"1h\"" >rabbit.toml &&
	dws_setup &&
	dws_ctl grant nnfdatamovements:delete \
		nnfstorageprofiles:list nnfcontainerprofiles:list
'
test_expect_success 'a guest has all of which requests can be about' '
	dws_ctl fail-copy --message "dcp: quota exceeded" &&
	guests_job 0.01s "$COPY" && failed=$jobid &&
	dws_wait_event $failed clean &&
	dws_ctl wait-state fluxjob-$failed DataOut --timeout $DWS_LIMIT &&
	guests_job 100000s "$AUTH" && running=$jobid &&
	dws_wait_event $running start &&
	dws_kube create persistentstorageinstances default theirs \
		"{\"spec\": {\"name\": \"theirs\", \"fsType\": \"lustre\",
		  \"dwDirective\": \"#DW create_persistent\", \"userID\": $GUEST,
		  \"state\": \"Active\"}}" &&
	dws_wait_status ".persistent | length == 1" &&
	as_guest rpc dws.token "{\"jobid\": $running}" &&
	as_guest rpc dws.profiles "{\"kind\": \"storage\"}" >/dev/null
'
test_expect_success 'bombs for every topic, while the agent is silent' '
	for who in owner "any user"; do
		"$DWS_PYTHON" "$DWS_SRCDIR/scripts/lib/inputs.py" $who || return 1
	done >all &&
	grep -v "^dws.disconnect$" all >topics &&
	test $(wc -l <topics) -ge 25 &&
	pids=$(processes) && echo "processes $pids" &&
	keys="\"kind\": \"storage\", \"name\": \"theirs\", \"list\": \"jobs\",
		\"expires\": $(($(date +%s) + 3600)), \"userid\": $GUEST" &&
	signal_agent STOP &&
	dws_wait 900 flux python "$DWS_SRCDIR/t/scripts/bombs.py" $pids $GUEST \
		"{\"jobid\": $running, \"id\": $running, $keys}" \
		"{\"jobid\": $failed, \"id\": $failed, $keys}" <topics >bombs.out &&
	grep "^#" bombs.out && grep -v "^#" bombs.out >bombs.json
'
test_expect_success 'no process has grown by 20 MB' '
	jq -c . bombs.json &&
	jq -e ".grown | length >= 2 and all(. < 20)" bombs.json
'
test_expect_success 'what is too large is refused, and nothing waits with it' '
	said "all(.[].size; .none == 0 and .answer == null)" &&
	said "map(select(.size.EMSGSIZE == 300)) | length >= 7"
'
test_expect_success 'so many requests of one user wait, and no more' '
	said "[.\"dws.retry\", .\"dws.profiles\", .\"dws.logs\" | .[].none] | add == 64" &&
	said "[.\"dws.logs\"[].none] | add <= 4" &&
	said "[.\"dws.retry\", .\"dws.profiles\" | .[].EBUSY // 0] | add > 400" &&
	said "[.\"dws.token\"[].none] | add | . > 0 and . <= 1024" &&
	said "del (.\"dws.retry\", .\"dws.profiles\", .\"dws.logs\", .\"dws.token\") |
		all(.[][]; .none == 0)"
'
test_expect_success 'the text names the bound' '
	test_must_fail as_guest rpc dws.profiles \
		"{\"kind\": \"$(printf "%04096d" 0)\"}" 2>err &&
	grep "of at most 4096 for users" err
'
# The client of the bombs has gone, and with it what waited of its requests.
test_expect_success 'other requests have their place, and are answered' '
	dws_ctl fail-copy --clear &&
	{ as_guest rpc dws.profiles "{\"kind\": \"storage\"}" >profiles.out & } &&
	waiter=$! &&
	signal_agent CONT &&
	wait $waiter && jq -e ".profiles | length > 0" profiles.out &&
	as_guest rpc dws.token "{\"jobid\": $running}" | jq -e .token
'
test_expect_success 'the instance lives, and runs a job' '
	flux run -N1 true &&
	flux cancel $running && dws_wait_event $running clean &&
	jobid=$(dws_submit true) &&
	dws_wait_event $jobid clean && flux job status $jobid &&
	dws_kube delete persistentstorageinstances default theirs &&
	dws_clean
'
test_done
