#!/bin/bash
# flux rabbit profiles: what a directive can choose from, where the agent may read it.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='flux rabbit profiles'
. "$(dirname "$0")/sharness.sh"
test_under_flux 2

# profile KIND NAME DATA: made by an admin
profile () {
	kind=$1 &&
	jq -n --arg kind "$kind" --arg name "$2" --argjson data "$3" \
		"{kind: \$kind, metadata: {name: \$name, namespace: \"nnf-system\"},
		data: \$data, apiVersion: \"nnf.cray.hpe.com/v1alpha11\"}" >profile.json &&
	flux python "$DWS_SRCDIR/t/scripts/k8s.py" kubeconfig create \
		"$(echo "${kind}s" | tr A-Z a-z)" "$(cat profile.json)"
}

test_expect_success 'load everything' '
	dws_setup
'
test_expect_success 'the right that the agent lacks is named' '
	test_expect_code 1 flux rabbit profiles 2>err &&
	grep "may not read nnfstorageprofiles: its user lacks the right to list them" err &&
	test_expect_code 1 flux rabbit profiles containers 2>err &&
	grep "may not read nnfcontainerprofiles" err
'
test_expect_success 'storage: what is allocated for a capacity' '
	dws_ctl grant nnfstorageprofiles:list nnfcontainerprofiles:list &&
	profile NnfStorageProfile wide "{\"default\": false,
		\"xfsStorage\": {\"capacityScalingFactor\": \"1.5\",
			\"allocationPadding\": \"10%\", \"storageLabels\": [\"fast\"]},
		\"gfs2Storage\": {}, \"rawStorage\": {},
		\"lustreStorage\": {\"combinedMgtMdt\": false,
			\"mgtOptions\": {\"externalMgs\": \"10.0.0.1@tcp\"},
			\"mdtOptions\": {\"exclusive\": true, \"count\": 2},
			\"ostOptions\": {\"count\": 4}}}" &&
	profile NnfStorageProfile pool "{\"default\": false,
		\"xfsStorage\": {}, \"gfs2Storage\": {}, \"rawStorage\": {},
		\"lustreStorage\": {\"mgtOptions\": {\"standaloneMgtPoolName\": \"mgs\"}}}" &&
	flux rabbit profiles storage >out &&
	cat >expected <<-\EOF &&
	STORAGE  DEFAULT TYPE         SET    SIZE             TARGETS WHERE
	default  yes     xfs,gfs2,raw        capacity+300MiB  1/node
	default  yes     lustre       mgtmdt 5GiB             1
	default  yes     lustre       ost    capacity         scale 5 near the nodes
	pool             xfs,gfs2,raw        capacity         1/node
	pool             lustre       mgt    5GiB                     persistent, of pool mgs
	wide             xfs                 capacity*1.5+10% 1/node  label fast
	wide             gfs2,raw            capacity         1/node
	wide             lustre       mgt    none             0       10.0.0.1@tcp
	wide             lustre       mdt    5GiB             2       alone on its rabbit
	wide             lustre       ost    capacity         4
	EOF
	test_cmp expected out
'
test_expect_success 'containers: what they use, and their limits' '
	profile NnfContainerProfile mine "{\"createContainer\": true, \"retryLimit\": 2,
		\"userID\": 1000, \"groupID\": 100, \"preRunTimeoutSeconds\": 30,
		\"postRunTimeoutSeconds\": 0, \"numPorts\": 3,
		\"spec\": {\"containers\": [{\"name\": \"c\", \"image\": \"i\",
			\"env\": [{\"name\": \"KEY\", \"value\": \"hush\"}]}]}}" &&
	profile NnfContainerProfile some "{\"createContainer\": true, \"retryLimit\": 1,
		\"storages\": [{\"name\": \"DW_JOB_foo_local_storage\", \"optional\": true}],
		\"spec\": {\"containers\": [{\"name\": \"c\", \"image\": \"i\"}]}}" &&
	flux rabbit profiles containers >out &&
	head -n 1 out >head &&
	grep "^CONTAINER  *FILE SYSTEM  *NEED START  END RETRY PORTS ONLY FOR$" head &&
	grep "^example-mpi  *DW_JOB_foo_local_storage  *yes    300  300     6     1$" out &&
	grep "^foo  *DW_PERSISTENT_foo_persistent_storage yes  *300  300     6     1$" out &&
	grep "^mine  *30    0     2     3 user 1000, group 100$" out &&
	grep "^some  *DW_JOB_foo_local_storage  *no " out
'
test_expect_success 'guests see them, too, and nobody what is in the pods' '
	as_guest flux rabbit profiles >both &&
	grep "^wide" both && grep "^example-server" both &&
	as_guest flux rabbit profiles --json >json &&
	jq -e ".storage[0].data.lustreStorage.ostOptions.scale == 5" json &&
	jq -e "[.containers[].data | has(\"spec\")] | any | not" json &&
	test_must_fail grep hush json
'
test_expect_success 'a format is for one kind' '
	flux rabbit profiles storage -no "{name} {types}" >out && grep "^pool lustre" out &&
	test_expect_code 1 flux rabbit profiles -no "{name}" 2>err &&
	grep "need a kind: storage or containers" err &&
	test_expect_code 1 flux python "$DWS_SRCDIR/t/scripts/rpc.py" dws.profiles \
		"{\"kind\": \"drives\"}" 2>err &&
	grep "kind is storage or containers" err
'
test_expect_success 'the copy that a job has made of its own is not listed' '
	dws_ctl hold Setup &&
	jobid=$(dws_submit true) &&
	dws_wait_status ".states.Setup == 1" &&
	flux rabbit profiles storage -no "{name}" >out && sort -u out >names &&
	printf "%s\n" default pool wide >expected && test_cmp expected names &&
	dws_ctl release Setup && dws_ended_well $jobid
'
test_expect_success 'what changes is seen at once' '
	flux python "$DWS_SRCDIR/t/scripts/k8s.py" kubeconfig delete \
		nnfstorageprofiles wide &&
	flux rabbit profiles >out && test_must_fail grep wide out
'
ask () {
	flux rabbit profiles storage >out 2>err &
	echo $! >asking
}
test_expect_success 'without an agent, and when it goes, it says so' '
	dws_ctl api --status 503 --count 1000000 &&
	ask && dws_wait_status ".agent.commands == 1" &&
	dws_kill_agent &&
	test_expect_code 1 wait $(cat asking) &&
	grep "the agent has gone: ask again" err &&
	test_expect_code 1 flux rabbit profiles 2>err &&
	grep "no agent is attached" err &&
	dws_ctl api --clear &&
	dws_start_agent && flux rabbit profiles
'
test_done
