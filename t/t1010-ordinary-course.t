#!/bin/bash
# A job with a #DW directive runs through all seven states and leaves nothing.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='The ordinary course of a rabbit job'
. "$(dirname "$0")/sharness.sh"
test_under_flux 4

test_expect_success 'load everything' '
	dws_setup
'
test_expect_success 'a job writes to its file system' '
	cat >task.sh <<-\EOF &&
	echo "rank $FLUX_TASK_RANK" >"$DW_JOB_scratch/out.$FLUX_TASK_RANK" &&
	ls "$DW_JOB_scratch" | sort
	EOF
	jobid=$(dws_submit bash "$PWD/task.sh") &&
	flux job attach $jobid >out &&
	grep -q out.0 out
'
test_expect_success 'the job ends clean' '
	dws_wait_event $jobid clean &&
	dws_clean
'
test_expect_success 'its prolog and epilog were held for it' '
	flux job eventlog $jobid >eventlog &&
	grep "dependency-add.*dws-create" eventlog &&
	grep "dependency-remove.*dws-create" eventlog &&
	grep "prolog-start.*dws-setup" eventlog &&
	grep "dws_environment" eventlog &&
	grep "prolog-finish.*dws-setup" eventlog &&
	grep "epilog-start.*dws-epilog" eventlog &&
	grep "epilog-finish.*dws-epilog" eventlog
'
test_expect_success 'the environment came before the job started' '
	awk "/dws_environment/ { e = NR } / start/ { s = NR }
		END { exit !(e && s && e < s) }" eventlog
'
test_expect_success 'timing of every state is in the KVS' '
	for state in setup datain prerun postrun dataout; do
		flux job info $jobid rabbit_${state}_timing >timing || return 1
		test -s timing || return 1
	done
'
test_expect_success 'its workflow and rabbits are memos of the job' '
	dws_workflow $jobid >exp &&
	flux jobs -no "{user.rabbit_workflow}" $jobid >out &&
	test_cmp exp out &&
	flux jobs -no "{user.rabbits}" $jobid >out &&
	grep -x "rabbit[01]" out
'
test_expect_success 'its workflow says whose it is' '
	flux job info $jobid rabbit_workflow >workflow &&
	jq -e ".metadata.name == \"$(dws_workflow $jobid)\" and .spec.wlmID == \"flux\"
		and .spec.jobID == \"$(flux job id --to=f58plain $jobid)\"
		and .spec.userID == $(id -u) and .spec.groupID == $(id -g)" workflow
'
test_expect_success 'resources were rewritten to hold rabbit capacity' '
	flux job eventlog $jobid >eventlog.out &&
	grep jobspec-update <eventlog.out >update &&
	grep -q "\"ssd\"" update &&
	grep -q "rabbit" update
'
test_expect_success 'gfs2 and raw run too, with two directives in one job' '
	for type in gfs2 raw; do
		flux run -N1 -S dw="#DW jobdw type=$type capacity=5GiB name=one
			#DW jobdw type=xfs capacity=1GiB name=two" \
			bash -c "test -d \"\$DW_JOB_one\" && test -d \"\$DW_JOB_two\"" ||
			return 1
	done &&
	dws_clean
'
test_expect_success 'a job without a directive makes no workflow' '
	flux run -N1 true &&
	test "$(dws_status >status.out && jq .jobs <status.out)" = 0
'
test_expect_success 'twenty jobs at once all end clean' '
	for i in $(seq 20); do
		flux submit -N1 -S dw="$DWS_DIRECTIVE" true || return 1
	done >jobids &&
	for id in $(cat jobids); do
		dws_wait_event $id clean || return 1
	done &&
	dws_clean
'
test_expect_success 'nothing that Kubernetes sent was refused' '
	dws_wait_status ".agent.api.requests > 200 and .agent.api.refused == 0"
'
test_expect_success 'one that a newer one replaces ends, and says so' '
	old=$(cat "$DWS_TMP/agent.pid") &&
	dws_start_agent &&
	test_expect_code 3 wait $old &&
	dws_wait_status ".agent.synced == true" &&
	flux run -N1 -S dw="$DWS_DIRECTIVE" true && dws_clean
'
# listen: what the service manager is told, a line each, until it is told of the end.
listen () {
	flux python -c "
import socket
sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
sock.bind(\"notify\")
print(\"bound\", flush=True)
said = \"\"
while said != \"STOPPING=1\":
    said = sock.recv(100).decode()
    print(said, flush=True)"
}
test_expect_success 'the agent ends well when it is told to' '
	kill "$(cat "$DWS_TMP/agent.pid")" && wait "$(cat "$DWS_TMP/agent.pid")" &&
	dws_wait_status ".agent.attached == false"
'
test_expect_success 'systemd hears that it is ready, is alive, and ends' '
	listen >notes & listener=$! &&
	dws_until grep -q bound notes &&
	NOTIFY_SOCKET=$PWD/notify WATCHDOG_USEC=200000 dws_start_agent &&
	dws_until grep -q WATCHDOG notes &&
	kill "$(cat "$DWS_TMP/agent.pid")" && wait "$(cat "$DWS_TMP/agent.pid")" &&
	wait $listener &&
	printf "%s\n" READY=1 STOPPING=1 WATCHDOG=1 bound >exp &&
	LC_ALL=C sort -u notes >said && test_cmp exp said
'
test_expect_success 'that of another process is not its watchdog' '
	rm notify && { listen >notes & listener=$!; } &&
	dws_until grep -q bound notes &&
	NOTIFY_SOCKET=$PWD/notify WATCHDOG_USEC=1000 WATCHDOG_PID=1 dws_start_agent &&
	flux run -N1 -S dw="$DWS_DIRECTIVE" true && dws_clean &&
	kill "$(cat "$DWS_TMP/agent.pid")" && wait "$(cat "$DWS_TMP/agent.pid")" &&
	wait $listener &&
	test_must_fail grep WATCHDOG notes
'
test_done
