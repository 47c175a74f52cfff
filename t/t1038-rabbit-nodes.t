#!/bin/bash
# Nodes of a job that mount nothing: rabbits whose own cores it has, and nodes
# that have no rabbit.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Rabbits and nodes without rabbits in a job with storage'
. "$(dirname "$0")/sharness.sh"

# Rabbits have the property "rabbit", and are in no queue.
DWS_HOSTS='node[0-1],rabbit0,login0'
dws_config () {
	dws_config_queue 0-1,3 2
}
test_under_flux 4

export FLUX_CLI_PLUGINPATH_OVERRIDE=$DWS_SRCDIR/etc/cli/plugins

# computes JOBID: the nodes that its workflow is told of.
computes () {
	dws_k8s get computes $(dws_workflow $1) >computes.out &&
	jq -r '[.data[].name] | sort | join(",")' computes.out
}
# submit DIRECTIVE OPTION...: a job that runs by simulation: on a rabbit it has no
# tasks, which the job shell does not like.
submit () {
	flux submit -S dw="$1" -S exec.test.run_duration=0.1s "${@:2}" true
}
mounted () {
	dws_ctl wait-state $(dws_workflow $1) PreRun --timeout $DWS_LIMIT
}

test_expect_success 'load everything' '
	dws_setup && flux queue start --all
'
test_expect_success 'a job has storage and cores of its rabbit' '
	dws_ctl hold PreRun &&
	jobid=$(submit "$DWS_DIRECTIVE" -N2 --coral2-chassis=1 \
		--coral2-rabbit-cores=1) &&
	mounted $jobid &&
	flux jobs -no "{nodelist}" $jobid >nodes &&
	grep -F "node[0-1],rabbit0" nodes &&
	test "$(computes $jobid)" = node0,node1 &&
	dws_ctl release PreRun &&
	dws_ended_well $jobid &&
	dws_clean
'
test_expect_success 'the constraint next to storage that is there lets it onto rabbits' '
	jobid=$(submit "#DW create_persistent type=xfs capacity=10GiB name=kept" -N2) &&
	dws_ended_well $jobid &&
	jobid=$(submit "#DW persistentdw name=kept" -N2 --coral2-chassis=1 \
		--coral2-rabbit-cores=1) &&
	dws_ended_well $jobid &&
	flux jobs -ano "{nodelist}" $jobid >nodes &&
	grep -F "node[0-1],rabbit0" nodes &&
	flux job info $jobid jobspec >jobspec &&
	jq -e ".attributes.system.constraints.or[0] ==
		{properties: [\"rabbit\"]}" jobspec &&
	jobid=$(submit "#DW destroy_persistent name=kept" -N1) &&
	dws_ended_well $jobid
'
test_expect_success 'a node without a rabbit takes part, and mounts nothing' '
	jobid=$(submit "#DW create_persistent type=lustre capacity=10GiB name=wide" \
		-N1) &&
	dws_ended_well $jobid &&
	dws_ctl hold PreRun &&
	jobid=$(submit "#DW persistentdw name=wide" -N3) &&
	mounted $jobid &&
	test "$(computes $jobid)" = node0,node1 &&
	dws_ctl release PreRun &&
	dws_ended_well $jobid &&
	flux jobs -ano "{nodelist}" $jobid >nodes &&
	grep login0 nodes
'
test_expect_success 'nor is it waited for where mounts hang' '
	echo "prerun_timeout = \"2s\"" >>"$DWS_TMP/conf.d/test.toml" &&
	flux config reload &&
	dws_ctl hang-mount node0 on &&
	jobid=$(submit "#DW persistentdw name=wide" -N3 \
		-S dw_failure_tolerance=1) &&
	dws_wait_event $jobid start &&
	dws_ctl hang-mount node0 off &&
	dws_wait_event $jobid clean &&
	test "$(flux resource drain -no "{nodelist}")" = node0 &&
	flux resource undrain node0
'
test_expect_success 'a job that has no node with a rabbit at all is refused' '
	jobid=$(submit "#DW persistentdw name=wide" -N1 --requires=rank:3) &&
	dws_wait_event $jobid clean &&
	flux job eventlog $jobid >eventlog &&
	grep "exception.*dws-setup.*the job has no node with a rabbit" eventlog
'
test_expect_success 'nothing is left' '
	jobid=$(submit "#DW destroy_persistent name=wide" -N1) &&
	dws_ended_well $jobid &&
	dws_clean
'
test_done
