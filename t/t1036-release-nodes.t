#!/bin/bash
# rabbit.release_nodes = "unmount": a job's nodes go to others while its data
# is still staged out. Its storage does not, and a failure is not forgotten.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Nodes that are free before the data is staged out'
. "$(dirname "$0")/sharness.sh"
test_under_flux 4

DWS_DIRECTIVE='#DW jobdw type=xfs capacity=60GiB name=scratch'

# submit_to RANK: one node, of which two hang on each rabbit
submit_to () {
	flux submit -N1 --exclusive --requires=rank:$1 -S dw="$DWS_DIRECTIVE" true
}
free_gib () {
	dws_wait 300 flux python "$DWS_SRCDIR/t/scripts/rpc.py" \
		sched-rabbit.stats-get >rpc.out &&
	jq .rabbits.rabbit0.free_gib <rpc.out
}
has_free_gib () {
	test "$(free_gib)" = "$1"
}
# in_state JOBID STATE
in_state () {
	dws_ctl wait-state $(dws_workflow $1) $2 --timeout 300
}
listed () {
	flux rabbit losses --json >losses && jq -e "$1" losses
}

test_expect_success 'rabbits of 100 GiB' '
	echo "release_nodes = \"unmount\"" >rabbit.toml &&
	dws_setup --capacity 100GiB &&
	dws_wait_status ".health.settled"
'
test_expect_success 'a job ends when its file systems are unmounted' '
	dws_ctl hold DataOut &&
	first=$(submit_to 0) &&
	dws_wait_event $first clean &&
	flux job status $first &&
	in_state $first DataOut
'
test_expect_success 'flux rabbit still knows it' '
	flux rabbit show $first >show &&
	grep "completed after .*its storage is in DataOut" show &&
	flux rabbit jobs -no "{id.f58} {state}" >jobs 2>&1 &&
	grep "$(flux job id --to=f58 $first) DataOut" jobs
'
test_expect_success 'its node is free, its storage is not' '
	flux run -N1 --exclusive --requires=rank:0 true &&
	left=$(free_gib) &&
	test $left -lt 60 &&
	second=$(submit_to 0) &&
	dws_wait_event $second priority &&
	flux run -N1 --exclusive --requires=rank:0 true &&
	test "$(flux jobs -no "{state}" $second)" = SCHED
'
test_expect_success 'also after restarts of scheduler, module and agent' '
	flux module reload sched-rabbit &&
	dws_until has_free_gib $left &&
	dws_kill_agent &&
	flux module reload dws &&
	dws_start_agent &&
	dws_wait_status ".agent.synced and .workflows == 2" &&
	dws_until has_free_gib $left &&
	test "$(flux jobs -no "{state}" $second)" = SCHED &&
	in_state $first DataOut
'
test_expect_success 'when the data is out the storage is free as well' '
	dws_ctl release DataOut &&
	dws_wait_event $second clean &&
	flux job status $second &&
	dws_clean &&
	dws_until has_free_gib 88 &&
	flux job info $first rabbit_dataout_timing &&
	flux job info $first rabbit_workflow >/dev/null &&
	listed "length == 0"
'
test_expect_success 'a stage-out that fails is logged, counted and listed' '
	dws_ctl fail DataOut --severity Fatal --message "disk full" &&
	third=$(submit_to 0) &&
	dws_wait_event $third clean &&
	flux job status $third &&
	dws_clean &&
	dws_wait_status ".losses.listed == 1 and .losses.total == 1" &&
	id=$(flux job id --to=dec $third) &&
	listed ".[0].id == $id and (.[0].text | contains(\"disk full\"))" &&
	flux rabbit losses >out &&
	grep "$(flux job id --to=f58 $third) .*disk full" out &&
	flux dmesg >dmesg.out &&
	grep "not staged out: .*disk full" <dmesg.out
'
test_expect_success 'and one that is deleted, which nobody sees at the time' '
	dws_ctl fail all --clear &&
	dws_ctl hold DataOut &&
	fourth=$(submit_to 0) &&
	dws_wait_event $fourth clean &&
	in_state $fourth DataOut &&
	flux module remove dws &&
	dws_k8s delete workflows $(dws_workflow $fourth) >/dev/null &&
	flux module load $DWS_MODULES/dws.so &&
	dws_wait_status ".losses.listed == 2" &&
	dws_ctl release DataOut &&
	dws_clean &&
	listed ".[1].text | contains(\"deleted in DataOut\")"
'
test_expect_success 'other users do not see it, nor take it off the list' '
	env FLUX_HANDLE_ROLEMASK=0x2 FLUX_HANDLE_USERID=4242 \
		flux rabbit losses --json >losses &&
	jq -e "length == 0" losses &&
	test_must_fail env FLUX_HANDLE_ROLEMASK=0x2 FLUX_HANDLE_USERID=4242 \
		flux rabbit losses --ack $third 2>err &&
	grep "is not listed" err
'
test_expect_success 'it is listed until it is acknowledged' '
	flux rabbit losses --ack $third &&
	listed "length == 1 and .[0].id == $(flux job id --to=dec $fourth)" &&
	flux module reload dws &&
	listed "length == 1" &&
	flux rabbit losses --ack $fourth &&
	test_must_fail flux rabbit losses --ack $fourth &&
	listed "length == 0"
'
test_expect_success 'losses of one user do not push off those of another' '
	flux module remove dws &&
	jq -cn "[{id: 8, userid: 4242, t: 1, text: \"theirs\"},
		(range(256) | {id: (100 + .), userid: $(id -u), t: 2, text: \"mine\"})]" \
		>before &&
	flux kvs put dws.losses="$(cat before)" &&
	flux module load "$DWS_MODULES/dws.so" &&
	dws_wait_status ".losses.listed == 257 and .agent.synced" &&
	dws_ctl fail DataOut --severity Fatal --message "disk full" &&
	fifth=$(submit_to 0) &&
	dws_wait_event $fifth clean && dws_clean &&
	dws_wait_status ".losses == {listed: 257, total: 1}" &&
	listed "map(.id) == [8, range(101; 356), $(flux job id --to=dec $fifth)]"
'
test_done
