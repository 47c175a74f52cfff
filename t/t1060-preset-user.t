#!/bin/bash
# $USER in presets and paths: the name of a job's user, which the module asks the name
# service for while the job waits.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='The name of the user in presets and paths'
. "$(dirname "$0")/sharness.sh"

# $SLOW_NAMES.names has lines "UID NAME" of users that the system does not have.
dws_config () {
	dws_names
	printf "4300 ann.b\n4301 ann\$b\n4302 Ann\n" >"$SLOW_NAMES.names"
	cat <<-\EOT
	[rabbit.presets]
	mine = ["#DW jobdw type=xfs capacity=1GiB name=st",
	        "#DW copy_out source=$DW_JOB_st/o destination=/lus/global/${USER}x"]
	named = "#DW jobdw type=xfs capacity=1GiB name=$USER"
	plain = "#DW jobdw type=xfs capacity=1GiB name=st"
	EOT
}
test_under_flux 4

ME=$(id -un)
OWN='#DW copy_in source=/lus/global/$USER destination=$DW_JOB_st/i'
NAMELESS='#DW copy_in source=/lus/global/{{id}} destination=$DW_JOB_st/i'

LF="
"

# forget: what the module knows of users
forget () {
	flux module reload dws && dws_wait_status ".synced and .agent.synced"
}
slow () {
	rm -f "$SLOW_NAMES.reached" &&
	>"$SLOW_NAMES"
}
asked () {
	dws_until test -e "$SLOW_NAMES.reached"
}
directives () {
	dws_k8s get workflows $(dws_workflow $jobid) >workflow.json &&
	jq -r ".spec.dwDirectives[]" workflow.json
}
# recorded NAME: so has its jobspec
recorded () {
	flux job eventlog $jobid >eventlog &&
	grep "jobspec-update.*destination=/lus/global/${1}x" eventlog
}
# in_workflow NAME: a job has a workflow with the name in its directives
in_workflow () {
	dws_ctl wait-state $(dws_workflow $jobid) Proposal --timeout $DWS_LIMIT &&
	directives >have &&
	grep -x "#DW copy_out source=.DW_JOB_st/o destination=/lus/global/${1}x" have
}
goes_on () {
	in_workflow $1 &&
	recorded $1 &&
	dws_ctl release Proposal &&
	dws_wait_event $jobid clean && flux job status $jobid &&
	dws_ctl hold Proposal
}
as_user () {
	userid=$1 &&
	shift &&
	flux submit --dry-run -N1 "$@" true >jobspec &&
	jobid=$(flux python "$DWS_SRCDIR/t/scripts/submit_as.py" $userid <jobspec)
}
# ends_with TEXT: the job has an exception that says so, and no workflow
ends_with () {
	dws_wait_event $jobid clean &&
	flux job eventlog $jobid >eventlog &&
	grep "exception.*dws-create" eventlog &&
	grep -F "$1" eventlog &&
	test_must_fail dws_k8s get workflows $(dws_workflow $jobid)
}

test_expect_success 'load everything' '
	dws_setup && dws_ctl hold Proposal
'
test_expect_success 'presets --expand and --dw-check show the name of who asks' '
	flux rabbit presets mine >out &&
	grep -F "/lus/global/\${USER}x" out &&
	grep -F "\$USER: the name of the job" out &&
	flux rabbit presets --expand mine >out &&
	grep "destination=/lus/global/${ME}x" out &&
	flux submit -N1 --dw=mine --dw-check true >out &&
	grep "destination=/lus/global/${ME}x" out
'
test_expect_success 'a job has the name in its directives' '
	jobid=$(flux submit -N1 --dw=mine true) &&
	goes_on $ME
'
test_expect_success 'and in paths that its user writes himself' '
	jobid=$(flux submit -N1 -S dw="mine$LF$OWN" true) &&
	in_workflow $ME &&
	grep -Fx "#DW copy_in source=/lus/global/$ME destination=\$DW_JOB_st/i" have &&
	flux cancel $jobid && dws_wait_event $jobid clean
'
test_expect_success 'no name is asked for where nothing needs it' '
	forget && slow &&
	jobid=$(flux submit -N1 -S dw="plain$LF$NAMELESS" true) &&
	flux job wait-event -t $DWS_LIMIT $jobid jobspec-update >update &&
	grep -F "/lus/global/$(flux job id --to=f58plain $jobid) destination" update &&
	rm "$SLOW_NAMES" &&
	flux cancel $jobid && dws_wait_event $jobid clean
'
test_expect_success 'a job whose user is being looked up waits, and the module answers' '
	forget && slow &&
	jobid=$(flux submit -N1 --dw=mine true) &&
	asked &&
	dws_wait 60 flux python "$DWS_SRCDIR/t/scripts/rpc.py" dws.status "{}" &&
	test_must_fail recorded $ME &&
	rm "$SLOW_NAMES" &&
	goes_on $ME
'
test_expect_success 'so does one that is held and let go meanwhile' '
	forget && slow &&
	jobid=$(flux submit -N1 --dw=mine true) &&
	asked &&
	flux job urgency $jobid hold &&
	flux job urgency $jobid default &&
	dws_wait_status ".jobs == 0" &&
	test_must_fail dws_k8s get workflows $(dws_workflow $jobid) &&
	rm "$SLOW_NAMES" &&
	goes_on $ME
'
test_expect_success 'the module starts again while that is under way' '
	forget && slow &&
	jobid=$(flux submit -N1 --dw=mine true) &&
	asked &&
	rm "$SLOW_NAMES.reached" &&
	dws_wait 60 flux module reload dws &&
	asked &&
	rm "$SLOW_NAMES" &&
	goes_on $ME
'
test_expect_success 'and the plugin' '
	forget && slow &&
	jobid=$(flux submit -N1 --dw=mine true) &&
	asked &&
	flux jobtap remove dws-jobtap.so &&
	flux jobtap load "$DWS_PLUGINS/dws-jobtap.so" &&
	rm "$SLOW_NAMES" &&
	goes_on $ME
'
test_expect_success 'a job is submitted without a module: it waits for one' '
	flux module remove dws &&
	jobid=$(flux submit -N1 --dw=mine true) &&
	dws_wait_event $jobid dependency-add &&
	flux jobtap remove dws-jobtap.so &&
	flux jobtap load "$DWS_PLUGINS/dws-jobtap.so" &&
	flux module load "$DWS_MODULES/dws.so" &&
	goes_on $ME
'
test_expect_success 'both start again when the job has a workflow: the text stays' '
	jobid=$(flux submit -N1 --dw=mine true) &&
	in_workflow $ME &&
	flux module remove dws && flux jobtap remove dws-jobtap.so &&
	sed -i "s,global/\${USER}x,global/other," "$DWS_TMP/conf.d/test.toml" &&
	flux config reload &&
	flux jobtap load "$DWS_PLUGINS/dws-jobtap.so" &&
	flux module load "$DWS_MODULES/dws.so" &&
	dws_wait_status ".jobs == 1 and .workflows == 1" &&
	flux rabbit show $jobid >out &&
	grep "destination=/lus/global/${ME}x" out &&
	goes_on $ME &&
	sed -i "s,global/other,global/\${USER}x," "$DWS_TMP/conf.d/test.toml" &&
	flux config reload
'
test_expect_success 'a job that is cancelled before is over at once' '
	forget && slow &&
	jobid=$(flux submit -N1 --dw=mine true) &&
	asked &&
	flux cancel $jobid &&
	dws_wait_event $jobid clean &&
	rm "$SLOW_NAMES" &&
	test_must_fail dws_k8s get workflows $(dws_workflow $jobid)
'
test_expect_success 'another user has his own name' '
	as_user 4300 -S dw=mine &&
	in_workflow ann.b && recorded ann.b &&
	flux cancel $jobid && dws_wait_event $jobid clean
'
test_expect_success 'also without a preset' '
	as_user 4300 -S dw="#DW jobdw type=xfs capacity=1GiB name=st$LF$OWN" &&
	dws_ctl wait-state $(dws_workflow $jobid) Proposal --timeout $DWS_LIMIT &&
	directives >have && grep "source=/lus/global/ann.b " have &&
	flux cancel $jobid && dws_wait_event $jobid clean
'
test_expect_success 'one with another character ends the job, and says which' '
	as_user 4301 -S dw=mine &&
	ends_with "(preset '\''mine'\''): \$USER: '\''ann\$b'\'' is not one word of letters"
'
test_expect_success 'in a path of his own, too' '
	as_user 4301 -S dw="#DW jobdw type=xfs capacity=1GiB name=st$LF$OWN" &&
	ends_with "source '\''/lus/global/\$USER'\'' has \$USER in it, and '\''ann\$b'\''"
'
test_expect_success 'so does a name that is none of a file system' '
	as_user 4302 -S dw=named &&
	ends_with "Ann"
'
test_expect_success 'and a user without a name' '
	as_user 4399 -S dw=mine &&
	ends_with "\$USER: user 4399: is not known on this system"
'
test_expect_success 'nothing is left' '
	dws_ctl release all && dws_clean
'
test_done
