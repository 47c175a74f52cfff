#!/bin/bash
# Rabbits and links break and are mended: who is told, and what jobs get.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Health of rabbits under sched-rabbit'
. "$(dirname "$0")/sharness.sh"
test_under_flux 4

LINK_REASON="rabbit: lost its PCIe link"

# settled FILTER: all have been told of what is, and the filter is true of it
settled () {
	dws_wait_status ".health.settled and (.health | $1)"
}
# rabbits: the names of those that the scheduler takes to be up
rabbits () {
	rpc sched-rabbit.stats-get >rpc.out &&
	jq -r ".rabbits | to_entries[] | select(.value.up) | .key" <rpc.out
}
# drained_for REASON: the nodes that are
drained_for () {
	rpc resource.status >rpc.out &&
	jq -r ".drain | to_entries[]
		| select(.value.reason == \"$1\") | .key" <rpc.out
}
# may_use RANKS N: a job that avoids badrabbit gets N of these nodes
may_use () {
	id=$(flux submit -N$2 --requires="-badrabbit and rank:$1" true) &&
	dws_wait_event $id clean
}
# configure LINE...: the table [rabbit] with these lines more
configure () {
	{ cat test.toml.orig; printf "%s\n" "$@"; } >"$DWS_TMP/conf.d/test.toml" &&
	flux config reload
}

test_expect_success 'the scheduler hears of the rabbits' '
	dws_setup &&
	cp "$DWS_TMP/conf.d/test.toml" test.toml.orig &&
	settled ".scheduler == \"sched-rabbit\" and .down == []" &&
	printf "rabbit0\nrabbit1\n" >expected &&
	rabbits >up &&
	test_cmp expected up
'
test_expect_success 'a rabbit that is down is not used, its nodes are marked' '
	dws_ctl rabbit rabbit0 down &&
	settled ".down == [\"rabbit0\"] and .badrabbit == \"node[0-1]\"" &&
	test "$(rabbits)" = rabbit1 &&
	test "$(drained_for "$LINK_REASON")" = ""
'
test_expect_success 'rabbit jobs avoid them, others do not' '
	jobid=$(flux submit -N2 -S dw="$DWS_DIRECTIVE" true) &&
	flux run -N4 true &&
	dws_wait_event $jobid clean &&
	test "$(flux jobs -no "{nodelist}" $jobid)" = "node[2-3]" &&
	flux job status $jobid &&
	flux job info $jobid jobspec >jobspec.out &&
	jq -e ".attributes.system | has(\"constraints\") | not" jobspec.out
'
test_expect_success 'a job that needs them waits until they are back' '
	jobid=$(flux submit -N4 -S dw="$DWS_DIRECTIVE" true) &&
	dws_wait_event $jobid priority &&
	flux run -N2 -S dw="$DWS_DIRECTIVE" true &&
	test "$(flux jobs -no "{state}" $jobid)" = SCHED &&
	dws_ctl rabbit rabbit0 up &&
	dws_wait_event $jobid clean &&
	flux job status $jobid &&
	settled ".down == [] and .badrabbit == \"\""
'
test_expect_success 'so does one whose rabbit goes down when it has its nodes' '
	blocker=$(flux submit -N4 --exclusive sleep inf) &&
	dws_wait_event $blocker start &&
	jobid=$(flux submit -N4 -S dw="$DWS_DIRECTIVE" true) &&
	dws_wait_event $jobid priority &&
	dws_kill_agent &&
	dws_ctl rabbit rabbit0 down &&
	flux cancel $blocker &&
	dws_wait_event $jobid prolog-start &&
	dws_start_agent &&
	settled ".down == [\"rabbit0\"]" &&
	dws_ctl rabbit rabbit0 up &&
	dws_wait_event $jobid clean &&
	flux job status $jobid &&
	settled ".down == [] and .badrabbit == \"\""
'
# rabbit_lost TOLERANCE: a job whose rabbit0 is down when its storage is to be made.
rabbit_lost () {
	blocker=$(flux submit -N4 --exclusive sleep inf) &&
	dws_wait_event $blocker start &&
	jobid=$(flux submit -N4 -S dw="$DWS_DIRECTIVE" \
		-S dw_failure_tolerance=$1 true) &&
	dws_wait_event $jobid priority &&
	dws_kill_agent &&
	dws_ctl rabbit rabbit0 down &&
	flux cancel $blocker &&
	dws_wait_event $jobid prolog-start &&
	dws_start_agent
}
test_expect_success 'a job that can do without its nodes goes on when it stays down' '
	echo "tc_timeout = \"1s\"" >>"$DWS_TMP/conf.d/test.toml" &&
	flux config reload &&
	dws_ctl hold PostRun &&
	rabbit_lost 2 &&
	dws_wait_event $jobid finish &&
	flux job eventlog $jobid >eventlog &&
	grep "exception.*dws-node-failure.*severity=1.*node\[0-1\]" eventlog &&
	test_must_fail grep severity=0 eventlog &&
	dws_k8s get computes $(dws_workflow $jobid) >computes.out &&
	jq -e "[.data[].name] | sort == [\"node2\", \"node3\"]" computes.out &&
	dws_k8s get servers $(dws_workflow $jobid)-0 >servers.out &&
	jq -e "[.spec.allocationSets[0].storage[].name] == [\"rabbit1\"]" servers.out &&
	dws_ctl release PostRun &&
	dws_wait_event $jobid clean
'
test_expect_success 'its nodes are marked with the rabbit, and not drained' '
	settled ".badrabbit == \"node[0-1]\"" &&
	test "$(flux resource drain -no "{nodelist}")" = "" &&
	dws_ctl rabbit rabbit0 up &&
	settled ".down == [] and .badrabbit == \"\""
'
# without_them: the nodes are left out of the job's Computes
without_them () {
	dws_k8s get computes $(dws_workflow $jobid) >computes.out &&
	jq -e "[.data[].name] | sort == [\"node2\", \"node3\"]" computes.out
}
test_expect_success 'a job is told of them also if the module is loaded again meanwhile' '
	dws_ctl deny servers:patch &&
	rabbit_lost 2 &&
	dws_until without_them &&
	flux module remove dws &&
	dws_ctl deny &&
	flux module load "$DWS_MODULES/dws.so" &&
	dws_wait_event $jobid clean && flux job status $jobid &&
	flux job eventlog $jobid >eventlog &&
	grep "exception.*dws-node-failure.*severity=1.*node\[0-1\]" eventlog &&
	test "$(flux resource drain -no "{nodelist}")" = "" &&
	dws_ctl rabbit rabbit0 up &&
	settled ".down == [] and .badrabbit == \"\""
'
test_expect_success 'a job that can do without one node only fails' '
	rabbit_lost 1 &&
	dws_wait_event $jobid clean &&
	flux job eventlog $jobid >eventlog &&
	grep "exception.*dws-setup.*severity=0.*is not Ready" eventlog &&
	dws_ctl rabbit rabbit0 up &&
	settled ".down == [] and .badrabbit == \"\"" &&
	sed -i "/^tc_timeout/d" "$DWS_TMP/conf.d/test.toml" &&
	flux config reload
'
test_expect_success 'a node that loses its link is drained and marked' '
	dws_ctl link node1 down &&
	settled ".badrabbit == \"node1\"" &&
	test "$(drained_for "$LINK_REASON")" = 1
'
test_expect_success 'and undrained by us when it is back' '
	dws_ctl link node1 up &&
	settled ".badrabbit == \"\"" &&
	test "$(drained_for "$LINK_REASON")" = ""
'
test_expect_success 'what an admin drained stays so' '
	flux resource drain node2 disk &&
	dws_ctl link node2 down &&
	settled ".badrabbit == \"node2\"" &&
	dws_ctl link node2 up &&
	settled ".badrabbit == \"\"" &&
	test "$(drained_for disk)" = 2 &&
	flux resource undrain node2
'
test_expect_success 'what an admin undrains as well' '
	dws_ctl link node1 down &&
	settled ".badrabbit == \"node1\"" &&
	flux resource undrain node1 &&
	dws_ctl link node3 down &&
	settled ".badrabbit == \"node[1,3]\"" &&
	test "$(drained_for "$LINK_REASON")" = 3 &&
	dws_ctl link node1 up &&
	dws_ctl link node3 up &&
	settled ".badrabbit == \"\""
'
test_expect_success 'drain_compute_nodes and soft_drain say what to do' '
	dws_ctl link node1 down &&
	settled ".badrabbit == \"node1\"" &&
	test "$(drained_for "$LINK_REASON")" = 1 &&
	configure "drain_compute_nodes = false" &&
	settled ".badrabbit == \"node1\"" &&
	test "$(drained_for "$LINK_REASON")" = "" &&
	configure "drain_compute_nodes = false" "soft_drain = false" &&
	settled ".badrabbit == \"\"" &&
	configure "soft_drain = false" &&
	settled ".badrabbit == \"\"" &&
	test "$(drained_for "$LINK_REASON")" = 1
'
test_expect_success 'a rabbit job avoids a node that is marked only, others do not' '
	configure "drain_compute_nodes = false" &&
	settled ".badrabbit == \"node1\"" &&
	test "$(drained_for "$LINK_REASON")" = "" &&
	jobid=$(flux submit -N3 -S dw="$DWS_DIRECTIVE" true) &&
	dws_wait_event $jobid alloc &&
	test "$(flux jobs -no "{nodelist}" $jobid)" = "node[0,2-3]" &&
	dws_wait_event $jobid clean && flux job status $jobid &&
	flux run -N4 true
'
test_expect_success 'drain_queues says where' '
	configure "drain_queues = []" &&
	settled ".badrabbit == \"node1\"" &&
	test "$(drained_for "$LINK_REASON")" = "" &&
	configure "drain_queues = [\"batch\"]" "[queues.batch]" &&
	settled ".badrabbit == \"node1\"" &&
	test "$(drained_for "$LINK_REASON")" = 1
'
test_expect_success 'a virtual queue has the nodes of its parent' '
	flux resource undrain node1 &&
	configure "drain_queues = [\"quick\"]" "[queues.quick]" "parent = \"fast\"" \
		"[queues.fast]" "requires = [\"fast\"]" &&
	settled ".badrabbit == \"node1\"" &&
	test "$(drained_for "$LINK_REASON")" = "" &&
	configure "drain_queues = [\"quick\"]" "[queues.quick]" "parent = \"batch\"" \
		"[queues.batch]" &&
	settled ".badrabbit == \"node1\"" &&
	test "$(drained_for "$LINK_REASON")" = 1
'
test_expect_success 'wrong values are refused by name' '
	test_must_fail configure "drain_queues = [\"nowhere\"]" 2>err &&
	grep "rabbit.drain_queues: there is no queue nowhere" err &&
	test_must_fail configure "drain_queues = \"batch\"" 2>err &&
	grep "rabbit.drain_queues: expected an array of texts, got \"batch\"" err &&
	test_must_fail configure "drain_queues = [5]" 2>err &&
	grep "rabbit.drain_queues: expected an array of texts" err &&
	test_must_fail configure "drain_queues = [\"batch\"]" \
		"[queues.batch]" "requires = [5]" 2>err &&
	grep requires err &&
	test_must_fail configure "drain_compute_nodes = 1" 2>err &&
	grep "rabbit.drain_compute_nodes: expected true or false, got 1" err &&
	test_must_fail configure "soft_drain = \"no\"" 2>err &&
	grep "rabbit.soft_drain: expected true or false" err &&
	configure
'
test_expect_success 'a scheduler that is loaded again is told again' '
	dws_ctl rabbit rabbit1 down &&
	settled ".down == [\"rabbit1\"]" &&
	flux module remove sched-rabbit &&
	dws_wait_status ".health.scheduler == null" &&
	flux module load "$DWS_MODULES/sched-rabbit.py" &&
	settled ".scheduler == \"sched-rabbit\"" &&
	test "$(rabbits)" = rabbit0 &&
	may_use 0-3 1 &&
	test "$(flux jobs -no "{nodelist}" $id)" = node0
'
test_expect_success 'what changes while the agent is away is made up for' '
	dws_kill_agent &&
	dws_ctl rabbit rabbit1 up &&
	dws_ctl rabbit rabbit0 down &&
	dws_start_agent &&
	settled ".down == [\"rabbit0\"] and .badrabbit == \"node[0-1]\"" &&
	test "$(rabbits)" = rabbit1
'
test_expect_success 'and while the module is away: nothing stays behind' '
	flux module remove dws &&
	dws_ctl rabbit rabbit0 up &&
	dws_ctl link node1 up &&
	dws_ctl link node2 down &&
	flux module load "$DWS_MODULES/dws.so" &&
	dws_wait_status ".agent.synced" &&
	settled ".down == [] and .badrabbit == \"node2\"" &&
	rabbits >up &&
	test_cmp expected up &&
	test "$(drained_for "$LINK_REASON")" = 2 &&
	may_use 0-2 2 &&
	dws_ctl link node2 up &&
	settled ".badrabbit == \"\"" &&
	test "$(drained_for "$LINK_REASON")" = "" &&
	dws_clean
'
# suspect FILTER: what flux rabbit says of rabbit1
suspect () {
	flux rabbit list --json rabbit1 >list.out &&
	jq -e ".rabbits[0] | $1" list.out
}
test_expect_success 'a rabbit whose controller is dead is suspect' '
	configure "tc_timeout = \"1d\"" &&
	dws_ctl rabbit rabbit1 dead &&
	dws_ctl child-timeout 1 &&
	jobid=$(flux submit -N4 -S dw="$DWS_DIRECTIVE" true) &&
	dws_until suspect ".state == \"Suspect\"" &&
	suspect ".reason == \"its controller does not answer $(dws_workflow $jobid)\"" &&
	flux rabbit list -s suspect -o long >list.out &&
	grep "rabbit1.*Suspect.*its controller does not answer" list.out &&
	flux dmesg >dmesg.out && grep "rabbit rabbit1 is suspect" dmesg.out &&
	settled ".down == [] and .badrabbit == \"\""
'
test_expect_success 'flux rabbit show names it' '
	shown () {
		flux rabbit show $jobid >show.out &&
		grep "waits for .*creating file systems, not ready: rabbit1" show.out
	} &&
	dws_until shown
'
test_expect_success 'until storage is made there' '
	dws_ctl rabbit rabbit1 up &&
	dws_wait_event $jobid clean &&
	flux job status $jobid &&
	suspect ".state == \"Ready\"" &&
	settled ".down == [] and .badrabbit == \"\""
'
test_expect_success 'it stays suspect when the job has failed' '
	configure "tc_timeout = 0.1" &&
	dws_ctl rabbit rabbit1 dead &&
	jobid=$(flux submit -N4 -S dw="$DWS_DIRECTIVE" true) &&
	dws_wait_event $jobid clean &&
	suspect ".state == \"Suspect\"" &&
	settled ".down == [] and .badrabbit == \"\""
'
test_expect_success 'until its controller says something new of it' '
	dws_ctl rabbit rabbit1 up &&
	dws_ctl drive rabbit1 3 failed &&
	dws_ctl drive rabbit1 3 ok &&
	dws_until suspect ".state == \"Ready\"" &&
	settled ".badrabbit == \"\""
'
test_expect_success 'or an admin disables and enables it' '
	dws_ctl rabbit rabbit1 dead &&
	jobid=$(flux submit -N4 -S dw="$DWS_DIRECTIVE" true) &&
	dws_wait_event $jobid clean &&
	dws_until suspect ".state == \"Suspect\"" &&
	dws_ctl rabbit rabbit1 up &&
	flux rabbit disable --reason "was dead" rabbit1 &&
	dws_until suspect ".state == \"Disabled\"" &&
	flux rabbit enable rabbit1 &&
	dws_until suspect ".state == \"Ready\"" &&
	settled ".badrabbit == \"\"" &&
	dws_ctl child-timeout 300 &&
	configure &&
	dws_clean
'
test_expect_success 'without a scheduler there is nothing to settle' '
	flux module remove sched-rabbit &&
	settled ".scheduler == null"
'
test_done
