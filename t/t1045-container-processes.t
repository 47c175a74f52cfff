#!/bin/bash
# dws-sim run --containers run: the containers of a job are processes here, with
# its storage, and none of them stays.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Containers that run'
. "$(dirname "$0")/sharness.sh"
test_under_flux 4

LOCAL="#DW jobdw type=gfs2 capacity=1GiB name=my-gfs2
#DW persistentdw name=kept"
STORAGES="DW_JOB_foo_local_storage=my-gfs2 DW_PERSISTENT_foo_persistent_storage=kept"

# profile NAME SCRIPT [DATA]: a shell script as a container. Kubernetes makes one
# dollar of two, in a command.
profile () {
	jq -n --arg name $1 --arg script "$2" --argjson more "${3:-{\}}" "{data: ({
		createContainer: true, retryLimit: 0, storages: [
		{name: \"DW_JOB_foo_local_storage\", optional: false},
		{name: \"DW_PERSISTENT_foo_persistent_storage\", optional: false}],
		spec: {terminationGracePeriodSeconds: 1, containers: [{name: \$name,
		image: \"none\", command: [\"/bin/sh\", \"-c\", \$script]}]}} + \$more)}" \
		>profile.json &&
	dws_kube create nnfcontainerprofiles nnf-system $1 "$(cat profile.json)"
}
# submit PROFILE [OPTION...] COMMAND
submit () {
	directives="$LOCAL
#DW container name=mine profile=$1 $STORAGES"
	shift
	flux submit -S dw="$directives" "$@"
}
done_well () {
	dws_wait_event $1 clean && flux job status $1
}
# exception JOBID TEXT
exception () {
	dws_wait_event -m type=dws-epilog -m severity=0 $1 exception >exception &&
	grep -e "$2" exception || { cat exception; return 1; }
}
# logs JOBID FILTER: of its containers
logs () {
	dws_wait_event $1 clean &&
	flux job info $1 rabbit_container_log >log &&
	jq -e "$2" log || { cat log; return 1; }
}
# kept COMMAND: what a job that uses the persistent file system prints
kept () {
	flux run -N1 -S dw="#DW persistentdw name=kept" \
		sh -c "cd \"\$DW_PERSISTENT_kept\" && $1"
}
# A zombie process counts as gone: its command line is empty.
is_gone () {
	test -z "$(tr -d "\0" </proc/$1/cmdline)"
}

test_expect_success 'load everything' '
	echo "restrict_persistent_creation = false" >rabbit.toml &&
	dws_setup --containers run &&
	jobid=$(flux submit -N1 \
		-S dw="#DW create_persistent type=lustre capacity=5GiB name=kept" true) &&
	done_well $jobid
'
test_expect_success 'a container reads what the nodes of its rabbit have written' '
	jobid=$(submit foo -N4 sh -c "cd \"\$DW_JOB_my_gfs2\" &&
		echo hello >\$FLUX_TASK_RANK && mv \$FLUX_TASK_RANK data") &&
	done_well $jobid &&
	logs $jobid "map({node, phase, log}) == [
		{node: \"rabbit0\", phase: \"Succeeded\",
		 log: \"rabbit0-0: hello\nrabbit0-1: hello\n\"},
		{node: \"rabbit1\", phase: \"Succeeded\",
		 log: \"rabbit1-0: hello\nrabbit1-1: hello\n\"}]"
'
test_expect_success 'one writes what stays, with its own variables and no others' '
	profile note "env >\"\$DW_PERSISTENT_foo_persistent_storage/\$NNF_NODE_NAME\"" &&
	jobid=$(submit note -N1 true) &&
	done_well $jobid &&
	kept "cat rabbit0" >env.out &&
	name=$(dws_workflow $jobid) &&
	grep "^NNF_CONTAINER_SUBDOMAIN=$name$" env.out &&
	grep "^NNF_CONTAINER_HOSTNAMES=rabbit0$" env.out &&
	grep "^DW_WORKFLOW_NAME=$name$" env.out &&
	grep "^DW_JOB_foo_local_storage=/" env.out &&
	test_must_fail grep -e ^FLUX_ -e ^SHARNESS -e "^HOME=$HOME$" env.out
'
test_expect_success 'one that fails is tried again' '
	profile twice "cd \"\$DW_PERSISTENT_foo_persistent_storage\" && echo try >>tries &&
		test \$(wc -l <tries) -gt 1" "{\"retryLimit\": 1}" &&
	jobid=$(submit twice -N1 true) &&
	done_well $jobid &&
	flux job eventlog $jobid >eventlog &&
	test_must_fail grep " exception " eventlog &&
	logs $jobid "map(.phase) == [\"Failed\", \"Succeeded\"]"
'
test_expect_success 'as often as it may' '
	profile never "echo no; exit 3" "{\"retryLimit\": 2}" &&
	jobid=$(submit never -N1 true) &&
	exception $jobid "BackoffLimitExceeded.*fault: user; see flux job info" &&
	logs $jobid "length == 3 and all(.[]; .phase == \"Failed\" and .log == \"no\n\")"
'
test_expect_success 'nothing of a directive gets to a shell' '
	profile quoted "printf \"%s\n\" \"\$0\"" &&
	test_must_fail submit "quoted;id" -N1 true 2>err &&
	jobid=$(submit quoted -N1 true) &&
	logs $jobid ".[0].log == \"/bin/sh\n\""
'
test_expect_success 'one that goes on is told to end, and killed' '
	profile stubborn "trap \"echo told\" TERM
		echo \$\$\$\$ >\"\$DW_PERSISTENT_foo_persistent_storage/pid\"
		while :; do sleep 1; done" "{\"postRunTimeoutSeconds\": 1}" &&
	jobid=$(submit stubborn -N1 true) &&
	exception $jobid "failed to complete after 1 seconds.*fault: user" &&
	logs $jobid ".[0].phase == \"Failed\" and (.[0].log | contains(\"told\"))" &&
	pid=$(kept "cat pid") && test $pid -gt 1 &&
	is_gone $pid
'
test_expect_success 'logs of a container that runs, and what comes while it is followed' '
	profile steps "cd \"\$DW_PERSISTENT_foo_persistent_storage\" && echo one &&
		until test -e go; do sleep 0.1; done; echo two; printf three" &&
	jobid=$(submit steps -N2 sleep inf) &&
	dws_wait_event $jobid start &&
	dws_until eval "flux rabbit logs $jobid 2>/dev/null | grep one" &&
	echo "rabbit0: one" >one &&
	flux rabbit logs $jobid >once && test_cmp one once &&
	flux rabbit logs --json $jobid >json &&
	jq -e "map([.node, .phase, .log]) == [[\"rabbit0\", \"Running\", \"one\n\"]]" json &&
	{ flux rabbit logs -f $jobid >followed & } &&
	pid=$! &&
	dws_until grep -q one followed &&
	kept "touch go" &&
	wait $pid &&
	printf "rabbit0: %s\n" one two three >three &&
	test_cmp three followed
'
test_expect_success 'Ctrl-C ends it, and says nothing' '
	profile talks "while :; do date; sleep 0.1; done" \
		"{\"postRunTimeoutSeconds\": 1}" &&
	other=$(submit talks -N1 sleep inf) &&
	dws_wait_event $other start &&
	{ sh -c "echo \$\$ >pid; exec env --default-signal=INT flux rabbit logs -f $other" >talks 2>err & } &&
	dws_until grep -q rabbit talks &&
	kill -INT $(cat pid) &&
	test_expect_code 130 wait $! &&
	test_must_be_empty err &&
	flux cancel $jobid $other &&
	dws_wait_event $jobid clean &&
	dws_wait_event $other clean
'
test_expect_success 'what is kept with the job after its end' '
	flux rabbit logs $jobid >after && test_cmp three after &&
	flux rabbit logs -f $jobid >after && test_cmp three after
'
test_expect_success 'a job without containers, none, and no JSON of what goes on' '
	plain=$(flux submit -N1 -S dw="#DW jobdw type=xfs capacity=1GiB name=plain" sleep inf) &&
	dws_wait_event $plain start &&
	test_must_fail flux rabbit logs $plain 2>err &&
	grep "the job has no containers" err &&
	flux cancel $plain && dws_wait_event $plain clean &&
	test_must_fail flux rabbit logs -f $plain 2>err &&
	grep "no log of a container is kept" err &&
	test_must_fail flux rabbit logs -f --json $jobid 2>err &&
	grep "which are no JSON" err
'
test_expect_success 'none outlives the simulator' '
	profile forever "sleep 1000 &
		cd \"\$DW_PERSISTENT_foo_persistent_storage\"
		echo \$\$\$\$ \$! >pids && wait" &&
	jobid=$(submit forever -N1 sleep inf) &&
	dws_wait_event $jobid start &&
	pids=$(echo sim/backing/kept-*)/pids &&
	dws_until grep . $pids &&
	read leader child <$pids &&
	kill -0 $leader $child &&
	dws_stop_sim &&
	is_gone $leader &&
	dws_until is_gone $child &&
	test_must_fail ls sim/containers/*
'
test_done
