#!/bin/bash
# Storage with an exclusive colocation key, as Lustre's management target has by its
# storage profile, shares no rabbit with its kind: jobs use the rabbit in turn.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Exclusive colocation between jobs'
. "$(dirname "$0")/sharness.sh"
test_under_flux 8

LUSTRE="#DW jobdw type=lustre capacity=10GiB name=scratch"
XFS="#DW jobdw type=xfs capacity=1GiB name=scratch"
CONFIG=$DWS_TMP/conf.d/test.toml

# patience TIME: so long a job waits for what may last for ever
patience () {
	sed -i "s/^tc_timeout.*/tc_timeout = \"$1\"/" "$CONFIG" &&
	flux config reload
}
# submit RANKS [DIRECTIVE]: four nodes hang on each rabbit. Sets jobid.
submit () {
	set -- "$1" "${2:-$LUSTRE}" &&
	jobid=$(flux submit -N$(flux python -c "
from flux.idset import IDset
print(IDset(\"$1\").count())") --requires=rank:$1 -S dw="$2" true)
}
in_prerun () {
	dws_ctl wait-state $(dws_workflow $1) PreRun --timeout $DWS_LIMIT
}
# note JOBID REGEX
note () {
	flux python "$DWS_SRCDIR/t/scripts/wait_note.py" "$1" "^rabbit: $2" 20
}
# behind JOBID HOLDER [WORDS]: it waits for what that job has on rabbit0
behind () {
	note $1 "waiting for exclusive .lustre-mgt. on rabbit0, which job $2 .$(dws_workflow $2). ${3:-has}\$"
}
# unplaced JOBID: nothing of its storage is on a rabbit, and nothing went wrong
unplaced () {
	test "$(targets $1 ost)" = "" &&
	flux job eventlog $1 >eventlog &&
	test_must_fail grep " exception " eventlog
}
# targets JOBID LABEL: the rabbits that have those of the job
targets () {
	dws_k8s get servers $(dws_workflow $1)-0 >servers.out &&
	jq -r ".spec.allocationSets[]? | select(.label == \"$2\").storage[].name" \
		servers.out | xargs
}
ends () {
	flux cancel $1 && dws_wait_event $1 clean
}
done_well () {
	dws_wait_event $1 clean && flux job status $1
}
# refused JOBID TEXT: it was, in its prolog
refused () {
	dws_wait_event $1 clean &&
	flux job eventlog $1 >eventlog &&
	grep "exception.*dws-setup" eventlog >exception &&
	grep -e "$2" exception || { cat eventlog; return 1; }
}
profile () {
	dws_kube create nnfstorageprofiles nnf-system $1 "{\"data\": {\"lustreStorage\": $2}}"
}
# status JOBID FILTER: of dws.status
status () {
	flux rabbit jobs -n --json >jobs.json &&
	jq -e ".[] | select(.id == $(flux job id --to=dec $1)) | $2" jobs.json
}
restart () {
	flux module reload dws &&
	dws_kill_agent && dws_start_agent &&
	dws_wait_status ".agent.synced"
}

test_expect_success 'two rabbits, and no patience' '
	cat >rabbit.toml <<-\EOF &&
	restrict_persistent_creation = false
	tc_timeout = "0.1s"
	EOF
	dws_start_sim --nodes-per-rabbit 4 --capacity 1000GiB &&
	profile alone "{\"mgtOptions\": {\"externalMgs\": \"1@tcp\"},
		\"mdtOptions\": {\"exclusive\": true}}" &&
	dws_load && dws_start_agent &&
	dws_wait_status ".agent.synced"
'
test_expect_success 'a job has the management target on one' '
	dws_ctl hold PreRun &&
	submit 0 && first=$jobid &&
	in_prerun $first &&
	test "$(targets $first mgtmdt)" = rabbit0
'
test_expect_success 'another waits for it, and its owner is told who has it' '
	submit 1 && second=$jobid &&
	behind $second $first
'
test_expect_success 'so are administrators' '
	dws_status >status.out &&
	flux rabbit jobs >jobs.out &&
	grep "exclusive .lustre-mgt. on rabbit0, which job $first" jobs.out &&
	flux rabbit show $second >show.out &&
	grep "exclusive .lustre-mgt. on rabbit0, which job $first" show.out
'
test_expect_success 'a job that has both rabbits gets it on the other one' '
	submit 2,4 &&
	in_prerun $jobid &&
	test "$(targets $jobid mgtmdt)" = rabbit1 &&
	test "$(targets $jobid ost)" = "rabbit0 rabbit1" &&
	ends $jobid
'
test_expect_success 'other storage, and what has another key, goes to the same' '
	submit 2 "$XFS" &&
	in_prerun $jobid &&
	ends $jobid &&
	submit 2 "$LUSTRE profile=alone" &&
	in_prerun $jobid &&
	test "$(targets $jobid mdt)" = rabbit0 &&
	ends $jobid
'
test_expect_success 'meanwhile the time that others are waited for has passed, and it waits' '
	unplaced $second &&
	behind $second $first
'
test_expect_success 'a third and a fourth wait for it, too' '
	submit 2 && third=$jobid &&
	behind $third $first &&
	submit 3 && fourth=$jobid &&
	behind $fourth $first
'
test_expect_success 'also when module and agent were restarted' '
	restart &&
	behind $second $first && behind $third $first && behind $fourth $first &&
	unplaced $second && unplaced $third && unplaced $fourth
'
test_expect_success 'one that waits is cancelled: it goes at once' '
	submit 5 && elsewhere=$jobid &&
	in_prerun $elsewhere &&
	submit 6-7 && waits=$jobid &&
	note $waits "waiting for exclusive .lustre-mgt. on rabbit1" &&
	ends $waits &&
	flux job eventlog $waits >eventlog &&
	test_must_fail grep "exception.*dws-" eventlog
'
test_expect_success 'the one that has it is cancelled: the next goes when all is gone' '
	dws_ctl hold Teardown &&
	flux cancel $first &&
	dws_ctl wait-state $(dws_workflow $first) Teardown --timeout $DWS_LIMIT &&
	submit 0 "$XFS" &&
	flux cancel $jobid &&
	behind $second $first &&
	unplaced $second &&
	dws_ctl release Teardown &&
	in_prerun $second &&
	dws_wait_event $jobid clean
'
test_expect_success 'the others wait for that one' '
	behind $third $second && behind $fourth $second &&
	unplaced $third && unplaced $fourth
'
test_expect_success 'it ends, and those that are left have it in the order they came in' '
	ends $second &&
	in_prerun $third &&
	behind $fourth $third &&
	unplaced $fourth &&
	dws_ctl release PreRun &&
	done_well $third && done_well $fourth && done_well $elsewhere &&
	dws_clean
'
test_expect_success 'who wants more rabbits is not passed on one of them' '
	dws_ctl hold PreRun &&
	profile two "{\"combinedMgtMdt\": true, \"mgtMdtOptions\": {\"count\": 2}}" &&
	submit 0 && first=$jobid &&
	in_prerun $first &&
	submit 1,4 "$LUSTRE profile=two" && wide=$jobid &&
	behind $wide $first &&
	submit 5 && narrow=$jobid &&
	note $narrow "waiting for exclusive .lustre-mgt. on rabbit1, which job $wide .$(dws_workflow $wide). is to get first\$" &&
	unplaced $narrow &&
	ends $first &&
	in_prerun $wide &&
	test "$(targets $wide mgtmdt)" = "rabbit0 rabbit1" &&
	note $narrow "waiting for exclusive .lustre-mgt. on rabbit1, which job $wide .$(dws_workflow $wide). has\$" &&
	unplaced $narrow
'
test_expect_success 'who does not want it any more keeps nobody from it' '
	submit 0,6 "$LUSTRE profile=two" &&
	behind $jobid $wide &&
	ends $jobid &&
	dws_ctl release PreRun &&
	done_well $wide && done_well $narrow &&
	dws_clean
'
test_expect_success 'persistent storage has it forever: no job waits for that, and reads what to do' '
	submit 0 "#DW create_persistent type=lustre capacity=1GiB name=lus" &&
	done_well $jobid &&
	submit 1 &&
	refused $jobid "rabbit0 has exclusive .lustre-mgt. of persistent storage .lus..*ask for nodes of other rabbits, or have that destroyed"
'
test_expect_success 'also after restarts' '
	restart &&
	submit 1 &&
	refused $jobid "rabbit0 has exclusive .lustre-mgt. of persistent storage .lus."
'
test_expect_success 'who uses that storage is not kept from it, nor who has another rabbit' '
	submit 1 "#DW persistentdw name=lus" &&
	done_well $jobid &&
	submit 1,4 &&
	done_well $jobid
'
test_expect_success 'whoever has time waits for it to be destroyed, and then goes' '
	patience 1d &&
	submit 1 && waits=$jobid &&
	note $waits "waiting for exclusive .lustre-mgt. on rabbit0, which persistent storage .lus. has" &&
	submit 0 "#DW destroy_persistent name=lus" &&
	done_well $jobid &&
	done_well $waits &&
	patience 0.1s
'
test_expect_success 'so does what others have written' '
	dws_k8s create servers "{\"metadata\": {\"name\": \"other\"},
		\"spec\": {\"allocationSets\": [{\"label\": \"mgt\",
		\"allocationSize\": 42949672960,
		\"storage\": [{\"name\": \"rabbit0\", \"allocationCount\": 1}]}]}}" \
		>/dev/null &&
	dws_wait_status ".rabbits.foreign > 0" &&
	submit 1 &&
	refused $jobid "rabbit0 has exclusive .lustre-mgt. of Servers other" &&
	dws_k8s delete servers other >/dev/null &&
	submit 1 &&
	done_well $jobid &&
	dws_clean
'
test_done
