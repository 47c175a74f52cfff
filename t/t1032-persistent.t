#!/bin/bash
# File systems that outlive jobs: made, used by other jobs next to their rabbits,
# destroyed, and never against their owner's will.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Persistent file systems'
. "$(dirname "$0")/sharness.sh"
test_under_flux 4

CREATE="#DW create_persistent type=xfs capacity=10GiB name=keep"
USE="#DW persistentdw name=keep"
DESTROY="#DW destroy_persistent name=keep"

exception () {
	dws_wait_event -m type=$2 -m severity=0 $1 exception >exception &&
	shift 2 &&
	for pattern in "$@"; do
		grep -e "$pattern" exception || { cat exception; return 1; }
	done
}
# nodes JOBID
nodes () {
	flux job info $1 R >R.out &&
	jq -r ".execution.nodelist | join(\",\")" <R.out
}
# done_well JOBID
done_well () {
	dws_wait_event $1 clean && flux job status $1
}
persistent () {
	dws_wait_status ".persistent | map(select(.name == \"$1\")) | $2"
}

test_expect_success 'load everything' '
	cat >rabbit.toml <<-\EOT &&
	restrict_persistent_creation = false
	EOT
	dws_setup
'
test_expect_success 'a job on one node creates a file system on its rabbit' '
	jobid=$(flux submit -N1 -n1 --requires=rank:3 -S dw="$CREATE" true) &&
	done_well $jobid &&
	persistent keep ".[0].user == \"$(id -un)\"" &&
	dws_status >status.out &&
	jq -e ".persistent[0] | .state == \"Active\"
		and .type == \"xfs\" and .users == [] and .user == \"$(id -un)\"" <status.out
'
test_expect_success 'it takes space when the job is gone' '
	dws_ctl state >state &&
	jq -e ".allocated.rabbit1 > 0 and (.allocated.rabbit0 // 0) == 0" state &&
	dws_wait_status ".rabbits.foreign >= 10737418240"
'
test_expect_success 'jobs that use it run next to it, one finds what another left' '
	cat >write.sh <<-\EOF &&
	echo kept >"$DW_PERSISTENT_keep/file"
	EOF
	cat >read.sh <<-\EOF &&
	grep kept "$DW_PERSISTENT_keep/file"
	EOF
	jobid=$(flux submit -N1 -S dw="$USE" bash "$PWD/write.sh") &&
	done_well $jobid &&
	case "$(nodes $jobid)" in node2|node3) ;; *) false ;; esac &&
	jobid=$(flux submit -N1 -S dw="$USE" bash "$PWD/read.sh") &&
	done_well $jobid
'
test_expect_success 'who uses it is in dws.status' '
	jobid=$(flux submit -N1 -S dw="$USE" sleep inf) &&
	dws_wait_event $jobid start &&
	persistent keep ".[0].users[0].jobid == $(flux job id --to=dec $jobid)"
'
test_expect_success 'for the owner, and not for another user' '
	FLUX_HANDLE_USERID=4242 FLUX_HANDLE_ROLEMASK=0x2 dws_status >status &&
	jq -e ".persistent == []" status
'
test_expect_success 'while it is used a job that destroys it does not start' '
	other=$(flux submit -N1 -S dw="$DESTROY" true) &&
	exception $other dws-setup \
		"keep. cannot be destroyed while in use by $jobid" \
		"fault: user; wait for the jobs" &&
	dws_wait_event $other clean &&
	flux job eventlog $other >eventlog &&
	test_must_fail grep " start$" eventlog &&
	persistent keep "length == 1"
'
test_expect_success 'it waits for one that is about to end' '
	dws_ctl hold Teardown &&
	flux cancel $jobid &&
	dws_ctl wait-state $(dws_workflow $jobid) Teardown --timeout $DWS_LIMIT &&
	sed -i "s/^\[rabbit\]/&\ntc_timeout = 0.1/" \
		"$DWS_TMP/conf.d/test.toml" &&
	flux config reload &&
	other=$(flux submit -N1 -S dw="$DESTROY" true) &&
	dws_wait_event $other prolog-start &&
	flux python "$DWS_SRCDIR/t/scripts/wait_note.py" $other "assigning storage" &&
	dws_ctl release Teardown &&
	done_well $other &&
	dws_wait_event $jobid clean &&
	persistent keep "length == 0" &&
	sed -i "/^tc_timeout/d" "$DWS_TMP/conf.d/test.toml" &&
	flux config reload &&
	dws_clean
'
test_expect_success 'if it is used when the job has started, it is destroyed later' '
	jobid=$(flux submit -N1 -S dw="$CREATE" true) &&
	done_well $jobid &&
	mkfifo go &&
	other=$(flux submit -N1 -S dw="$DESTROY" cat "$PWD/go") &&
	dws_wait_event $other start &&
	jobid=$(flux submit -N1 -S dw="$USE" sleep inf) &&
	dws_wait_event $jobid start &&
	: >go &&
	exception $other dws-epilog "error in Teardown.*while in use" \
		"fault: user; wait for the jobs" &&
	dws_wait_event $other clean &&
	flux cancel $jobid &&
	dws_wait_event $jobid clean &&
	persistent keep "length == 0" &&
	dws_clean
'
test_expect_success 'what was cancelled before it ran destroys nothing' '
	jobid=$(flux submit -N1 -S dw="$CREATE" true) &&
	done_well $jobid &&
	persistent keep "length == 1" &&
	dws_ctl hold Setup &&
	jobid=$(flux submit -N1 -S dw="$DESTROY" true) &&
	dws_ctl wait-state $(dws_workflow $jobid) Setup --timeout 300 &&
	flux cancel $jobid &&
	dws_wait_event $jobid clean &&
	dws_ctl release Setup &&
	dws_ctl wait-state $(dws_workflow $jobid) gone --timeout 300 &&
	dws_status >status.out &&
	jq -e ".persistent[0] | .name == \"keep\"
		and .state == \"Active\"" <status.out
'
test_expect_success 'a creation that fails leaves nothing' '
	dws_ctl fail Setup --severity Fatal --message "no luck" &&
	jobid=$(flux submit -N1 \
		-S dw="#DW create_persistent type=xfs capacity=1GiB name=fails" true) &&
	exception $jobid dws-setup "no luck" &&
	dws_wait_event $jobid clean &&
	dws_ctl fail Setup --clear &&
	persistent fails "length == 0"
'
test_expect_success 'no more nodes mount it than it was made for' '
	jobid=$(flux submit -N2 -S dw="$USE" true) &&
	exception $jobid dws-create "1 can mount it, the job has 2" &&
	jobid=$(flux submit -N2 --requires=rank:2-3 \
		-S dw="#DW create_persistent type=gfs2 capacity=1GiB name=pair" true) &&
	done_well $jobid &&
	jobid=$(flux submit -N2 -S dw="#DW persistentdw name=pair" true) &&
	done_well $jobid &&
	test "$(nodes $jobid)" = "node[2-3]" &&
	jobid=$(flux submit -N3 -S dw="#DW persistentdw name=pair" true) &&
	exception $jobid dws-create "2 can mount it, the job has 3" &&
	jobid=$(flux submit -N1 -S dw="#DW destroy_persistent name=pair" true) &&
	done_well $jobid
'
test_expect_success 'two jobs do not create the same one at once' '
	twin="#DW create_persistent type=xfs capacity=1GiB name=twin" &&
	dws_ctl hold Proposal &&
	jobid=$(flux submit -N1 -S dw="$twin" true) &&
	dws_ctl wait-state $(dws_workflow $jobid) Proposal --timeout 300 &&
	other=$(flux submit -N1 -S dw="$twin" true) &&
	exception $other dws-create "twin. is just being created by job $jobid" &&
	dws_ctl release Proposal &&
	done_well $jobid &&
	other=$(flux submit -N1 -S dw="$twin" true) &&
	done_well $other &&
	jobid=$(flux submit -N1 -S dw="#DW destroy_persistent name=twin" true) &&
	done_well $jobid
'
# NNF would keep the workflow in Proposal: what makes a file system cannot be changed.
test_expect_success 'nothing else is made of a name that there is' '
	for other in "xfs capacity=11GiB" "gfs2 capacity=10GiB" "xfs capacity=10240MiB"; do
		jobid=$(flux submit -N1 -S dw="#DW create_persistent type=$other name=keep" true) &&
		exception $jobid dws-create "keep. exists already, made by .*capacity=10GiB" \
			"fault: user; use it with persistentdw, or destroy" &&
		dws_wait_event $jobid clean || return 1
	done &&
	jobid=$(flux submit -N1 -S dw="$CREATE expires=30d" true) && done_well $jobid &&
	persistent keep "length == 1"
'
test_expect_success 'what the API server never takes is an exception of the job' '
	dws_ctl fail Proposal --severity Minor --message "not yet" &&
	jobid=$(flux submit -N1 -S dw="$DWS_DIRECTIVE" true) &&
	flux python "$DWS_SRCDIR/t/scripts/wait_note.py" $jobid "not yet" &&
	dws_ctl fail Proposal --clear &&
	dws_ctl fail Proposal --severity Minor \
		--message "admission webhook \"vx.kb.io\" denied the request: never" &&
	other=$(flux submit -N1 -S dw="$DWS_DIRECTIVE" true) &&
	exception $other dws-create "error in Proposal.*denied the request: never" &&
	dws_wait_event $other clean &&
	dws_ctl fail Proposal --clear &&
	done_well $jobid
'
test_expect_success 'who uses what is just being created waits for it' '
	dws_ctl hold Proposal && dws_ctl hold Setup &&
	jobid=$(flux submit -N1 --requires=rank:3 \
		-S dw="#DW create_persistent type=gfs2 capacity=1GiB name=new" true) &&
	user=$(flux submit -N1 -S dw="#DW persistentdw name=new" true) &&
	flux python "$DWS_SRCDIR/t/scripts/wait_note.py" $user \
		"^rabbit: waiting for persistent file system .new., which job $jobid .*is to create$" 20 &&
	dws_ctl release Proposal &&
	dws_ctl wait-state $(dws_workflow $jobid) Setup --timeout 300 &&
	later=$(flux submit -N1 -S dw="#DW persistentdw name=new" true) &&
	flux python "$DWS_SRCDIR/t/scripts/wait_note.py" $later \
		"^rabbit: waiting for persistent file system .new. to be created$" 20 &&
	test_must_fail dws_k8s get workflows $(dws_workflow $user) &&
	dws_ctl release all &&
	done_well $jobid && done_well $user && done_well $later &&
	case "$(nodes $user)" in node2|node3) ;; *) false ;; esac &&
	case "$(nodes $later)" in node2|node3) ;; *) false ;; esac &&
	jobid=$(flux submit -N1 -S dw="#DW destroy_persistent name=new" true) &&
	done_well $jobid
'
test_expect_success 'if it is never created, they are told so' '
	dws_ctl hold Setup &&
	jobid=$(flux submit -N1 -S dw="#DW create_persistent type=xfs capacity=1GiB name=not" true) &&
	dws_ctl wait-state $(dws_workflow $jobid) Setup --timeout 300 &&
	user=$(flux submit -N1 -S dw="#DW persistentdw name=not" true) &&
	flux python "$DWS_SRCDIR/t/scripts/wait_note.py" $user "^rabbit: waiting for" 20 &&
	flux cancel $jobid &&
	dws_ctl release Setup &&
	exception $user dws-create "not. not found"
'
test_expect_success 'an xfs file system is mounted for one job at a time' '
	dws_ctl hold Setup &&
	jobid=$(flux submit -N1 -S dw="$USE" sleep inf) &&
	dws_ctl wait-state $(dws_workflow $jobid) Setup --timeout 300 &&
	other=$(flux submit -N1 -S dw="$USE" sleep inf) &&
	waits="xfs and mounted for one job at a time: it is in use by $jobid" &&
	flux python "$DWS_SRCDIR/t/scripts/wait_note.py" $other "$waits" 20 &&
	dws_ctl release Setup &&
	dws_wait_event $jobid start &&
	persistent keep ".[0].users | length == 1" &&
	flux rabbit show $other >shown && grep "$waits" shown &&
	flux cancel $jobid &&
	dws_wait_event $other start &&
	dws_wait_event $jobid clean &&
	flux cancel $other && dws_wait_event $other clean
'
test_expect_success 'its owner destroys it' '
	jobid=$(flux submit -N1 -S dw="$DESTROY" true) &&
	done_well $jobid &&
	persistent keep "length == 0" &&
	dws_clean
'
test_expect_success 'one that no list shows is looked for by its name, and destroyed' '
	dws_ctl deny persistentstorageinstances:list persistentstorageinstances:watch &&
	dws_ctl api --drop-watches >dropped.out &&
	jobid=$(flux submit -N1 -S dw="$CREATE" true) &&
	done_well $jobid &&
	dws_k8s get persistentstorageinstances keep >keep.json &&
	persistent keep "length == 0" &&
	jobid=$(flux submit -N1 -S dw="#DW destroy_persistent name=kept" true) &&
	exception $jobid dws-create "there is no persistent file system .kept. .fault: user" &&
	jobid=$(flux submit -N1 -S dw="$DESTROY" true) &&
	done_well $jobid &&
	test_must_fail dws_k8s get persistentstorageinstances keep &&
	dws_ctl deny &&
	dws_clean
'
test_expect_success 'a Lustre file system is used from any node' '
	jobid=$(flux submit -N1 --requires=rank:0 \
		-S dw="#DW create_persistent type=lustre capacity=50GiB name=lus" true) &&
	done_well $jobid &&
	jobid=$(flux submit -N4 -S dw="#DW persistentdw name=lus" true) &&
	done_well $jobid &&
	test "$(nodes $jobid)" = "node[0-3]" &&
	jobid=$(flux submit -N1 -S dw="#DW destroy_persistent name=lus" true) &&
	done_well $jobid &&
	dws_clean
'
test_expect_success 'only the instance owner may create one, if so configured' '
	sed -i "s/^restrict_persistent.*/restrict_persistent_creation = true/" \
		"$DWS_TMP/conf.d/test.toml" &&
	flux config reload &&
	jobid=$(flux submit -N1 -S dw="$CREATE" true) &&
	done_well $jobid &&
	jobid=$(flux submit -N1 -S dw="$DESTROY" true) &&
	done_well $jobid &&
	dws_clean
'
# submit_as_nobody DIRECTIVE
submit_as_nobody () {
	flux submit --dry-run -N1 -S dw="$1" true >submit.out &&
	flux python "$DWS_SRCDIR/t/scripts/submit_as.py" $(id -u nobody) <submit.out
}
test_expect_success 'and others may not' '
	jobid=$(submit_as_nobody "$CREATE") &&
	exception $jobid dws-create "only the instance owner" &&
	dws_wait_event $jobid clean
'
test_expect_success 'nor if they try while the module is away' '
	flux module remove dws &&
	jobid=$(submit_as_nobody "$CREATE") &&
	dws_wait_event $jobid dependency-add &&
	flux module load "$DWS_MODULES/dws.so" &&
	exception $jobid dws-create "only the instance owner" &&
	dws_wait_event $jobid clean &&
	dws_clean
'
test_done
