#!/bin/bash
# What guests may do, and what only the owner of the instance.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Owner and guests'
. "$(dirname "$0")/../../t/sharness.sh"

dws_config () {
	cat <<-EOF
	[access]
	allow-guest-user = true
	EOF
}
test_under_flux 2

# Somebody else can be used as a guest if he gets at the commands, at what they
# need, and at the socket: not where a folder above them is private.
as_nobody () {
	setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
}
socket=$(flux getattr local-uri)
socket=${socket#local://}
test "$(id -u)" = 0 && chmod 711 "$(flux getattr rundir)" &&
	as_nobody test -w "$socket" &&
	as_nobody "$FLUX" python -c "import flux.job" >nobody.out 2>&1 &&
	test_set_prereq NOBODY

# guest COMMAND...: as user 12345. The owner of the instance may pretend.
guest () {
	FLUX_HANDLE_USERID=12345 FLUX_HANDLE_ROLEMASK=0x2 "$@"
}
# refused TEXT COMMAND...: a guest gets this error.
refused () {
	text=$1
	shift
	test_must_fail guest "$@" >out 2>err </dev/null || return 1
	grep -E "$text" err && return 0
	echo "$*:" && cat err
	return 1
}
OWNER="requires owner credentials|Operation not permitted|EPERM"

cat >submit.py <<\EOF
import base64, os, sys
import flux
from flux.job import JobspecV1

uid = int(os.environ["FLUX_HANDLE_USERID"])
header = f"version\0i1\0userid\0i{uid}\0mechanism\0snone\0"
parts = header, JobspecV1.from_command(["true"]).dumps()
J = ".".join([base64.b64encode(s.encode()).decode() for s in parts] + ["none"])
request = {"J": J, "urgency": int(sys.argv[1]), "flags": int(sys.argv[2])}
print(flux.Flux().rpc("job-ingest.submit", request).get()["id"])
EOF
rpc () {
	flux python -c "
import flux, flux.constants, json, sys
flags = flux.constants.FLUX_RPC_STREAMING if len(sys.argv) > 3 else 0
print(flux.Flux().rpc(sys.argv[1], json.loads(sys.argv[2]), flags=flags).get())
" "$@"
}

test_expect_success 'a job of the owner, and one of a guest' '
	theirs=$(flux submit --urgency=hold true) &&
	flux job memo $theirs a=b &&
	flux kvs put secret=1 &&
	mine=$(FLUX_HANDLE_USERID=12345 flux python submit.py 0 0) &&
	guest flux jobs -a -u all -no "{userid}" >users &&
	sort users >out &&
	printf "$(id -u)\n12345\n" | sort >expected &&
	test_cmp expected out
'
test_expect_success 'guests cannot submit without a signature' '
	refused "signer=$(id -u) != requestor=12345" flux submit true &&
	refused "only instance owner can use sign-type=none" \
		flux python submit.py 16 0 &&
	refused "only the instance owner can submit with urgency >16" \
		flux python submit.py 17 0 &&
	refused "owner can submit with FLUX_JOB_WAITABLE" flux python submit.py 16 4 &&
	refused "owner can submit with FLUX_JOB_NOVALIDATE" \
		flux python submit.py 16 8
'
test_expect_success 'a signature of somebody else does not do' '
	test_must_fail env FLUX_HANDLE_USERID=12345 flux submit true 2>err &&
	grep "signer=$(id -u) != requestor=12345" err
'
test_expect_success 'the job of another is out of their reach' '
	refused "only raise exceptions on their own jobs" flux job raise $theirs &&
	refused "only raise exceptions on their own jobs" flux cancel $theirs &&
	refused "only send signals to their own jobs" flux job kill $theirs &&
	refused "only reprioritize their own jobs" flux job urgency $theirs 1 &&
	refused "only add a memo to their own jobs" flux job memo $theirs c=d &&
	refused "only update their own jobs" \
		rpc job-manager.update "{\"id\": $(flux job id $theirs), \"updates\":
			{\"attributes.system.duration\": 60}}"
'
test_expect_success 'and what is in the KVS of it' '
	refused "restricted|not permitted" flux job eventlog $theirs &&
	refused "restricted|not permitted" flux job info $theirs jobspec &&
	refused "restricted|not permitted" flux job info $theirs J &&
	refused "restricted|not permitted" \
		flux job wait-event -t 300 $theirs submit &&
	refused "restricted|not permitted|not your job" flux job attach $theirs
'
test_expect_success 'their own is not' '
	guest flux job eventlog $mine >eventlog.out &&
	grep submit <eventlog.out &&
	guest flux job info $mine jobspec >jobspec.out &&
	jq -e .tasks <jobspec.out &&
	guest flux job wait-event -t 300 $mine submit &&
	guest flux job memo $mine c=d &&
	guest flux job raise --severity=2 --type=note $mine &&
	refused "only adjust urgency <= default" flux job urgency $mine 20 &&
	guest flux cancel $mine &&
	guest flux job wait-event -t 300 $mine clean
'
test_expect_success 'the KVS is not for guests' '
	refused "$OWNER" flux kvs get secret &&
	refused "$OWNER" flux kvs put secret=2 &&
	refused "$OWNER" flux kvs ls &&
	refused "$OWNER" rpc kvs.namespace-create "{\"namespace\": \"mine\",
		\"rootref\": \"\", \"owner\": 12345, \"flags\": 0}" &&
	test "$(flux kvs get secret)" = 1
'
test_expect_success 'nor are the controls of the instance' '
	refused "$OWNER" flux queue stop &&
	refused "$OWNER" flux resource drain 0 &&
	refused "$OWNER" flux module remove job-info &&
	refused "$OWNER" flux jobtap list &&
	refused "$OWNER" flux config reload &&
	refused "$OWNER" flux setattr foo bar &&
	refused "$OWNER" flux dmesg &&
	refused "$OWNER" rpc service.add "{\"service\": \"foo\"}" &&
	for topic in job-manager.events-journal resource.acquire job-exec.start; do
		refused "$OWNER" rpc $topic "{}" streaming || return 1
	done
'
test_expect_success 'they may look' '
	guest flux queue status &&
	guest flux resource list &&
	guest flux resource status &&
	guest flux module list &&
	guest flux getattr size &&
	guest rpc service.add "{\"service\": \"12345-mine\"}"
'
test_expect_success NOBODY 'a guest who is one cannot pretend' '
	for role in 0x1 0x3; do
		test_must_fail as_nobody env FLUX_HANDLE_USERID=$(id -u) FLUX_HANDLE_ROLEMASK=$role \
			flux cancel $theirs 2>err &&
		grep "only raise exceptions on their own jobs" err || return 1
	done &&
	flux jobs -no "{state}" $theirs >out &&
	grep SCHED out
'
test_expect_success NOBODY 'without access there is none' '
	echo "{}" | flux config load &&
	test_must_fail as_nobody flux getattr size &&
	flux cancel $theirs
'
test_done
