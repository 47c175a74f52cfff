#!/bin/bash
# Commands of [job-manager.prolog] and [job-manager.epilog].
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Prolog and epilog commands'
. "$(dirname "$0")/sharness.sh"

# The commands write to, and are told what to do by, files in this folder.
dws_config () {
	mkdir -p "$DWS_TMP/perilog"
	cat >"$DWS_TMP/perilog/run" <<-EOF2
	#!/bin/sh
	cd "$DWS_TMP/perilog" || exit 1
	echo \$1 \$FLUX_JOB_ID \$FLUX_JOB_USERID \$HOSTNAME >>log
	echo "\$1 says hello"
	test ! -e "fail-\$1" || exit 3
	test ! -e "hang-\$1" || exec sleep 300
	test ! -p "wait-\$1" || cat "wait-\$1"
	EOF2
	chmod +x "$DWS_TMP/perilog/run"
	cat <<-EOF2
	[job-manager]
	plugins = [ { load = "perilog.so" } ]
	[job-manager.prolog]
	per-rank = true
	command = [ "$DWS_TMP/perilog/run", "prolog" ]
	kill-timeout = 1.0
	[job-manager.epilog]
	per-rank = true
	command = [ "$DWS_TMP/perilog/run", "epilog" ]
	EOF2
}
test_under_flux 4
DIR=$DWS_TMP/perilog
test "$DWS_ENGINE" = solo && test_set_prereq SOLO

names () {
	flux job eventlog -f json $1 | jq -r .name >names
}
context () {
	flux job eventlog -f json $1 |
	jq -c "select(.name == \"$2\").context" >context.out
}

test_expect_success 'they run on each node of the job' '
	flux run -N3 true &&
	flux job wait-event -t 30 $(flux job last) clean &&
	test "$(grep -c ^prolog $DIR/log)" = 3 &&
	test "$(grep -c ^epilog $DIR/log)" = 3
'
test_expect_success 'they know job and user' '
	id=$(flux job id $(flux job last)) &&
	read what jobid userid rest <$DIR/log &&
	test "$(flux job id $jobid)" = $id &&
	test $userid = $(id -u)
'
test_expect_success SOLO 'they know the name of the node' '
	grep ^prolog $DIR/log | cut -d" " -f4 | sort >hosts &&
	printf "node0\nnode1\nnode2\n" >expected &&
	test_cmp expected hosts
'
test_expect_success 'the prolog holds the start, the epilog the end' '
	names $(flux job last) &&
	grep -xE "prolog-start|prolog-finish|start|finish|epilog-start|epilog-finish|clean" \
		names >out &&
	cat >expected <<-EOF2 &&
	prolog-start
	prolog-finish
	start
	finish
	epilog-start
	epilog-finish
	clean
	EOF2
	test_cmp expected out &&
	context $(flux job last) prolog-start &&
	jq -e ".description == \"job-manager.prolog\"" context.out
'
test_expect_success 'what they print is in the log' '
	flux dmesg >dmesg &&
	grep "prolog: .*stdout: prolog says hello" dmesg
'
test_expect_success 'a prolog that fails ends the job, after the epilog' '
	rm $DIR/log &&
	touch $DIR/fail-prolog &&
	test_must_fail flux run -N2 true 2>err &&
	rm $DIR/fail-prolog &&
	jobid=$(flux job last) &&
	flux job wait-event -t 30 $jobid clean &&
	grep "prolog exited with code=3" err &&
	names $jobid &&
	test_must_fail grep -x start names &&
	test "$(grep -c ^epilog $DIR/log)" = 2
'
test_expect_success 'an epilog that fails does not change the result' '
	touch $DIR/fail-epilog &&
	flux run -N2 true &&
	jobid=$(flux job last) &&
	flux job wait-event -t 30 $jobid clean &&
	rm $DIR/fail-epilog &&
	context $jobid exception &&
	jq -e ".type == \"epilog\" and .severity > 0" context.out &&
	flux job status $jobid
'
test_expect_success SOLO 'a prolog is ended when its job is cancelled' '
	touch $DIR/hang-prolog &&
	rm -f $DIR/log &&
	jobid=$(flux submit -N2 true) &&
	until test "$(grep -c ^prolog $DIR/log 2>/dev/null)" = 2; do :; done &&
	flux cancel $jobid &&
	flux job wait-event -t 30 $jobid clean &&
	rm $DIR/hang-prolog &&
	names $jobid &&
	test_must_fail grep -x start names &&
	grep -x epilog-finish names
'
# flux-core refuses it as well, but its next prolog never ends.
test_expect_success 'the epilog comes after the job when an exception was not fatal' '
	mkfifo $DIR/wait-prolog &&
	jobid=$(flux submit -N1 true) &&
	flux job wait-event -q -t 30 $jobid prolog-start &&
	flux job raise --severity=3 --type=note $jobid &&
	: >$DIR/wait-prolog &&
	rm $DIR/wait-prolog &&
	flux job wait-event -q -t 30 $jobid clean &&
	names $jobid &&
	printf "start\nepilog-start\nepilog-finish\n" >expected &&
	grep -xE "start|epilog-.*" names >out &&
	test_cmp expected out
'
test_expect_success SOLO 'a bad table is refused, and the old one stays' '
	cp $DWS_TMP/conf.d/test.toml good.toml &&
	sed -e "s/^kill-timeout = .*/timeout = \"often\"/" good.toml \
		>$DWS_TMP/conf.d/test.toml &&
	test_must_fail flux config reload 2>err &&
	cp good.toml $DWS_TMP/conf.d/test.toml &&
	flux config reload &&
	flux run true
'
test_done
