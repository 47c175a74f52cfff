#!/bin/bash
# The name service takes its time: jobs wait for it, the module does not.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='A name service that does not answer'
. "$(dirname "$0")/sharness.sh"

dws_config () {
	dws_names
}
test_under_flux 4

# From now on there is no answer.
slow () {
	rm -f "$SLOW_NAMES.reached" &&
	>"$SLOW_NAMES"
}
# Wait until the module waits for the name service.
asked () {
	dws_until test -e "$SLOW_NAMES.reached"
}
# answers FILTER: so does the module, at once.
answers () {
	dws_wait 60 flux python "$DWS_SRCDIR/t/scripts/rpc.py" dws.status "{}" >status &&
	jq -e "$1" status
}
owner () {
	dws_wait_status ".persistent | map(.user) == [\"$1\"]"
}

test_expect_success 'load everything' '
	echo "restrict_persistent_creation = false" >rabbit.toml &&
	dws_setup
'
test_expect_success 'while the user of a job is looked up the module answers' '
	slow &&
	jobid=$(dws_submit true) &&
	asked &&
	answers ".jobs == 1 and .workflows == 0 and .unmade == 1"
'
test_expect_success 'the job goes on when that is known' '
	rm "$SLOW_NAMES" &&
	dws_wait_event $jobid clean && flux job status $jobid
'
test_expect_success 'so it is with the owner of a file system: a number for now' '
	slow &&
	jobid=$(flux submit -N1 \
		-S dw="#DW create_persistent type=xfs capacity=1GiB name=keep" true) &&
	asked &&
	owner $(id -u) &&
	answers ".jobs >= 0" &&
	rm "$SLOW_NAMES" &&
	owner $(id -un) &&
	dws_wait_event $jobid clean && flux job status $jobid
'
test_expect_success 'the module can be removed while it waits for a name' '
	flux module remove dws &&
	slow &&
	flux module load "$DWS_MODULES/dws.so" &&
	jobid=$(dws_submit true) &&
	asked &&
	dws_wait 60 flux module remove dws
'
test_expect_success 'and loaded again: the job goes on' '
	flux module load "$DWS_MODULES/dws.so" &&
	rm "$SLOW_NAMES" &&
	dws_wait_event $jobid clean && flux job status $jobid &&
	jobid=$(flux submit -N1 -S dw="#DW destroy_persistent name=keep" true) &&
	dws_wait_event $jobid clean && flux job status $jobid &&
	dws_clean
'
test_done
