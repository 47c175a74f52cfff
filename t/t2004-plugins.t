#!/bin/bash
# The options that spread nodes over chassis, and the plugin that lets jobs
# onto rabbits.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Plugins of flux commands and of job ingest'
. "$(dirname "$0")/sharness.sh"

# A queue of compute nodes, and one node that is a rabbit.
dws_config () {
	dws_config_queue 0-3 4
}
test_under_flux 5

export FLUX_CLI_PLUGINPATH_OVERRIDE=$DWS_SRCDIR/etc/cli/plugins
RABBIT=rank:4
DW="#DW jobdw type=xfs capacity=10GiB name=scratch"

dry () {
	flux run --dry-run "$@" true >jobspec
}
# fails TEXT OPTION...: with this on standard error
fails () {
	text=$1
	shift
	test_must_fail dry "$@" 2>err && grep -e "$text" err
}

test_expect_success 'flux run has the options' '
	flux run --help >help &&
	grep -e --coral2-chassis help && grep -e --coral2-rabbit-cores help
'
test_expect_success 'without them nothing changes' '
	dry -N2 && jq .resources jobspec >actual &&
	FLUX_CLI_PLUGINPATH_OVERRIDE= dry -N2 && jq .resources jobspec >expected &&
	test_cmp expected actual
'
test_expect_success 'where the scheduler knows no chassis they are refused' '
	fails "neither resource.scheduling nor rabbit.mapping" \
		-N2 --coral2-chassis=1
'
test_expect_success 'load everything' '
	dws_setup && flux queue start --all
'
test_expect_success 'nodes are spread evenly' '
	dry -N6 --coral2-chassis=2 &&
	jq -e ".resources | length == 1 and .[0].type == \"chassis\" and
		.[0].count == 2 and (.[0].with | length) == 1 and
		.[0].with[0].type == \"node\" and .[0].with[0].count == 3" jobspec &&
	jq -e ".attributes.system.allow_rabbits == null" jobspec
'
test_expect_success 'cores of the rabbits come with them' '
	dry -N8 --coral2-chassis=2 --coral2-rabbit-cores=3 &&
	jq -e ".resources[0].with | length == 2 and .[0].count == 4 and
		.[1] == {type: \"storage_node\", count: 1, with: [{type: \"core\",
		count: 3, exclusive: true}]}" jobspec &&
	jq -e ".attributes.system.allow_rabbits == true" jobspec
'
test_expect_success 'faulty values are refused, with what is wrong' '
	fails "requires -N" -n1 --coral2-chassis=1 &&
	fails "3 nodes cannot be spread evenly over 2 chassis" \
		-N3 --coral2-chassis=2 &&
	fails "requires --coral2-chassis=N" -N2 --coral2-rabbit-cores=1 &&
	fails "invalid positive_integer" -N2 --coral2-chassis=0 &&
	fails "invalid positive_integer" -N2 --coral2-chassis=two &&
	fails "invalid positive_integer" \
		-N2 --coral2-chassis=1 --coral2-rabbit-cores=-1
'
test_expect_success 'a job with storage runs on as many chassis as it wants' '
	jobid=$(flux submit -N2 --coral2-chassis=2 -S dw="$DW" true) &&
	dws_wait_event $jobid clean &&
	flux job status $jobid &&
	flux job info $jobid R >R.out &&
	jq -r ".execution.R_lite[].rank" <R.out >ranks &&
	test $(grep -c -E "[01]" ranks) -eq 1 &&
	dws_clean
'
test_expect_success 'without allow_rabbits a job stays off the rabbit' '
	test_must_fail flux run -N1 --requires=$RABBIT true 2>err &&
	test_must_fail flux run -N1 --requires=$RABBIT -S dw=" " true 2>err &&
	test_must_fail flux run -N1 --requires=$RABBIT -S allow_rabbits true
'
test_expect_success 'with it and dw the constraint is wider' '
	jobid=$(flux submit -N1 -S allow_rabbits -S dw="$DW" true) &&
	flux job info $jobid jobspec >jobspec &&
	jq -e "[.attributes.system.constraints | .. | .or? // empty]
		| any(. == [{properties: [\"batch\"]}, {properties: [\"rabbit\"]}])" \
		jobspec &&
	dws_wait_event $jobid clean
'
test_expect_success 'it needs the constraints plugin before it' '
	plugin=$DWS_SRCDIR/src/python/frobnicator/rabbit.py &&
	sed "/\"constraints\"/d; s,^ *\"/.*rabbit.py\"\],plugins = [\"$plugin\"]," \
		"$DWS_TMP/conf.d/test.toml" >conf && 
	cp conf "$DWS_TMP/conf.d/test.toml" &&
	flux config reload && flux module reload job-ingest &&
	test_must_fail flux submit -N1 -S allow_rabbits -S dw="$DW" true 2>err &&
	grep "must have .constraints. before" err
'
test_done
