#!/bin/bash
# DWS is told in SystemStatus which nodes it must not wait for: those that are
# down, and those that are stuck.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='SystemStatus'
. "$(dirname "$0")/sharness.sh"
dws_config () {
	dws_clock
}
test_under_flux 4

dws_offline () {
	test "$(flux resource list -s down -no "{nodelist}")" = "$1"
}
test_expect_success 'nothing is Disabled when all is well' '
	dws_setup &&
	dws_wait_status ".health.settled" &&
	dws_disabled
'
test_expect_success 'a node whose broker is offline is given a grace' '
	rpc resource.monitor-force-down "{\"ranks\": \"1,3\"}" &&
	dws_until dws_offline "node[1,3]" &&
	dws_wait_status ".health.settled" &&
	dws_disabled
'
test_expect_success 'then it is Disabled' '
	dws_pass 60 &&
	dws_disabled node1 node3
'
test_expect_success SOLO 'until it is online again' '
	rpc resource.monitor-force-down "{\"ranks\": \"1\", \"up\": true}" &&
	dws_disabled node3
'
test "$DWS_ENGINE" = solo && offline=node3 || offline="node1 node3"
test_expect_success 'a restart finds what an earlier life has left' '
	flux module remove dws &&
	dws_k8s patch systemstatuses default "{\"data\": {\"nodes\":
		{\"node0\": \"Disabled\", \"elsewhere\": \"Disabled\"}}}" &&
	flux module load "$DWS_MODULES/dws.so" &&
	dws_wait_status ".agent.synced" &&
	dws_disabled elsewhere $offline
'
test_expect_success 'a node that is stuck is, until it is undrained' '
	flux resource drain node2 "rabbit: failed to unmount in PostRun of x" &&
	dws_disabled elsewhere node2 $offline &&
	flux resource undrain node2 &&
	dws_disabled elsewhere $offline
'
test_expect_success 'the object need not exist' '
	dws_kill_agent &&
	dws_stop_sim &&
	dws_start_sim --no-system-status &&
	dws_start_agent &&
	dws_wait_status ".health.settled" &&
	flux dmesg >dmesg.out &&
	grep "SystemStatus is not kept" <dmesg.out
'
test_done
