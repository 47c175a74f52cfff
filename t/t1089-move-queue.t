#!/bin/bash
# A pending rabbit job is moved to another queue as other jobs are, and never runs on a
# node without a working rabbit: sched-rabbit keeps it off, not a constraint in its jobspec.
# solo cannot move jobs between queues.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Pending jobs in another queue, and nodes without a working rabbit'
. "$(dirname "$0")/sharness.sh"
dws_config () {
	jq ".execution.properties = {left: \"0-1\", right: \"2-3\"}" "$DWS_TMP/R" \
		>"$DWS_TMP/R.new" &&
	mv "$DWS_TMP/R.new" "$DWS_TMP/R" &&
	cat <<-EOT
	[queues.left]
	requires = ["left"]
	[queues.right]
	requires = ["right"]
	[queues.all]
	[policy.jobspec.defaults.system]
	queue = "left"
	EOT
}
test_under_flux 4
CONFIG=$DWS_TMP/conf.d/test.toml

if test "$DWS_SCHEDULER" = fluxion; then
	skip_all='Fluxion keeps no job off such nodes by itself: t1048, t1059'
	test_done
fi

# settled FILTER: the scheduler has heard of it
settled () {
	dws_wait_status ".health.settled and (.health | $1)"
}
# full: jobs without storage have all nodes, and others wait
full () {
	flux cancel --all && dws_clean && blockers= &&
	for i in 0 1 2 3; do
		id=$(flux submit -N1 -x -q all --requires=rank:$i sleep inf) &&
		dws_wait_event $id start || return 1
		blockers="$blockers $id"
	done
}
pending () {
	jobid=$(flux submit -N1 -S dw="$DWS_DIRECTIVE" "$@" true) &&
	dws_wait_event $jobid priority
}
# ran PATTERN: jobid runs when the nodes are idle, and has run there
ran () {
	flux cancel $blockers &&
	dws_wait_event $jobid clean &&
	flux job status $jobid &&
	flux jobs -no "{nodelist}" $jobid >ran.out &&
	grep -x "$1" ran.out
}
# constraints CONSTRAINTS: those of the job's jobspec as it is now
constraints () {
	flux job info $jobid jobspec >jobspec.json &&
	jq -c ".attributes.system.constraints" jobspec.json >constraints.out &&
	echo "$1" >expected &&
	test_cmp expected constraints.out
}
# note TEXT: that is in what its owner is told of it
note () {
	flux python "$DWS_SRCDIR/t/scripts/wait_note.py" $jobid "$1" 20
}
# asks: they keep it off nodes without a working rabbit
asks () {
	flux job info $jobid jobspec >jobspec.json &&
	jq -e ".attributes.system.constraints | tostring | test(\"badrabbit\")" jobspec.json
}
move () {
	flux update $jobid queue=$1 &&
	test "$(flux jobs -no "{queue}" $jobid)" = $1
}

test_expect_success 'nodes 0 and 2 have lost the link to their rabbits' '
	flux queue start --all &&
	echo "drain_compute_nodes = false" >rabbit.toml &&
	dws_setup &&
	dws_ctl link node0 down && dws_ctl link node2 down &&
	settled ".badrabbit == \"node[0,2]\"" &&
	test "$(flux resource drain -no "{nodelist}")" = ""
'
test_expect_success 'a job has the constraint of its queue, and no other' '
	full && pending &&
	constraints "{\"properties\":[\"left\"]}" &&
	ran node1
'
test_expect_success 'nor does one without such a queue have any' '
	full && pending -q all &&
	constraints null &&
	ran "node[13]"
'
test_expect_success 'its owner is told that nodes without a working rabbit are not free' '
	full && jobid=$(flux submit -N2 -q all -S dw="$DWS_DIRECTIVE" true) &&
	note "nodes: it needs 2, 0 of 4 are free .2 busy, 2 without a working rabbit" &&
	flux rabbit show $jobid >show.out && grep "2 without a working rabbit" show.out &&
	flux cancel $jobid $blockers
'
test_expect_success FLUX_CORE 'one that is moved runs on a good node there' '
	full && pending &&
	move right &&
	constraints "{\"properties\":[\"right\"]}" &&
	ran node3
'
test_expect_success FLUX_CORE 'also if it is moved again, and the scheduler is another' '
	full && pending &&
	move right && move left && move right &&
	flux module reload "$DWS_MODULES/sched-rabbit.py" &&
	settled ".scheduler == \"sched-rabbit\"" &&
	ran node3
'
test_expect_success FLUX_CORE 'also if module and plugin are others' '
	full && pending &&
	move right &&
	flux module reload "$DWS_MODULES/dws.so" &&
	flux jobtap load --remove=dws-jobtap.so "$DWS_PLUGINS/dws-jobtap.so" &&
	dws_wait_status ".agent.synced" &&
	ran node3
'
test_expect_success FLUX_CORE 'one that cannot run there waits, and others pass it' '
	dws_ctl link node3 down &&
	settled ".badrabbit == \"node[0,2-3]\"" &&
	full && pending &&
	move right &&
	flux cancel $blockers &&
	flux run -N2 -q right true &&
	flux run -N1 -q left -S dw="$DWS_DIRECTIVE" true &&
	test "$(flux jobs -no "{state}" $jobid)" = SCHED &&
	dws_ctl link node3 up &&
	dws_wait_event $jobid clean &&
	flux job status $jobid &&
	test "$(flux jobs -no "{nodelist}" $jobid)" = node3 &&
	settled ".badrabbit == \"node[0,2]\""
'
test_expect_success FLUX_CORE 'what it asks for must be there' '
	full &&
	jobid=$(flux submit -N3 -q all -S dw="$DWS_DIRECTIVE" true) &&
	dws_wait_event $jobid priority &&
	test_must_fail flux update $jobid queue=right 2>err &&
	grep "needs 3 nodes with 1 cores; there are 2" err &&
	flux cancel $jobid $blockers
'
test_expect_success FLUX_CORE 'a job that its user has bound to nodes stays where it is' '
	full && pending --requires=rank:0-1 &&
	test_must_fail flux update $jobid queue=right 2>err &&
	grep "non-queue constraints" err &&
	ran node1
'
# The first of two jobs in a queue with a total has its room, and the other waits.
test_expect_success FLUX_CORE 'a job that waits for room waits by the rule of its queue' '
	cp "$CONFIG" plain.toml &&
	cat plain.toml - >limits.toml <<-EOT &&
	[rabbit.limits.left]
	queue = "left"
	total = "15GiB"
	[rabbit.limits.all]
	queue = "all"
	total = "16GiB"
	EOT
	cp limits.toml "$CONFIG" && flux config reload &&
	full && pending &&
	first=$jobid &&
	jobid=$(flux submit -N1 -S dw="$DWS_DIRECTIVE" true) &&
	note "rabbit.limits.left.total" &&
	move all &&
	note "rabbit.limits.all.total"
'
test_expect_success FLUX_CORE 'and not at all in a queue without one' '
	move right &&
	dws_wait_event $jobid priority &&
	flux cancel $first &&
	ran node3 &&
	cp plain.toml "$CONFIG" && flux config reload
'
# Its storage is next to node1, and the nodes of its new queue are not.
test_expect_success FLUX_CORE 'a job that has its data first gets it anew next to its nodes' '
	dws_clean && full &&
	dws_ctl hold DataIn &&
	jobid=$(flux submit -N1 -S dw="$DWS_DIRECTIVE" -S dw_data_first=1 true) &&
	dws_ctl wait-state $(dws_workflow $jobid) DataIn --timeout $DWS_LIMIT &&
	move right &&
	dws_ctl release DataIn &&
	note "waiting for nodes next to its data" &&
	ran node3
'
# As a release before this one has written it.
test_expect_success 'a job with the constraint of before runs on a good node' '
	full && pending --requires=-badrabbit &&
	asks &&
	flux module reload "$DWS_MODULES/sched-rabbit.py" &&
	settled ".scheduler == \"sched-rabbit\"" &&
	ran node1
'
test_expect_success 'a job that only destroys storage needs no rabbit' '
	dws_clean &&
	flux run -N1 -q all -S dw="#DW create_persistent type=xfs capacity=1GiB name=keep" \
		true &&
	jobid=$(flux submit -N1 --requires=rank:0 \
		-S dw="#DW destroy_persistent name=keep" true) &&
	dws_wait_event $jobid clean &&
	flux job status $jobid &&
	test "$(flux jobs -no "{nodelist}" $jobid)" = node0
'
# The release before keeps nothing off such nodes, and says nothing of it.
test_expect_success 'a scheduler of the release before is told by the jobspec' '
	cat >>sched-rabbit.py <<-EOT &&
	$(cat "$DWS_MODULES/sched-rabbit.py")

	from flux_k8s import dws
	from flux_sched_rabbit import scheduler

	dws.uses_storage = lambda dw: False


	class Before(scheduler.RabbitScheduler):
	    def notify(self, msg):
	        self.handle.respond(msg, None)
	        self._notified.append(msg)


	def mod_main(h, *args):
	    Before(h, *args).run()
	EOT
	flux module remove sched-rabbit &&
	dws_wait_status ".health.scheduler == null" &&
	flux module load ./sched-rabbit.py &&
	settled ".scheduler == \"sched-rabbit\"" &&
	full && pending &&
	asks &&
	ran node1
'
test_done
