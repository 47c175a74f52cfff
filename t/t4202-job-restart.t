#!/bin/bash
# An instance is killed and started again from its state directory.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='No job is lost when the instance is killed'
. "$(dirname "$0")/sharness.sh"

test "$DWS_ENGINE" = solo && test_set_prereq SOLO

state=$(mktemp -d "${TMPDIR:-/tmp}/dws-state-XXXXXX") # no blank in its path

# instance SCRIPT: run it in an instance with our state directory.
instance () {
	env -u FLUX_URI "$FLUX" start -s 2 --statedir="$state" \
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
test_expect_success SOLO 'kill it while many submit, five times' '
	cat >burst.sh <<-\EOF &&
	for i in 1 2 3; do
		flux submit --cc=1-20 true >>ids 2>/dev/null &
	done
	until test "$(wc -l <ids)" -ge $1; do wait -n || :; done
	kill -9 $(flux getattr broker.pid)
	EOF
	: >ids &&
	for n in 1 2 3 4 5; do
		sed "s/\$1/$(($(wc -l <ids) + 20))/" burst.sh >now.sh &&
		test_expect_code 137 instance now.sh || return 1
	done &&
	cat >last.sh <<-\EOF &&
	flux queue drain
	flux jobs -a -c0 -no "{id.f58}" | sort >have
	flux kvs ls job-lost+found >lost+found 2>&1 || :
	EOF
	instance last.sh &&
	sort ids >wanted &&
	comm -23 wanted have >missing &&
	test_must_be_empty missing &&
	grep "No such file" lost+found
'
rm -rf "$state"
test_done
