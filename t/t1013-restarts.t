#!/bin/bash
# Every component restarted while there is a job in every phase.
# SPDX-License-Identifier: LGPL-3.0-only
#
# FAULT agent: the agent is killed and started again
#   depend pending setup datain prerun running postrun dataout teardown: completed: The job runs
#     and ends as without the fault.
# FAULT module: `dws.so` is reloaded
#   depend pending setup datain prerun running postrun dataout teardown: completed: The job runs
#     and ends as without the fault.
# FAULT plugin: `dws-jobtap.so` is not loaded while jobs go on
#   depend setup datain prerun running postrun dataout teardown: completed: The job runs and
#     ends as without the fault.
#   pending: failed exec: Flux starts the job without its storage; the job fails before its
#     first task.
# FAULT all-three: agent, module and plugin are stopped at the same time
#   depend setup datain prerun running postrun dataout teardown: completed: The job runs and
#     ends as without the fault.
#   pending: failed exec: Flux starts the job without its storage; the job fails before its
#     first task.
# FAULT api-server: the API server is killed, and started again with its data
#   depend pending setup datain prerun running postrun dataout teardown: completed: The job runs
#     and ends as without the fault.
# FAULT watches: watches end with 410, and then requests with 503
#   depend pending setup datain prerun running postrun dataout teardown: completed: The job runs
#     and ends as without the fault.
# FAULT cluster: the cluster is lost, and an empty one takes its place
#   depend pending setup datain prerun: completed: flux-dws creates the workflow again; the job
#     goes on from its phase.
#   running postrun dataout: completed: The job ends as if its file systems had been unmounted;
#     data that was not staged out yet is lost.
#   teardown: completed: The job runs and ends as without the fault.

test_description='Restarts of every component, with jobs in every phase'
. "$(dirname "$0")/sharness.sh"
test_under_flux 4

load_module () {
	flux module load "$DWS_MODULES/dws.so" &&
	dws_wait_status ".agent.synced == true"
}
load_plugin () {
	flux jobtap load "$DWS_PLUGINS/dws-jobtap.so"
}
# restart_sim STATE: at the same address, with the cluster in that file
restart_sim () {
	port=$(jq -r ".clusters[0].cluster.server" kubeconfig | sed "s/.*://") &&
	kill -9 "$(cat "$DWS_TMP/sim.pid")" &&
	{ wait "$(cat "$DWS_TMP/sim.pid")" || :; } &&
	dws_start_sim --port $port --state "$1"
}

# Without the plugin nothing keeps the job from being started.
pending_starts () {
	dws_wait_event $(sed -n "s/^pending //p" crowd) start
}

test_expect_success 'load everything' '
	dws_setup --state "$PWD/cluster"
'
dws_fault agent 'it is killed while they go on' '
	dws_kill_agent &&
	dws_crowd release &&
	dws_start_agent
'
dws_fault module 'it is away while they go on' '
	flux module remove dws &&
	dws_crowd release &&
	load_module
'
dws_fault plugin 'it is away while they go on' '
	flux jobtap remove dws-jobtap.so &&
	dws_crowd release &&
	pending_starts &&
	load_plugin
'
dws_fault all-three 'they stop in one order and start in another' '
	flux jobtap remove dws-jobtap.so &&
	dws_kill_agent &&
	flux module remove dws &&
	dws_crowd release &&
	pending_starts &&
	flux module load "$DWS_MODULES/dws.so" &&
	load_plugin &&
	dws_start_agent
'
dws_fault api-server 'it is killed, and comes back' '
	restart_sim "$PWD/cluster"
'
dws_fault watches 'they have to be begun anew, at the second attempt' '
	dws_ctl api --status 503 --count 10 &&
	dws_ctl api --expire &&
	dws_crowd release
'
dws_fault cluster 'nothing of it is left' '
	dws_kill_agent &&
	restart_sim "$PWD/another" &&
	dws_start_agent
'
test_expect_success 'an agent that another takes over from stays away' '
	old=$(cat "$DWS_TMP/agent.pid") &&
	dws_start_agent &&
	test_expect_code 3 wait $old
'
test_done
