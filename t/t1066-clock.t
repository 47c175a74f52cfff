#!/bin/bash
# The wall clock of everything is set an hour forward, or back, with a job in every
# phase. Each limit is half an hour.
# SPDX-License-Identifier: LGPL-3.0-only
#
# FAULT clock-forward: the clock is set an hour forward
#   depend pending setup datain prerun running postrun dataout teardown: completed: The job runs
#     and ends as without the fault.
# FAULT clock-back: the clock is set an hour back
#   depend pending setup datain prerun running postrun dataout teardown: completed: The job runs
#     and ends as without the fault.
# FAULT clock-module: the clock is set an hour forward, then `dws.so` is reloaded
#   depend pending setup datain prerun running postrun dataout teardown: completed: The job runs
#     and ends as without the fault.
# FAULT clock-back-module: the clock is set an hour back, then `dws.so` is reloaded
#   depend pending setup datain prerun running postrun dataout teardown: completed: The job runs
#     and ends as without the fault.
# FAULT clock-away: the clock is set an hour forward while `dws.so` is not loaded
#   depend pending setup datain prerun running postrun dataout teardown: completed: The job runs
#     and ends as without the fault.
# FAULT clock-plugin: the clock is set an hour forward, then `dws-jobtap.so` is reloaded
#   depend pending setup datain prerun running postrun dataout teardown: completed: The job runs
#     and ends as without the fault.
# FAULT clock-back-plugin: the clock is set an hour back, then `dws-jobtap.so` is reloaded
#   depend pending setup datain prerun running postrun dataout teardown: completed: The job runs
#     and ends as without the fault.
# FAULT clock-agent: the clock is set an hour forward, then the agent is restarted
#   depend pending setup datain prerun running postrun dataout teardown: completed: The job runs
#     and ends as without the fault.

test_description='The clock is set, with jobs in every phase'
. "$(dirname "$0")/sharness.sh"

dws_config () {
	dws_clock
}
test_under_flux 4

# looked: the module has decided about all jobs
looked () {
	flux config reload &&
	dws_wait_status ".agent.synced == true"
}
reload_module () {
	flux module reload "$DWS_MODULES/dws.so" &&
	dws_wait_status ".agent.synced == true"
}
reload_plugin () {
	flux jobtap load --remove=dws-jobtap.so "$DWS_PLUGINS/dws-jobtap.so" \
		epilog-timeout=1800 &&
	dws_wait_status ".plugin == true"
}
none_drained () {
	flux resource drain -no "{nodelist}" >drained &&
	test_must_be_empty drained
}

test_expect_success 'load everything' '
	cat >rabbit.toml <<-EOT &&
	prolog_timeout = "30m"
	setup_timeout = "30m"
	prerun_timeout = "30m"
	postrun_timeout = "30m"
	teardown_after = "30m"
	tc_timeout = "30m"
	EOT
	dws_start_sim && dws_load epilog-timeout=1800 && dws_start_agent
'
dws_fault clock-forward 'nothing is late' '
	dws_jump 3600 && looked &&
	dws_status >status &&
	jq -e "now - .oldest.workflow.since < 1800" status
'
dws_fault clock-back 'nothing is late' '
	dws_jump 0 && looked
'
dws_fault clock-module 'nothing is late' '
	dws_jump 3600 && looked && reload_module
'
dws_fault clock-back-module 'nothing is late' '
	dws_jump 0 && looked && reload_module
'
dws_fault clock-away 'nothing is late' '
	flux module remove dws &&
	dws_jump 3600 &&
	flux module load "$DWS_MODULES/dws.so" &&
	dws_wait_status ".agent.synced == true"
'
dws_fault clock-plugin 'nothing is late' '
	dws_jump 7200 && looked && reload_plugin && looked
'
dws_fault clock-back-plugin 'nothing is late' '
	dws_jump 3600 && looked && reload_plugin && looked
'
dws_fault clock-agent 'nothing is late' '
	dws_jump 7200 && looked && dws_kill_agent && dws_start_agent
'
test_expect_success 'no node is drained, and each time was told once' '
	none_drained &&
	flux dmesg >dmesg &&
	test $(grep -c "the clock was set 3600 s forward" dmesg) = 5 &&
	test $(grep -c "the clock was set 3600 s back" dmesg) = 3
'
# failing: the workflow is in TransientCondition for as long as that is so
failing () {
	dws_k8s get workflows $(dws_workflow $jobid) >transient.out &&
	jq -e ".metadata.annotations[\"flux-framework.org/transient-since\"]
		| startswith(\"PreRun\")" transient.out >/dev/null
}
test_expect_success 'nor is a condition that began before it, after a restart' '
	dws_ctl fail PreRun --severity Major --message busy &&
	jobid=$(dws_submit true) &&
	dws_until failing &&
	dws_jump 10800 &&
	reload_module &&
	dws_jump 14400 &&
	looked &&
	dws_ctl fail all --clear &&
	dws_ended_well $jobid &&
	dws_clean
'
test_expect_success 'a limit holds when the clock was set back' '
	dws_ctl hold Setup &&
	jobid=$(dws_submit true) &&
	dws_ctl wait-state $(dws_workflow $jobid) Setup --timeout $DWS_LIMIT &&
	dws_jump 10800 &&
	dws_limit setup_timeout 0.5 &&
	dws_wait_event -m type=dws-timeout $jobid exception &&
	dws_ctl release Setup &&
	dws_wait_event $jobid clean &&
	dws_limit &&
	dws_clean
'
test_expect_success 'so does one of the plugin that is loaded again then' '
	dws_ctl hold PostRun &&
	jobid=$(dws_submit true) &&
	dws_wait_event $jobid epilog-start &&
	dws_jump 7200 &&
	flux jobtap load --remove=dws-jobtap.so "$DWS_PLUGINS/dws-jobtap.so" \
		epilog-timeout=0.5 &&
	dws_wait_event -m type=dws-epilog-timeout $jobid exception &&
	dws_ctl release PostRun &&
	dws_wait_event $jobid clean &&
	dws_clean
'
test_done
