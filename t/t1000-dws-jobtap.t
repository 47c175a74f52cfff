#!/bin/bash
# dws-jobtap.so alone, with a stand-in for the dws service.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='The jobtap plugin holds and releases rabbit jobs'

dws_config () {
	dws_clock
	cat <<-\EOT
	[rabbit.presets]
	small = "#DW jobdw type=xfs capacity=1GiB name=small"
	EOT
}

. "$(dirname "$0")/sharness.sh"
test_under_flux 4

PLUGIN=$DWS_PLUGINS/dws-jobtap.so
FAKE=$DWS_SRCDIR/t/scripts/fake-dws.py
GOOD="#DW jobdw type=xfs capacity=10GiB name=scratch"

submit_dw () {
	flux submit -N1 -S dw="$GOOD" "$@"
}

# expect JOBID EVENT [OPTION...]: wait for an event of a job.
expect () {
	event_job=$1 event_name=$2
	shift 2
	flux job wait-event -t 300 "$@" $event_job $event_name
}

# release JOBID: let it out of DEPEND as it is.
release () {
	rpc dws.wait "{\"name\": \"create\", \"jobid\": \"$1\"}" >create.$1 &&
	jq -c "{id: .jobid, resources: .resources, exclude: null}" \
		create.$1 >update.$1 &&
	rpc job-manager.dws.resource-update "$(cat update.$1)"
}
prolog_remove () {
	rpc job-manager.dws.prolog-remove \
		"{\"id\": \"$1\", \"variables\": {\"DW_JOB_scratch\": \"/mnt\"}}"
}
epilog_remove () {
	rpc job-manager.dws.epilog-remove "{\"id\": \"$1\"}"
}
phase () {
	dec=$(flux job id --to=dec $1) &&
	rpc job-manager.dws.sync >sync.out &&
	jq -r ".jobs[] | select(.id == $dec) | .phase" sync.out
}

test_expect_success 'the plugin loads' '
	flux jobtap load $PLUGIN
'
# judged DIRECTIVE: the plugin's opinion on a job that is not submitted
judged () {
	flux submit --dry-run -N1 true >plain &&
	jq --arg dw "$1" "{jobspec: (.attributes.system.dw = \$dw)}" plain >jobspec &&
	rpc job-manager.dws.validate "$(cat jobspec)"
}
test_expect_success 'a jobspec is judged before it is submitted' '
	judged "#DW jobdw type=xfs capacity=1GiB name=x1" &&
	test_must_fail judged "#DW nonsense" 2>err && grep "dw: .*nonsense" err
'
test_expect_success 'a wrong plugin configuration is refused' '
	flux jobtap remove dws-jobtap.so &&
	test_must_fail flux jobtap load $PLUGIN epilog-timeout=soon &&
	test_must_fail flux jobtap load $PLUGIN epilog-timeuot=1 &&
	flux jobtap load $PLUGIN
'
test_expect_success 'a misspelt directive is refused with the word at fault' '
	test_must_fail flux submit -S dw="#DW jobdw typ=xfs capacity=1GiB name=ab" \
		true 2>err &&
	grep "typ" err &&
	test_must_fail flux submit -S dw="#DW jobdw type=xsf capacity=1GiB name=ab" \
		true 2>err &&
	grep "xsf" err &&
	test_must_fail flux submit -S dw="nothing" true 2>err &&
	grep "nothing" err
'
test_expect_success 'an attribute that is like ours, and would be ignored, is refused' '
	for key in DW Dw dw-rabbits dw_rabbit dw_; do
		test_must_fail flux submit -S $key="$GOOD" true 2>err &&
		grep "attributes.system: .$key. is not known" err || return 1
	done &&
	flux submit -S dwarf=1 -S dword=1 true
'
test_expect_success 'dw of another type is refused' '
	test_must_fail flux submit -S dw=42 true 2>err &&
	grep dw err
'
test_expect_success 'a failure tolerance must be a number, 0 or more' '
	for value in -1 \"few\" 1.5 null; do
		test_must_fail submit_dw -S dw_failure_tolerance=$value true \
			2>err || return 1
		grep dw_failure_tolerance err || return 1
	done
'
test_expect_success 'an empty dw makes an ordinary job' '
	flux run -S dw="" true &&
	flux run -S dw=" " true
'
test_expect_success 'one of comments only is a mistake' '
	test_must_fail flux submit -S dw="# no directive" true 2>err &&
	grep "comments only" err
'
test_expect_success 'words are quoted in whole characters' '
	word=$(printf "€%.0s" $(seq 100)) &&
	for shift in "" x xx; do
		test_must_fail flux submit \
			-S dw="#DW jobdw type=$shift$word capacity=1GiB name=aa" \
			true 2>err || return 1
		grep "type .$shift€.* is not one of raw" err || return 1
	done
'
test_expect_success 'constraints are bounded' '
	test_must_fail dws_submit_with "$(dws_nested 33)" -S dw="$GOOD" 2>err &&
	grep "constraints: nested too deeply" err
'
test_expect_success 'so is the name of a group' '
	word=$(printf "a%.0s" $(seq 70000)) &&
	test_must_fail submit_dw -S dw_group=$word true 2>err &&
	grep "dw_group must be the name" err
'
test_expect_success 'jobs without dw are left alone' '
	jobid=$(flux submit -S dw_failure_tolerance=few -S dw_group=[] true) &&
	expect $jobid clean &&
	flux job eventlog $jobid >log &&
	test_must_fail grep -e dws -e exception log &&
	flux dmesg >dmesg &&
	test_must_fail grep "callback returned error" dmesg
'
test_expect_success 'without the dws service a job waits in DEPEND' '
	waiting=$(submit_dw true) &&
	expect $waiting dependency-add -m description=dws-create &&
	test "$(phase $waiting)" = depend
'
test_expect_success 'sync tells all about it' '
	dec=$(flux job id --to=dec $waiting) &&
	jq -e ".jobs[] | select(.id == $dec)
		| .dw == [\"$GOOD\"] and .failure_tolerance == 0
			and .run_started == false and .exception == false
			and .abandoned == false and .t_epilog == 0
			and (.resources | type) == \"array\"
			and (.userid | type) == \"number\"" sync.out
'
test_expect_success 'only the owner may ask' '
	for method in sync nodes resource-update prolog-remove epilog-remove; do
		test_must_fail env FLUX_HANDLE_ROLEMASK=0x2 \
			FLUX_HANDLE_USERID=4242 flux python \
			"$DWS_SRCDIR/t/scripts/rpc.py" job-manager.dws.$method \
			"{\"id\": 1}" 2>err || return 1
		grep -i "permi\|owner" err || return 1
	done
'
test_expect_success 'reloaded with the service there, it is created' '
	flux module load --name=dws $FAKE auto &&
	flux jobtap load -r dws-jobtap.so $PLUGIN &&
	expect $waiting clean
'
# priorities JOBID: that it has had
priorities () {
	flux job eventlog --format=json $1 >eventlog.out &&
	jq -s -c "[.[] | select(.name == \"priority\").context.priority]" eventlog.out
}
test_expect_success 'with fewer nodes up than it needs a job has priority 0' '
	test_must_fail rpc job-manager.dws.nodes "{\"up\": \"x\"}" &&
	rpc job-manager.dws.nodes "{\"up\": 1}" &&
	one=$(submit_dw -N1 true) && two=$(submit_dw -N2 true) &&
	expect $one clean && expect $two priority &&
	test "$(priorities $one)" = "[16]" && test "$(priorities $two)" = "[0]" &&
	rpc job-manager.dws.nodes "{\"up\": 2}" &&
	expect $two clean && test "$(priorities $two)" = "[0,16]"
'
test_expect_success 'not where the scheduler keeps such jobs' '
	rpc job-manager.dws.nodes "{\"up\": 0}" &&
	one=$(submit_dw -N1 true) && expect $one priority &&
	rpc job-manager.dws.nodes "{}" &&
	expect $one clean
'
# told JOBID: what the service has heard of whether others hold the job
told () {
	rpc dws.log >log.json &&
	jq -c "[.requests[] | select(.name == \"create\"
		and .payload.jobid == $(flux job id --to=dec $1)) | .payload.waits]" \
		log.json
}
test_expect_success 'the service hears when a job in the queue is released' '
	one=$(submit_dw --urgency=0 true) &&
	expect $one priority && test "$(told $one)" = "[true]" &&
	flux job urgency $one 16 &&
	expect $one clean && test "$(told $one)" = "[true,false]"
'
test_expect_success FLUX_CORE 'and of dependencies that the job was submitted with' '
	blocker=$(flux submit -N4 --exclusive sleep inf) && expect $blocker start &&
	one=$(submit_dw --exclusive --dependency=afterany:$blocker true) &&
	expect $one dependency-remove -m description=dws-create &&
	test "$(told $one)" = "[true]" &&
	flux cancel $blocker &&
	expect $one clean && test "$(told $one)" = "[true,false]"
'
test_expect_success 'its events are in order' '
	flux job eventlog $waiting >log &&
	grep -o "dependency-add.*\|dependency-remove.*\|\
alloc\|prolog-start\|dws_environment\|prolog-finish.*\| start\|\
finish status=0\|epilog-start\|epilog-finish.*\| clean" log >events &&
	cat >expected <<-\EOT &&
	dependency-add description="dws-create"
	dependency-remove description="dws-create"
	alloc
	prolog-start
	dws_environment
	prolog-finish description="dws-setup" status=0
	 start
	finish status=0
	epilog-start
	epilog-finish description="dws-epilog" status=0
	 clean
	EOT
	test_cmp expected events &&
	awk "/epilog-start/ { e = NR } / release / { r = NR }
		END { exit !(e && e < r) }" log
'
test_expect_success 'the service got all three requests' '
	dec=$(flux job id --to=dec $waiting) &&
	rpc dws.log >log.json &&
	jq -e "[.requests[] | select(.payload.jobid == $dec) | .name]
		== [\"create\", \"setup\", \"post_run\"]" log.json &&
	jq -e ".requests[] | select(.name == \"setup\")
		| .payload.R.version == 1" log.json &&
	jq -e ".requests[] | select(.name == \"post_run\")
		| .payload.run_started == true" log.json
'
test_expect_success 'a preset is expanded, and the job keeps what it was' '
	jobid=$(flux submit -N1 -S dw=small true) &&
	expect $jobid clean &&
	rpc dws.wait "{\"name\": \"create\", \"jobid\": \"$jobid\"}" >create &&
	jq -e ".dw_directives
		== [\"#DW jobdw type=xfs capacity=1GiB name=small\"]" create &&
	flux job eventlog $jobid >log &&
	grep "jobspec-update.*attributes.system.dw.*name=small" log
'
test_expect_success 'presets follow the configuration' '
	test_must_fail flux submit -N1 -S dw=large true &&
	flux config get >config.out &&
	jq ".rabbit.presets.large =
		\"#DW jobdw type=gfs2 capacity=9TiB name=large\"" <config.out >conf.json &&
	flux config load conf.json &&
	flux run -N1 -S dw=large true
'
# submit_many N [OPTION...]: a job with N directives
submit_many () {
	many=$(for i in $(seq $1); do
		echo "#DW jobdw type=raw capacity=1GiB name=name-$i"
	done) &&
	shift &&
	flux submit -N1 -S dw="$many" "$@" true
}
test_expect_success 'a job has so many directives, and so much text' '
	many_id=$(submit_many 64 --urgency=hold) &&
	test_must_fail submit_many 65 2>err &&
	grep "more than 64 directives" err &&
	test_must_fail flux submit -S dw="$(printf %70000s "$GOOD")" true 2>err &&
	grep "more than 65536 bytes" err
'
test_expect_success 'what is queued stays as it was' '
	flux jobtap load -r dws-jobtap.so $PLUGIN &&
	rpc job-manager.dws.sync >sync.out &&
	jq -e ".jobs[] | select(.id == $(flux job id --to=dec $many_id))
		| .dw | length == 64" sync.out &&
	flux job urgency $many_id default &&
	expect $many_id clean
'
test_expect_success 'a malformed preset is refused when it is loaded' '
	jq ".rabbit.presets.bad = \"#DW jobdw tpye=xfs\"" conf.json >bad.json &&
	test_must_fail flux config load bad.json 2>err &&
	grep tpye err &&
	jq ".rabbit.presets = [1]" conf.json >bad.json &&
	test_must_fail flux config load bad.json
'
test_expect_success 'load a service that does nothing of its own' '
	flux module remove dws &&
	flux module load --name=dws $FAKE
'
test_expect_success 'resource-update joins exclude with what the user asked' '
	jobid=$(submit_dw --requires=ranks:0-2 true) &&
	rpc dws.wait "{\"name\": \"create\", \"jobid\": \"$jobid\"}" >create &&
	jq -c "{id: .jobid, resources: .resources,
		exclude: {not: [{ranks: [\"0\"]}]}}" create >update &&
	rpc job-manager.dws.resource-update "$(cat update)" &&
	expect $jobid dependency-remove -m description=dws-create &&
	flux job info $jobid jobspec >jobspec &&
	jq -e ".attributes.system.constraints.and[1]
		== {not: [{ranks: [\"0\"]}]}" jobspec &&
	expect $jobid alloc &&
	flux jobs -no "{ranks}" $jobid >ranks &&
	grep "^[12]$" ranks
'
test_expect_success 'saying so again changes nothing' '
	flux job eventlog $jobid >before &&
	rpc job-manager.dws.resource-update "$(cat update)" &&
	expect $jobid prolog-start &&
	test "$(flux job eventlog $jobid >eventlog.out && grep -c jobspec-update <eventlog.out)" = 1
'
test_expect_success 'a job that may have rabbits keeps them, whatever is excluded' '
	other=$(submit_dw -S allow_rabbits --requires=ranks:0-2 true) &&
	rpc dws.wait "{\"name\": \"create\", \"jobid\": \"$other\"}" >create &&
	jq -c "{id: .jobid, resources: .resources,
		exclude: {not: [{ranks: [\"0\"]}]}}" create >other.update &&
	rpc job-manager.dws.resource-update "$(cat other.update)" &&
	expect $other dependency-remove -m description=dws-create &&
	flux job info $other jobspec >jobspec &&
	jq -e ".attributes.system.constraints ==
		{or: [{properties: [\"rabbit\"]},
			{and: [{ranks: [\"0-2\"]}, {not: [{ranks: [\"0\"]}]}]}]}" jobspec &&
	flux cancel $other &&
	expect $other epilog-start &&
	epilog_remove $other &&
	expect $other clean
'
test_expect_success 'prolog-remove posts the environment, once' '
	test "$(phase $jobid)" = prolog &&
	prolog_remove $jobid &&
	prolog_remove $jobid &&
	expect $jobid dws_environment -f json >env.json &&
	jq -e ".context == {variables: {DW_JOB_scratch: \"/mnt\"}}" env.json &&
	test "$(flux job eventlog $jobid >eventlog.out && grep -c dws_environment <eventlog.out)" = 1 &&
	test "$(flux job eventlog $jobid >eventlog.out && grep -c prolog-finish <eventlog.out)" = 1
'
test_expect_success 'epilog-remove ends the job, once' '
	expect $jobid epilog-start &&
	test "$(phase $jobid)" = epilog &&
	epilog_remove $jobid &&
	expect $jobid clean &&
	epilog_remove $jobid &&
	test "$(flux job eventlog $jobid >eventlog.out && grep -c epilog-finish <eventlog.out)" = 1 &&
	test -z "$(phase $jobid)"
'
test_expect_success 'what a job that is not there was to begin fails' '
	epilog_remove 1 &&
	test_must_fail prolog_remove 1 2>err &&
	grep "no active job" err &&
	test_must_fail rpc job-manager.dws.resource-update \
		"{\"id\": 1, \"resources\": [], \"exclude\": null}" 2>err &&
	grep "no active job" err
'
test_expect_success 'a malformed request is refused' '
	test_must_fail rpc job-manager.dws.epilog-remove &&
	test_must_fail rpc job-manager.dws.prolog-remove "{\"id\": 1}" &&
	test_must_fail rpc job-manager.dws.prolog-remove \
		"{\"id\": 1, \"variables\": {\"a\": 1}}"
'
test_expect_success 'resource-update without resources changes nothing' '
	jobid=$(submit_dw true) &&
	expect $jobid dependency-add &&
	test_must_fail rpc job-manager.dws.resource-update \
		"{\"id\": \"$jobid\", \"exclude\": null}" &&
	test_must_fail rpc job-manager.dws.resource-update \
		"{\"id\": \"$jobid\", \"resources\": [], \"exclude\": 7}" &&
	test "$(phase $jobid)" = depend
'
test_expect_success 'errmsg ends the job with that text' '
	rpc job-manager.dws.resource-update \
		"{\"id\": \"$jobid\", \"resources\": [], \"exclude\": null,
		\"errmsg\": \"no such profile\"}" &&
	expect $jobid exception -m type=dws-create -m severity=0 >out &&
	grep "no such profile" out &&
	expect $jobid epilog-start &&
	epilog_remove $jobid &&
	expect $jobid clean
'
test_expect_success 'dws.create and sync have the user of the job, and what he asks for' '
	nobody=$(id -u nobody) &&
	flux submit --dry-run -N2 -S dw="$GOOD" -S dw_failure_tolerance=3 true >spec &&
	jobid=$(flux python "$DWS_SRCDIR/t/scripts/submit_as.py" $nobody <spec) &&
	rpc dws.wait "{\"name\": \"create\", \"jobid\": \"$jobid\"}" >create &&
	jq -e ".userid == $nobody and .failure_tolerance == 3
		and .dw_directives == [\"$GOOD\"]" create &&
	jq -S .resources spec >expected && jq -S .resources create >actual &&
	test_cmp expected actual &&
	rpc job-manager.dws.sync >sync.out &&
	jq -e ".jobs[] | select(.id == $(flux job id --to=dec $jobid))
		| .userid == $nobody and .failure_tolerance == 3" sync.out &&
	flux cancel $jobid &&
	expect $jobid epilog-start &&
	epilog_remove $jobid &&
	expect $jobid clean
'
test_expect_success 'cancelled in DEPEND it goes to its epilog' '
	jobid=$(submit_dw true) &&
	expect $jobid dependency-add &&
	flux cancel $jobid &&
	expect $jobid epilog-start &&
	rpc dws.wait "{\"name\": \"post_run\", \"jobid\": \"$jobid\"}" >post &&
	jq -e ".run_started == false" post &&
	epilog_remove $jobid &&
	expect $jobid clean
'
test_expect_success 'cancelled while pending too' '
	jobid=$(submit_dw --requires=ranks:3 true) &&
	blocker=$(flux submit -N4 --exclusive sleep inf) &&
	expect $blocker start &&
	release $jobid &&
	expect $jobid priority &&
	test "$(phase $jobid)" = pending &&
	flux cancel $jobid &&
	expect $jobid epilog-start &&
	epilog_remove $jobid &&
	expect $jobid clean &&
	flux cancel $blocker
'
test_expect_success 'cancelled in the prolog, the prolog fails' '
	jobid=$(submit_dw true) &&
	release $jobid &&
	expect $jobid prolog-start &&
	flux cancel $jobid &&
	expect $jobid prolog-finish -m description=dws-setup -m status=1 &&
	expect $jobid epilog-start &&
	prolog_remove $jobid &&
	epilog_remove $jobid &&
	expect $jobid clean &&
	flux job eventlog $jobid >log &&
	test_must_fail grep dws_environment log
'
test_expect_success 'cancelled while running, the epilog follows the tasks' '
	jobid=$(submit_dw sleep inf) &&
	release $jobid &&
	expect $jobid prolog-start &&
	prolog_remove $jobid &&
	expect $jobid start &&
	test "$(phase $jobid)" = running &&
	flux cancel $jobid &&
	expect $jobid epilog-start &&
	rpc dws.wait "{\"name\": \"post_run\", \"jobid\": \"$jobid\"}" >post &&
	jq -e ".run_started == true" post &&
	epilog_remove $jobid &&
	expect $jobid clean &&
	flux job eventlog $jobid >log &&
	awk "/exception/ { x = NR } / finish status/ { f = NR }
		/epilog-start/ { e = NR } / release / { r = NR }
		END { exit !(x && x < f && f < e && e < r) }" log
'
test_expect_success 'an exception in the epilog asks for teardown' '
	jobid=$(submit_dw true) &&
	release $jobid &&
	expect $jobid prolog-start &&
	prolog_remove $jobid &&
	expect $jobid epilog-start &&
	flux job raise --type=impatience --severity=0 $jobid &&
	rpc dws.wait "{\"name\": \"teardown\", \"jobid\": \"$jobid\"}" &&
	test "$(phase $jobid)" = epilog
'
test_expect_success 'a lesser exception does not' '
	epilog_remove $jobid &&
	expect $jobid clean &&
	jobid=$(submit_dw true) &&
	release $jobid &&
	expect $jobid prolog-start &&
	flux job raise --type=note --severity=4 $jobid &&
	test "$(phase $jobid)" = prolog &&
	prolog_remove $jobid &&
	expect $jobid epilog-start &&
	flux job raise --type=late-note --severity=4 $jobid &&
	expect $jobid exception -m type=late-note &&
	test "$(phase $jobid)" = epilog &&
	dec=$(flux job id --to=dec $jobid) &&
	jq -e ".jobs[] | select(.id == $dec)
		| .exception == false and .teardown == false" sync.out &&
	rpc dws.log >log.json &&
	jq -e "[.requests[] | select(.payload.jobid == $dec) | .name]
		== [\"create\", \"setup\", \"post_run\"]" log.json &&
	epilog_remove $jobid &&
	expect $jobid clean -v >log &&
	test_must_fail grep "epilog-finish.*status=1" log
'
test_expect_success 'each hold survives a reload of the plugin' '
	jobid=$(submit_dw true) &&
	expect $jobid dependency-add &&
	flux jobtap load -r dws-jobtap.so $PLUGIN &&
	test "$(phase $jobid)" = depend &&
	release $jobid &&
	expect $jobid prolog-start &&
	flux jobtap load -r dws-jobtap.so $PLUGIN &&
	test "$(phase $jobid)" = prolog &&
	prolog_remove $jobid &&
	expect $jobid epilog-start &&
	flux jobtap load -r dws-jobtap.so $PLUGIN &&
	test "$(phase $jobid)" = epilog &&
	jq -e ".jobs[0] | .run_started and (.t_epilog > 0)" sync.out &&
	epilog_remove $jobid &&
	expect $jobid clean &&
	flux job eventlog $jobid >log &&
	for event in dependency-add dependency-remove prolog-start \
		prolog-finish epilog-start epilog-finish dws_environment; do
		test "$(grep -c $event log)" = 1 || return 1
	done
'
test_expect_success 'the resources of sync are those that were submitted' '
	jobid=$(submit_dw true) &&
	rpc dws.wait "{\"name\": \"create\", \"jobid\": \"$jobid\"}" >create &&
	jq -c "{id: .jobid, resources: [.resources[0] + {exclusive: true}],
		exclude: null}" create >update &&
	rpc job-manager.dws.resource-update "$(cat update)" &&
	expect $jobid prolog-start &&
	flux jobtap load -r dws-jobtap.so $PLUGIN &&
	test "$(phase $jobid)" = prolog &&
	jq -c ".jobs[0].resources" sync.out >resources &&
	jq -c .resources create >expected &&
	test_cmp expected resources &&
	prolog_remove $jobid &&
	expect $jobid epilog-start &&
	epilog_remove $jobid &&
	expect $jobid clean
'
# Brokers of flux-core would give each other up after an hour.
test "$DWS_ENGINE" = solo && late=3600 || late=0.01
test_expect_success 'the epilog timeout counts from the start of the epilog' '
	jobid=$(submit_dw true) &&
	flux jobtap load -r dws-jobtap.so $PLUGIN epilog-timeout=7200 &&
	release $jobid &&
	expect $jobid prolog-start &&
	prolog_remove $jobid &&
	expect $jobid epilog-start &&
	dws_pass $late &&
	flux jobtap load -r dws-jobtap.so $PLUGIN epilog-timeout=$late &&
	expect $jobid exception -m type=dws-epilog-timeout -m severity=0 &&
	expect $jobid epilog-finish -m description=dws-epilog -m status=1 &&
	expect $jobid clean &&
	rpc dws.wait "{\"name\": \"abort\", \"jobid\": \"$jobid\"}"
'
test_expect_success 'the plugin can be queried' '
	flux jobtap query dws-jobtap.so >query &&
	jq -e ".\"epilog-timeout\" == $late and .jobs == []" query
'
test_expect_success 'an error of the service ends the job with its text' '
	flux jobtap load -r dws-jobtap.so $PLUGIN &&
	flux module remove dws &&
	flux module load --name=dws $FAKE "fail-create=the-webhook-says-no" &&
	jobid=$(submit_dw true) &&
	expect $jobid exception -m type=dws-create -m severity=0 >out &&
	grep "the-webhook-says-no" out
'
test_expect_success 'which has no epilog, as nobody would end it' '
	expect $jobid clean &&
	flux job eventlog $jobid >log &&
	test_must_fail grep epilog-start log
'
test_expect_success 'so does one in the prolog' '
	flux module remove dws &&
	flux module load --name=dws $FAKE "fail-setup=no-rabbits" &&
	jobid=$(submit_dw true) &&
	release $jobid &&
	expect $jobid exception -m type=dws-setup -m severity=0 >out &&
	grep "no-rabbits" out &&
	expect $jobid prolog-finish -m status=1 &&
	epilog_remove $jobid &&
	expect $jobid clean
'
test_expect_success 'a refused post_run does not hold the job forever' '
	flux module remove dws &&
	flux module load --name=dws $FAKE "fail-post_run=out-of-order" &&
	jobid=$(submit_dw true) &&
	release $jobid &&
	expect $jobid prolog-start &&
	prolog_remove $jobid &&
	expect $jobid clean -v >log &&
	grep "exception.*dws-epilog.*out-of-order" log &&
	grep "epilog-finish.*status=1" log
'
test_expect_success 'its nodes are drained before: nobody knows what is mounted there' '
	flux jobs -no "{ranks}" $jobid >ranks.exp &&
	flux kvs get --raw resource.eventlog >resource.log &&
	flux python "$DWS_SRCDIR/t/scripts/drained_at.py" $jobid \
		<resource.log >ranks &&
	test_cmp ranks.exp ranks &&
	flux resource drain -no "{reason}" >reason &&
	echo "rabbit: may be mounted by fluxjob-$(flux job id --to=dec $jobid)" >expected &&
	test_cmp expected reason &&
	flux dmesg >dmesg &&
	grep "$jobid: drain all its nodes" dmesg &&
	test_must_fail grep "$jobid: reading R" dmesg &&
	flux resource undrain "$(cat ranks)"
'
test_expect_success 'so are they when the epilog times out and abort is refused' '
	flux module remove dws &&
	flux module load --name=dws $FAKE "fail-abort=busy" &&
	jobid=$(submit_dw true) &&
	release $jobid &&
	expect $jobid prolog-start &&
	prolog_remove $jobid &&
	expect $jobid epilog-start &&
	flux jobtap load -r dws-jobtap.so $PLUGIN epilog-timeout=0.01 &&
	expect $jobid epilog-finish -m description=dws-epilog -m status=1 &&
	expect $jobid clean &&
	flux jobs -no "{ranks}" $jobid >ranks.exp &&
	flux kvs get --raw resource.eventlog >resource.log &&
	flux python "$DWS_SRCDIR/t/scripts/drained_at.py" $jobid \
		<resource.log >ranks &&
	test_cmp ranks.exp ranks &&
	flux resource undrain "$(cat ranks)"
'
test_expect_success 'not those of a job that has not got that far' '
	flux module remove dws &&
	jobid=$(submit_dw true) &&
	expect $jobid dependency-add &&
	flux cancel $jobid &&
	expect $jobid clean &&
	test -z "$(flux resource drain -no "{reason}")"
'
test_expect_success 'unload everything' '
	flux jobtap remove dws-jobtap.so
'
test_done
