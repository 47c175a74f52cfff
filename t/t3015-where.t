#!/bin/bash
# A user says where a job is to be: next to rabbits, a job's, or those of a file system.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Jobs next to rabbits that their users name'
. "$(dirname "$0")/sharness.sh"

test_under_flux 6

# submit OPTION...: a job that can run for long
submit () {
	jobid=$(flux submit --dw="$DWS_DIRECTIVE" "$@" sleep inf)
}
runs_on () {
	dws_wait_event $jobid start && flux jobs -no "{nodelist}" $jobid >nodes &&
	test "$(cat nodes)" = "$1"
}
ends () {
	flux cancel $1 && dws_wait_event $1 clean
}
# refused TEXT: after it was taken, before it got any nodes
refused () {
	dws_wait_event -m type=dws-create $jobid exception >exception &&
	grep "$1" exception && dws_wait_event $jobid clean &&
	flux job eventlog $jobid >eventlog && test_must_fail grep alloc eventlog
}

test_expect_success 'load everything: two rabbits of two nodes, two nodes without one' '
	dws_start_sim &&
	dws_load &&
	dws_start_agent &&
	dws_wait_status ".agent.synced"
'
test_expect_success 'a job goes to the nodes next to the rabbits it names' '
	submit -N2 --dw-rabbits=rabbit1 && runs_on "node[2-3]" && ends $jobid &&
	submit -N4 --dw-rabbits=rabbit[0-1] && runs_on "node[0-3]" && ends $jobid
'
test_expect_success 'also by attribute, and with what the user asks for besides' '
	submit -N1 -S dw_rabbits=rabbit1 --requires=rank:3 &&
	runs_on node3 && ends $jobid
'
test_expect_success 'one that there is not is refused at once' '
	test_must_fail flux submit -N1 --dw="$DWS_DIRECTIVE" --dw-rabbits=rabbit1,rabit \
		true 2>err &&
	grep "dw-rabbits: there is no rabbit .rabit., there are rabbit\[0-1\]" err &&
	test_must_fail flux submit -N1 --dw="$DWS_DIRECTIVE" --dw-rabbits="r[" true 2>err &&
	grep "r\[. is not a hostlist of rabbits" err
'
test_expect_success 'so is a place without storage' '
	test_must_fail flux submit -N1 --dw-rabbits=rabbit1 true 2>err &&
	grep "dw-rabbits: there are no #DW directives" err
'
# by_hand KEY VALUE [DW]: a jobspec that is not made by our options
by_hand () {
	flux submit -N1 --dry-run true >spec &&
	jq ".attributes.system += {\"$1\": $2, \"dw\": \"${3-$DWS_DIRECTIVE}\"}" <spec \
		>spec.json &&
	flux python -c "import flux, flux.job, sys
id = flux.job.submit(flux.Flux(), sys.stdin.read())
print(flux.job.JobID(id).f58plain)" <spec.json
}
test_expect_success 'the job manager refuses what is none' '
	test_must_fail by_hand dw_rabbits "[7]" 2>err && grep "dw_rabbits must be" err &&
	test_must_fail by_hand dw_rabbits "\"r[\"" 2>err && grep "dw_rabbits must be" err &&
	test_must_fail by_hand dw_near "\"\"" 2>err && grep "dw_near must be" err &&
	test_must_fail by_hand dw_near "\"x\"" "" 2>err && grep "dw_near: there are no" err
'
test_expect_success 'an unknown rabbit is refused by the module, too' '
	jobid=$(by_hand dw_rabbits "\"rabbit[1-2]\"") &&
	refused "dw_rabbits: there is no rabbit .rabbit2., there are rabbit\[0-1\]"
'
test_expect_success 'too few nodes are refused with the numbers' '
	submit -N3 --dw-rabbits=rabbit1 &&
	refused "dw_rabbits: the nodes next to rabbit1 are 2, the job needs 3"
'
test_expect_success 'a job goes next to one that runs, and waits for nodes there' '
	submit -N1 --requires=rank:3 && runs_on node3 && first=$jobid &&
	submit -N1 --dw-near=$first && runs_on node2 && second=$jobid &&
	submit -N1 --dw-near=$first && dws_wait_event $jobid depend &&
	dws_wait_event $jobid priority && ends $first && runs_on node3 &&
	ends $jobid && ends $second
'
test_expect_success 'or next to one that has ended, or has no storage at all' '
	submit -N2 --dw-near=$first && runs_on "node[2-3]" && ends $jobid &&
	plain=$(flux submit -N1 --requires=rank:1 true) &&
	dws_wait_event $plain clean &&
	submit -N2 --dw-near=$plain && runs_on "node[0-1]" && ends $jobid
'
test_expect_success 'next to nodes without a rabbit is nothing' '
	plain=$(flux submit -N2 --requires=rank:4-5 true) &&
	dws_wait_event $plain clean &&
	submit -N1 --dw-near=$plain &&
	refused "dw_near: job $plain: none of its nodes has a rabbit"
'
test_expect_success 'too few nodes are next to it' '
	submit -N3 --dw-near=$first &&
	refused "dw_near: the nodes next to rabbit1 are 2, the job needs 3"
'
test_expect_success 'both must hold' '
	submit -N1 --dw-near=$first --dw-rabbits=rabbit[0-1] &&
	dws_wait_event $jobid start && flux jobs -no "{nodelist}" $jobid >nodes &&
	grep "node[23]" nodes && ends $jobid &&
	submit -N1 --dw-near=$first --dw-rabbits=rabbit0 &&
	refused "next to all that the job asks for .* are 0, it needs 1"
'
test_expect_success 'what is no job and no file system' '
	submit -N1 --dw-near=ffffff && refused "dw_near: .ffffff. is neither a job nor" &&
	submit -N1 --dw-near=no-such && refused "dw_near: there is no persistent file system .no-such."
'
test_expect_success 'a job that has not started has no place yet' '
	flux queue stop --quiet &&
	waits=$(flux submit -N1 true) &&
	submit -N1 --dw-near=$waits &&
	refused "dw_near: job $waits has no nodes, as it has not started" &&
	flux queue start --quiet && dws_wait_event $waits clean
'
test_expect_success 'nor next to the job of another user' '
	submit -N1 && others=$jobid && dws_wait_event $others start &&
	flux submit --dry-run -N1 --dw="$DWS_DIRECTIVE" -S dw_near=$others true >spec &&
	jobid=$(flux python "$DWS_SRCDIR/t/scripts/submit_as.py" 4242 <spec) &&
	refused "dw_near: .*$others.* is another user.s job" && ends $others
'
test_expect_success 'a persistent file system' '
	jobid=$(flux submit -N1 --dw-rabbits=rabbit0 \
		--dw="#DW create_persistent type=xfs capacity=1GiB name=keep" true) &&
	dws_wait_event $jobid clean && flux job status $jobid &&
	dws_wait_status ".persistent[0].space | keys == [\"rabbit0\"]" &&
	submit -N2 --dw-near=keep && runs_on "node[0-1]" && ends $jobid
'
test_expect_success 'one of another user, unless it is for all' '
	dws_kube patch persistentstorageinstances default keep \
		"{\"spec\": {\"userID\": 4243}}" &&
	dws_wait_status ".persistent[0].userid == 4243" &&
	submit -N1 --dw-near=keep && refused "keep. belongs to another user" &&
	dws_kube patch persistentstorageinstances default keep "{\"metadata\": {\"annotations\":
		{\"dataworkflowservices.github.io/ignore-uid\": \"true\"}}}" &&
	dws_wait_status ".persistent[0].shared" &&
	submit -N2 --dw-near=keep && runs_on "node[0-1]" && ends $jobid
'
test_expect_success '--dw-check says where' '
	flux submit -N2 --dw="$DWS_DIRECTIVE" --dw-rabbits=rabbit1 --dw-near=$first \
		--dw-check true >out &&
	grep "^nodes: 2, next to rabbit1 and $first" out && grep "^rabbits: 1 of 1;" out
'
test_expect_success 'module and plugin restart while a job is let in, and while it waits' '
	dws_ctl hold Proposal &&
	submit -N2 --dw-near=$first && dws_ctl wait-state $(dws_workflow $jobid) Proposal \
		--timeout $DWS_LIMIT &&
	flux module reload -f "$DWS_MODULES/dws.so" &&
	flux jobtap remove dws-jobtap.so && flux jobtap load "$DWS_PLUGINS/dws-jobtap.so" &&
	flux queue stop --quiet &&
	dws_ctl release Proposal && dws_wait_event $jobid priority &&
	flux module reload -f "$DWS_MODULES/dws.so" &&
	dws_wait_status ".synced and .agent.synced" &&
	flux queue start --quiet && runs_on "node[2-3]"
'
test_expect_success 'and in its prolog' '
	ends $jobid && dws_ctl hold PreRun &&
	submit -N1 --dw-rabbits=rabbit1 && dws_ctl wait-state $(dws_workflow $jobid) PreRun \
		--timeout $DWS_LIMIT &&
	flux module reload -f "$DWS_MODULES/dws.so" && dws_ctl release PreRun &&
	dws_wait_event $jobid start && flux jobs -no "{nodelist}" $jobid >nodes &&
	grep "node[23]" nodes && ends $jobid
'
test_done
