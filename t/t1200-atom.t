#!/bin/bash
# The ATOM notices of Flux's prolog and epilog, against a stand-in for ATOM.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='atom-begin and atom-end'
. "$(dirname "$0")/sharness.sh"
test_under_flux 2

ATOM_BIN=$DWS_PREFIX/libexec/flux-dws

# atom_start [--knows JOBID] [ANSWER...]: a stand-in that gives these answers, the last
# for ever, or keeps jobs
atom_start () {
	knows= &&
	atom_kill &&
	if test "$1" = --knows; then
		knows="--knows $2" && shift 2
	fi &&
	printf '%s\n' "$@" >answers &&
	mkfifo atom.fifo &&
	{
		"$DWS_PYTHON" -m flux_atom.standin "$PWD/atom.sock" \
			--answers answers $knows >atom.fifo 2>atom.err &
		echo $! >"$DWS_TMP/atom.pid"
	} &&
	{ exec 8<atom.fifo; read -r line <&8; } &&
	rm atom.fifo &&
	test "$line" = ready
}
# atom_kill: one that a failed test has left
atom_kill () {
	if test -e "$DWS_TMP/atom.pid"; then
		kill -9 $(cat "$DWS_TMP/atom.pid") 2>/dev/null
		rm -f "$DWS_TMP/atom.pid" atom.sock
	fi
}
atom_stop () {
	kill $(cat "$DWS_TMP/atom.pid") &&
	cat <&8 >requests &&
	exec 8<&- &&
	rm -f "$DWS_TMP/atom.pid" atom.sock
}
atom_notice () {
	action=$1 &&
	shift &&
	"$DWS_PYTHON" "$ATOM_BIN/atom-$action" --jobid $jobid --uid 1234 \
		--host node0 "$@"
}
atom_config () {
	cat >>"$DWS_TMP/conf.d/test.toml" && flux config reload
}
# atom_timeouts POST DELETE
atom_timeouts () {
	sed -i -e "s/^post_timeout.*/post_timeout = $1/" \
		-e "s/^delete_timeout.*/delete_timeout = $2/" "$DWS_TMP/conf.d/test.toml" &&
	flux config reload
}

test_expect_success 'a job that shares its node, and one that has it alone' '
	shared=$(flux submit -n1 -c1 true) &&
	alone=$(flux submit -N1 --exclusive true) &&
	full=$(flux submit -n1 -c4 true) &&
	for id in $shared $alone $full; do
		flux job wait-event -t 300 $id clean || return 1
	done
'
test_expect_success 'without an [atom] table nothing happens' '
	jobid=$shared &&
	atom_notice begin && atom_notice end
'
test_expect_success 'configure' '
	atom_config <<-EOF
	[atom]
	unix_socket_file = "$PWD/atom.sock"
	post_timeout = 30
	delete_timeout = 30
	EOF
'
test_expect_success 'begin and end are told' '
	atom_start "{\"status\": 200}" "{\"status\": 204}" &&
	atom_notice begin && atom_notice end &&
	atom_stop &&
	f58=$(flux job id --to=f58plain $jobid) &&
	jq -e ".method == \"POST\" and .path == \"/rm/v1/jobs\" and .body ==
		{\"jobid\": \"$f58\", \"uid\": 1234, \"exclusive\": false}" \
		<(head -n1 requests) &&
	jq -e ".method == \"DELETE\" and .path == \"/rm/v1/jobs/$f58\"" \
		<(tail -n1 requests)
'
for kind in alone full; do
	test_expect_success "a job that has its node: $kind" '
		eval jobid=\$'$kind' &&
		host=$(flux jobs -ano {nodelist} $jobid) &&
		atom_start "{\"status\": 200}" &&
		"$DWS_PYTHON" "$ATOM_BIN/atom-begin" --jobid $jobid --uid 1 \
			--host $host &&
		atom_stop &&
		jq -e ".body.exclusive" requests
	'
done
test_expect_success '400 is repeated' '
	jobid=$shared &&
	atom_start "{\"method\": \"POST\", \"status\": 400}" \
		"{\"method\": \"POST\", \"status\": 200}" &&
	atom_notice begin && atom_stop &&
	test "$(jq -r .method requests | xargs)" = "POST DELETE POST"
'
test_expect_success 'a job that ATOM knows from an earlier run is ended there first' '
	atom_start --knows $(flux job id --to=f58plain $jobid) &&
	atom_notice begin 2>err && atom_stop &&
	grep "DELETE: ATOM answered 204" err &&
	test "$(jq -r .method requests | xargs)" = "POST DELETE POST" &&
	test -z "$(flux resource drain -no {nodelist})"
'
test_expect_success 'an end that fails is logged, and that is all' '
	atom_start "{\"status\": 500, \"body\": {\"why\": \"asleep\"}}" &&
	atom_notice end 2>err && atom_stop &&
	grep "why: \"asleep\"" err &&
	test -z "$(flux resource drain -no {nodelist})"
'
if flux jobtap load perilog.so 2>perilog.err; then
	test_set_prereq PERILOG
	flux jobtap remove perilog.so
fi
# with_perilog PROLOG EPILOG: a job on node0 whose prolog and epilog are these
with_perilog () {
	for script in prolog epilog; do
		printf "#!/bin/sh\nexec %s --host node0\n" "$1" >$script &&
		chmod +x $script &&
		shift &&
		cat >"$DWS_TMP/conf.d/$script.toml" <<-EOF || return 1
		[job-manager.$script]
		per-rank = true
		command = ["$PWD/$script"]
		EOF
	done &&
	flux config reload &&
	flux jobtap load perilog.so &&
	perilog_job=$(flux submit -N1 --requires=rank:0 true) &&
	flux job wait-event -t 300 $perilog_job clean &&
	flux jobtap remove perilog.so
}
test_expect_success PERILOG 'run by Flux, one that fails drains nothing' '
	atom_start "{\"status\": 200}" "{\"status\": 500}" &&
	with_perilog "$DWS_PYTHON $ATOM_BIN/atom-begin" "$DWS_PYTHON $ATOM_BIN/atom-end" &&
	atom_stop &&
	flux job status $perilog_job &&
	test "$(jq -r .method requests | xargs)" = "POST DELETE" &&
	test -z "$(flux resource drain -no {nodelist})"
'
test_expect_success PERILOG 'run by Flux, after a begin that failed the end is told again' '
	atom_start "{\"status\": 500}" "{\"status\": 204}" "{\"status\": 404}" &&
	with_perilog "$DWS_PYTHON $ATOM_BIN/atom-begin" "$DWS_PYTHON $ATOM_BIN/atom-end" &&
	atom_stop &&
	test_must_fail flux job status $perilog_job &&
	test "$(jq -r .method requests | xargs)" = "POST DELETE DELETE" &&
	flux resource drain -no "{nodelist} {reason}" >drained &&
	grep "^node0 atom: ATOM answered 500" drained && test $(wc -l <drained) = 1 &&
	flux resource undrain node0
'
test_expect_success 'a begin that fails drains the node, with the reason' '
	atom_start "{\"status\": 500}" "{\"status\": 204}" &&
	test_must_fail atom_notice begin 2>err && atom_stop &&
	f58=$(flux job id --to=f58plain $jobid) &&
	grep "^atom-begin: $f58: ATOM answered 500" err &&
	test "$(jq -r .method requests | xargs)" = "POST DELETE" &&
	flux resource drain -no "{nodelist} {reason}" >drained &&
	grep "^node0 atom: ATOM answered 500" drained &&
	flux resource undrain node0
'
test_expect_success 'no answer in time drains too' '
	atom_timeouts 0.5 0.5 &&
	atom_start "{\"delay_s\": 600}" &&
	test_must_fail atom_notice begin 2>err && atom_stop &&
	grep "no answer in 0.5 s" err &&
	flux resource undrain node0
'
test_expect_success 'an answer that drips is none, and drains too' '
	atom_start "{\"status\": 200, \"drip_s\": 0.05}" &&
	test_must_fail atom_notice begin 2>err && atom_stop &&
	grep "no answer in 0.5 s" err &&
	test "$(jq -r .method requests | xargs)" = "POST DELETE" &&
	flux resource undrain node0
'
test_expect_success 'an end whose answer drips drains nothing' '
	atom_start "{\"status\": 200, \"drip_s\": 0.05}" &&
	atom_notice end 2>err && atom_stop &&
	grep "no answer in 0.5 s" err &&
	test -z "$(flux resource drain -no {nodelist})"
'
test_expect_success '400 forever ends before the alarm, and drains' '
	atom_start "{\"status\": 400}" &&
	test_must_fail atom_notice begin --alarm 4 2>err && atom_stop &&
	grep "ATOM answered 400 to the begin" err &&
	test_must_fail grep "before the alarm" err &&
	test $(wc -l <requests) -ge 3 &&
	test "$(tail -n1 requests | jq -r .method)" = DELETE &&
	flux resource undrain node0
'
test_expect_success 'an end that hangs ends before the alarm, and drains nothing' '
	atom_timeouts 30 600 &&
	atom_start "{\"delay_s\": 600}" &&
	atom_notice end --alarm 4 2>err && atom_stop &&
	grep "no answer in" err &&
	test -z "$(flux resource drain -no {nodelist})"
'
test_expect_success 'a job that Flux does not know is named, and drains nothing' '
	test_must_fail "$DWS_PYTHON" "$ATOM_BIN/atom-begin" --jobid f1 --uid 1 \
		--host node0 2>err &&
	grep "^atom-begin: f1: Flux does not answer" err &&
	test_must_fail grep Traceback err &&
	test -z "$(flux resource drain -no {nodelist})"
'
test_expect_success 'no Flux at all is said' '
	for action in begin end; do
		env FLUX_URI=local:///nowhere/flux "$DWS_PYTHON" \
			"$ATOM_BIN/atom-$action" --jobid f1 --uid 1 2>err
		echo $? >>status
		grep "^atom-$action: f1: Flux does not answer" err &&
		test_must_fail grep Traceback err || return 1
	done &&
	test "$(xargs <status)" = "1 0"
'
test_expect_success 'a broken or huge body does not matter' '
	atom_start "{\"raw\": \"<html>\"}" "{\"size\": 9000000}" &&
	atom_notice begin && atom_notice begin &&
	atom_stop
'
test_expect_success 'a body that cannot be shown does not matter, and forges no line' '
	"$DWS_PYTHON" >bodies <<-EOF &&
	import json
	deep = "{\"a\":" * 10000 + "1" + "}" * 10000
	for body in (deep, "{\"\\\\ud800\": 1}", "{\"a\\\\natom-begin: forged\": 1}"):
	    print(json.dumps({"status": 200, "raw": body}))
	EOF
	atom_start "$(cat bodies)" &&
	atom_notice begin 2>err && atom_notice begin 2>>err &&
	atom_notice begin 2>>err && atom_stop &&
	grep "cannot be shown (RecursionError)" err &&
	test_must_fail grep "^atom-begin: forged" err &&
	test -z "$(flux resource drain -no {nodelist})"
'
test_expect_success 'nobody reads the log: that does not matter' '
	atom_start "{\"status\": 200}" "{\"status\": 204}" &&
	atom_notice begin 2>/dev/full && atom_notice end 2>/dev/full &&
	atom_stop
'
test_expect_success 'what is not a socket drains too' '
	echo >atom.sock &&
	test_must_fail atom_notice begin 2>err &&
	rm atom.sock &&
	flux resource undrain node0
'
test_expect_success 'nobody on the socket drains too' '
	rm -f atom.sock &&
	test_must_fail atom_notice begin 2>err &&
	grep atom.sock err &&
	flux resource undrain node0
'
test_expect_success 'a bad key is named; a begin drains, an end does not' '
	sed -i "s/post_timeout/post_timeuot/" "$DWS_TMP/conf.d/test.toml" &&
	flux config reload &&
	atom_notice end 2>err &&
	grep post_timeuot err &&
	test -z "$(flux resource drain -no {nodelist})" &&
	test_must_fail atom_notice begin 2>err &&
	grep post_timeuot err &&
	flux resource drain -no "{nodelist} {reason}" >drained &&
	grep "^node0 atom: .*post_timeuot" drained &&
	flux resource undrain node0
'
test_done
