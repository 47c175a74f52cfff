#!/bin/bash
# Each request that a service answers, from a real user: about his own job, and about that
# of another.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='requests of users'
. "$(dirname "$0")/site.sh"

# methods WHO: those of the module and the plugin, as doc/dev/inputs.rst has them
methods () {
	python3 "$DWS_SRCDIR/scripts/lib/inputs.py" "$@" >methods.out &&
	grep "^dws\.\|^job-manager\.dws\." methods.out
}

test_expect_success 'one has a file system that lasts, and two have a job each' '
	as bob flux run -N2 -S dw="#DW create_persistent type=xfs capacity=10GiB name=lasting" true &&
	for user in alice bob; do
		as $user flux submit -N2 -S dw="#DW jobdw type=xfs capacity=10GiB name=mine" \
			sleep inf >$user.job &&
		wait_event $(cat $user.job) start || return 1
	done &&
	hers=$(flux job id --to=dec $(cat alice.job)) &&
	his=$(flux job id --to=dec $(cat bob.job))
'
test_expect_success 'what only the owner may send is refused, about whichever job' '
	methods owner >owner &&
	test $(wc -l <owner) -ge 15 &&
	for topic in $(cat owner); do
		for id in $hers $his; do
			test_must_fail ask alice $topic "{\"id\": $id, \"jobid\": $id}" 2>err &&
			grep -i "not permitted\|requires owner\|denied" err ||
				{ echo "$topic:" && cat err && return 1; }
		done
	done
'
test_expect_success 'a user is told of his own job, and not of that of another' '
	ask alice dws.status >out &&
	jq -e ".jobs == 1" out &&
	ask alice dws.status "{\"jobid\": $hers}" >out &&
	test_must_fail ask alice dws.status "{\"jobid\": $his}" &&
	ask flux dws.status >out && jq -e ".jobs == 2" out &&
	ask root dws.status >out && jq -e ".jobs == 2" out
'
test_expect_success 'commands say the same' '
	as alice flux rabbit jobs >out &&
	grep $(cat alice.job) out &&
	test_must_fail grep $(cat bob.job) out &&
	as alice flux rabbit show $(cat alice.job) &&
	test_must_fail as alice flux rabbit show $(cat bob.job)
'
test_expect_success 'nothing of the job of another can be had or changed' '
	for topic in token retry; do
		test_must_fail ask alice dws.$topic "{\"jobid\": $his}" 2>err || return 1
	done &&
	ask alice dws.losses >out && jq -e ".losses == []" out &&
	test_must_fail ask alice dws.losses "{\"ack\": $his}" &&
	test_must_fail ask alice dws.expiry "{\"name\": \"none\", \"expires\": 0}" &&
	test_must_fail ask alice dws.quota "{\"all\": true}" &&
	test_must_fail ask alice dws.quota "{\"userid\": 2002}" &&
	ask alice dws.quota >out && jq -e "all(.users[]; .userid == 2001)" out &&
	test_must_fail as alice flux cancel $(cat bob.job)
'
# about TOPIC ID NAME: alice about that job, or that file system, in each field that a
# request may name it by; what names it is left out of the answer
about () {
	ask alice $1 "{\"id\": $2, \"jobid\": $2, \"ack\": $2, \"name\": \"$3\", \"expires\": 0}" \
		>about.out 2>&1
	echo "status $?" >>about.out
	sed "s/\b$2\b/ID/g; s/$(flux job id --to=f58 $2)/ID/g; s/\b$3\b/NAME/g" about.out
}
# To dws.disconnect there is no answer.
test_expect_success 'of all that users may ask, the answer is as if there were no such job' '
	methods "any user" | grep -vx dws.disconnect >any &&
	test $(wc -l <any) -ge 8 &&
	for topic in $(cat any); do
		about $topic $his lasting >answer &&
		about $topic 1234567890123 nowhere >expected &&
		test_cmp expected answer || { echo "$topic" && return 1; }
	done
'
test_expect_success 'nor do admin commands work for a user' '
	test_must_fail as alice flux rabbit disable rabbit0 2>err &&
	test_must_fail as alice flux module remove dws &&
	test_must_fail as alice flux jobtap remove dws-jobtap.so &&
	test_must_fail as alice flux kvs put dws.losses=[] &&
	as flux flux rabbit status --json >status &&
	jq -e ".synced" status
'
test_expect_success 'what only root and the owner may read is so' '
	test_must_fail as alice cat "$SITE_CONF/kubeconfig" &&
	test_must_fail as alice cat "$SITE_CONF/curve.cert"
'
test_expect_success 'the jobs have noticed nothing of all that' '
	for user in alice bob; do
		as flux flux job eventlog $(cat $user.job) >eventlog &&
		test_must_fail grep exception eventlog &&
		as $user flux cancel $(cat $user.job) &&
		wait_event $(cat $user.job) clean || return 1
	done &&
	as bob flux run -N2 -S dw="#DW destroy_persistent name=lasting" true &&
	all_clean
'
test_done
