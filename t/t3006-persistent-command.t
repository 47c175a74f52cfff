#!/bin/bash
# flux rabbit persistent: what is there, making and destroying it.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='flux rabbit persistent'
. "$(dirname "$0")/sharness.sh"
test_under_flux 4

persistent () {
	flux rabbit persistent "$@"
}
# refused TEXT ARG...: with that text
refused () {
	text=$1 &&
	shift &&
	test_expect_code 1 flux rabbit persistent "$@" 2>err &&
	grep -e "$text" err || { cat err; return 1; }
}

test_expect_success 'load everything' '
	echo "restrict_persistent_creation = false" >rabbit.toml &&
	dws_setup
'
test_expect_success 'there is none' '
	persistent -n >out && test_must_be_empty out &&
	persistent list --json >json && jq -e ".persistent == []" json
'
test_expect_success 'words that do not go together are refused' '
	refused "create needs the name" create &&
	refused "create needs --type and --capacity" create keep &&
	refused "capacity: .1 GiB. is not one word" create keep -t xfs -c "1 GiB" &&
	refused "type: only create takes it" show keep -t xfs &&
	refused "list takes no name: show keep" list keep &&
	refused "there is no file system .keep. that you may see, nor any other" show keep &&
	refused "there is no file system .keep." destroy keep --yes &&
	test_expect_code 2 flux rabbit persistent make keep &&
	test_expect_code 2 flux rabbit persistent show keep --json more 2>err &&
	grep "unrecognized arguments: more" err
'
test_expect_success 'what the site refuses is said' '
	test_expect_code 1 flux rabbit persistent create keep -t xfs -c lots >out 2>&1 &&
	grep "lots" out &&
	test_expect_code 1 flux rabbit persistent create keep -t xfs -c 900TiB >out 2>&1 &&
	grep -i "900TiB\|capacity\|space" out
'
test_expect_success 'create follows its job to the end' '
	persistent create keep -t xfs -c 10GiB --requires=rank:3 >out &&
	grep "^Proposal " out && grep "^Teardown " out
'
test_expect_success 'list has it' '
	persistent -no "{name} {type} {state} {username} {jobs} {rabbits}" >out &&
	echo "keep xfs Active $(id -un) 0 rabbit1" >expected &&
	test_cmp expected out &&
	persistent -no "{size:d}" >size &&
	test $(cat size) -ge $((10 * 1024 * 1024 * 1024)) &&
	persistent -o long >out && grep "^keep .* $(date +%Y)-" out
'
test_expect_success 'its size is what others cannot have' '
	flux rabbit df -no "{name} {foreign:d}" rabbit1 >df &&
	echo "rabbit1 $(cat size)" >expected &&
	test_cmp expected df
'
test_expect_success 'show says where it is, and who uses it' '
	jobid=$(flux submit -N1 -S dw="#DW persistentdw name=keep" sleep inf) &&
	dws_wait_event $jobid start &&
	persistent show keep >out &&
	cat out &&
	grep "^keep  xfs, .*iB, Active" out &&
	grep "^Owner  *$(id -un)$" out &&
	grep "^Used by  *$jobid$" out &&
	grep "^On  *rabbit1: .*iB, next to node\[2-3\]" out &&
	persistent show keep --json >json &&
	jq -e ".space.rabbit1 == $(cat size) and .created > 1700000000" json
'
test_expect_success 'what dws.status tells is what doc/protocol.md says' '
	flux python "$DWS_SRCDIR/t/scripts/protocol_keys.py" $jobid
'
test_expect_success 'the same after the module was reloaded' '
	jq -S . json >before &&
	flux module reload "$DWS_MODULES/dws.so" &&
	dws_wait_status ".agent.synced == true" &&
	persistent show keep --json >json && jq -S . json >after &&
	test_cmp before after
'
test_expect_success 'it is not destroyed while it is used' '
	refused "used by $jobid" destroy keep --yes
'
test_expect_success 'others do not see it' '
	as_guest flux rabbit persistent -n >out && test_must_be_empty out &&
	test_expect_code 1 as_guest flux rabbit persistent show keep
'
test_expect_success 'destroy wants to be sure, and destroys' '
	flux cancel $jobid && dws_wait_event $jobid clean &&
	dws_wait_status ".persistent[0].users == []" &&
	refused "not confirmed: say --yes" destroy keep </dev/null &&
	persistent list -no "{name}" >out && grep keep out &&
	persistent destroy --yes keep >out && grep "^Teardown " out &&
	dws_wait_status ".persistent == []" &&
	dws_clean
'
test_done
