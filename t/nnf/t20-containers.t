#!/bin/bash
# Containers: what a job gets of them, and what its user reads when they fail.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Containers with the controllers of NNF'
. "$(dirname "$0")/../sharness.sh"
. "$DWS_SRCDIR/t/nnf/nnf.sh"
test_under_flux 4

FAST='#DW jobdw type=gfs2 capacity=1GiB name=my-fast'

# submit PROFILE [OPTION...] COMMAND. Sets jobid and name.
submit () {
	directives="$FAST
#DW container name=mine profile=$1 DW_JOB_foo_local_storage=my-fast"
	shift
	jobid=$(nnf_submit "$directives" -N2 "$@") &&
	name=$(dws_workflow $jobid)
}

test_expect_success 'load everything, and make container profiles' '
	nnf_setup &&
	rig profile t20-plain "{\"retryLimit\": 2}" &&
	rig profile t20-ports "{\"numPorts\": 2}" &&
	rig profile t20-start "{\"preRunTimeoutSeconds\": 2}" &&
	rig profile t20-end "{\"postRunTimeoutSeconds\": 2}" &&
	rig profile t20-own "{\"createContainer\": false}"
'
test_expect_success 'containers and tasks are told the same' '
	submit t20-plain bash -c "env" &&
	rig containers $name running &&
	rig containers $name done &&
	dws_ended_well $jobid >out &&
	grep "^NNF_CONTAINER_SUBDOMAIN=$name$" out &&
	grep "^NNF_CONTAINER_DOMAIN=default.svc.cluster.local$" out &&
	grep "^NNF_CONTAINER_HOSTNAMES=rabbit-node-[12]" out &&
	grep "^DW_JOB_my_fast=/mnt/nnf/" out &&
	test_must_fail grep "^NNF_CONTAINER_PORTS" out
'
test_expect_success 'no port for one that needs it: the site has none' '
	rig ports &&
	submit t20-ports true &&
	nnf_refused $jobid dws-setup \
		"InsufficientResources.*fault: site; no port is free, or the site has none"
'
test_expect_success 'ports of the SystemConfiguration are in the environment' '
	rig ports 20000-29999 &&
	submit t20-ports bash -c "env" &&
	rig containers $name running &&
	dws_wait_event $jobid start &&
	host=$(rig list jobs | jq -r "first(.items[].metadata.name
		| select(startswith(\"$name-\")))") &&
	rig get jobs $host >job.out &&
	rig containers $name done &&
	dws_ended_well $jobid >out &&
	rig ports &&
	grep "^NNF_CONTAINER_PORTS=2[0-9]*,2[0-9]*$" out &&
	grep "^NNF_CONTAINER_PORTS_example_success=2[0-9]*,2[0-9]*$" out &&
	jq -r ".spec.template.spec.containers[0].env[] | .name + \"=\" + .value" \
		job.out >told &&
	for variable in NNF_CONTAINER_PORTS NNF_CONTAINER_HOSTNAMES; do
		grep "^$variable=" out | sort -u >want &&
		grep "^$variable=" told >have &&
		test_cmp want have || return 1
	done &&
	path=$(sed -n "s/^DW_JOB_my_fast=//p" out | sort -u) &&
	grep "^DW_JOB_foo_local_storage=$path$" told
'
test_expect_success 'all tries fail' '
	submit t20-plain true &&
	rig containers $name failed &&
	nnf_refused $jobid dws-epilog \
		"container job .*BackoffLimitExceeded.*fault: user; see flux job info"
'
test_expect_success 'not started in time' '
	submit t20-start true &&
	nnf_refused $jobid dws-setup \
		"user container.s. failed to start after 2 seconds.*fault: not known"
'
test_expect_success 'not ended in time' '
	submit t20-end true &&
	rig containers $name running &&
	rig containers $name expired &&
	nnf_refused $jobid dws-epilog \
		"user container.s. failed to complete after 2 seconds.*fault: user"
'
test_expect_success 'whoever makes the containers, the job is told where' '
	submit t20-own bash -c "env" &&
	dws_ended_well $jobid >out &&
	grep "^NNF_CONTAINER_HOSTNAMES=rabbit-node-[12]" out
'
test_expect_success 'nothing is left' '
	nnf_clean
'
test_done
