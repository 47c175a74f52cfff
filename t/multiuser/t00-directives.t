#!/bin/bash
# Each directive works for a guest, who alone has access to his mounts.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='directives of users'
. "$(dirname "$0")/site.sh"

# begins USER DIRECTIVES [OPTION...]: a job of his on two nodes, which has written a file to
# DW_JOB_mine. Sets jobid and place.
begins () {
	jobid=$(as "$1" flux submit -N2 -S dw="$2" "${@:3}" \
		bash -c "umask 022; echo of \$(hostname) >\$DW_JOB_mine/\$(hostname) && sleep inf") &&
	wait_event $jobid start &&
	place=$(said $jobid DW_JOB_mine) &&
	site_wait eval "test \$(ls $place | wc -l) = 2"
}
ends () {
	as "$1" flux cancel $jobid &&
	wait_event $jobid clean &&
	site_wait test ! -e $place
}

test_expect_success 'a job without directives runs as its user' '
	as alice flux run -N2 bash -c "id -un; id -Gn; pwd" >out &&
	sort -u out >actual &&
	test_cmp - actual <<-EOF
	/home/alice
	alice
	alice project
	EOF
'
for type in xfs gfs2 lustre; do
	test_expect_success "$type: a user writes to it, as nobody else does" "
		begins alice '#DW jobdw type=$type capacity=10GiB name=mine' &&
		test \"\$(stat -L -c '%u:%g %a' \$place/)\" = '2001:2001 770' &&
		test \"\$(stat -c %U \$place/node* | sort -u)\" = alice &&
		as alice cat \$place/\$(ls \$place | head -n 1) &&
		test_must_fail as bob ls \$place/ &&
		test_must_fail as bob touch \$place/his &&
		test_must_fail as carol cat \$place/\$(ls \$place | head -n 1) &&
		ends alice
	"
done
test_expect_success 'the tasks of another user do not see it either' '
	begins alice "#DW jobdw type=xfs capacity=10GiB name=mine" &&
	test_must_fail as bob flux run ls $place/ 2>err &&
	grep -i "permission denied" err &&
	ends alice
'
test_expect_success 'a group of the user has what he gives it' '
	begins alice "#DW jobdw type=xfs capacity=10GiB name=mine" -S dw_group=project &&
	test "$(stat -L -c "%u:%g %a" $place/)" = "2001:5000 770" &&
	as bob cat $place/$(ls $place | head -n 1) &&
	as bob touch $place/his &&
	test_must_fail as carol ls $place/ &&
	ends alice
'
test_expect_success 'he gives nothing to a group that is not his' '
	jobid=$(as alice flux submit -N1 -S dw_group=others \
		-S dw="#DW jobdw type=xfs capacity=10GiB name=mine" true) &&
	wait_event $jobid clean &&
	as alice flux job eventlog $jobid >eventlog &&
	grep "exception.*dw_group: alice is not a member of others" eventlog
'
test_expect_success 'a number above what an int holds is a user as all others' '
	begins highest "#DW jobdw type=xfs capacity=10GiB name=mine" -S dw_group=project &&
	test "$(stat -L -c "%u:%g" $place/)" = "3000000001:5000" &&
	test_must_fail as carol ls $place/ &&
	as bob ls $place/ &&
	as highest flux rabbit jobs >out && grep $jobid out &&
	ends highest &&
	begins highest "#DW jobdw type=lustre capacity=10GiB name=mine" &&
	test "$(stat -L -c "%u:%g" $place/)" = "3000000001:3000000001" &&
	ends highest
'
test_expect_success 'data is staged in and out for a user' '
	as alice flux run -N2 -S dw="#DW jobdw type=xfs capacity=10GiB name=mine
		#DW copy_in source=/lus/global/alice/in destination=\$DW_JOB_mine/
		#DW copy_out source=\$DW_JOB_mine/ destination=/lus/global/alice/out" \
		bash -c "touch \$DW_JOB_mine/\$(hostname)"
'
test_expect_success 'a container runs beside the job of a user' '
	as alice flux run -N2 -S dw="#DW jobdw type=gfs2 capacity=10GiB name=mine
		#DW container name=con profile=example-success DW_JOB_foo_local_storage=mine" \
		bash -c "touch \$DW_JOB_mine/\$(hostname)"
'
test_expect_success 'what lasts is its creator alone to use and to destroy' '
	as alice flux run -N2 -S dw="#DW create_persistent type=xfs capacity=10GiB name=lasts" true &&
	as alice flux run -N2 -S dw="#DW persistentdw name=lasts" \
		bash -c "echo kept >\$DW_PERSISTENT_lasts/\$(hostname)" &&
	as alice flux run -N2 -S dw="#DW persistentdw name=lasts" \
		bash -c "cat \$DW_PERSISTENT_lasts/* && stat -L -c %u:%g \$DW_PERSISTENT_lasts/" >out &&
	grep kept out && grep 2001:2001 out &&
	for line in "persistentdw name=lasts" "destroy_persistent name=lasts"; do
		jobid=$(as bob flux submit -N2 -S dw="#DW $line" true) &&
		wait_event $jobid clean &&
		as bob flux job eventlog $jobid >eventlog &&
		grep "exception.*\(User ID does not match\|belongs to another user\)" eventlog || return 1
	done &&
	as alice flux run -N2 -S dw="#DW destroy_persistent name=lasts" true &&
	test_must_fail as alice flux run -N2 -S dw="#DW persistentdw name=lasts" true
'
test_expect_success 'nothing is left' '
	all_clean
'
test_done
