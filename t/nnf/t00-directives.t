#!/bin/bash
# Every directive, through all states of the workflow.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Every directive with the controllers of NNF'
. "$(dirname "$0")/../sharness.sh"
. "$DWS_SRCDIR/t/nnf/nnf.sh"
test_under_flux 4

FAST='#DW jobdw type=gfs2 capacity=1GiB name=fast'

# submit NAME DIRECTIVES COMMAND, good NAME: a job that does well. Many are under
# way at once, and looked at one by one.
submit () {
	nnf_submit "$2" -N2 bash -c "$3" >job.$1
}
good () {
	dws_ended_well $(cat job.$1)
}
create () {
	submit create-$1 \
		"#DW create_persistent type=$1 capacity=1GiB name=kept-$1" true
}

test_expect_success 'load everything, with the rights of a workload manager' '
	nnf_setup "save_datamovements = 8" &&
	jq -e ".rabbits | keys == [\"rabbit-node-1\", \"rabbit-node-2\"]" \
		mapping.json &&
	flux rabbit status >status &&
	cat status
'
# Only one Lustre at a time is possible: see README.md.
test_expect_success 'jobs of every type, and more than one directive' '
	for type in xfs gfs2 raw lustre; do
		submit $type "#DW jobdw type=$type capacity=10GiB name=scratch" \
			"echo \$DW_JOB_scratch" || return 1
	done &&
	submit two "#DW jobdw type=xfs capacity=10GiB name=one
#DW jobdw type=gfs2 capacity=20GiB name=two" \
		"echo \$DW_JOB_one \$DW_JOB_two" &&
	rig create lustrefilesystems "{\"apiVersion\": \"lus.cray.hpe.com/v1beta1\",
		\"kind\": \"LustreFileSystem\", \"metadata\": {\"name\": \"global\",
		\"namespace\": \"default\"}, \"spec\": {\"name\": \"global\",
		\"mgsNids\": \"10.0.0.1@tcp\", \"mountRoot\": \"/lus/global\",
		\"namespaces\": {\"default\": {\"modes\": [\"ReadWriteMany\"]}}}}" &&
	submit copy "$FAST
#DW copy_in source=/lus/global/in destination=\$DW_JOB_fast/in
#DW copy_out source=\$DW_JOB_fast/out destination=/lus/global/out" \
		"echo \$DW_JOB_fast" &&
	for way in in out; do
		flux submit $NNF_OPTIONS -n1 --dependency=dws-$way:$(cat job.copy) true >job.after-$way || return 1
	done &&
	submit container "$FAST
#DW container name=mine profile=example-success DW_JOB_foo_local_storage=fast" \
		"echo \$NNF_CONTAINER_HOSTNAMES" &&
	create gfs2 &&
	rig tls &&
	submit token "$FAST requires=user-container-auth
#DW container name=mine profile=example-success DW_JOB_foo_local_storage=fast" \
		"test -n \"\$DW_WORKFLOW_TOKEN\" && echo \"token \$DW_WORKFLOW_TOKEN\""
'
for type in xfs gfs2 raw lustre; do
	test_expect_success "jobdw type=$type, mounted where the job is told" '
		good $type >out &&
		grep "^/mnt/nnf/[0-9a-f-]*-0" out
	'
done
test_expect_success 'two file systems in one job' '
	good two >out &&
	grep "^/mnt/nnf/[0-9a-f-]*-0[^ ]* /mnt/nnf/[0-9a-f-]*-1" out
'
test_expect_success 'copy_in and copy_out' '
	good copy >out &&
	grep "^/mnt/nnf/[0-9a-f-]*-0" out &&
	flux job info $(cat job.copy) rabbit_datamovements >movements &&
	jq -e "map(.spec | .source.path, .destination.path)
		| contains([\"/lus/global/in\", \"/lus/global/out\"])" movements
'
# when JOB EVENT: the time of the first such event
when () {
	flux job eventlog --format=json $(cat job.$1) >eventlog.$1 &&
	jq -e -s "map(select(.name == \"$2\"))[0].timestamp" eventlog.$1
}
test_expect_success 'jobs that wait for its data begin when it is in, and when it is out' '
	for way in in out; do
		dws_wait_event $(cat job.after-$way) clean &&
		flux job status $(cat job.after-$way) || return 1
	done &&
	submitted=$(when copy submit) && finished=$(when copy finish) &&
	came_in=$(when after-in dependency-remove) &&
	went_out=$(when after-out dependency-remove) &&
	jq -en "$submitted < $came_in and $came_in < $went_out and $finished < $went_out"
'
test_expect_success 'a container runs beside the job' '
	create lustre &&
	name=$(dws_workflow $(cat job.container)) &&
	rig containers $name running &&
	rig containers $name done &&
	good container >out &&
	grep "^rabbit-node-[12]" out
'
test_expect_success 'the token of a workflow is read from the Secret that NNF makes' '
	name=$(dws_workflow $(cat job.token)) &&
	rig containers $name running &&
	dws_wait_event $(cat job.token) start &&
	rig get secrets $name-token >secret &&
	jq -r ".data.token | @base64d" secret >token &&
	rig containers $name done &&
	good token >out &&
	grep -F "token $(cat token)" out
'
for type in gfs2 lustre; do
	test_expect_success "create_persistent type=$type" '
		good create-$type &&
		rig get persistentstorageinstances kept-$type >psi &&
		jq -e ".status.state == \"Active\"" psi &&
		submit use-$type "#DW persistentdw name=kept-$type" \
			"echo \$DW_PERSISTENT_kept_$type"
	'
done
for type in gfs2 lustre; do
	test_expect_success "persistentdw, which is $type" '
		good use-$type >out &&
		grep "^/mnt/nnf/" out &&
		submit destroy-$type "#DW destroy_persistent name=kept-$type" true
	'
done
for type in gfs2 lustre; do
	test_expect_success "destroy_persistent, which is $type" '
		good destroy-$type
	'
done
test_expect_success 'nothing is left' '
	rig delete lustrefilesystems global &&
	nnf_clean
'
test_expect_success 'nothing that Kubernetes sent was refused' '
	dws_wait_status ".agent.api.requests > 100 and .agent.api.refused == 0"
'
test_done
