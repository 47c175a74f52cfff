#!/bin/bash
# The workflow's secret token reaches the job of its owner, and nobody else.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='DW_WORKFLOW_TOKEN'
. "$(dirname "$0")/sharness.sh"
test_under_flux 2

AUTH="#DW jobdw type=gfs2 capacity=1GiB name=local requires=user-container-auth
#DW container name=mine profile=example-success DW_JOB_foo_local_storage=local"

# as_user USERID COMMAND...: what it does counts as another user's, if the engine
# can do that.
as_user () {
	userid=$1 &&
	shift &&
	FLUX_HANDLE_USERID=$userid FLUX_HANDLE_ROLEMASK=0x2 "$@"
}

test_expect_success 'load everything' '
	dws_setup
'
test_expect_success 'every task of the job has the token' '
	cat >task.sh <<-\EOF &&
	printf "%s\n" "$DW_WORKFLOW_TOKEN"
	EOF
	jobid=$(flux submit -N2 -n2 -S dw="$AUTH" bash "$PWD/task.sh") &&
	flux job attach $jobid >tokens &&
	sort -u tokens >token &&
	test "$(wc -l <tokens)" = 2 && test "$(wc -l <token)" = 1 &&
	grep -E "^[A-Za-z0-9_=-]+\.[A-Za-z0-9_=-]+\.[A-Za-z0-9_=-]+$" token
'
test_expect_success 'the eventlog says that there is one, not what it is' '
	dws_wait_event $jobid clean &&
	flux job eventlog $jobid >eventlog &&
	grep "dws_environment.* token=true" eventlog &&
	test_must_fail grep -F -f token eventlog
'
test_expect_success 'it is in no log and no record of the job' '
	flux dmesg >dmesg &&
	test_must_fail grep -F -f token dmesg &&
	test_must_fail grep -F -f token agent.log &&
	flux kvs dir -R "$(flux job id --to=kvs $jobid)" >kvs.out &&
	grep -v "\.guest\.output = " <kvs.out >kvs &&
	grep rabbit_workflow kvs &&
	test_must_fail grep -F -f token kvs &&
	dws_clean
'
test_expect_success 'a job that is not running gets none' '
	test_must_fail rpc dws.token "{\"jobid\": \"$jobid\"}" 2>err &&
	grep "owner of an active rabbit job" err
'
test_expect_success 'nor one whose workflow has none' '
	plain=$(dws_submit sleep inf) &&
	dws_wait_event $plain start &&
	flux job eventlog $plain >eventlog &&
	test_must_fail grep "dws_environment.* token=" eventlog &&
	test_must_fail rpc dws.token "{\"jobid\": \"$plain\"}" 2>err &&
	grep "has no token" err &&
	flux cancel $plain && dws_wait_event $plain clean
'
test_expect_success 'its owner can ask for it again' '
	jobid=$(flux submit -N1 -S dw="$AUTH" sleep inf) &&
	dws_wait_event $jobid start &&
	rpc dws.token "{\"jobid\": \"$jobid\"}" >answer &&
	jq -r .token answer | grep -E "^[^.]+\.[^.]+\.[^.]+$"
'
test_expect_success 'nobody else can' '
	test_must_fail as_user 4242 rpc dws.token \
		"{\"jobid\": \"$jobid\"}" 2>err &&
	grep "owner of an active rabbit job" err &&
	test_must_fail as_user 4242 rpc dws.status \
		"{\"jobid\": \"$jobid\"}"
'
test_expect_success 'a guest may ask about nothing but his own jobs' '
	sed -n "s/^#define \(DWS_TOPIC_[A-Z]*\) *\(\"[^\"]*\"\).*/s|\1|\2|/p" \
		"$DWS_SRCDIR/src/common/libutil/names.h" >names.sed &&
	sed -f names.sed "$DWS_SRCDIR/src/modules/dws/service.c" >service.c &&
	sed -n "s/.*REQUEST, \"\(dws\.[a-z_-]*\)\", [a-z_]*, 0 }.*/\1/p" \
		service.c >topics &&
	test "$(wc -l <topics)" -ge 8 && grep dws.abort topics &&
	for topic in $(cat topics); do
		test_must_fail as_user 4242 rpc $topic \
			"{\"jobid\": \"$jobid\"}" 2>err &&
		grep -i "not permitted\|requires owner\|denied" err || return 1
	done &&
	for topic in resource-update prolog-remove epilog-remove sync; do
		test_must_fail as_user 4242 rpc job-manager.dws.$topic \
			"{\"id\": \"$jobid\", \"variables\": {}, \
			\"resources\": []}" 2>err &&
		grep -i "not permitted\|requires owner\|denied" err || return 1
	done &&
	as_user 4242 rpc dws.status >status &&
	jq -e ".jobs == 0" status
'
# refused WORDS: the token of $jobid is refused, with these words
refused () {
	! rpc dws.token "{\"jobid\": \"$jobid\"}" >answer 2>err && grep "$1" err
}
# name_secret NAME [NAMESPACE]: the workflow of $jobid names this Secret
name_secret () {
	dws_k8s patch workflows "$(dws_workflow $jobid)" \
		"{\"status\": {\"workflowToken\": {\"secretName\": \"$1\",
		\"secretNamespace\": \"${2:-default}\"}}}" >/dev/null
}
test_expect_success 'a Secret that is not of the job is not read for it' '
	other=$(flux submit -N1 -S dw="$AUTH" sleep inf) &&
	dws_wait_event $other start &&
	name_secret "$(dws_workflow $other)-token" &&
	dws_until refused "is not of workflow $(dws_workflow $jobid): its contr" &&
	name_secret nnf-dm-usercontainer-server-tls &&
	dws_until refused "nnf-dm-usercontainer-server-tls is not of workflow" &&
	name_secret nnf-dm-usercontainer-server-tls nnf-system &&
	dws_until refused "is in another namespace" &&
	name_secret "$(dws_workflow $jobid)-token-server" &&
	dws_until refused "no text in token" &&
	name_secret "$(dws_workflow $jobid)-token" &&
	dws_until rpc dws.token "{\"jobid\": \"$jobid\"}" &&
	flux cancel $other && dws_wait_event $other clean
'
test_expect_success 'who asks while the agent is away waits for it' '
	flux cancel $jobid && dws_wait_event $jobid clean &&
	dws_ctl hold PreRun --late &&
	jobid=$(flux submit -N1 -S dw="$AUTH" bash "$PWD/task.sh") &&
	dws_ctl wait-state "$(dws_workflow $jobid)" PreRun --timeout $DWS_LIMIT &&
	rpc dws.token "{\"jobid\": \"$jobid\"}" >answer &&
	dws_kill_agent &&
	test_must_fail as_user 4242 rpc dws.token \
		"{\"jobid\": \"$jobid\"}" 2>err &&
	grep "owner of an active rabbit job" err &&
	{ rpc dws.token "{\"jobid\": \"$jobid\"}" >later & } &&
	waiter=$! &&
	dws_start_agent && wait $waiter &&
	jq -e .token later && cmp answer later
'
test_expect_success 'one user can not fill the module with requests' '
	cat >flood.py <<-\EOF &&
	import os, sys
	os.environ["FLUX_HANDLE_USERID"] = sys.argv[2]
	os.environ["FLUX_HANDLE_ROLEMASK"] = "0x2"
	import flux
	h = flux.Flux()
	left = [0] * 2
	said = set()
	want = int(sys.argv[3])
	def answered(future, refused):
	    try:
	        assert future.get()["token"]
	        left[0] += 1
	    except OSError as exc:
	        said.add(exc.strerror)
	        left[1] += 1
	        if left[1] == 10 and not os.path.exists("flooded"):
	            open("flooded", "w").close()
	    if sum(left) == want:
	        h.reactor_stop()
	futures = [h.rpc("dws.token", {"jobid": int(sys.argv[1])}) for _ in range(want)]
	for future in futures:
	    future.then(answered, None)
	h.reactor_run()
	print(*left, *said, sep="\n")
	EOF
	id=$(flux job id --to=dec $jobid) &&
	dws_kill_agent &&
	{ dws_wait 100 flux python flood.py $id $(id -u) 1034 >flood.out & } &&
	flooder=$! &&
	dws_until test -e flooded &&
	test_must_fail as_user 4242 rpc dws.token "{\"jobid\": $id}" 2>err &&
	grep "owner of an active rabbit job" err &&
	rpc dws.status >status && jq -e .synced status &&
	dws_start_agent && wait $flooder &&
	cat flood.out &&
	sed -n 1p flood.out | grep -x 1024 && sed -n 2p flood.out | grep -x 10 &&
	grep "1024 requests of user $(id -u) wait already, of at most 1024" flood.out &&
	rpc dws.token "{\"jobid\": $id}" >later &&
	cmp answer later
'
test_expect_success 'and so does who asks a module that has just started' '
	flux module reload dws &&
	rpc dws.token "{\"jobid\": \"$jobid\"}" >later &&
	cmp answer later &&
	dws_ctl release PreRun &&
	dws_wait_event $jobid clean && flux job status $jobid && dws_clean
'
test_done
