#!/bin/bash
# rabbit.notice_command: what it is told, when, and what its failures do: nothing to
# jobs, and no notice is lost.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Users are told of what they lose'
. "$(dirname "$0")/sharness.sh"
dws_config () {
	dws_clock
}
test_under_flux 4

DWS_DIRECTIVE='#DW jobdw type=gfs2 capacity=1GiB name=scratch
#DW copy_out source=$DW_JOB_scratch/out destination=/lus/global/out profile=default'

# Create a site's command that acts as the file "mode" says.
make_command () {
	cat >notice <<-\EOF &&
	#!/bin/sh
	cd "$1" || exit 1
	case $(cat mode) in
	fail) echo "no mail today" >&2; seq -f "sorry %g" 100; exit 3 ;;
	later) exit 75 ;;
	hang) : >hanging.$$; exec sleep 10000 ;;
	esac
	echo "$#" >argc
	cat >$$.json
	mv $$.json told.$$
	EOF
	chmod 755 notice &&
	mode well
}
mode () {
	echo $1 >mode.new && mv mode.new mode
}
# told N FILTER: it was run so often, and this holds of all that it got
told () {
	cat told.* 2>/dev/null | jq -s "sort_by(.t)" >told &&
	jq -e "length == $1 and ($2)" told
}
forget () {
	rm -f told.* hanging.*
}
# killed PID: what is left of it is that nobody has asked for its status
killed () {
	case $(ps -o stat= -p $1) in
	"" | Z*) ;;
	*) return 1 ;;
	esac
}
hanging () {
	test $(ls hanging.* 2>/dev/null | wc -l) = $1
}
# configure KEY VALUE
configure () {
	sed -i "/^$1/d" "$DWS_TMP"/conf.d/*.toml &&
	sed -i "s|^\[rabbit\]|&\n$1 = $2|" "$DWS_TMP/conf.d/test.toml" &&
	flux config reload
}
reload () {
	flux module reload "$DWS_MODULES/dws.so" &&
	dws_wait_status ".synced and .agent.synced"
}
logged () {
	flux dmesg >dmesg && grep "$@" dmesg
}
# lose: a job ends whose data is kept, and cannot be copied
lose () {
	jobid=$(dws_submit true) &&
	dws_wait_event $jobid clean &&
	flux job status $jobid
}
# make_good: the data of all jobs is out after all
make_good () {
	dws_ctl fail-copy --clear &&
	flux rabbit losses --json >losses &&
	for id in $(jq ".[] | select(.until) | .id" losses); do
		flux rabbit retry $id || return 1
	done &&
	dws_clean
}
# destroyed NAME: Kubernetes has no such file system any more
destroyed () {
	test_must_fail dws_k8s get persistentstorageinstances $1 2>err &&
	grep "not found" err
}
create () {
	flux rabbit persistent create "$@" -t xfs -c 1GiB >out 2>&1 ||
		{ cat out && return 1; }
}

test_expect_success 'a command that is not there does not keep the module from starting' '
	make_command &&
	cat >rabbit.toml <<-EOT &&
	stage_out_retry = "1h"
	restrict_persistent_creation = false
	notice_command = ["$PWD/nothing", "$PWD"]
	EOT
	dws_setup &&
	dws_ctl grant nnfdatamovements:delete &&
	dws_wait_status ".health.settled" &&
	logged "rabbit.notice_command: .*/nothing: No such file"
'
test_expect_success 'it is refused when the configuration is loaded again' '
	test_must_fail configure notice_command "[\"$PWD/nothing\"]" 2>err &&
	grep "rabbit.notice_command: .*/nothing: No such file" err &&
	test_must_fail configure notice_command "[\"notice\"]" 2>err &&
	grep "rabbit.notice_command: expected an array that begins with an absolute" err &&
	test_must_fail configure notice_command "[\"$PWD\"]" 2>err &&
	grep "rabbit.notice_command: .* is not a program that can be run" err &&
	chmod o+w notice &&
	test_must_fail configure notice_command "[\"$PWD/notice\"]" 2>err &&
	grep "rabbit.notice_command: .*/notice can be written to by others" err &&
	chmod 755 notice &&
	configure notice_command "[\"$PWD/notice\", \"$PWD\"]"
'
test_expect_success 'a stage-out that failed: who, what, where, and until when' '
	dws_ctl fail-copy --message "dcp: \$(reboot); quota" &&
	lose &&
	dws_until told 1 ".[0].event == \"stage-out-failed\"" &&
	test $(cat argc) = 1 &&
	told 1 ".[0] | .jobid == $(flux job id --to=dec $jobid) and
		.job == \"$(flux job id --to=f58 $jobid)\" and
		.userid == $(id -u) and .until - .t > 3500 and
		(.where | startswith(\"rabbit\"))" &&
	told 1 ".[0].what == [\"\$DW_JOB_scratch/out -> /lus/global/out\"]" &&
	told 1 ".[0].message | contains(\"\$(reboot); quota\") and
		contains(\"flux rabbit retry\")" &&
	dws_wait_status ".notices == {waiting: 0, told: 1, failed: 0}"
'
test_expect_success 'it is not told again by restarts of module and agent' '
	dws_kill_agent &&
	flux module reload "$DWS_MODULES/dws.so" &&
	dws_start_agent &&
	dws_wait_status ".agent.synced and .workflows == 1" &&
	make_good &&
	dws_wait_status ".notices == {waiting: 0, told: 0, failed: 0}" &&
	told 1 true
'
test_expect_success 'that it is lost is told, too' '
	forget &&
	dws_ctl fail-copy --message "dcp: quota" &&
	lose && dws_until told 1 true && forget &&
	configure stage_out_retry "\"1s\"" &&
	dws_clean &&
	dws_until told 1 ".[0] | .event == \"stage-out-lost\" and .until == null and
		(.message | contains(\"dcp: quota\"))" &&
	flux rabbit losses --ack $jobid &&
	configure stage_out_retry "\"1h\""
'
test_expect_success 'a module that is unloaded leaves what it has not told to the next' '
	forget && mode hang &&
	dws_ctl fail-copy --message "dcp: quota" &&
	lose &&
	dws_until hanging 1 &&
	dws_wait_status ".notices.waiting == 1" &&
	flux kvs get dws.notices >kvs && jq -e "length == 1" kvs &&
	pid=$(ls hanging.*) && pid=${pid#hanging.} &&
	flux module remove dws &&
	dws_until killed $pid &&
	forget && mode well &&
	flux module load "$DWS_MODULES/dws.so" &&
	dws_until told 1 ".[0].jobid == $(flux job id --to=dec $jobid)" &&
	told 1 ".[0].id == $(jq .[0].id kvs)" &&
	dws_wait_status ".notices == {waiting: 0, told: 1, failed: 0}" &&
	flux kvs get dws.notices >kvs && jq -e "length == 0" kvs &&
	dws_wait_status ".agent.synced" && make_good
'
test_expect_success 'one that fails is logged, and is all that fails' '
	forget && mode fail &&
	dws_ctl fail-copy --message "dcp: quota" &&
	lose &&
	dws_wait_status ".notices == {waiting: 0, told: 1, failed: 1}" &&
	logged "rabbit.notice_command: no mail today" &&
	logged "rabbit.notice_command: sorry 9" &&
	test_must_fail logged "rabbit.notice_command: sorry 99" &&
	logged "exit status 3: notice stage-out-failed/.* is given up" &&
	told 0 true && make_good
'
test_expect_success 'one that says so is run again later' '
	forget && mode later &&
	dws_ctl fail-copy --message "dcp: quota" &&
	lose &&
	dws_until logged "exit status 75: notice stage-out-failed/.* is told later" &&
	dws_wait_status ".notices.waiting == 1" &&
	mode well && reload &&
	dws_until told 1 ".[0].event == \"stage-out-failed\"" && make_good
'
test_expect_success 'one that hangs is killed, and run again later' '
	forget && mode hang &&
	dws_ctl fail-copy --message "dcp: quota" &&
	lose && dws_until hanging 1 && dws_pass 60 &&
	dws_until logged "rabbit.notice_command: killed after 60 s" &&
	dws_until logged "it has failed: notice stage-out-failed/.* is told later" &&
	pid=$(ls hanging.*) && dws_until killed ${pid#hanging.} &&
	mode well && reload &&
	dws_until told 1 ".[0].event == \"stage-out-failed\"" && make_good
'
test_expect_success 'no more than four run at a time, and none is left out' '
	forget && mode hang &&
	dws_ctl fail-copy --message "dcp: quota" &&
	for i in 1 2 3 4 5 6; do dws_submit true || return 1; done >jobs &&
	for id in $(cat jobs); do dws_wait_event $id clean || return 1; done &&
	dws_wait_status ".notices.waiting == 6" &&
	dws_until hanging 4 &&
	flux run -N4 true && hanging 4 &&
	forget && mode well && reload &&
	dws_until told 6 "map(.jobid) | unique | length == 6" && make_good
'
test_expect_success 'notices for one user do not push off those for another' '
	forget && mode hang &&
	flux module remove dws &&
	jq -cn "[{id: \"theirs\", userid: 4242, t: now},
		(range(1024) | {id: \"mine/\\(.)\", userid: $(id -u), t: now})]" >before &&
	flux kvs put dws.notices="$(cat before)" &&
	flux module load "$DWS_MODULES/dws.so" &&
	dws_wait_status ".notices.waiting == 1025 and .agent.synced" &&
	dws_ctl fail-copy --message "dcp: quota" && lose &&
	dws_wait_status ".notices == {waiting: 1025, told: 0, failed: 1}" &&
	flux kvs get dws.notices >kvs &&
	jq -e ".[0].id == \"theirs\" and .[1].id == \"mine/1\"" kvs &&
	flux module remove dws && flux kvs put dws.notices="[]" &&
	forget && mode well &&
	flux module load "$DWS_MODULES/dws.so" &&
	dws_wait_status ".agent.synced" && make_good
'
test_expect_success 'a persistent file system that expires' '
	forget &&
	create soon --expires 2h &&
	dws_until told 1 ".[0] | .event == \"file-system-expiring\" and
		.what == [\"soon\"] and .until - .t > 7000 and .userid == $(id -u) and
		(.message | contains(\"flux rabbit persistent extend soon\"))" &&
	told 1 ".[0].where | startswith(\"rabbit\")" &&
	reload && told 1 true
'
test_expect_success 'and is destroyed while the module is away' '
	forget &&
	dws_ctl hold Teardown &&
	flux rabbit persistent extend soon --expires 1s &&
	dws_wait_status ".persistent | map(select(.destroying)) | length == 1" &&
	flux module remove dws &&
	dws_ctl release Teardown &&
	dws_until destroyed soon &&
	flux module load "$DWS_MODULES/dws.so" &&
	dws_until told 2 "map(.event) ==
		[\"file-system-expiring\", \"file-system-destroyed\"]" &&
	told 2 ".[1] | .what == [\"soon\"] and .userid == $(id -u) and
		(.message | contains(\"is destroyed\"))" &&
	dws_wait_status ".expiry.destroying == 0" && reload && told 2 true
'
test_expect_success 'the example mails what users have to know' '
	forget &&
	cat >sendmail <<-EOT &&
	#!/bin/sh
	test ! -e "$PWD/busy" || exit 75
	{ echo "ARGS \$*"; cat; } >"$PWD/mail"
	EOT
	chmod 755 sendmail && cp "$DWS_SRCDIR/etc/rabbit-notice" example &&
	chmod 755 example && : >busy &&
	options="\"--domain\", \"example.org\", \"--sendmail\", \"$PWD/sendmail\"" &&
	configure notice_command "[\"$PWD/example\", $options]" &&
	dws_ctl fail-copy --message "dcp: quota" &&
	lose &&
	dws_until logged "sendmail: exit status 75" &&
	dws_wait_status ".notices.waiting == 1" &&
	rm busy && flux config reload &&
	dws_until test -s mail && cat mail &&
	dws_wait_status ".notices.waiting == 0" &&
	grep "^ARGS -i -- $(id -un)@example.org" mail &&
	grep "^To: $(id -un)@example.org" mail &&
	tr "\n" " " <mail >line && grep "dcp: quota" line &&
	grep "tried again: flux rabbit retry" line &&
	make_good
'
test_expect_success 'without a command nothing is kept' '
	mode later && configure notice_command "[\"$PWD/notice\", \"$PWD\"]" &&
	dws_ctl fail-copy --message "dcp: quota" &&
	lose && dws_wait_status ".notices.waiting == 1" &&
	sed -i "/^notice_command/d" "$DWS_TMP/conf.d/test.toml" && flux config reload &&
	dws_wait_status ".notices.waiting == 0" &&
	flux kvs get dws.notices >kvs && jq -e "length == 0" kvs &&
	make_good
'
test_done
