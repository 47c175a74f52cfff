#!/bin/bash
# NNF's workflow controller reads Servers from a cache. Now and then that has not been
# told of what we have written, and the workflow fails for good: it is made anew, once.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='A workflow that NNF has failed by its own race'
. "$(dirname "$0")/sharness.sh"
test_under_flux 4

RACE="Allocation request does not meet directive requirements"

# remade COUNT: so many workflows were
remade () {
	dws_wait_status ".remade == $1"
}
exception () {
	dws_wait_event -m type=$2 $1 exception >exception
}

test_expect_success 'load everything' '
	dws_setup &&
	remade 0
'
test_expect_success 'the job does not hear of it, and keeps its nodes' '
	dws_ctl outdate-servers 1 &&
	jobid=$(dws_submit true) &&
	dws_ended_well $jobid &&
	remade 1 &&
	test $(grep -c " alloc" eventlog) = 1 &&
	flux dmesg >dmesg &&
	grep "$(dws_workflow $jobid)): the workflow is made anew" dmesg &&
	dws_clean
'
test_expect_success 'nor does one that gets its data first' '
	dws_ctl outdate-servers 1 &&
	jobid=$(dws_submit --setattr=system.dw_data_first=1 true) &&
	dws_ended_well $jobid &&
	remade 2 &&
	dws_clean
'
test_expect_success 'it is tried again once' '
	dws_ctl outdate-servers 2 &&
	jobid=$(dws_submit true) &&
	exception $jobid dws-setup &&
	grep "$RACE.* .fault: storage; submit again" exception &&
	dws_wait_event $jobid clean &&
	remade 3 &&
	dws_clean
'
test_expect_success 'the module is loaded anew meanwhile' '
	dws_ctl outdate-servers 1 &&
	dws_ctl hold Teardown &&
	jobid=$(dws_submit true) &&
	dws_ctl wait-state $(dws_workflow $jobid) Teardown --timeout $DWS_LIMIT &&
	flux module reload "$DWS_MODULES/dws.so" &&
	dws_wait_status ".agent.synced == true" &&
	dws_ctl release Teardown &&
	dws_ended_well $jobid &&
	dws_clean
'
test_expect_success 'storage that outlives the job is not torn down for it' '
	echo "restrict_persistent_creation = false" >>"$DWS_TMP/conf.d/test.toml" &&
	flux config reload &&
	dws_ctl outdate-servers 1 &&
	jobid=$(flux submit -N2 -S dw="#DW create_persistent type=lustre capacity=10GiB name=keep" true) &&
	exception $jobid dws-setup &&
	grep "$RACE.* .fault: storage" exception &&
	dws_wait_event $jobid clean &&
	remade 0
'
test_done
