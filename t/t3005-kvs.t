#!/bin/bash
# The keys of doc/dev/kvs.rst: when they are written, of what type they are, and who
# may read them.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='What is in the KVS'
. "$(dirname "$0")/sharness.sh"

dws_config () {
	dws_clock
	dws_guests
}
test_under_flux 2

OWNER=$(id -u nobody)
DIRECTIVES="#DW jobdw type=gfs2 capacity=10GiB name=scratch requires=copy-offload
#DW copy_in source=/lus/global/in destination=\$DW_JOB_scratch/in
#DW copy_out source=\$DW_JOB_scratch/out destination=/lus/global/out
#DW container name=mine profile=example-success DW_JOB_foo_local_storage=scratch"

keys () {
	"$DWS_PYTHON" "$DWS_SRCDIR/scripts/lib/kvskeys.py" "$@"
}
# guest USERID COMMAND...
guest () {
	userid=$1 &&
	shift &&
	FLUX_HANDLE_USERID=$userid FLUX_HANDLE_ROLEMASK=0x2 "$@"
}
# submit: a job of a guest. Its task is simulated, as some engines cannot start those
# of other users.
submit () {
	flux submit --dry-run -N2 -S exec.test.run_duration=10000s \
		-S dw="$DIRECTIVES" true >jobspec &&
	flux python "$DWS_SRCDIR/t/scripts/submit_as.py" $OWNER <jobspec
}
# has DIRECTORY FILE: the job's directory, or that below it, has the keys in the file
has () {
	flux kvs ls -1 $1 >entries &&
	grep -vxF -e data -f flux.keys entries | sort >found &&
	diff $2 found
}
written () {
	has $dir expected && has $dir.data.dws expected
}
# written_of STATE...: the keys that are written in these states are there, and no others
written_of () {
	printf "%s\n" "$@" >states &&
	awk "NR == FNR { in_state[\$1] = 1; next } \$3 in in_state { print \$1 }" \
		states records | sort >expected &&
	dws_until written >difference || { cat difference && return 1; }
}
# expect STATE...: the same when the time is over for which they are kept back
expect () {
	for i in $(seq 13); do
		dws_pass 5 || return 1
	done &&
	written_of "$@"
}
# treeobj KEY: the type of what is there, without following links
treeobj () {
	flux python "$DWS_SRCDIR/t/scripts/rpc.py" kvs.lookup \
		"{\"namespace\": \"primary\", \"key\": \"$1\", \"flags\": 16}" >treeobj.out &&
	jq -r .val.type treeobj.out
}

# rabbit_stage_out exists only for jobs whose stage-out has failed: t3013 tests it.
test_expect_success 'load everything' '
	keys records | grep -v "^rabbit_stage_out " >records && keys flux >flux && keys instance >instance &&
	cut -d" " -f1 flux | sort >flux.keys &&
	cat >rabbit.toml <<-\EOT &&
	save_datamovements = 5
	daemons.copy-offload = "a.service"
	EOT
	dws_setup
'
test_expect_success 'each state adds what it is said to' '
	dws_ctl hold Setup &&
	jobid=$(submit) && dir=$(flux job id --to=kvs $jobid) &&
	done="Proposal" && last=Setup &&
	for state in DataIn PreRun PostRun DataOut Teardown; do
		if test $last = PostRun; then
			dws_wait_event $jobid start && expect $done &&
			test $(treeobj $dir.guest) = symlink &&
			flux cancel $jobid || return 1
		fi &&
		dws_ctl wait-state $(dws_workflow $jobid) $last --timeout $DWS_LIMIT &&
		expect $done &&
		dws_ctl hold $state && dws_ctl release $last &&
		done="$done $last" && last=$state || return 1
	done &&
	dws_ctl wait-state $(dws_workflow $jobid) Teardown --timeout $DWS_LIMIT &&
	expect $done
'
test_expect_success 'the namespace of the job is kept before its nodes are free' '
	dws_wait_event $jobid release &&
	test $(treeobj $dir.guest) = dirref &&
	test_must_fail flux kvs ls --namespace=job-$(flux job id --to=dec $jobid) &&
	flux job eventlog $jobid >eventlog &&
	test_must_fail grep free eventlog
'
test_expect_success 'when the job is over all rows are there, and nothing else' '
	dws_ctl release Teardown && dws_wait_event $jobid clean &&
	cut -d" " -f1 records | sort >expected && written &&
	flux kvs ls -1 $dir >entries && grep -xF -f flux.keys entries | sort >found &&
	test_cmp flux.keys found
'
test_expect_success 'each record is of its type, at both places' '
	while read key type state; do
		flux kvs get $dir.$key >value && flux kvs get $dir.data.dws.$key >copy &&
		cmp value copy && jq -e "type == \"$type\"" value || return 1
	done <records
'
test_expect_success 'the owner of the job can read it, and no guest else' '
	for key in $(cut -d" " -f1 records); do
		for path in $key data.dws.$key; do
			guest $OWNER flux job info $jobid $path >out && test -s out &&
			test_must_fail guest 4242 flux job info $jobid $path 2>err &&
			grep restricted err || return 1
		done
	done
'
test_expect_success 'all of that is for the owner of the job, and no guest else' '
	for key in J jobspec eventlog R guest.exec.eventlog; do
		guest $OWNER flux job info $jobid $key >out && test -s out &&
		test_must_fail guest 4242 flux job info $jobid $key 2>err &&
		grep restricted err || return 1
	done &&
	head -n 1 out | jq -e ".name == \"init\"" &&
	tail -n 1 out | jq -e ".name == \"done\""
'
test_expect_success 'of a job that stays in the queue there is what there can be' '
	flux queue stop --all && jobid=$(submit) && dir=$(flux job id --to=kvs $jobid) &&
	expect Proposal && flux cancel $jobid && dws_wait_event $jobid clean &&
	flux queue start --all
'
test_expect_success 'what is kept back is there when the module is unloaded' '
	dws_ctl hold Setup && dws_ctl hold PostRun &&
	jobid=$(submit) && dir=$(flux job id --to=kvs $jobid) &&
	dws_ctl wait-state $(dws_workflow $jobid) Setup --timeout $DWS_LIMIT &&
	flux jobs -no "{user.rabbit_workflow}" $jobid >memo &&
	grep "^$(dws_workflow $jobid)\$" memo &&
	flux module remove dws && written_of Proposal &&
	flux module load "$DWS_MODULES/dws.so" && dws_ctl release Setup &&
	dws_wait_event $jobid start
'
test_expect_success 'and all are there when the epilog ends' '
	flux cancel $jobid && dws_ctl wait-state $(dws_workflow $jobid) PostRun --timeout $DWS_LIMIT &&
	expect Proposal Setup DataIn PreRun && dws_ctl release PostRun &&
	dws_wait_event $jobid epilog-finish &&
	cut -d" " -f1 records | sort >expected && written && dws_wait_event $jobid clean
'
test_expect_success 'the keys of the instance are for its owner' '
	flux kvs put dws.losses="[]" dws.moved="[]" dws.expiry="{}" dws.notices="[]" && flux kvs ls -1 dws >found &&
	sed -n "s/^dws\.\([a-z]*\) .*/\1/p" instance | sort >expected &&
	test_cmp expected found &&
	while read key type; do
		flux kvs get $key >value && jq -e "type == \"$type\"" value &&
		test_must_fail guest $OWNER flux kvs get $key 2>err &&
		grep "not permitted" err || return 1
	done <instance &&
	dws_clean
'
test_done
