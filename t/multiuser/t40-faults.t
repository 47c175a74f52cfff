#!/bin/bash
# Parts that end under the jobs of users, one that runs and one whose data is staged: both
# end, their storage is given back and nothing stays mounted; no node is drained but for
# what Flux says of it, and the job of another user does not notice.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='faults under jobs of users'
. "$(dirname "$0")/site.sh"

DIRECTIVE="#DW jobdw type=xfs capacity=10GiB name=mine"
STAGED="$DIRECTIVE
#DW copy_in source=/lus/global/alice/in destination=\$DW_JOB_mine/"

# submits USER COUNT NODES DIRECTIVES [COMMAND...]: a job for these nodes. Under Fluxion
# a job without a time limit does not wait for a node that another one is about to leave.
submits () {
	as $1 flux submit -t 10m -N$2 --requires="host:$3" -S dw="$4" "${@:5}"
}
# runs USER COUNT NODES: a job of his, that has written to its storage. Sets jobid, place.
runs () {
	jobid=$(submits $1 $2 $3 "$DIRECTIVE" \
		bash -c "touch \$DW_JOB_mine/\$(hostname) && sleep inf") &&
	wait_event $jobid start &&
	place=$(said $jobid DW_JOB_mine) &&
	site_wait eval "test \$(ls $place | wc -l) = $2"
}
# stages: a job of alice, as long as its data is held. Sets staging.
stages () {
	dws_ctl hold DataIn &&
	staging=$(submits alice 1 node2 "$STAGED" true) &&
	dws_ctl wait-state fluxjob-$(flux job id --to=dec $staging) DataIn --timeout 60
}
begin () {
	runs alice 2 "node[0-1]" && stages
}
# exceptions JOBID: their types
exceptions () {
	as flux flux job eventlog --format=json $1 |
		jq -r "select(.name == \"exception\") | .context.type"
}
well () {
	exceptions $1 >types && test_must_be_empty types
}
# unit JOBID WHAT: that of its prolog or epilog
unit () {
	echo flux-$2@$(flux job id --to=f58plain $1)
}
holdings () {
	dws_ctl state >state.json &&
	jq "{workflows, mounts, clientmounts, storages, allocated}" state.json
}
unchanged () {
	holdings >holdings.now && test_cmp holdings holdings.now
}
# others: what is there is the job of bob, and no more
others () {
	site_wait unchanged &&
	well $his &&
	test "$(as bob flux jobs -no "{state}" $his)" = RUN &&
	test $(ls $his_place | wc -l) = 1
}
# drained [NODE REASON]: it is, and no other; the admin undrains it
drained () {
	as flux flux resource drain -no "{nodelist} {reason}" >drained || return 1
	if test $# = 0; then
		test_must_be_empty drained
	else
		{ grep -q "^$1 $2" drained && test $(wc -l <drained) = 1; } ||
			{ cat drained && return 1; }
		as flux flux resource undrain $1
	fi
}
# ends: both jobs of alice do, in time
ends () {
	dws_ctl release DataIn &&
	wait_event $jobid clean &&
	wait_event $staging clean &&
	site_wait test ! -e $place
}

test_expect_success 'another user has a job' '
	runs bob 1 node3 &&
	his=$jobid his_place=$place &&
	holdings >holdings &&
	jq -e ".workflows.PreRun == 1 and .mounts > 0 and .allocated > 0" holdings
'
test_expect_success 'the agent is killed while one job ends' '
	begin &&
	agent_crash &&
	as alice flux cancel $jobid &&
	wait_event $jobid finish &&
	test -e $place &&
	agent_start &&
	ends &&
	well $staging &&
	others && drained
'
test_expect_success 'the module is away meanwhile' '
	begin &&
	as flux flux module remove dws &&
	as alice flux cancel $jobid &&
	wait_event $jobid finish &&
	test -e $place &&
	as flux flux module load dws &&
	ends &&
	well $staging &&
	others && drained
'
test_expect_success 'the plugin is loaded anew' '
	begin &&
	as flux flux jobtap remove dws-jobtap.so &&
	as flux flux jobtap load dws-jobtap.so &&
	as alice flux cancel $jobid &&
	ends &&
	well $staging &&
	others && drained
'
test_expect_success 'the shell is killed on one of the nodes of a job' '
	runs alice 2 "node[0-1]" &&
	processes node1 flux-shell >pids &&
	test -s pids &&
	kill -KILL $(cat pids) &&
	stages &&
	ends &&
	exceptions $jobid >types && grep exec types &&
	well $staging &&
	others && drained
'
# Flux learns of the end of a process from its streams, which the shell has as well.
test_expect_success 'the IMP of a job that runs is killed on one of its nodes: it goes on' '
	runs alice 2 "node[0-1]" &&
	processes node1 flux-imp >pids &&
	test -s pids &&
	kill -KILL $(cat pids) &&
	stages &&
	test "$(as alice flux jobs -no "{state}" $jobid)" = RUN &&
	processes node1 flux-shell >pids &&
	test -s pids &&
	as alice flux cancel $jobid &&
	ends &&
	exceptions $jobid >types && test "$(cat types)" = cancel &&
	well $staging &&
	processes node1 flux-shell >pids &&
	test_must_be_empty pids &&
	others && drained
'
test_expect_success 'the IMP of a prolog is killed, whose script would go on' '
	dws_ctl hold PreRun &&
	jobid=$(submits alice 2 "node[0-1]" "$DIRECTIVE" true) &&
	dws_ctl wait-state fluxjob-$(flux job id --to=dec $jobid) PreRun --timeout 60 &&
	site_wait test -e /nodes/node0/run/active/$(unit $jobid prolog) &&
	kill -KILL $(processes node0 flux-imp) &&
	as alice flux cancel $jobid &&
	dws_ctl release PreRun &&
	wait_event $jobid clean &&
	others && drained node0 "prolog canceled then timed out for job"
'
test_expect_success 'it does not stop nnf-clientmount, which unmounts' '
	site_wait test ! -e /nodes/node0/run/active/$(unit $jobid prolog) &&
	for node in node0 node1; do
		test -e /nodes/$node/run/active/nnf-clientmount ||
			{ cat /nodes/$node/run/units.log && return 1; }
	done
'
test_expect_success 'the IMP of a prolog is killed, and nobody cancels the job' '
	dws_ctl hold PreRun &&
	jobid=$(submits alice 2 "node[0-1]" "$DIRECTIVE" true) &&
	site_wait test -e /nodes/node0/run/active/$(unit $jobid prolog) &&
	kill -KILL $(processes node0 flux-imp) &&
	dws_ctl release PreRun &&
	wait_event $jobid clean &&
	exceptions $jobid >types && grep prolog types &&
	others && drained node0 "prolog failed for job"
'
test_expect_success 'the IMP of an epilog is killed' '
	mkdir -p "$SITE_CONF/epilog.d" &&
	printf "%s\n" "#!/bin/sh" "test ! -e /run/stuck || read line </run/stuck" \
		>"$SITE_CONF/epilog.d/a-stuck.sh" &&
	chmod 755 "$SITE_CONF/epilog.d/a-stuck.sh" &&
	mkfifo /nodes/node0/run/stuck &&
	runs alice 2 "node[0-1]" &&
	as alice flux cancel $jobid &&
	site_wait test -e /nodes/node0/run/active/$(unit $jobid epilog) &&
	kill -KILL $(processes node0 flux-imp) &&
	echo >/nodes/node0/run/stuck &&
	wait_event $jobid clean &&
	site_wait test ! -e $place &&
	others && drained node0 "epilog failed for job" &&
	site_wait test ! -e /nodes/node0/run/active/$(unit $jobid epilog) &&
	test -e /nodes/node0/run/active/nnf-clientmount &&
	rm /nodes/node0/run/stuck "$SITE_CONF/epilog.d/a-stuck.sh"
'
test_expect_success 'the broker of a node is killed, and started by its unit' '
	begin &&
	broker_kill node1 &&
	wait_event $jobid exception &&
	node_start node1 &&
	site_wait joined &&
	ends &&
	as flux flux job eventlog $jobid >eventlog &&
	grep "exception type=\"exec\".*node failure on node1" eventlog &&
	well $staging &&
	others && drained
'
test_expect_success 'a node crashes, and comes back' '
	begin &&
	node_crash node1 &&
	wait_event $jobid exception &&
	node_start node1 &&
	site_wait joined &&
	ends &&
	as flux flux job eventlog $jobid >eventlog &&
	grep "exception type=\"exec\".*node failure on node1" eventlog &&
	well $staging &&
	others && drained
'
test_expect_success 'jobs run on all of these nodes again' '
	jobid=$(submits alice 2 "node[0-1]" "$DIRECTIVE" true) &&
	wait_event $jobid clean &&
	well $jobid &&
	others
'
# A restarted leader does not know the other brokers: these exit, and their units restart
# them. Running jobs end, too: flux-core's job shells survive a broker with systemd only.
test_expect_success 'the broker of rank 0 is killed, and goes on from its state directory' '
	begin &&
	as flux flux kvs put --sync t40=saved &&
	broker_kill mgmt &&
	node_start mgmt &&
	for node in "${SITE_NODES[@]:1}"; do
		site_wait test ! -e /proc/$(cat /nodes/$node/broker.pid) &&
		node_start $node || return 1
	done &&
	site_wait joined &&
	agent_start &&
	site_wait site_ready &&
	test "$(as flux flux kvs get t40)" = saved &&
	for id in $jobid $his; do
		wait_event $id clean &&
		exceptions $id >types && grep exec types || return 1
	done &&
	site_wait test ! -e $place &&
	site_wait test ! -e $his_place
'
# flux-core forgets it: see doc/admin/runbook.rst
test_expect_success 'an admin ends the prolog that ran meanwhile' '
	dws_ctl release DataIn &&
	wait_event $staging prolog-finish -m description=dws-setup &&
	as alice flux cancel $staging &&
	as flux flux post-job-event $staging prolog-finish \
		description=job-manager.prolog status=1 &&
	wait_event $staging clean &&
	drained
'
test_expect_success 'jobs run on all nodes again, and nothing is left' '
	as alice flux run -N4 -S dw="$DIRECTIVE" true &&
	all_clean
'
test_done
