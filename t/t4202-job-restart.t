#!/bin/bash
# An instance is killed and started again from its state directory.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='No job is lost when the instance is killed'
. "$(dirname "$0")/sharness.sh"

test "$DWS_ENGINE" = solo && test_set_prereq SOLO

state=$(mktemp -d "${TMPDIR:-/tmp}/dws state-XXXXXX")

# instance SCRIPT: run it in an instance with our state directory.
instance () {
	env -u FLUX_URI "$FLUX" start -s 2 -S statedir="$state" \
		${SHELL_PATH:-/bin/bash} "$PWD/$1"
}

test_expect_success SOLO 'kill an instance with jobs in many states' '
	cat >first.sh <<-\EOF &&
	flux submit --urgency=hold true >held
	flux submit --dependency=afterok:$(cat held) true >dependent
	flux submit -N2 --exclusive true >over
	flux job wait-event -q -t 30 $(cat over) clean
	flux submit -N1 sleep inf >running
	flux job wait-event -q -t 30 $(cat running) start
	flux submit -N2 --exclusive true >pending
	flux queue disable -m testing
	kill -9 $(flux getattr broker.pid)
	EOF
	test_expect_code 137 instance first.sh
'
test_expect_success SOLO 'all are there again, and go on' '
	cat >second.sh <<-\EOF &&
	set -e
	flux jobs -a -no "{id.f58plain} {state}" | sort >jobs
	flux queue status >status
	flux queue enable
	! flux job wait-event -q -t 30 $(cat running) nosuch
	flux job wait-event -q -t 30 $(cat running) clean
	flux job wait-event -q -t 30 $(cat pending) clean
	flux job urgency $(cat held) default
	flux job wait-event -q -t 30 $(cat dependent) clean
	flux run true
	flux jobs -no "{result}" $(cat held pending dependent over) >results
	flux jobs -no "{result}" $(cat running) >lost
	flux dmesg | grep "not replayed" >log || :
	EOF
	instance second.sh &&
	test "$(wc -l <jobs)" = 5 &&
	grep "disabled: testing" status &&
	test "$(sort -u results)" = COMPLETED &&
	test "$(cat lost)" = FAILED &&
	test_must_be_empty log
'
# The moment is random: DWS_KILLS=100 finds what 3 of them do not.
kills=${DWS_KILLS:-3}
test_expect_success SOLO "kill it while many submit, $kills times" '
	cat >burst.sh <<-\EOF &&
	flux submit --cc=1-5 true >>real
	for file in real real simulated; do
		test $file = real || duration="--setattr=exec.test.run_duration=.3s"
		while flux submit --cc=1-20 $duration true; do :; done \
			>>$file 2>>errors &
	done
	sleep .$((RANDOM % 10))$((RANDOM % 10))
	kill -9 $(flux getattr broker.pid)
	EOF
	: >simulated &&
	for n in $(seq $kills); do
		test_expect_code 137 instance burst.sh || return 1
	done
'
test_expect_success SOLO 'no job is lost, no eventlog torn' '
	cat >check.py <<-\EOF &&
	import collections, json, flux, flux.job
	handle = flux.Flux()
	counts = collections.Counter()
	for kind in "real", "simulated":
	    for line in open(kind):
	        request = {"id": flux.job.JobID(line.strip()), "keys": ["eventlog"], "flags": 0}
	        log = handle.rpc("job-info.lookup", request).get()["eventlog"]
	        assert log.endswith("\n"), log
	        events = [json.loads(entry) for entry in log.splitlines()]
	        names = [event["name"] for event in events]
	        assert names[0] == "submit" and names[-1] == "clean", log
	        for name in "submit", "alloc", "start", "finish", "free", "clean":
	            assert names.count(name) <= 1, log
	        end = next((e for e in events if e["name"] == "finish"), None)
	        status = end["context"]["status"] if end else None
	        counts[kind, "well" if status == 0 else "not well"] += 1
	for (kind, how), count in sorted(counts.items()):
	    print(kind, "ended", how, count)
	EOF
	cat >last.sh <<-\EOF &&
	set -e
	flux queue drain
	flux python check.py >counts
	flux kvs ls job-lost+found >lost+found 2>&1 || :
	EOF
	instance last.sh &&
	cat counts &&
	grep "real ended well" counts &&
	! grep "simulated ended not well" counts &&
	grep "No such file" lost+found
'
test_expect_success SOLO 'kill it while prologs and epilogs run' '
	cat >perilog <<-EOF &&
	#!/bin/sh
	cd "$PWD"
	echo \$1 \$(flux job id \$FLUX_JOB_ID) >>log
	test ! -e hang-\$1 || { trap "" TERM; exec sleep inf; }
	EOF
	chmod +x perilog &&
	mkdir conf state &&
	cat >conf/perilog.toml <<-EOF &&
	[job-manager]
	plugins = [ { load = "perilog.so" } ]
	prolog = { command = [ "$PWD/perilog", "prolog" ] }
	epilog = { command = [ "$PWD/perilog", "epilog" ] }
	EOF
	cat >third.sh <<-\EOF &&
	flux submit --setattr=exec.test.run_duration=1h true >running
	flux job wait-event -q -t 30 $(cat running) start
	touch hang-epilog
	flux submit true >epilog
	flux job wait-event -q -t 30 $(cat epilog) epilog-start
	touch hang-prolog
	flux submit true >prolog
	flux submit true >cancelled
	until test $(grep -c ^prolog log) = 4; do :; done
	flux cancel $(cat cancelled)
	flux job wait-event -q -t 30 $(cat cancelled) exception
	rm hang-*
	kill -9 $(flux getattr broker.pid)
	EOF
	test_expect_code 137 "$FLUX" start -s 4 --statedir="$PWD/state" \
		--config-path="$PWD/conf" bash third.sh
'
test_expect_success SOLO 'they run again, and none of their jobs stays' '
	cat >fourth.sh <<-\EOF &&
	set -e
	flux cancel $(cat running)
	flux queue drain -t 60
	flux jobs -no "{result}" $(cat prolog epilog) >results
	flux jobs -no "{result}" $(cat running cancelled) >results.cancelled
	for job in prolog epilog cancelled running; do
		flux job eventlog $(cat $job) >$job.log
		flux job id $(cat $job) >$job.id
	done
	EOF
	"$FLUX" start -s 4 --statedir="$PWD/state" --config-path="$PWD/conf" \
		bash fourth.sh &&
	test "$(sort -u results)" = COMPLETED &&
	test "$(sort -u results.cancelled)" = CANCELED &&
	test $(grep -c "prolog $(cat prolog.id)" log) = 2 &&
	test $(grep -c "epilog $(cat prolog.id)" log) = 1 &&
	test $(grep -c "epilog $(cat epilog.id)" log) = 2 &&
	test $(grep -c "prolog $(cat cancelled.id)" log) = 1 &&
	test $(grep -c "epilog $(cat cancelled.id)" log) = 1 &&
	test $(grep -c "epilog $(cat running.id)" log) = 1 &&
	for job in prolog epilog cancelled running; do
		for what in prolog-start prolog-finish epilog-start epilog-finish; do
			test $(grep -c "$what" $job.log) = 1 || return 1
		done
	done
'
rm -rf "$state"
test_done
