#!/bin/bash
# Users' jobs with the controllers of DWS and NNF: owners of NNF's objects, the rules of
# persistent file systems, and faults of jobs. As no file system is mounted (see
# t/nnf/README.md), owners are those in NNF's requests. t/multiuser/run --nnf
# SPDX-License-Identifier: LGPL-3.0-only

test_description='users with the controllers of NNF'
. "$(dirname "$0")/site.sh"

test -n "$DWS_NNF" || {
	skip_all='no NNF controllers: t/multiuser/run --nnf'
	test_done
}

NODES=("${SITE_NODES[@]:1}")
KINDS="workflows directivebreakdowns servers computes clientmounts
	persistentstorageinstances nnfaccesses nnfstorages nnfnodestorages
	nnfnodeblockstorages nnfdatamovements jobs"

# submits USER DIRECTIVES [OPTION...] COMMAND: a job for two nodes
submits () {
	as $1 flux submit -t 10m -N2 -S dw="$2" "${@:3}"
}
# well JOBID: it ends so
well () {
	wait_event $1 clean &&
	as flux flux job eventlog $1 >eventlog &&
	{ ! grep " exception " eventlog; } &&
	grep "finish status=0" eventlog
}
# refused JOBID PATTERN
refused () {
	wait_event $1 clean &&
	as flux flux job eventlog $1 >eventlog &&
	grep "exception.*$2" eventlog
}
workflow () {
	echo fluxjob-$(flux job id --to=dec $1)
}
# begins USER [OPTION...]: a job that runs until it is cancelled. Sets jobid.
begins () {
	jobid=$(submits $1 "#DW jobdw type=xfs capacity=10GiB name=mine" "${@:2}" sleep inf) &&
	wait_event $jobid start
}
# ends USER [TYPE]: it is cancelled, and ends; with an exception of no other type than
# this one besides
ends () {
	as $1 flux cancel $jobid &&
	wait_event $jobid clean &&
	as flux flux job eventlog --format=json $jobid |
		jq -r "select(.name == \"exception\") | .context.type" >types &&
	test "$(echo $(cat types))" = cancel
}
# owner JOBID: what NNF has of it, as user:group
owner () {
	rig get workflows $(workflow $1) | jq -r "\"\(.spec.userID):\(.spec.groupID)\"" &&
	rig list nnfnodestorages | jq -r ".items[]
		| select(.metadata.labels[\"dataworkflowservices.github.io/workflow.name\"]
			== \"$(workflow $1)\") | \"\(.spec.userID):\(.spec.groupID)\""
}
# owned USER:GROUP: the job's workflow is, and its storage on the rabbit
owned () {
	owner $jobid >owner.out &&
	test $(wc -l <owner.out) -ge 2 &&
	test "$(sort -u owner.out)" = "$1" || { cat owner.out && return 1; }
}
drained () {
	as flux flux resource drain -no "{nodelist}" >drained && test_must_be_empty drained
}

for type in xfs gfs2 raw lustre; do
	test_expect_success "$type: a user's job runs where it is mounted" "
		jobid=\$(submits alice '#DW jobdw type=$type capacity=10GiB name=mine' \
			bash -c 'id -un && echo \$DW_JOB_mine') &&
		as alice flux job attach \$jobid >out &&
		well \$jobid &&
		test \$(grep -c '^alice' out) -ge 1 && grep '^/mnt/nnf/[0-9a-f-]*-0' out
	"
done
test_expect_success 'NNF is told of the user, and of his group' '
	begins alice && owned 2001:2001 && ends alice &&
	begins alice -S dw_group=project && owned 2001:5000 && ends alice
'
test_expect_success 'a number above what an int holds is a user as all others' '
	begins highest && owned 3000000001:3000000001 && ends highest
'
test_expect_success 'data is staged in and out for a user, as that user' '
	rig create lustrefilesystems "{\"apiVersion\": \"lus.cray.hpe.com/v1beta1\",
		\"kind\": \"LustreFileSystem\", \"metadata\": {\"name\": \"global\",
		\"namespace\": \"default\"}, \"spec\": {\"name\": \"global\",
		\"mgsNids\": \"10.0.0.1@tcp\", \"mountRoot\": \"/lus/global\",
		\"namespaces\": {\"default\": {\"modes\": [\"ReadWriteMany\"]}}}}" &&
	jobid=$(submits alice "#DW jobdw type=gfs2 capacity=10GiB name=mine
		#DW copy_in source=/lus/global/alice/in destination=\$DW_JOB_mine/
		#DW copy_out source=\$DW_JOB_mine/ destination=/lus/global/alice/out" sleep inf) &&
	wait_event $jobid start &&
	rig list nnfdatamovements | jq -r ".items[].spec | \"\(.userId):\(.groupId)\"" >owner.out &&
	test "$(sort -u owner.out)" = 2001:2001 &&
	ends alice &&
	rig delete lustrefilesystems global
'
test_expect_success 'a container of a user' '
	jobid=$(submits alice "#DW jobdw type=gfs2 capacity=10GiB name=mine
		#DW container name=con profile=example-success DW_JOB_foo_local_storage=mine" true) &&
	rig until workflows $(workflow $jobid) ".metadata.name != \"\"" &&
	rig containers $(workflow $jobid) running &&
	rig containers $(workflow $jobid) done &&
	well $jobid
'
test_expect_success 'what lasts is its creator alone to use and to destroy' '
	jobid=$(submits alice "#DW create_persistent type=gfs2 capacity=10GiB name=lasts" true) &&
	well $jobid &&
	rig get persistentstorageinstances lasts >psi &&
	jq -e ".spec.userID == 2001" psi &&
	jobid=$(submits alice "#DW persistentdw name=lasts" true) && well $jobid &&
	for line in "persistentdw name=lasts" "destroy_persistent name=lasts"; do
		jobid=$(submits bob "#DW $line" true) &&
		refused $jobid "\([Uu]ser ID does not match\|belongs to another user\)" || return 1
	done
'
test_expect_success 'until an admin opens it: another user has it then, and cannot destroy it' '
	rig patch persistentstorageinstances lasts "{\"metadata\": {\"annotations\":
		{\"dataworkflowservices.github.io/ignore-uid\": \"true\"}}}" &&
	jobid=$(submits bob "#DW persistentdw name=lasts" \
		bash -c "echo \$DW_PERSISTENT_lasts") &&
	as bob flux job attach $jobid >out && grep ^/mnt/nnf out &&
	well $jobid &&
	jobid=$(submits bob "#DW destroy_persistent name=lasts" true) &&
	refused $jobid "\([Uu]ser ID does not match\|belongs to another user\)" &&
	jobid=$(submits alice "#DW destroy_persistent name=lasts" true) && well $jobid
'
test_expect_success 'a user is told of his own job, and not of that of another' '
	begins bob &&
	as bob flux rabbit show $jobid &&
	test_must_fail as alice flux rabbit show $jobid &&
	test_must_fail ask alice dws.status "{\"jobid\": $(flux job id --to=dec $jobid)}" &&
	test_must_fail as alice flux cancel $jobid &&
	ends bob
'
test_expect_success 'the agent is killed while the job of a user ends' '
	begins alice &&
	agent_crash &&
	as alice flux cancel $jobid &&
	wait_event $jobid finish &&
	agent_start &&
	wait_event $jobid clean &&
	drained
'
test_expect_success 'the controller of a rabbit is killed under it, and comes back' '
	begins alice &&
	for rabbit in rabbit-node-1 rabbit-node-2; do
		rig kill $rabbit || return 1
	done &&
	as alice flux cancel $jobid &&
	wait_event $jobid finish &&
	for rabbit in rabbit-node-1 rabbit-node-2; do
		rig start $rabbit || return 1
	done &&
	wait_event $jobid clean &&
	drained
'
test_expect_success 'the API server is killed under it, and comes back' '
	begins alice &&
	rig kill apiserver &&
	as alice flux cancel $jobid &&
	wait_event $jobid finish &&
	rig start apiserver &&
	wait_event $jobid clean &&
	drained
'
test_expect_success 'the broker of one of its nodes is killed, and started by its unit' '
	begins alice --requires="host:${NODES[0]},${NODES[1]}" &&
	broker_kill ${NODES[1]} &&
	wait_event $jobid exception &&
	node_start ${NODES[1]} &&
	site_wait joined &&
	wait_event $jobid clean &&
	as flux flux job eventlog $jobid >eventlog &&
	grep "exception type=\"exec\".*node failure on ${NODES[1]}" eventlog &&
	drained
'
test_expect_success 'jobs run on all nodes again, and nothing is left' '
	jobid=$(as bob flux submit -t 10m -N4 \
		-S dw="#DW jobdw type=xfs capacity=10GiB name=mine" true) &&
	well $jobid &&
	"$DWS_SRCDIR/.venv/bin/flux" python "$DWS_SRCDIR/t/scripts/kube-empty.py" \
		"$DWS_NNF/kubeconfig" $KINDS &&
	site_wait all_ended && drained
'
test_done
