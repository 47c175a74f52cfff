#!/bin/bash
# flux rabbit for admins: drain, disable, release.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='flux rabbit for admins'
. "$(dirname "$0")/sharness.sh"
test_under_flux 4

drained () {
	flux resource drain -no "{nodelist} {reason}"
}

test_expect_success 'load everything' '
	dws_setup
'
test_expect_success 'drain: the nodes of a rabbit, with the reason' '
	flux rabbit drain --reason "new firmware" rabbit1 >out &&
	echo "drained node[2-3]" >exp && test_cmp exp out &&
	drained >out &&
	echo "node[2-3] rabbit: new firmware" >exp && test_cmp exp out &&
	flux rabbit drain --reason "something else" "rabbit[0-1]" --json >json &&
	jq -e ".nodes == \"node[0-1]\"" json &&
	drained >out && grep "node\[2-3\] rabbit: new firmware" out
'
test_expect_success 'undrain: only what was drained for a rabbit' '
	flux rabbit undrain rabbit0 &&
	flux resource drain node0 a fan &&
	flux rabbit undrain "rabbit[0-1]" >out &&
	echo "undrained node[2-3]" >exp && test_cmp exp out &&
	drained >out && echo "node0 a fan" >exp && test_cmp exp out &&
	flux rabbit undrain rabbit0 >out && grep "no node" out &&
	flux rabbit undrain --all rabbit0 &&
	drained >out && test ! -s out
'
test_expect_success 'disable and enable, with the reason in the list' '
	flux rabbit disable --reason "bad drive" rabbit0 &&
	dws_wait_status ".rabbits.states.Disabled == 1" &&
	flux rabbit list -no "{name} {state} {reason} {by}" rabbit0 >out &&
	echo "rabbit0 Disabled bad drive $(id -un)" >exp && test_cmp exp out &&
	flux rabbit list -no "{since}" rabbit0 >out && grep "^$(date +%Y-)" out &&
	flux rabbit list -o long >out && grep "REASON  *SINCE  *BY" out &&
	flux rabbit enable rabbit0 &&
	dws_wait_status ".rabbits.states.Ready == 2" &&
	flux rabbit list -o long >out && test_must_fail grep REASON out &&
	dws_k8s get storages rabbit0 >storage && test_must_fail grep "disable" storage &&
	SUDO_USER=alice flux rabbit disable --reason "bad drive" rabbit0 &&
	dws_wait_status ".rabbits.states.Disabled == 1" &&
	flux rabbit list -no "{by}" rabbit0 >out && grep -Fx alice out &&
	flux rabbit enable rabbit0 &&
	dws_wait_status ".rabbits.states.Ready == 2" &&
	test_expect_code 2 flux rabbit disable rabbit0 &&
	test_expect_code 1 flux rabbit disable --reason x rabbit9
'
test_expect_success 'what Kubernetes refuses is told' '
	dws_ctl deny storages:patch &&
	test_expect_code 1 flux rabbit disable --reason x --json rabbit0 >json &&
	jq -e ".errors[0] | test(\"rabbit0: .*cannot patch\")" json &&
	dws_ctl deny
'
test_expect_success 'release: a job that has not run is ended' '
	dws_ctl hold Setup &&
	jobid=$(dws_submit true) &&
	dws_wait_status ".states.Setup == 1" &&
	test_expect_code 1 flux rabbit release $jobid </dev/null 2>err &&
	grep "say --yes" err &&
	flux rabbit release --yes --reason enough $jobid >out &&
	grep "is in Setup" out &&
	grep "ended by an exception" out &&
	dws_wait_event $jobid clean &&
	flux job eventlog $jobid >log && grep "type=\"dws-release\".*enough" log &&
	dws_ctl release Setup && dws_clean
'
test_expect_success 'release: a stuck job is let go, what it leaves is told' '
	dws_ctl hang-mount node1 on &&
	dws_ctl hold PostRun &&
	jobid=$(dws_submit true) &&
	dws_ctl hang-mount node1 off &&
	dws_ctl wait-state $(dws_workflow $jobid) PostRun --timeout 300 &&
	dws_ctl hang-mount node1 on &&
	flux rabbit release --yes --json $jobid >json &&
	jq -e ".released and (.left_behind | join(\" \")
		| test(\"workflow fluxjob-.*mounted on node.*not been copied.*on rabbit0\"))" \
		json &&
	dws_wait_event $jobid clean &&
	flux job eventlog $jobid >log && grep dws-epilog-timeout log
'
test_expect_success 'its node is drained, its rabbit disabled' '
	dws_wait_status ".rabbits.states.Disabled == 1" &&
	flux rabbit list -s Disabled -no "{name}" >out &&
	echo rabbit0 >exp && test_cmp exp out &&
	drained >out && grep "node.* rabbit: " out &&
	flux rabbit enable rabbit0 &&
	dws_wait_status ".rabbits.states.Ready == 2" &&
	dws_ctl hang-mount node1 off && dws_ctl release PostRun &&
	dws_ctl wait-idle --timeout 300 && dws_wait_status ".workflows == 0" &&
	flux rabbit undrain "rabbit[0-1]" 2>err &&
	grep "node.*: fluxjob-.* is gone, which had not been unmounted there: look" err &&
	drained >out && test ! -s out
'
test_expect_success 'only active rabbit jobs can be released' '
	test_expect_code 1 flux rabbit release --yes $jobid 2>err &&
	grep "not an active rabbit job" err
'
test_expect_success 'a guest may do none of that' '
	FLUX_HANDLE_USERID=4242 FLUX_HANDLE_ROLEMASK=0x2 test_expect_code 1 \
		flux rabbit disable --reason x rabbit0
'
test_done
