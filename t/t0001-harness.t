#!/bin/bash
# The harness itself: an instance starts, has its nodes, and runs a job.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='The test harness under this engine'
. "$(dirname "$0")/sharness.sh"
test_under_flux 4

test_expect_success 'the instance has its made-up nodes' '
	flux resource list -s free -no {nodelist} >hosts &&
	echo "node[0-3]" >expected &&
	test_cmp expected hosts
'
test_expect_success 'a job runs on two of them' '
	flux run -N2 echo here >out &&
	test "$(grep -c here out)" = 2
'
test_expect_success 'a failing job fails its command' '
	test_must_fail flux run false
'
test_expect_success 'sched-rabbit can serve as the scheduler' '
	dws_use_sched_rabbit &&
	flux run -N4 true
'
test_done
