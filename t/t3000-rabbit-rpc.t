#!/bin/bash
# dws.status lists jobs and rabbits, for the instance owner and for a guest;
# dws.rabbit enables and disables rabbits.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='The requests behind flux rabbit'
. "$(dirname "$0")/sharness.sh"
test_under_flux 4

# says FILE FILTER...: the filter is true of it
says () {
	file=$1 &&
	shift &&
	jq -e "$@" <$file >/dev/null || { cat $file; return 1; }
}

test_expect_success 'load everything' '
	dws_setup
'
test_expect_success 'every rabbit is listed, with what it has' '
	rpc dws.status "{\"list\": \"rabbits\"}" >out &&
	says out "[.rabbits[].name] == [\"rabbit0\", \"rabbit1\"]" &&
	says out "all(.rabbits[]; .state == \"Ready\" and .free == .capacity
		and .used == 0 and .links == {\"Ready\": 2} and .broken == {})" &&
	says out ".rabbits[1].nodes == \"node[2-3]\""
'
test_expect_success 'a broken link and a bad rabbit are told' '
	dws_ctl link node1 down && dws_ctl rabbit rabbit1 down &&
	dws_wait_status ".rabbits.states.Ready == 1" &&
	rpc dws.status "{\"list\": \"rabbits\"}" >out &&
	says out ".rabbits[0].broken == {\"node1\": \"Offline\"}" &&
	says out ".rabbits[1].state == \"Offline\"" &&
	dws_ctl link node1 up && dws_ctl rabbit rabbit1 up &&
	dws_wait_status ".rabbits.states.Ready == 2"
'
test_expect_success 'jobs are listed with their rabbits, in pages' '
	dws_ctl hold PreRun &&
	for i in 1 2 3; do
		flux submit -N1 -S dw="$DWS_DIRECTIVE" true || return 1
	done >jobids &&
	dws_wait_status ".states.PreRun == 3" &&
	rpc dws.status "{\"list\": \"jobs\", \"max\": 2}" >first &&
	says first "(.jobs | length) == 2 and .next == .jobs[1].id" &&
	rpc dws.status "{\"list\": \"jobs\", \"after\": $(jq .next first)}" >rest &&
	says rest "(.jobs | length) == 1 and .next == null" &&
	says rest ".jobs[0] | .phase == \"prolog\" and .rabbits != \"\"
		and .workflow.desired == \"PreRun\" and .workflow.ready == false
		and .workflow.since > 0" &&
	jq ".jobs[].id" first rest >listed &&
	flux job id --to=dec $(cat jobids) >submitted &&
	sort -n submitted >sorted &&
	test_cmp sorted listed
'
test_expect_success 'the summary has the oldest, and the space' '
	dws_status >out &&
	says out --slurpfile id listed ".oldest.id as \$o | \$id | any(. == \$o)" &&
	says out ".rabbits.used > 0 and .rabbits.count == 2"
'
test_expect_success 'a single job tells where its space is' '
	rpc dws.status "{\"jobid\": $(head -1 listed)}" >out &&
	says out "(.space | length) == 1 and (.directives | length) == 1"
'
test_expect_success 'a guest sees no job of others, nor who uses a rabbit' '
	as_guest rpc dws.status >out &&
	says out ".jobs == 0 and .workflows == 0 and .oldest == null" &&
	as_guest rpc dws.status "{\"list\": \"jobs\"}" >out &&
	says out ".jobs == []" &&
	as_guest rpc dws.status "{\"list\": \"rabbits\"}" >out &&
	says out "all(.rabbits[]; keys == [\"capacity\", \"free\", \"name\", \"nodes\",
		\"state\"])" &&
	test_must_fail as_guest rpc dws.status "{\"jobid\": $(head -1 listed)}"
'
test_expect_success 'an unknown list is refused' '
	test_must_fail rpc dws.status "{\"list\": \"nodes\"}"
'
test_expect_success 'a rabbit is disabled with a reason, and enabled' '
	rpc dws.rabbit "{\"rabbit\": \"rabbit0\", \"state\": \"Disabled\",
		\"reason\": \"a fan\"}" &&
	dws_wait_status ".rabbits.states.Disabled == 1" &&
	rpc dws.status "{\"list\": \"rabbits\"}" >out &&
	says out ".rabbits[0] | .state == \"Disabled\" and .reason == \"a fan\"" &&
	rpc dws.rabbit "{\"rabbit\": \"rabbit0\", \"state\": \"Enabled\"}" &&
	dws_wait_status ".rabbits.states.Ready == 2" &&
	rpc dws.status "{\"list\": \"rabbits\"}" >out &&
	says out ".rabbits[0].reason == \"\""
'
test_expect_success 'not by a guest, and only what is there' '
	test_must_fail as_guest rpc dws.rabbit \
		"{\"rabbit\": \"rabbit0\", \"state\": \"Disabled\"}" &&
	test_must_fail rpc dws.rabbit \
		"{\"rabbit\": \"rabbit7\", \"state\": \"Disabled\"}" 2>err &&
	grep "no such rabbit" err &&
	test_must_fail rpc dws.rabbit \
		"{\"rabbit\": \"rabbit0\", \"state\": \"Broken\"}" 2>err &&
	grep "Enabled or Disabled" err
'
test_expect_success 'nor without an agent' '
	dws_kill_agent &&
	test_must_fail rpc dws.rabbit \
		"{\"rabbit\": \"rabbit0\", \"state\": \"Disabled\"}" 2>err &&
	grep "no agent is attached" err &&
	dws_start_agent
'
test_expect_success 'all ends clean' '
	dws_ctl release PreRun &&
	dws_clean
'
test_done
