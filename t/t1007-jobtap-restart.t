#!/bin/bash
# dws-jobtap.so after a restart of the job manager: it has only the eventlogs.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='The jobtap plugin after a restart'

dws_config () {
	cat <<-EOT
	[job-manager]
	plugins = [
	  { load = "$DWS_PLUGINS/dws-jobtap.so", conf = { epilog-timeout = 5400 } },
	]
	EOT
}

. "$(dirname "$0")/sharness.sh"
test_under_flux 4

GOOD="#DW jobdw type=xfs capacity=10GiB name=scratch"

expect () {
	event_job=$1 event_name=$2
	shift 2
	flux job wait-event -t 300 "$@" $event_job $event_name
}
release () {
	rpc dws.wait "{\"name\": \"create\", \"jobid\": \"$1\"}" >create &&
	jq -c "{id: .jobid, resources: .resources, exclude: null}" \
		create >update &&
	rpc job-manager.dws.resource-update "$(cat update)"
}
prolog_remove () {
	rpc job-manager.dws.prolog-remove \
		"{\"id\": \"$1\", \"variables\": {\"DW_JOB_scratch\": \"/mnt\"}}"
}
epilog_remove () {
	rpc job-manager.dws.epilog-remove "{\"id\": \"$1\"}"
}
# Everything that speaks with the job manager starts again with it.
restart () {
	flux module remove sched-rabbit &&
	flux module remove job-exec &&
	flux module remove job-list &&
	flux module remove job-ingest &&
	flux module reload job-manager &&
	flux module load job-ingest &&
	flux module load job-list &&
	flux module load job-exec &&
	flux module load $DWS_MODULES/sched-rabbit.py
}
# facts: what sync says, by id
facts () {
	rpc job-manager.dws.sync >rpc.out &&
	jq -cS ".jobs | sort_by(.id)[]" <rpc.out
}

test_expect_success 'the configuration has loaded the plugin' '
	flux jobtap query dws-jobtap.so >query &&
	jq -e ".\"epilog-timeout\" == 5400" query &&
	dws_use_sched_rabbit &&
	flux module load --name=dws $DWS_SRCDIR/t/scripts/fake-dws.py
'
# timeout_is VALUE: what the plugin goes by
timeout_is () {
	flux jobtap query dws-jobtap.so >query &&
	jq -e ".\"epilog-timeout\" == $1" query
}
reload_plugin () {
	flux jobtap load --remove=dws-jobtap.so "$DWS_PLUGINS/dws-jobtap.so" "$@"
}
configure_timeout () {
	sed -i "s/epilog-timeout = [^ ]*/epilog-timeout = $1/" "$DWS_TMP/conf.d/test.toml" &&
	flux config reload
}
test_expect_success 'loaded anew without options it keeps those of the configuration' '
	reload_plugin &&
	timeout_is 5400 &&
	flux jobtap remove dws-jobtap.so &&
	flux jobtap load "$DWS_PLUGINS/dws-jobtap.so" &&
	timeout_is 5400
'
test_expect_success 'it follows the configuration' '
	configure_timeout 60.5 &&
	timeout_is 60.5 &&
	test_must_fail configure_timeout "\"soon\"" 2>err &&
	grep "dws-jobtap.*epilog-timeout\|dws-jobtap: .*real" err &&
	timeout_is 60.5 &&
	configure_timeout 5400 &&
	timeout_is 5400
'
test_expect_success 'options of the load command come before it, until the next load' '
	reload_plugin epilog-timeout=7 &&
	timeout_is 7 &&
	configure_timeout 8 &&
	timeout_is 7 &&
	reload_plugin &&
	timeout_is 8 &&
	configure_timeout 5400 &&
	timeout_is 5400
'
test_expect_success 'as it is at the start: the configuration is followed' '
	flux module remove dws &&
	restart &&
	timeout_is 5400 &&
	configure_timeout 9.5 &&
	timeout_is 9.5 &&
	configure_timeout 5400 &&
	flux module load --name=dws $DWS_SRCDIR/t/scripts/fake-dws.py
'
test_expect_success 'bring a job into every phase' '
	in_depend=$(flux submit -N1 -S dw="$GOOD" true) &&
	in_prolog=$(flux submit -N1 -S dw="$GOOD" -S dw_failure_tolerance=3 true) &&
	in_epilog=$(flux submit -N1 -S dw="$GOOD" true) &&
	cancelled=$(flux submit -N1 -S dw="$GOOD" true) &&
	release $in_prolog &&
	release $in_epilog &&
	expect $in_epilog prolog-start &&
	prolog_remove $in_epilog &&
	expect $in_depend dependency-add &&
	expect $in_prolog prolog-start &&
	expect $in_epilog epilog-start &&
	expect $cancelled dependency-add &&
	flux cancel $cancelled &&
	expect $cancelled epilog-start
'
test_expect_success 'after a restart the facts are the same' '
	facts >before &&
	jq -r .phase before >phases &&
	printf "depend\nprolog\nepilog\nepilog\n" >expected &&
	test_cmp expected phases &&
	restart &&
	facts >after &&
	test_cmp before after
'
test_expect_success 'the service is told where the jobs stand' '
	rpc dws.log >log &&
	for pair in "$in_depend create 2" "$in_prolog setup 2" \
		"$in_epilog post_run 2" "$cancelled post_run 2"; do
		set -- $pair &&
		jq -e --argjson id $(flux job id --to=dec $1) --arg name $2 \
			"[.requests[] | select(.name == \$name
			and .payload.jobid == \$id)] | length == $3" log || return 1
	done
'
test_expect_success 'they go on from there, through another restart' '
	epilog_remove $in_epilog &&
	epilog_remove $cancelled &&
	expect $in_epilog clean &&
	expect $cancelled clean &&
	prolog_remove $in_prolog &&
	release $in_depend &&
	expect $in_depend prolog-start &&
	expect $in_prolog epilog-start &&
	restart &&
	prolog_remove $in_prolog &&
	epilog_remove $in_prolog &&
	expect $in_prolog clean &&
	flux cancel $in_depend &&
	expect $in_depend prolog-finish -m status=1 &&
	expect $in_depend epilog-start &&
	epilog_remove $in_depend &&
	expect $in_depend clean
'
test_expect_success 'nothing was said twice' '
	flux job eventlog $in_prolog >log &&
	for event in dependency-add dependency-remove jobspec-update \
		prolog-start prolog-finish dws_environment epilog-start \
		epilog-finish; do
		test "$(grep -c $event log)" = 1 || return 1
	done
'
test_expect_success 'unload' '
	flux module remove dws &&
	flux jobtap remove dws-jobtap.so
'
test_done
