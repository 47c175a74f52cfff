#!/bin/bash
# Persistent file systems that expire: who sets when, who is told, and what is never
# destroyed.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='When persistent file systems expire'
. "$(dirname "$0")/sharness.sh"
test_under_flux 4

USE="#DW persistentdw name"

persistent () {
	flux rabbit persistent "$@"
}
create () {
	name=$1 &&
	shift &&
	persistent create $name -t xfs -c 1GiB "$@" >out 2>&1 || { cat out; return 1; }
}
# is NAME FILTER: what dws.status says of it
is () {
	dws_wait_status ".persistent | map(select(.name == \"$1\")) | $2"
}
gone () {
	is $1 "length == 0"
}
reload () {
	flux module reload "$DWS_MODULES/dws.so" &&
	dws_wait_status ".synced and .agent.synced"
}
# extend NAME TIME
extend () {
	persistent extend $1 --expires "$2"
}
configure () {
	sed -i "/^$1/d" "$DWS_TMP/conf.d/test.toml" &&
	sed -i "s/^restrict_persistent.*/&\n$1 = $2/" "$DWS_TMP/conf.d/test.toml" &&
	flux config reload
}

test_expect_success 'load everything' '
	echo "restrict_persistent_creation = false" >rabbit.toml &&
	dws_setup
'
test_expect_success 'a directive says how long, and DWS is not told' '
	create ever && create keep --expires 30d &&
	jobid=$(flux submit -N1 -S \
		dw="#DW create_persistent type=xfs capacity=1GiB name=short expires=2h" \
		true) &&
	dws_wait_event $jobid clean && flux job status $jobid &&
	is ever ".[0].expires == 0 and .[0].expiring == false" &&
	is keep ".[0] | .expires - .created == 30 * 86400 and .expiring == false" &&
	is short ".[0] | .expires - .created == 7200 and .expiring"
'
test_expect_success 'list and show have it, and mark what expires soon' '
	persistent -no "{name} {left}" >out && cat out &&
	grep "^ever *$" out && grep "^keep .*d" out && grep "^short .*!$" out &&
	persistent -o long >out && grep "EXPIRES" out &&
	persistent show short >out && grep "^Expires  *[0-9].*!)" out
'
test_expect_success 'the log says so, once' '
	flux dmesg >dmesg &&
	grep "file system .short. of user $(id -un) expires in [12]" dmesg
'
test_expect_success 'what is wrong is refused when it is submitted' '
	test_must_fail create other --expires yesterday &&
	grep "is over" out &&
	test_must_fail create other --expires whenever &&
	grep "whenever. is no time" out &&
	test_must_fail flux submit -N1 -S \
		dw="#DW create_persistent type=xfs capacity=1GiB name=other expires=2w" \
		true 2>err &&
	grep "expires .2w. must be how long" err &&
	test_expect_code 1 persistent show ever --expires 2d 2>err &&
	grep "only create and extend" err
'
test_expect_success 'its owner and that of the instance change it, and nobody else' '
	extend keep 40d &&
	is keep ".[0] | .expires - .created > 39 * 86400" &&
	extend ever 50d && is ever ".[0].expires > 0" &&
	extend ever never && is ever ".[0].expires == 0" &&
	test_must_fail as_guest flux rabbit persistent extend keep --expires 1d 2>err &&
	grep "no file system .keep. of yours" err &&
	test_must_fail extend nothing 1d 2>err &&
	grep "no file system .nothing. of yours" err &&
	test_expect_code 1 persistent extend keep 2>err &&
	grep "extend needs --expires" err
'
test_expect_success 'it is the same after the module was reloaded' '
	persistent show keep --json >json && jq .expires json >before &&
	reload && persistent show keep --json >json && jq .expires json >after &&
	test_cmp before after
'
test_expect_success 'it is the same after a backup was restored that lacks the file system' '
	dws_ctl backup >backup.out &&
	create since --expires 40d &&
	is since ".[0].expires > 0" &&
	persistent show since --json >json && jq .expires json >before &&
	dws_ctl restore >restore.out &&
	gone since &&
	flux kvs get dws.expiry >ledger && cat ledger &&
	dws_ctl restore >restore.out &&
	is since "length == 1" &&
	persistent show since --json >json && jq .expires json >after &&
	test_cmp before after &&
	persistent destroy since --yes && gone since
'
test_expect_success 'there is a longest time, which also is the default' '
	configure persistent_lifetime "\"10d\"" &&
	test_must_fail flux submit -N1 -S \
		dw="#DW create_persistent type=xfs capacity=1GiB name=long expires=11d" \
		true 2>err &&
	grep "expires .11d. is more than the 10 d that the site allows" err &&
	test_must_fail create long --expires never && grep "more than the 10 d" out &&
	test_must_fail extend keep 11d 2>err && grep persistent_lifetime err &&
	test_must_fail extend keep never &&
	create usual && is usual ".[0] | .expires - .created == 864000" &&
	is ever ".[0].expires == 0"
'
test_expect_success 'what has expired is destroyed, once' '
	extend usual 1s && gone usual &&
	dws_wait_status ".expiry == {listed: 2, destroying: 0, destroyed: 1}" &&
	flux dmesg >dmesg &&
	test $(grep -c "usual. has expired and is destroyed" dmesg) = 1
'
test_expect_success 'what a job uses is kept until its end, and no other may begin' '
	create used --requires=rank:0 && create marker &&
	jobid=$(flux submit -N1 -S dw="$USE=used" sleep inf) &&
	dws_wait_event $jobid start &&
	extend used 2s && extend marker 2500ms && gone marker &&
	is used "length == 1" && persistent -no "{name} {left}" >out &&
	grep "^used  *over!" out &&
	other=$(flux submit -N1 -S dw="$USE=used" true) &&
	dws_wait_event -m type=dws-create $other exception >exception &&
	grep "used. has expired: flux rabbit persistent extend used" exception &&
	reload && is used "length == 1" &&
	flux cancel $jobid && dws_wait_event $jobid clean &&
	gone used
'
test_expect_success 'what a job that waits in the queue names is kept for it' '
	create named --requires=rank:0 && create marker && create other &&
	flux resource drain 0-1 "for the test" &&
	jobid=$(flux submit -N1 -S dw="$USE=named" true) &&
	dws_wait_event $jobid depend &&
	extend named 2s && extend marker 2500ms && gone marker &&
	reload && extend other 2s && gone other &&
	is named "length == 1" &&
	flux resource undrain 0-1 &&
	dws_wait_event $jobid clean && flux job status $jobid &&
	gone named
'
test_expect_success 'one is spared that gets more time before its Teardown' '
	create spared && dws_ctl hold Proposal &&
	extend spared 2s &&
	dws_wait_status ".expiry.destroying == 1" &&
	extend spared 1d &&
	dws_wait_status ".expiry.destroying == 0" &&
	dws_ctl release Proposal &&
	is spared ".[0].state == \"Active\""
'
LABEL=flux-framework.org/instance
# named: the workflow that destroys it is
named () {
	dws_k8s get persistentstorageinstances lost >lost.json &&
	sweep=fluxexpiry-$(jq -r .metadata.uid lost.json)
}
# unlabelled STATE LABEL: one is being destroyed whose workflow has lost its label
unlabelled () {
	create lost && dws_ctl hold $1 &&
	extend lost 2s &&
	dws_wait_status ".expiry.destroying == 1" &&
	named &&
	dws_ctl wait-state $sweep $1 --timeout $DWS_LIMIT &&
	dws_k8s patch workflows $sweep \
		"{\"metadata\": {\"labels\": {\"$LABEL\": $2}}}" >patched
}
labelled () {
	dws_k8s get workflows $sweep >sweep.json &&
	jq -e ".spec.wlmID == \"flux\" and .spec.jobID == \"expiry\"
		and .spec.userID == $(id -u)
		and .spec.dwDirectives == [\"#DW destroy_persistent name=lost\"]" \
		sweep.json &&
	jq -e ".metadata.labels.\"$LABEL\" != null
		and .metadata.labels.\"$LABEL\" != \"another\"" sweep.json
}
for state in Proposal Teardown; do
	for value in null \"another\"; do
		test_expect_success "its workflow in $state with the label $value gets it back" '
			unlabelled $state $value &&
			dws_until labelled &&
			dws_ctl release $state &&
			gone lost &&
			dws_wait_status ".expiry.destroying == 0" &&
			test_must_fail dws_k8s get workflows $sweep
		'
	done
done
test_expect_success 'also when the module was away meanwhile' '
	create lost && dws_ctl hold Proposal &&
	extend lost 2s &&
	dws_wait_status ".expiry.destroying == 1" &&
	named &&
	flux module remove dws &&
	dws_k8s patch workflows $sweep \
		"{\"metadata\": {\"labels\": {\"$LABEL\": null}}}" >patched &&
	flux module load "$DWS_MODULES/dws.so" &&
	dws_until labelled &&
	dws_ctl release Proposal &&
	gone lost &&
	dws_wait_status ".expiry.destroying == 0" &&
	test_must_fail dws_k8s get workflows $sweep
'
test_expect_success 'one that is being destroyed gets no more time' '
	dws_ctl hold Teardown &&
	extend spared 2s &&
	is spared ".[0].destroying" &&
	test_must_fail extend spared 1d 2>err && grep "is being destroyed" err &&
	other=$(flux submit -N1 -S dw="$USE=spared" true) &&
	dws_wait_event -m type=dws-create $other exception >exception &&
	grep "has expired and is being destroyed" exception
'
test_expect_success 'module and agent are started anew meanwhile' '
	reload && is spared ".[0].destroying" &&
	dws_ctl release Teardown &&
	gone spared && dws_wait_status ".expiry.destroying == 0"
'
test_expect_success 'one that expires while the module is away goes when it is back' '
	create away && extend away 1s &&
	flux module remove dws &&
	flux module load "$DWS_MODULES/dws.so" &&
	gone away
'
test_expect_success 'many go, some at a time' '
	for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
		flux submit -N1 -S dw="#DW create_persistent type=xfs capacity=1GiB \
			name=fs$i expires=1s" true || return 1
	done >jobs &&
	for id in $(cat jobs); do dws_wait_event $id clean || return 1; done &&
	dws_wait_status ".persistent | map(.name) | sort == [\"ever\", \"keep\", \"short\"]"
'
test_expect_success 'one that was made anew under the same name does not inherit' '
	persistent destroy short --yes && gone short &&
	configure persistent_lifetime -1 &&
	create short && is short ".[0].expires == 0"
'
test_expect_success 'nor does one that was put in its place while the module was away' '
	create swap --expires 1h && is swap ".[0].expires > 0" &&
	dws_k8s get persistentstorageinstances swap >swap.json &&
	flux module remove dws &&
	dws_kube delete persistentstorageinstances default swap &&
	dws_kube create persistentstorageinstances default swap \
		"$(jq -c "{spec}" swap.json)" &&
	flux module load "$DWS_MODULES/dws.so" &&
	dws_wait_status ".synced and .agent.synced" &&
	is swap ".[0].expires == 0" &&
	dws_kube delete persistentstorageinstances default swap && gone swap
'
# Several workflows that ask for one name: the one that makes the file system says when it
# expires, and nobody else.
MADE="#DW create_persistent type=xfs capacity=1GiB name"
ledger () {
	flux kvs get dws.expiry >ledger && jq -e "$1" ledger
}
# promised COUNT: so many jobs are to make file systems that expire
promised () {
	dws_until ledger "map(select(.job)) | length == $1"
}
# looked: the module has decided about all that it knows by now
looked () {
	extend marker 1h &&
	dws_until ledger ".marker | .told != null and .told == .expires"
}
# appear NAME: the workflow of another instance makes it
appear () {
	dws_kube create workflows default another "{\"spec\": {
		\"desiredState\": \"Proposal\", \"wlmID\": \"another\", \"jobID\": 1,
		\"userID\": $(id -u), \"groupID\": $(id -g),
		\"dwDirectives\": [\"$MADE=$1\"]}}" &&
	is $1 "length == 1"
}
vanish () {
	dws_kube delete workflows default another &&
	test_might_fail dws_kube delete persistentstorageinstances default $1 &&
	gone $1
}
alone () {
	looked && is $1 ".[0].expires == 0"
}
# ask NAME: a job asks for it, with an expiry, and gets no workflow
ask () {
	dws_ctl deny workflows:create &&
	jobid=$(flux submit -N1 -S dw="$MADE=$1 expires=2h" true) &&
	promised 1
}
test_expect_success 'a job whose workflow is not there gives no expiry to what another makes' '
	configure persistent_lifetime -1 &&
	create marker --expires 1d &&
	ask theirs && appear theirs &&
	alone theirs &&
	flux cancel $jobid && dws_wait_event $jobid clean &&
	promised 0 && alone theirs &&
	dws_ctl deny && vanish theirs
'
test_expect_success 'nor when it has ended, however early the file system was made' '
	appear theirs && dws_ctl backup >backup.out && vanish theirs &&
	ask theirs &&
	flux cancel $jobid && dws_wait_event $jobid clean &&
	dws_wait_status ".jobs == 0" && looked &&
	dws_ctl restore >restore.out &&
	is theirs "length == 1" && alone theirs && promised 0 &&
	dws_ctl deny && vanish theirs
'
test_expect_success 'a job that asks for what is there does not' '
	jobid=$(flux submit -N1 -S dw="$MADE=there" true) &&
	dws_wait_event $jobid clean && flux job status $jobid &&
	jobid=$(flux submit -N1 -S dw="$MADE=there expires=2h" true) &&
	dws_wait_event $jobid clean && flux job status $jobid &&
	promised 0 && alone there
'
test_expect_success 'one that no list shows expires as its job says' '
	dws_ctl deny persistentstorageinstances:list persistentstorageinstances:watch &&
	dws_ctl api --drop-watches >dropped.out &&
	create unseen --expires 2h &&
	dws_ctl deny &&
	is unseen ".[0] | .expires - .created == 7200"
'
test_expect_success 'one that is made anew while the list has the old one does, too' '
	dws_ctl deny persistentstorageinstances:list persistentstorageinstances:watch &&
	dws_ctl api --drop-watches >dropped.out &&
	persistent destroy unseen --yes &&
	create unseen --expires 4h &&
	dws_ctl deny &&
	is unseen ".[0] | .expires - .created == 14400" &&
	for name in there unseen marker; do
		persistent destroy $name --yes || return 1
	done
'
test_expect_success 'clean up' '
	for name in ever keep short; do
		persistent destroy $name --yes || return 1
	done &&
	dws_wait_status ".expiry.listed == 0" &&
	dws_clean
'
test_done
