#!/bin/bash
# The Kubernetes API in trouble: jobs wait and say so, the log stays readable,
# and what the agent goes by can be changed while it runs.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Trouble with the Kubernetes API'
. "$(dirname "$0")/sharness.sh"
test_under_flux 4

wait_note () {
	flux python "$DWS_SRCDIR/t/scripts/wait_note.py" "$@"
}
# set_key KEY VALUE: in the table [rabbit], in place of what it was.
set_key () {
	sed -i "/^$1 = /d; s|^\[rabbit\]\$|&\n$1 = $2|" \
		"$DWS_TMP/conf.d/test.toml" &&
	flux config reload
}
# forbidden: what the log says of that; not at once, as the API server was away
forbidden () {
	flux dmesg >dmesg.out &&
	grep "create: .*forbidden" <dmesg.out >lines
}
# too_early: how many requests that were refused came again before Retry-After.
too_early () {
	dws_ctl state >state.out && jq .early state.out
}
# scrape: the metrics, from the socket.
scrape () {
	flux python -c "
import http.client, socket
c = http.client.HTTPConnection(\"local\", timeout=20)
c.sock = socket.socket(socket.AF_UNIX)
c.sock.connect(\"metrics\")
c.request(\"GET\", \"/metrics\")
print(c.getresponse().read().decode())"
}

test_expect_success 'load everything' '
	dws_setup
'
test_expect_success 'a job whose requests are refused for now says why' '
	dws_ctl api --status 503 --count 1000000 &&
	jobid=$(dws_submit true) &&
	wait_note $jobid "creating a workflow, Kubernetes has trouble: simulated" &&
	flux rabbit status >out &&
	grep "Workflows   0, 1 to be made" out
'
test_expect_success 'and so does its status' '
	flux python "$DWS_SRCDIR/t/scripts/rpc.py" dws.status \
		"{\"jobid\": \"$jobid\"}" >status &&
	jq -e ".note | test(\"has trouble: simulated fault\")" status
'
test_expect_success 'it goes on when that is over' '
	dws_ctl api --clear &&
	dws_wait_event $jobid clean && flux job status $jobid && dws_clean
'
test_expect_success 'while the API server is away, jobs wait for it' '
	kill -STOP "$(cat "$DWS_TMP/agent.pid")" &&
	for i in $(seq 8); do
		dws_submit true || return 1
	done >jobids &&
	sed -E "s|https?://[^ \",]*|http://127.0.0.1:1|" kubeconfig >dead &&
	cp kubeconfig alive &&
	cp dead kubeconfig &&
	set_key metrics "\"unix:$PWD/metrics.before\"" &&
	kill -CONT "$(cat "$DWS_TMP/agent.pid")" &&
	wait_note $(tail -n1 jobids) "waiting for the Kubernetes API server"
'
test_expect_success 'the outage is a few lines in the log, not one per job' '
	grep -c "refused\|reached" agent.log >count &&
	test "$(cat count)" -lt 10
'
test_expect_success 'when it is back, all go on' '
	cp alive kubeconfig &&
	for id in $(cat jobids); do
		dws_wait_event $id clean && flux job status $id || return 1
	done &&
	dws_clean
'
test_expect_success 'many jobs of which each third request is refused for now' '
	too_early >before &&
	dws_ctl api --status 429 --rate 0.33 &&
	flux submit --cc=1-40 -N1 -S dw="$DWS_DIRECTIVE" true >jobids &&
	for id in $(cat jobids); do
		dws_wait_event $id clean && flux job status $id || return 1
	done &&
	dws_ctl api --clear &&
	dws_clean &&
	dws_wait_status ".agent.api.errors.\"429\" >= 40
		and .agent.api.queue == {running: 0, repeated: 0, queued: 0}"
'
test_expect_success 'no request came again before it had been asked to' '
	too_early >after && test_cmp before after
'
test_expect_success 'many jobs whose API server goes away for a moment' '
	flux submit --cc=1-40 -N1 -S dw="$DWS_DIRECTIVE" true >jobids &&
	dws_ctl api --away 1 &&
	for id in $(cat jobids); do
		dws_wait_event $id clean && flux job status $id || return 1
	done &&
	dws_until dws_clean
'
test_expect_success 'a token that is not valid any more is read again' '
	dws_ctl hold PreRun &&
	jobid=$(dws_submit true) &&
	dws_ctl wait-state $(dws_workflow $jobid) PreRun \
		--timeout $DWS_LIMIT &&
	dws_ctl token wlm --keep-file &&
	dws_ctl release PreRun &&
	dws_wait_status ".agent.api.errors.\"401\" >= 2" &&
	dws_ctl token wlm &&
	dws_wait_event $jobid clean && flux job status $jobid && dws_clean
'
test_expect_success 'a right that is missing is logged for a few jobs only' '
	dws_ctl deny workflows:create &&
	flux submit --cc=1-12 -N1 -S dw="$DWS_DIRECTIVE" true >jobids &&
	wait_note $(tail -n1 jobids) "has trouble: workflows.* is forbidden" &&
	dws_wait_status ".agent.api.errors.\"403\" >= 12" &&
	dws_until forbidden &&
	test "$(wc -l <lines)" -le 5 &&
	grep "fluxjob-[0-9]*): create: " lines
'
test_expect_success 'and with the right they run' '
	dws_ctl deny &&
	for id in $(cat jobids); do
		dws_wait_event $id clean && flux job status $id || return 1
	done
'
test_expect_success 'dws.status has latencies, errors and retries' '
	dws_wait_status ".agent.api.latency.patch.p99 > 0
		and .agent.api.requests > 100 and .agent.api.errors.\"503\" > 0
		and .agent.api.retries > 0
		and .agent.api.queue == {running: 0, repeated: 0, queued: 0}"
'
test_expect_success 'metrics are served from when they are configured' '
	test_must_fail scrape 2>err &&
	set_key metrics "\"unix:$PWD/metrics\"" &&
	dws_until test -S metrics &&
	test "$(stat -c %a metrics)" = 600 &&
	dws_wait_status ".agent.synced" &&
	scrape >text &&
	grep "^flux_dws_up 1" text &&
	grep "^flux_dws_kubernetes_up 1" text &&
	grep "^flux_dws_jobs{phase=\"running\"} 0" text &&
	grep "^flux_dws_api_request_seconds_bucket{le=\"+Inf\",verb=\"patch\"}" text
'
test_expect_success 'a running instance is checked' '
	flux-coral2-dws --check-config &&
	cp kubeconfig good && echo "nonsense" >kubeconfig &&
	test_must_fail flux-coral2-dws --check-config 2>err &&
	grep "^rabbit.kubeconfig: " err &&
	cp good kubeconfig
'
test_expect_success 'what is not good is refused and changes nothing' '
	test_must_fail set_key metrics "\"0.0.0.0:9464\"" 2>err &&
	grep "rabbit.metrics: expected 127.0.0.1:PORT" err &&
	flux-coral2-dws --check-config &&
	scrape >text
'
test_done
