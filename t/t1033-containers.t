#!/bin/bash
# Containers on the rabbits of a job: the example of the user guide, both kinds
# of containers, variables, logs, and what goes wrong with them.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='User containers'
. "$(dirname "$0")/sharness.sh"
test_under_flux 4

LOCAL="#DW jobdw type=gfs2 capacity=1GiB name=my-gfs2"
SERVER="#DW container name=my-server profile=example-server DW_JOB_foo_local_storage=my-gfs2"
MPI="#DW container name=my-mpi profile=example-mpi DW_JOB_foo_local_storage=my-gfs2"

exception () {
	dws_wait_event -m type=$2 -m severity=0 $1 exception >exception &&
	shift 2 &&
	for pattern in "$@"; do
		grep -e "$pattern" exception || { cat exception; return 1; }
	done
}
# variable JOBID NAME: as the job gets it
variable () {
	dws_wait_event -f json $1 dws_environment >environment &&
	jq -r ".context.variables.$2" environment
}
done_well () {
	dws_wait_event $1 clean && flux job status $1
}

test_expect_success 'load everything, with the profile of the example' '
	cat >rabbit.toml <<-\EOT &&
	restrict_persistent_creation = false
	daemons.copy-offload = "nnf-copy-offload.service"
	EOT
	dws_setup --nodes "node[0-1,3,2]" &&
	dws_kube patch nnfcontainerprofiles nnf-system foo \
		"{\"data\": {\"retryLimit\": 2, \"preRunTimeoutSeconds\": 2,
		  \"postRunTimeoutSeconds\": 2}}" &&
	jobid=$(flux submit -N1 \
		-S dw="#DW create_persistent type=lustre capacity=5GiB name=some-lustre" true) &&
	done_well $jobid
'
# The directives of the example, without a storage that the profile requires,
# then with all.
FOO="#DW container name=my-foo profile=foo DW_JOB_foo_local_storage=my-gfs2"
test_expect_success 'a required storage must be given' '
	jobid=$(flux submit -N2 -S dw="$LOCAL
		#DW persistentdw name=some-lustre
		$FOO" true) &&
	exception $jobid dws-create "foo_persistent_storage. .* is not optional"
'
FOO="$FOO DW_PERSISTENT_foo_persistent_storage=some-lustre"
test_expect_success 'the example runs, with all of its variables' '
	cat >task.sh <<-\EOF &&
	env | grep -e ^DW_ -e ^NNF_ | sort
	test -d "$DW_JOB_my_gfs2" && test -d "$DW_PERSISTENT_some_lustre"
	EOF
	jobid=$(flux submit -N4 -S dw="$LOCAL
		#DW persistentdw name=some-lustre
		$FOO" bash "$PWD/task.sh") &&
	flux job attach $jobid >out &&
	name=$(dws_workflow $jobid) &&
	grep "^NNF_CONTAINER_SUBDOMAIN=$name$" out &&
	grep "^NNF_CONTAINER_DOMAIN=default.svc.cluster.local$" out &&
	grep "^NNF_CONTAINER_HOSTNAMES=rabbit0,rabbit1$" out &&
	grep "^NNF_CONTAINER_PORTS=4[0-9]*$" out &&
	grep "^NNF_CONTAINER_PORTS_foo=4[0-9]*$" out
'
test_expect_success 'one tells which directory on a rabbit is whose' '
	grep "^DW_RABBIT_NODES=rabbit0=node\[0-1\];rabbit1=node\[3,2\]$" out
'
# directory NODE: the number of the one on its rabbit that is this node's storage
directory () {
	dws_kube get clientmounts $1 default-$name-0-computes >mount &&
	jq ".spec.mounts[0].device.deviceReference.data // 0" mount
}
test_expect_success 'it goes by the order in which the Storage has the nodes' '
	done_well $jobid &&
	ordered=$(flux submit -N4 -S dw="$LOCAL
		#DW container name=mine profile=example-success DW_JOB_foo_local_storage=my-gfs2" \
		sleep inf) &&
	dws_wait_event $ordered start &&
	name=$(dws_workflow $ordered) &&
	test "$(directory node0) $(directory node1)" = "0 1" &&
	test "$(directory node3) $(directory node2)" = "0 1" &&
	flux cancel $ordered && dws_wait_event $ordered clean
'
test_expect_success 'also when the module is loaded again in the prolog' '
	dws_ctl hold DataIn &&
	again=$(flux submit -N4 -S dw="$LOCAL
		#DW persistentdw name=some-lustre
		$FOO" bash "$PWD/task.sh") &&
	dws_ctl wait-state $(dws_workflow $again) DataIn --timeout 300 &&
	flux module reload dws &&
	dws_wait_status ".agent.synced" &&
	dws_ctl release DataIn &&
	flux job attach $again >out &&
	grep "^DW_RABBIT_NODES=rabbit0=node\[0-1\];rabbit1=node\[3,2\]$" out &&
	done_well $again
'
test_expect_success 'the ends of the logs of its containers stay with the job' '
	done_well $jobid &&
	flux job info $jobid rabbit_container_log >log &&
	jq -e "length == 2 and all(.[]; .container == \"foo\"
		and .phase == \"Succeeded\" and (.log | contains(\"succeeded\")))" log &&
	jq -e "map(.node) == [\"rabbit0\", \"rabbit1\"]" log &&
	flux kvs get $(flux job id --to=kvs $jobid).data.dws.rabbit_container_log >kvs.out &&
	jq -S . <kvs.out >log2 &&
	jq -S . log >log1 &&
	test_cmp log1 log2
'
test_expect_success 'an MPI container has a launcher and a worker for each rabbit' '
	jobid=$(flux submit -N4 -S dw="$LOCAL
		$MPI" true) &&
	test "$(variable $jobid NNF_CONTAINER_LAUNCHER)" = rabbit0 &&
	done_well $jobid &&
	flux job info $jobid rabbit_container_log >container_log.out &&
	jq -e "length == 3" <container_log.out
'
test_expect_success 'the secret token is in none of that' '
	flux job eventlog $jobid >eventlog &&
	test_must_fail grep DW_WORKFLOW_TOKEN eventlog
'
test_expect_success 'a container that does not start in time' '
	dws_ctl containers no-start &&
	jobid=$(flux submit -N1 -S dw="$LOCAL
		#DW persistentdw name=some-lustre
		$FOO" true) &&
	exception $jobid dws-setup "failed to start after 2 seconds" \
		"fault: not known; see flux job info JOBID rabbit_container_log" &&
	dws_wait_event $jobid clean
'
test_expect_success 'one that does not end in time' '
	dws_ctl containers no-stop &&
	jobid=$(flux submit -N1 -S dw="$LOCAL
		#DW persistentdw name=some-lustre
		$FOO" true) &&
	exception $jobid dws-epilog "failed to complete after 2 seconds" \
		"fault: user" &&
	dws_wait_event $jobid clean
'
test_expect_success 'one that fails as often as it may, with the log of each try' '
	dws_ctl containers fail &&
	jobid=$(flux submit -N1 -S dw="$LOCAL
		#DW persistentdw name=some-lustre
		$FOO" true) &&
	exception $jobid dws-epilog "container job .*BackoffLimitExceeded" \
		"fault: user" &&
	dws_wait_event $jobid clean &&
	flux job info $jobid rabbit_container_log >log &&
	jq -e "length == 3 and all(.[]; .phase == \"Failed\")" log &&
	dws_ctl containers ok
'
test_expect_success 'no port is left' '
	dws_kube patch systemconfigurations default default \
		"{\"spec\": {\"ports\": [5000]}}" &&
	first=$(flux submit -N1 -S dw="$LOCAL
		$SERVER" sleep inf) &&
	dws_wait_event $first start &&
	jobid=$(flux submit -N1 -S dw="$LOCAL
		$SERVER" true) &&
	exception $jobid dws-setup "InsufficientResources" "fault: site; no port" &&
	dws_wait_event $jobid clean &&
	flux cancel $first &&
	dws_wait_event $first clean
'
test_expect_success 'requires=copy-offload: its daemon runs while the job does' '
	mkdir bin &&
	cat >bin/systemctl <<-EOT &&
	#!/bin/sh
	echo "\$@" >>"$PWD/calls"
	EOT
	chmod +x bin/systemctl &&
	jobid=$(flux submit -N1 -S dw="#DW jobdw type=xfs capacity=1GiB name=aa \
		requires=copy-offload" sleep inf) &&
	dws_wait_event $jobid start &&
	FLUX_JOB_ID=$jobid PATH="$PWD/bin:$PATH" \
		"$DWS_SRCDIR/etc/prolog.d/zstop_nnf_clientmount.sh" &&
	grep "^start nnf-copy-offload.service$" calls &&
	test_must_fail grep "^stop nnf-copy-offload" calls &&
	flux cancel $jobid &&
	FLUX_JOB_ID=$jobid PATH="$PWD/bin:$PATH" \
		"$DWS_SRCDIR/etc/epilog.d/start_nnf_clientmount.sh" &&
	grep "^stop nnf-copy-offload.service$" calls &&
	dws_wait_event $jobid clean
'
test_expect_success 'nothing is left of all that' '
	jobid=$(flux submit -N1 \
		-S dw="#DW destroy_persistent name=some-lustre" true) &&
	done_well $jobid &&
	dws_clean
'
test_done
