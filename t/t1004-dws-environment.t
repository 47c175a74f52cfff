#!/bin/bash
# dws_environment.so gives a rabbit job's tasks the variables of its event.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='The shell plugin sets the environment'
. "$(dirname "$0")/sharness.sh"
test_under_flux 4

FAKE=$DWS_SRCDIR/t/scripts/fake-dws.py
LATE=$DWS_SRCDIR/t/scripts/late-job-info.py
late=
GOOD="#DW jobdw type=xfs capacity=10GiB name=scratch"

# with_variables JSON COMMAND...: run a rabbit job with these variables.
with_variables () {
	variables=$1 &&
	shift &&
	jobid=$(flux submit -N1 "$@") &&
	rpc dws.wait "{\"name\": \"create\", \"jobid\": \"$jobid\"}" >create &&
	jq -c "{id: .jobid, resources: .resources, exclude: null}" \
		create >update &&
	rpc job-manager.dws.resource-update "$(cat update)" &&
	flux job wait-event -t 300 $jobid prolog-start &&
	if test -n "$late"; then
		flux module remove job-info &&
		flux module load --name=job-info $LATE $late
	fi &&
	rpc job-manager.dws.prolog-remove \
		"{\"id\": \"$jobid\", \"variables\": $variables}" &&
	rpc dws.wait "{\"name\": \"post_run\", \"jobid\": \"$jobid\"}" &&
	if test -n "$late"; then
		flux module remove job-info &&
		flux module load job-info
	fi &&
	rpc job-manager.dws.epilog-remove "{\"id\": \"$jobid\"}"
}

# with_late VARIABLES ARGUMENT...: the same while job-info answers its shell as
# late-job-info.py says.
with_late () {
	variables=$1 &&
	shift &&
	late="$*" &&
	with_variables "$variables" -S dw="$GOOD" env
}

test_expect_success 'load the jobtap plugin and a service that does nothing' '
	flux jobtap load $DWS_PLUGINS/dws-jobtap.so &&
	flux module load --name=dws $FAKE
'
test_expect_success 'a job without dw runs, with no variables' '
	flux run env >env.out &&
	test_must_fail grep ^DW_ env.out
'
test_expect_success 'so does one whose dw is empty' '
	for dw in "\"\"" "\" \\n\"" "[]" "[\" \"]" null; do
		flux run -N1 -S dw="$dw" env >env.out || return 1
		test_must_fail grep ^DW_ env.out || return 1
	done
'
test_expect_success 'every task on every node has the variables' '
	with_variables "{\"DW_JOB_scratch\": \"/mnt/a b\", \"DW_X\": \"\"}" \
		-S dw="$GOOD" -N2 -n4 env &&
	flux job attach $jobid >env.out &&
	test "$(grep -c "^DW_JOB_scratch=/mnt/a b\$" env.out)" = 4 &&
	test "$(grep -c "^DW_X=\$" env.out)" = 4
'
test_expect_success 'they win over what the user has set' '
	with_variables "{\"DW_JOB_scratch\": \"/right\"}" \
		-S dw="$GOOD" --env=DW_JOB_scratch=/wrong env &&
	flux job attach $jobid >env.out &&
	grep "^DW_JOB_scratch=/right\$" env.out &&
	test_must_fail grep /wrong env.out
'
test_expect_success 'a value is taken as it is' '
	with_variables "{\"DW_JOB_scratch\": \"%s\$HOME\\\"{{id}}\"}" \
		-S dw="$GOOD" env &&
	flux job attach $jobid >env.out &&
	grep "^DW_JOB_scratch=%s\$HOME\"{{id}}\$" env.out
'
test_expect_success 'no variables at all are fine' '
	with_variables "{}" -S dw="$GOOD" true &&
	flux job attach $jobid
'
test_expect_success 'an event that is not there yet comes with the watch' '
	with_late "{\"DW_JOB_scratch\": \"/watched\"}" watch &&
	flux job attach $jobid >env.out &&
	grep "^DW_JOB_scratch=/watched\$" env.out
'
test_expect_success 'or, where the watch hears nothing, with a look-up' '
	with_late "{\"DW_JOB_scratch\": \"/found\"}" lookup &&
	flux job attach $jobid >env.out &&
	grep "^DW_JOB_scratch=/found\$" env.out
'
test_expect_success 'a job whose eventlog cannot be watched says why' '
	with_late "{}" fail=ENODATA &&
	test_must_fail flux job attach $jobid 2>err &&
	grep "the job.s eventlog ended early" err &&
	with_late "{}" fail=EPERM &&
	test_must_fail flux job attach $jobid 2>err &&
	grep "watching the job.s eventlog: Operation not permitted" err &&
	late=
'
test_expect_success 'without the jobtap plugin no task runs without its storage' '
	flux jobtap remove dws-jobtap.so &&
	test_must_fail flux run -N1 -S dw="$GOOD" touch ran 2>err &&
	grep "asks for rabbit storage .* dws-jobtap.so was not loaded" err &&
	test_must_fail test -e ran &&
	export FLUX_CLI_PLUGINPATH_OVERRIDE= &&
	test_must_fail flux run -N1 -S dw="$GOOD" touch ran 2>err &&
	grep "was started without: dws-jobtap.so was not loaded" err &&
	test_must_fail flux run -S dw="[\"\", \"# none\"]" touch ran &&
	test_must_fail test -e ran &&
	unset FLUX_CLI_PLUGINPATH_OVERRIDE
'
# Only a flux-core has shells, and so watches, on other ranks.
test_expect_success FLUX_CORE 'on a rank whose KVS lags the events are asked of rank 0' '
	flux jobtap load $DWS_PLUGINS/dws-jobtap.so &&
	flux exec -r 1 flux module remove job-info &&
	flux exec -r 1 flux module load --name=job-info \
		"$DWS_SRCDIR/t/scripts/deaf-job-info.py" &&
	with_variables "{\"DW_JOB_scratch\": \"/heard\"}" \
		-S dw="$GOOD" --requires=rank:1 env &&
	flux job attach $jobid >env.out &&
	grep "^DW_JOB_scratch=/heard\$" env.out &&
	flux exec -r 1 flux module remove job-info &&
	flux exec -r 1 flux module load job-info
'
test_expect_success 'unload' '
	flux module remove dws
'
test_done
