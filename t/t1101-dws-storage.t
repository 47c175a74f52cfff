#!/bin/bash
# dws.so turns breakdowns into resources and Servers: daemons, nodes next to existing
# storage, and layouts that respect the storage of other jobs.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='From breakdowns to resources and Servers'
. "$(dirname "$0")/sharness.sh"
test_under_flux 4

MODULE=$DWS_MODULES/dws.so
AGENT=$DWS_SRCDIR/t/scripts/fake-agent.py

# configure [LINE...]: a [rabbit] table with these lines.
configure () {
	cp test.toml.orig "$DWS_TMP/conf.d/test.toml" &&
	{ echo "[rabbit]"; printf "%s\n" "mapping = \"$PWD/mapping.json\"" "$@"; } \
		>>"$DWS_TMP/conf.d/test.toml" &&
	flux config reload
}
start_agent () {
	flux python "$AGENT" "$@" >>agent.log 2>>agent.err &
	echo $! >agent.pid
	dws_wait_status ".agent.synced == true"
}
stop_agent () {
	kill "$(cat agent.pid)" &&
	{ wait "$(cat agent.pid)" || :; } &&
	dws_wait_status ".agent.attached == false"
}
# refused JOBID PATTERN: in depend, by an exception with this text
refused () {
	dws_wait_event $1 clean >clean &&
	flux job eventlog $1 >eventlog &&
	grep "type=\"dws-create\".*$2" eventlog &&
	test_must_fail grep " alloc" eventlog
}
updated () {
	flux job eventlog --format=json $1 >eventlog.out &&
	jq -es "any(.[];
		.name == \"jobspec-update\" and (.context | $2))" <eventlog.out
}
nodes () {
	flux job info $1 R >R.out &&
	jq -r ".execution.nodelist | join(\",\")" <R.out
}

test_expect_success 'prepare' '
	cp "$DWS_TMP/conf.d/test.toml" test.toml.orig &&
	cat >mapping.json <<-\EOT &&
	{"computes": {"node0": "rabbit0", "node1": "rabbit0",
	              "node2": "rabbit1", "node3": "rabbit1"},
	 "rabbits": {"rabbit0": {"capacity": 1099511627776,
	                         "hostlist": "node[0-1]"},
	             "rabbit1": {"capacity": 1099511627776,
	                         "hostlist": "node[2-3]"}}}
	EOT
	configure &&
	flux module load "$MODULE" &&
	flux jobtap load "$DWS_PLUGINS/dws-jobtap.so"
'
# no_daemons JOBID: it runs, and the prolog has no unit to start
no_daemons () {
	dws_wait_event $1 clean &&
	flux job status $1 &&
	test_must_fail flux job info $1 rabbit_daemons
}
test_expect_success 'without [rabbit.daemons] what is required is left to NNF' '
	start_agent --no-storage --requires copy-offload &&
	jobid=$(flux submit -N1 -S dw="$DWS_DIRECTIVE" true) &&
	no_daemons $jobid
'
test_expect_success 'a faulty table is refused by key' '
	test_must_fail configure "daemons = 5" 2>err &&
	grep "rabbit.daemons: expected a table" err &&
	test_must_fail configure "daemons.copy = 5" 2>err &&
	grep "rabbit.daemons.copy: expected a systemd unit" err
'
test_expect_success 'so is what is not in it' '
	configure "daemons.copy = \"a.service\"" "daemons.move = \"b.service\"" &&
	jobid=$(flux submit -N1 -S dw="$DWS_DIRECTIVE" true) &&
	no_daemons $jobid
'
test_expect_success 'a word of the site is no misspelt one of NNF' '
	jobid=$(flux submit -N1 -S dw="$DWS_DIRECTIVE requires=copy" true) &&
	no_daemons $jobid &&
	test_must_fail flux submit -N1 -S dw="$DWS_DIRECTIVE requires=copy-offlaod" \
		true 2>err &&
	grep "did you mean .copy-offload" err
'
test_expect_success 'the units of known ones are kept for the prolog' '
	configure "daemons.copy-offload = \"a.service\"" &&
	jobid=$(flux submit -N1 -S dw="$DWS_DIRECTIVE" true) &&
	dws_wait_event $jobid clean &&
	flux job status $jobid &&
	echo "[\"a.service\"]" >units.exp &&
	flux job info $jobid rabbit_daemons >daemons.out &&
	jq -c . <daemons.out >units &&
	test_cmp units.exp units
'
test_expect_success 'nodes are next to the storage that a job uses' '
	stop_agent && start_agent --no-storage --next-to rabbit1 &&
	jobid=$(flux submit -N2 -S dw="$DWS_DIRECTIVE" true) &&
	dws_wait_event $jobid clean &&
	flux job status $jobid &&
	updated $jobid "tostring | contains(\"node[2-3]\")" &&
	test "$(nodes $jobid)" = "node[2-3]"
'
test_expect_success 'as well as where the user wants them' '
	jobid=$(flux submit -N1 --requires=rank:1-2 \
		-S dw="$DWS_DIRECTIVE" true) &&
	dws_wait_event $jobid clean &&
	flux job status $jobid &&
	test "$(nodes $jobid)" = node2
'
test_expect_success 'a job whose storage does not exist is refused' '
	stop_agent && start_agent --no-storage --next-to nothing &&
	jobid=$(flux submit -N1 -S dw="$DWS_DIRECTIVE" true) &&
	refused $jobid "Servers keep does not exist"
'
test_expect_success 'one whose storage no node can reach as well' '
	stop_agent && start_agent --no-storage --next-to elsewhere &&
	jobid=$(flux submit -N1 -S dw="$DWS_DIRECTIVE" true) &&
	refused $jobid "no compute node has physical access"
'
test_done
