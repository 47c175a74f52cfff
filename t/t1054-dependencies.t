#!/bin/bash
# --dependency=dws-in:JOBID and dws-out:JOBID: a job is held until the data of a
# rabbit job is in, or out, and gets an exception if that cannot be.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Jobs that wait for the data of others'
. "$(dirname "$0")/sharness.sh"
test_under_flux 4

COPY="$DWS_DIRECTIVE
#DW copy_in source=/lus/global/in destination=\$DW_JOB_scratch/in
#DW copy_out source=\$DW_JOB_scratch/out destination=/lus/global/out"

# producer COMMAND...: a rabbit job that copies in and out. Sets first.
producer () {
	first=$(flux submit -N1 -S dw="$COPY" "$@")
}
# consumer SCHEME [OPTION...]: a job that waits for its data. Sets second.
consumer () {
	wanted=$1:$(flux job id --to=f58 $first)
	shift
	second=$(flux submit -N1 --dependency=$wanted "$@" true) &&
	dws_wait_event -m description=$wanted $second dependency-add
}
# in_state STATE: the workflow of the first
in_state () {
	dws_ctl wait-state $(dws_workflow $first) $1 --timeout $DWS_LIMIT
}
# held: the second is, and nothing has been said to it
held () {
	test "$(flux jobs -no "{state}" $second)" = DEPEND &&
	flux job eventlog $second >eventlog &&
	test_must_fail grep "dependency-remove.*$wanted" eventlog &&
	test_must_fail grep " exception " eventlog
}
# let_go: the second runs, and was told so once
let_go () {
	dws_wait_event $second clean &&
	flux job status $second &&
	flux job eventlog $second >eventlog &&
	test "$(grep -c "dependency-add.*$wanted" eventlog)" = 1 &&
	test "$(grep -c "dependency-remove.*$wanted" eventlog)" = 1
}
# failed TEXT: the second has ended with an exception that says so
failed () {
	dws_wait_event -m type=dependency -m severity=0 $second exception >exception &&
	grep -e "$wanted: $1" exception || { cat exception; return 1; }
	dws_wait_event $second clean &&
	test_must_fail flux job wait-event $second alloc
}
# refused TEXT DEPENDENCY [OPTION...]
refused () {
	text=$1 dependency=$2
	shift 2
	test_must_fail flux submit -N1 --dependency=$dependency "$@" true 2>err &&
	grep -e "$text" err || { cat err; return 1; }
}
recorded () {
	flux job info $first rabbit_dataout_timing
}
reload_plugin () {
	flux jobtap remove dws-jobtap.so &&
	flux jobtap load "$DWS_PLUGINS/dws-jobtap.so"
}

test_expect_success 'load everything' '
	dws_setup
'
test_expect_success 'out: it is held until the data is out, not only until the tasks have ended' '
	dws_ctl hold DataOut &&
	dws_ctl hold Teardown &&
	producer true &&
	consumer dws-out &&
	dws_wait_event $first finish &&
	in_state DataOut &&
	held
'
test_expect_success 'flux jobs shows it' '
	test "$(flux jobs -no "{dependencies}" $second)" = "$wanted"
'
test_expect_success 'it is not held until the nodes are free' '
	dws_ctl release DataOut &&
	let_go &&
	test "$(flux jobs -no "{state}" $first)" = CLEANUP &&
	dws_ctl release Teardown &&
	dws_wait_event $first clean
'
test_expect_success 'after the end of the job there is nothing to wait for, in any notation' '
	for notation in f58 dec hex kvs dothex; do
		id=$(flux job id --to=$notation $first) &&
		second=$(flux submit -N1 --dependency=dws-out:$id true) &&
		let_go || return 1
	done &&
	consumer dws-in &&
	let_go
'
test_expect_success 'in: it is held until the data is in' '
	dws_ctl hold DataIn &&
	dws_ctl hold PreRun &&
	producer true &&
	consumer dws-in &&
	in_state DataIn &&
	held &&
	dws_ctl release DataIn &&
	let_go &&
	in_state PreRun &&
	dws_ctl release PreRun &&
	dws_wait_event $first clean
'
test_expect_success 'a rabbit job waits as well, and says for what' '
	dws_ctl hold DataOut &&
	producer true &&
	consumer dws-out -S dw="$DWS_DIRECTIVE" &&
	dws_wait_event -m description=dws-create $second dependency-remove &&
	in_state DataOut &&
	held &&
	flux rabbit show $second >show &&
	grep "waits for *the data of $(flux job id --to=f58 $first) to be staged out" show &&
	dws_ctl release DataOut &&
	let_go
'
test_expect_success 'a job that waits can be cancelled' '
	dws_ctl hold DataOut &&
	producer true &&
	consumer dws-out &&
	in_state DataOut &&
	flux cancel $second &&
	dws_wait_event $second clean &&
	dws_ctl release DataOut &&
	dws_wait_event $first clean
'
test_expect_success 'one that was let go takes nobody with it' '
	gone=$first &&
	dws_ctl hold DataIn &&
	producer true &&
	consumer dws-out &&
	in_state DataIn &&
	flux run -N1 --dependency=dws-out:$gone true &&
	held &&
	flux cancel $first &&
	failed "" &&
	dws_ctl release DataIn &&
	dws_wait_event $first clean
'
test_expect_success 'a stage-out that fails is told' '
	dws_ctl fail DataOut --severity Fatal --message "disk full" &&
	producer true &&
	consumer dws-out &&
	failed "the data of job $(flux job id --to=f58 $first) was not staged out: .*disk full" &&
	dws_ctl fail DataOut --clear &&
	dws_wait_event $first clean &&
	consumer dws-out &&
	failed ".*disk full"
'
test_expect_success 'a stage-in that fails is told' '
	dws_ctl fail DataIn --severity Fatal --message "no such file" &&
	producer true &&
	consumer dws-in &&
	failed "the data of job .* was not staged in: .*no such file" &&
	dws_ctl fail DataIn --clear
'
test_expect_success 'tasks that fail are, as afterok would' '
	producer false &&
	consumer dws-out &&
	failed "job $(flux job id --to=f58 $first) failed: a task ended with exit code 1" &&
	dws_wait_event $first clean &&
	consumer dws-in &&
	let_go
'
test_expect_success 'nobody waits for data whose workflow was deleted' '
	dws_ctl hold DataOut &&
	producer true &&
	consumer dws-out &&
	in_state DataOut &&
	dws_k8s delete workflows $(dws_workflow $first) >deleted &&
	dws_wait_event $first clean &&
	failed "the data of job .* was not staged out: its workflow is not there" &&
	dws_ctl release DataOut
'
for phase in depend pending setup datain prerun running postrun dataout; do
	test_expect_success "cancelled in $phase" '
		DWS_DIRECTIVE="$COPY" dws_catch $phase &&
		first=$jobid &&
		consumer dws-out &&
		held &&
		flux cancel $first &&
		failed "\(job .* failed\|the data of .* was not staged out\): cancel" &&
		dws_let_go &&
		dws_wait_event $first clean
	'
done
test_expect_success 'when the data is out an exception does not take it back' '
	DWS_DIRECTIVE="$COPY" dws_catch teardown &&
	first=$jobid &&
	consumer dws-out &&
	let_go &&
	flux cancel $first &&
	dws_let_go &&
	dws_wait_event $first clean &&
	consumer dws-out &&
	let_go
'
test_expect_success 'what can never be fulfilled is refused' '
	plain=$(flux submit -N1 true) &&
	bare=$(flux submit -N1 -S dw="$DWS_DIRECTIVE" true) &&
	refused "dependency dws-out: \"never\" is not a job id" dws-out:never &&
	refused "dependency dws-in: there is no job" dws-in:12345678 &&
	refused "job $plain has no #DW directives" dws-out:$plain &&
	refused "job $bare has no copy_out directive" dws-out:$bare &&
	refused "job $bare has no copy_in directive" dws-in:$bare &&
	refused "dependency scheme .*dws-up.* not supported" dws-up:$bare &&
	dws_wait_event $bare clean
'
test_expect_success 'nobody waits for the jobs of other users' '
	flux submit --dry-run -N1 --dependency=dws-out:$first true >submit.out &&
	test_must_fail flux python "$DWS_SRCDIR/t/scripts/submit_as.py" \
		$(id -u nobody) <submit.out 2>err &&
	grep "dependency dws-out: job .* is another user" err
'
test_expect_success 'the plugin is reloaded, as are module and agent' '
	dws_ctl hold DataOut &&
	producer true &&
	consumer dws-out --dependency=dws-in:$first &&
	dws_wait_event -m description=dws-in:$(flux job id --to=f58 $first) \
		$second dependency-remove &&
	in_state DataOut &&
	reload_plugin &&
	dws_kill_agent &&
	flux module reload dws &&
	dws_start_agent &&
	dws_wait_status ".synced and .agent.synced" &&
	held &&
	dws_ctl release DataOut &&
	let_go
'
test_expect_success FLUX_CORE 'the service that watches the KVS is away for a moment' '
	dws_ctl hold DataOut &&
	producer true &&
	consumer dws-out &&
	in_state DataOut &&
	flux module reload -f kvs-watch &&
	held &&
	dws_ctl release DataOut &&
	let_go
'
test_expect_success 'what has happened while the plugin was away is found' '
	dws_ctl hold DataOut &&
	producer true &&
	consumer dws-out &&
	good=$second &&
	in_state DataOut &&
	flux jobtap remove dws-jobtap.so &&
	dws_ctl release DataOut &&
	dws_until recorded &&
	held &&
	flux jobtap load "$DWS_PLUGINS/dws-jobtap.so" &&
	let_go &&
	dws_wait_event $first clean &&
	producer sleep inf &&
	consumer dws-out &&
	dws_wait_event $first start &&
	flux jobtap remove dws-jobtap.so &&
	flux cancel $first &&
	dws_wait_event $first clean &&
	held &&
	flux jobtap load "$DWS_PLUGINS/dws-jobtap.so" &&
	failed "job .* failed: cancel" &&
	dws_clean
'
test_expect_success 'the nodes are given back early: the data is waited for' '
	echo "release_nodes = \"unmount\"" >>"$DWS_TMP/conf.d/test.toml" &&
	flux config reload &&
	dws_ctl hold DataOut &&
	producer true &&
	consumer dws-out &&
	dws_wait_event $first clean &&
	in_state DataOut &&
	held &&
	reload_plugin &&
	held &&
	dws_ctl release DataOut &&
	let_go
'
test_expect_success 'and a loss is told, that was listed before or after' '
	dws_ctl fail DataOut --severity Fatal --message "disk full" &&
	producer true &&
	consumer dws-out &&
	failed "the data of job .* was not staged out: .*disk full" &&
	dws_clean &&
	consumer dws-out &&
	failed "the data of job .* was not staged out: .*disk full" &&
	flux rabbit losses --ack $first &&
	consumer dws-out &&
	failed "the data of job .* was not staged out: its file systems are removed" &&
	dws_ctl fail DataOut --clear
'
test_expect_success 'nothing is left' '
	dws_clean
'
test_done
