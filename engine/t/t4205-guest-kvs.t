#!/bin/bash
# The part of the KVS that belongs to a guest's job: what he sees and may write,
# and that it is kept.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Guest namespaces'
. "$(dirname "$0")/../../t/sharness.sh"

dws_config () {
	cat <<-EOF
	[access]
	allow-guest-user = true
	[exec.testexec]
	allow-guests = true
	EOF
}
test_under_flux 2

# guest COMMAND...: as user 12345. The owner of the instance may pretend.
guest () {
	FLUX_HANDLE_USERID=12345 FLUX_HANDLE_ROLEMASK=0x2 "$@"
}
# submit TIME: a job of that guest, which is simulated
submit () {
	flux submit --dry-run -S exec.test.run_duration="$1" true >jobspec &&
		flux python "$DWS_SRCDIR/t/scripts/submit_as.py" 12345 <jobspec
}

test_expect_success 'a job of a guest, and one of the owner' '
	flux kvs put secret=hidden &&
	mine=$(submit 10000s) && theirs=$(flux submit sleep inf) &&
	flux job wait-event -t 300 $mine start &&
	flux job wait-event -t 300 $theirs start
'
test_expect_success 'its namespace is his, and nothing else of the KVS is' '
	guest flux python "$DWS_SRCDIR/engine/t/scripts/guest-kvs.py" $mine $theirs >out &&
	cat >expected <<-\EOF &&
	commit primary: Operation not permitted
	lookup primary: Operation not permitted
	watch primary: Operation not permitted
	lookup primary root: Operation not permitted
	watch primary root: Operation not permitted
	commit another job'\''s: Operation not permitted
	lookup another job'\''s: Operation not permitted
	watch another job'\''s: Operation not permitted
	lookup another job'\''s root: Operation not permitted
	watch another job'\''s root: Operation not permitted
	commit value: ok
	commit empty directory: ok
	commit link: guests may not commit symlink objects
	commit link within: guests may not commit symlink objects
	commit directory: guests may not commit non-empty dir objects
	commit reference: guests may not commit dirref objects
	commit value by reference: guests may not commit valref objects
	lookup its own: ok
	watch its own: ok
	EOF
	test_cmp expected out
'
# A link would lead job-info, which reads as the owner, to what is not his.
test_expect_success 'there is no way out of it through job-info' '
	guest flux job info $mine guest.made.value &&
	for key in link link-within directory.a reference value-by-reference; do
		test_must_fail guest flux job info $mine guest.made.$key 2>err &&
		grep "not found\|No such" err || return 1
	done
'
test_expect_success 'all of his job is his to read, and no key of another' '
	for key in eventlog jobspec R J guest.exec.eventlog; do
		guest flux job info $mine $key &&
		test_must_fail guest flux job info $theirs $key 2>err &&
		grep "restricted" err || return 1
	done
'
test_expect_success 'when the job is over the KVS has its namespace, and the guest has none' '
	guest flux cancel $mine && flux job wait-event -t 300 $mine free &&
	dir=$(flux job id --to=kvs $mine) &&
	test "$(flux kvs get --raw $dir.guest.made.value)" = text &&
	test "$(guest flux job info $mine guest.made.value)" = text &&
	test_must_fail flux kvs get --namespace=job-$(flux job id --to=dec $mine) \
		made.value
'
# With flux-core, what is written between its copy and the end is lost.
test_expect_success SOLO 'no write that was answered is lost' '
	flux python "$DWS_SRCDIR/engine/t/scripts/guest-writes.py" 50
'
test_done
