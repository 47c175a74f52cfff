#!/bin/bash
# dws.so without Kubernetes: configuration, access, and a stand-in for the
# agent that has a cluster of its own.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='The broker module alone'
. "$(dirname "$0")/sharness.sh"
test_under_flux 4

MODULE=$DWS_MODULES/dws.so
AGENT=$DWS_SRCDIR/t/scripts/fake-agent.py

# configure [LINE...]: a [rabbit] table with these lines.
configure () {
	cp test.toml.orig "$DWS_TMP/conf.d/test.toml" &&
	{ echo "[rabbit]"; printf "%s\n" "$@"; } >>"$DWS_TMP/conf.d/test.toml"
}
start_agent () {
	flux python "$AGENT" "$@" >>agent.log 2>>agent.err &
	echo $! >"$DWS_TMP/agent.pid"
	dws_wait_status ".agent.synced == true"
}
stop_agent () {
	kill "$(cat "$DWS_TMP/agent.pid")" &&
	{ wait "$(cat "$DWS_TMP/agent.pid")" || :; } &&
	dws_wait_status ".agent.attached == false"
}
exception () {
	dws_wait_event -m type=$2 $1 exception >exception
}

test_expect_success 'prepare' '
	cp "$DWS_TMP/conf.d/test.toml" test.toml.orig &&
	cat >mapping.json <<-\EOT
	{"computes": {"node0": "rabbit0", "node1": "rabbit0",
	              "node2": "rabbit1", "node3": "rabbit1"},
	 "rabbits": {"rabbit0": {"capacity": 1099511627776,
	                         "hostlist": "node[0-1]"},
	             "rabbit1": {"capacity": 1099511627776,
	                         "hostlist": "node[2-3]"}}}
	EOT
'
test_expect_success 'without rabbit.mapping it does not load' '
	configure && flux config reload &&
	test_must_fail flux module load "$MODULE" &&
	flux dmesg >dmesg && grep "rabbit.mapping: is required" dmesg
'
test_expect_success 'what it does not know keeps it from nothing, and is told' '
	configure "mapping = \"$PWD/mapping.json\"" "tc_timeuot = 5" \
		"nnf_api_version = \"v1alpha1\"" "restrict_persistent = true" &&
	flux config reload &&
	flux module load "$MODULE" &&
	flux dmesg >dmesg &&
	grep "rabbit.tc_timeuot: unknown key" dmesg &&
	grep "rabbit.nnf_api_version: has no effect" dmesg &&
	grep "rabbit.restrict_persistent: is now called" dmesg &&
	flux module remove dws
'
test_expect_success 'two words for one thing have to agree' '
	configure "mapping = \"$PWD/mapping.json\"" "restrict_persistent = false" \
		"restrict_persistent_creation = true" &&
	flux config reload &&
	test_must_fail flux module load "$MODULE" &&
	flux dmesg >dmesg &&
	grep "rabbit.restrict_persistent: is the old name" dmesg
'
test_expect_success 'it loads' '
	configure "mapping = \"$PWD/mapping.json\"" && flux config reload &&
	flux module load "$MODULE"
'
test_expect_success 'a faulty value is refused by name, the old one stays' '
	while IFS="|" read line error; do
		configure "mapping = \"$PWD/mapping.json\"" "$line" &&
		test_must_fail flux config reload 2>reload.err &&
		grep "$error" reload.err || return 1
	done <<-\EOT &&
	tc_timeout = "ten"|rabbit.tc_timeout: expected seconds
	setup_timeout = true|rabbit.setup_timeout: expected seconds
	setup_timeout = "5x"|rabbit.setup_timeout: expected seconds
	restrict_persistent_creation = 1|rabbit.restrict_persistent_creation: expected true or false
	tc_timeuot = 5|rabbit.tc_timeuot: unknown key
	save_datamovements = -1|rabbit.save_datamovements: expected an integer >= 0
	policy = 5|rabbit.policy: expected a table
	policy.maximums.xfs = "big"|rabbit.policy.maximums.xfs: expected GiB
	policy.maximums.ext4 = 5|rabbit.policy.maximums.ext4: unknown
	EOT
	configure "mapping = \"$PWD/none.json\"" &&
	test_must_fail flux config reload 2>reload.err &&
	grep "rabbit.mapping: .*none.json" reload.err &&
	configure "mapping = \"$PWD/mapping.json\"" "tc_timeout = \"1.5m\"" \
		"save_datamovements = 1" &&
	flux config reload
'
test_expect_success 'malformed requests are refused' '
	test_must_fail rpc dws.create "{}" 2>err &&
	grep "^jobid: is required" err &&
	test_must_fail rpc dws.create "{\"jobid\": 5, \"userid\": 1, \
		\"dw_directives\": [], \"resources\": [], \
		\"failure_tolerance\": -1}" 2>err &&
	grep "^failure_tolerance: expected" err &&
	test_must_fail rpc dws.setup "{}" &&
	test_must_fail rpc dws.post_run "{\"jobid\": 5}" &&
	test_must_fail rpc dws.agent "{\"version\": 2}" &&
	test_must_fail rpc dws.report "{\"reports\": []}" 2>err &&
	grep "not attached" err &&
	test_must_fail rpc dws.status "{\"jobid\": 5}"
'
test_expect_success 'only the owner may create persistent file systems' '
	test_must_fail rpc dws.create "{\"jobid\": 5, \"userid\": 4242, \
		\"dw_directives\": [\"#DW create_persistent type=lustre \
capacity=1TiB name=keep\"], \"resources\": [], \
		\"failure_tolerance\": 0}" 2>err &&
	grep "only the instance owner" err
'
test_expect_success 'a job waits while there is no agent' '
	flux jobtap load "$DWS_PLUGINS/dws-jobtap.so" &&
	jobid=$(flux submit -N2 -S dw="$DWS_DIRECTIVE" true) &&
	dws_wait_status ".synced and .phases.depend == 1" &&
	rpc dws.status "{\"jobid\": \"$jobid\"}" >status &&
	jq -e ".phase == \"depend\" and .waiting == \"the workflow to be created\"" status
'
test_expect_success 'and goes on when one attaches' '
	start_agent --no-storage &&
	dws_wait_event $jobid clean &&
	flux job status $jobid &&
	dws_wait_status ".jobs == 0"
'
test_expect_success 'the job has a record, without foreign variables' '
	flux job info $jobid rabbit_workflow >workflow.out &&
	jq -e ".kind == \"Workflow\" and
		.spec.desiredState == \"DataOut\"" <workflow.out &&
	for state in proposal setup datain prerun postrun dataout teardown; do
		flux job info $jobid rabbit_${state}_timing >timing || return 1
	done &&
	flux job eventlog $jobid >eventlog &&
	grep "dws_environment.*DW_JOB_scratch" eventlog &&
	test_must_fail grep "dws_environment.*PATH" eventlog
'
test_expect_success 'a failed data movement is recorded first' '
	flux job info $jobid rabbit_datamovements >movements &&
	jq -e "length == 1 and .[0].status.status == \"Failed\"" movements
'
test_expect_success 'the record is where services keep theirs, too' '
	dir=$(flux job id --to=kvs $jobid).data.dws &&
	flux kvs get $dir.rabbit_teardown_timing &&
	flux kvs get $dir.rabbit_workflow >kvs.out &&
	jq -e .spec.jobID <kvs.out
'
test_expect_success 'a newer agent replaces the older one' '
	old=$(cat "$DWS_TMP/agent.pid") &&
	start_agent --no-storage &&
	{ wait $old || :; } &&
	grep "replaced by a newer agent" agent.err
'
test_expect_success 'who says so gets several commands at once, and nobody else' '
	test_must_fail grep "commands at once" agent.err &&
	start_agent --no-storage --hello "{\"version\": 2, \"batches\": true}" &&
	jobid=$(flux submit -N2 -S dw="$DWS_DIRECTIVE" true) &&
	dws_wait_event $jobid clean &&
	flux job status $jobid &&
	grep "2 commands at once" agent.err &&
	start_agent --no-storage
'
# hello JSON: what an agent that says so is told first; ends when it may stay.
hello () {
	rm -f hello.out hello.err
	flux python "$AGENT" --count 1 --hello "$1" >hello.out 2>hello.err &
	echo $! >"$DWS_TMP/hello.pid"
	dws_until grep -q . hello.out hello.err &&
	{ kill "$(cat "$DWS_TMP/hello.pid")" || :; } &&
	rm "$DWS_TMP/hello.pid"
}
test_expect_success 'a newer agent that speaks an older version, too, is told that' '
	hello "{\"version\": 9, \"oldest\": 2, \"release\": \"9.9\"}" &&
	head -n1 hello.out | jq -e ".op == \"hello\" and .version == 2" &&
	start_agent --no-storage
'
test_expect_success 'one that speaks no version of ours is refused, with what to update' '
	hello "{\"version\": 9, \"oldest\": 8, \"release\": \"9.9\"}" &&
	grep "agent (release 9.9) speaks versions 8 to 9 .*update the module" hello.err &&
	hello "{\"version\": 1}" &&
	grep "agent (release unknown) .*update the agent" hello.err
'
future_agent () {
	flux python -c "import flux_k8s.agent as agent
from flux_k8s.main import main
agent.PROTOCOL_NEWEST = agent.PROTOCOL_OLDEST = 9
main()" >future.log 2>&1 &
	echo $! >"$DWS_TMP/future.pid"
}
test_expect_success 'the agent waits for another module then' '
	future_agent &&
	dws_until grep "update the module, trying again until another is there" future.log &&
	kill "$(cat "$DWS_TMP/future.pid")" &&
	wait "$(cat "$DWS_TMP/future.pid")" &&
	rm "$DWS_TMP/future.pid"
'
test_expect_success 'a list older than a result takes no workflow away' '
	stop_agent && start_agent --no-storage --relist &&
	: >agent.log &&
	jobid=$(flux submit -N2 -S dw="$DWS_DIRECTIVE" true) &&
	dws_wait_event $jobid clean &&
	grep "\"op\": \"create\"" agent.log >created &&
	test "$(wc -l <created)" = 1 &&
	grep "\"desiredState\": \"Teardown\"" agent.log
'
# The agent does not report a change again that the response to a patch contains.
test_expect_success 'what is shown in the answer to any patch is learned' '
	configure "mapping = \"$PWD/mapping.json\"" "setup_timeout = 0.2" &&
	flux config reload &&
	stop_agent && : >agent.log &&
	start_agent --no-storage --hold Setup --lagging rabbit1 --shown &&
	jobid=$(flux submit -N3 -S dw="$DWS_DIRECTIVE" \
		-S dw_failure_tolerance=1 true) &&
	dws_wait_event $jobid clean &&
	flux job status $jobid &&
	exception $jobid dws-node-failure &&
	grep node2 exception &&
	grep failed-nodes agent.log &&
	test_must_fail grep forceReady agent.log &&
	flux resource undrain node2 &&
	configure "mapping = \"$PWD/mapping.json\"" && flux config reload
'
test_expect_success 'what the API server refuses reaches the user' '
	stop_agent && start_agent --refuse "no such word" &&
	jobid=$(flux submit -N2 -S dw="$DWS_DIRECTIVE" true) &&
	exception $jobid dws-create &&
	grep "no such word" exception &&
	dws_wait_event $jobid clean
'
for state in Proposal Setup DataIn PreRun PostRun DataOut; do
	test_expect_success "an error in $state is raised once, the job ends" '
		stop_agent && start_agent --no-storage --error $state &&
		jobid=$(flux submit -N2 -S dw="$DWS_DIRECTIVE" true) &&
		dws_wait_event $jobid clean &&
		flux job eventlog $jobid >eventlog &&
		grep "type=\"dws-.*made to fail" eventlog >raised &&
		test "$(wc -l <raised)" = 1
	'
done
test_expect_success 'the module unloads with a job held' '
	stop_agent && start_agent --no-storage --hold Setup &&
	jobid=$(flux submit -N2 -S dw="$DWS_DIRECTIVE" true) &&
	dws_wait_status ".states.Setup == 1" &&
	flux module remove dws &&
	flux cancel $jobid &&
	flux module load "$MODULE" &&
	start_agent --no-storage &&
	dws_wait_event $jobid clean
'
test_done
