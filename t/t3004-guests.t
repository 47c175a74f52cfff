#!/bin/bash
# Each request that a service answers, sent by a guest (doc/dev/inputs.rst).
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Requests of guests'
. "$(dirname "$0")/sharness.sh"
test_under_flux 2

methods () {
	"$DWS_PYTHON" "$DWS_SRCDIR/scripts/lib/inputs.py" "$@"
}

test_expect_success 'load everything, with a job that runs' '
	dws_setup &&
	jobid=$(flux submit -N2 -S dw="$DWS_DIRECTIVE" sleep inf) &&
	dws_wait_event $jobid start &&
	id=$(flux job id --to=dec $jobid)
'
REFUSED="not permitted\|requires owner\|denied"
test_expect_success 'what only the owner may send is refused, whatever is in it' '
	methods owner >owner &&
	test $(wc -l <owner) -ge 20 &&
	for topic in $(cat owner); do
		for payload in "{}" "{\"id\": $id, \"jobid\": $id}"; do
			test_must_fail as_guest rpc $topic "$payload" 2>err &&
			grep -i "$REFUSED" err || { echo "$topic:" && cat err && return 1; }
		done
	done
'
# To dws.disconnect there is no answer.
test_expect_success 'this is all that guests may send' '
	printf "dws.%s\n" disconnect expiry logs losses profiles quota retry status token >expected &&
	echo job-manager.dws.validate >>expected &&
	methods any user | sort >any &&
	test_cmp expected any &&
	sort owner any | grep -vx dws.disconnect >all &&
	while read topic; do
		as_guest rpc $topic "{}" >out 2>err
		grep -qi "$REFUSED" err || echo $topic
	done <all >answered &&
	grep -vx dws.disconnect expected >answers &&
	test_cmp answers answered
'
test_expect_success 'a guest sees nothing of the job, and gets nothing of it' '
	as_guest rpc dws.status >out && jq -e ".jobs == 0" out &&
	test_must_fail as_guest rpc dws.status "{\"jobid\": $id}" &&
	test_must_fail as_guest rpc dws.token "{\"jobid\": $id}" 2>err &&
	grep "owner of an active rabbit job" err
'
test_expect_success 'he gets the profiles that the agent may read, without its rights' '
	test_must_fail as_guest rpc dws.profiles "{\"kind\": \"storage\"}" 2>err &&
	grep "its user lacks the right to list them" err
'
test_expect_success 'he cannot have stage-outs of others tried again' '
	test_must_fail as_guest rpc dws.retry "{\"jobid\": 7}" 2>err &&
	grep "no stage-out of that job can be tried again" err
'
test_expect_success 'he reads no logs of others' '
	test_must_fail as_guest rpc dws.logs "{\"jobid\": $id}" 2>err &&
	grep "you have no such active rabbit job" err
'
test_expect_success 'he sees no losses of others, and can not acknowledge them' '
	flux module remove dws &&
	flux kvs put dws.losses="[{\"id\": 7, \"userid\": $(id -u), \"t\": 1.0,
		\"text\": \"lost\"}]" &&
	flux module load "$DWS_MODULES/dws.so" &&
	dws_wait_status ".synced and .agent.synced" &&
	rpc dws.losses >out && jq -e ".losses | length == 1" out &&
	as_guest rpc dws.losses >out && jq -e ".losses == []" out &&
	test_must_fail as_guest rpc dws.losses "{\"ack\": 7}" 2>err &&
	grep "nothing of that job is listed" err &&
	rpc dws.losses "{\"ack\": 7}" >out && jq -e ".losses == []" out
'
test_expect_success 'he says of no file system of others when it expires' '
	test_must_fail as_guest rpc dws.expiry "{\"name\": \"none\", \"expires\": 0}" \
		2>err &&
	grep "no file system .none. of yours" err
'
test_expect_success 'he is told of what he has, and not of what others have' '
	as_guest rpc dws.quota >out && jq -e ".users == [] and .banks == []" out &&
	test_must_fail as_guest rpc dws.quota "{\"all\": true}" 2>err &&
	grep "only the owner of the instance" err &&
	test_must_fail as_guest rpc dws.quota "{\"userid\": $(id -u)}" 2>err &&
	grep "only the owner of the instance" err
'
test_expect_success 'he can not disconnect anybody else' '
	cat >disconnect.py <<-\EOF &&
	import flux, flux.constants
	h = flux.Flux()
	h.rpc("dws.disconnect", {}, flags=flux.constants.FLUX_RPC_NORESPONSE)
	h.rpc("dws.status", {}).get()
	EOF
	as_guest flux python disconnect.py &&
	rpc dws.status >out && jq -e ".agent.attached and .agent.synced" out
'
test_expect_success 'the job has noticed nothing of all that' '
	flux job eventlog $jobid >eventlog &&
	test_must_fail grep exception eventlog &&
	flux cancel $jobid && dws_wait_event $jobid clean && dws_clean
'
test_done
