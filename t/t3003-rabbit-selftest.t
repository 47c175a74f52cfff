#!/bin/bash
# flux rabbit selftest passes a good installation, and names what is wrong with
# a bad one.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='flux rabbit selftest'
. "$(dirname "$0")/sharness.sh"
test_under_flux 4

# good [OPTION...]: nothing is found
good () {
	flux rabbit selftest "$@" >out || { cat out; return 1; }
}
# finds CHECK PATTERN [OPTION...]: this check fails, with that text
finds () {
	check=$1 pattern=$2 &&
	shift 2 &&
	test_expect_code 3 flux rabbit selftest --types none --json "$@" >json &&
	jq -r ".checks[] | select(.verdict == \"failed\")
		| .check + \": \" + .text" json >failed &&
	grep "^$check: .*$pattern" failed || { cat json; return 1; }
}
# configure MAPPING KUBECONFIG: a configuration to be put in the place of the
# good one, which restore brings back
configure () {
	{
		cat test.toml.orig &&
		printf "[rabbit]\nmapping = \"%s\"\nkubeconfig = \"%s\"\n" "$1" "$2"
	} >"$DWS_TMP/conf.d/test.toml" &&
	flux config reload
}
restore () {
	configure "$PWD/mapping.json" "$PWD/kubeconfig"
}

test_expect_success 'prepare' '
	cp "$DWS_TMP/conf.d/test.toml" test.toml.orig &&
	dws_start_sim
'
test_expect_success '1: no configuration' '
	finds configuration "there is no table .rabbit." &&
	finds "broker module" "dws is not loaded"
'
test_expect_success '2: a mistyped key and a mapping that is not there' '
	cp "$DWS_SRCDIR/t/data/rabbitmap/mapping.json" gone.json &&
	printf "[rabbit]\nmapping = \"$PWD/gone.json\"\nmaping = 5\n" \
		>>"$DWS_TMP/conf.d/test.toml" &&
	flux config reload &&
	rm gone.json &&
	finds configuration "rabbit.maping: unknown key" &&
	finds configuration "rabbit.mapping: .*/gone.json: No such file"
'
test_expect_success '3: the broker module is not loaded' '
	restore &&
	finds "broker module" "dws is not loaded"
'
test_expect_success '4: the jobtap plugin is not loaded' '
	cp test.toml.orig "$DWS_TMP/conf.d/test.toml" &&
	dws_load && dws_start_agent &&
	flux jobtap remove dws-jobtap.so &&
	finds "jobtap plugin" "dws-jobtap.so is not loaded" &&
	flux jobtap load "$DWS_PLUGINS/dws-jobtap.so" &&
	dws_wait_status .synced
'
test_expect_success 'a good installation passes' '
	good --types none &&
	test_must_fail grep "✗" out &&
	grep "nnf-clientmount *not checked: systemd of the nodes cannot be asked" out &&
	grep "23 passed, 0 failed, 1 skipped" out
'
test_expect_success '5: a scheduler that knows no rabbits' '
	flux module remove sched-rabbit &&
	finds scheduler "none) knows no rabbits" &&
	if test "$DWS_ENGINE" = flux-core; then
		flux module load sched-simple &&
		finds scheduler "sched-simple) knows no rabbits" &&
		flux module remove sched-simple
	fi &&
	flux module load "$DWS_MODULES/sched-rabbit.py"
'
test_expect_success '6: a mapping of other nodes' '
	sed "s/node\([0-9[]\)/other\1/g" mapping.json >others.json &&
	configure "$PWD/others.json" "$PWD/kubeconfig" &&
	finds "nodes in the mapping" "no node of this Flux instance"
'
test_expect_success '7: a mapping that is out of date' '
	sed "s/rabbit1/rabbit9/g" mapping.json >old.json &&
	configure "$PWD/old.json" "$PWD/kubeconfig" &&
	finds "mapping of the cluster" "rabbit9 is not in the cluster; rabbit1 of" &&
	jq "{computes: (.computes | with_entries(.value =
			(if .value == \"rabbit0\" then \"rabbit1\" else \"rabbit0\" end))),
		rabbits: {rabbit0: (.rabbits.rabbit0 + {hostlist: \"node[2-3]\"}),
			rabbit1: (.rabbits.rabbit1 + {hostlist: \"node[0-1]\"})}}" \
		mapping.json >swapped.json &&
	configure "$PWD/swapped.json" "$PWD/kubeconfig" &&
	finds "mapping of the cluster" "rabbit0 has node\[0-1\] there, node\[2-3\]"
'
test_expect_success '8: a kubeconfig that is not there' '
	cp kubeconfig gone && configure "$PWD/mapping.json" "$PWD/gone" && rm gone &&
	finds kubeconfig "/gone: No such file or directory"
'
test_expect_success '9: an API server that is not there' '
	sed "s#https://127.0.0.1:[0-9]*#https://127.0.0.1:9#" kubeconfig >nowhere &&
	configure "$PWD/mapping.json" "$PWD/nowhere" &&
	finds "API server" "does not answer"
'
test_expect_success '10: a token that is refused' '
	sed "s/\(\"\?token\"\?: *\"\?\)[A-Za-z0-9_-]*/\1wrong/" kubeconfig >refused &&
	configure "$PWD/mapping.json" "$PWD/refused" &&
	finds "API server" "refuses the token"
'
test_expect_success '11: missing verbs' '
	restore &&
	dws_ctl deny workflows:create storages:patch &&
	finds permissions "may not: create workflows, patch storages" &&
	dws_ctl deny
'
test_expect_success '12: no agent' '
	dws_kill_agent &&
	finds agent "no agent is attached" &&
	dws_start_agent
'
test_expect_success '13: no rabbit that is ready' '
	flux rabbit disable --reason x "rabbit[0-1]" &&
	dws_wait_status ".rabbits.states.Disabled == 2" &&
	finds rabbits "no rabbit is Ready: 2 Disabled" &&
	flux rabbit enable "rabbit[0-1]" &&
	dws_wait_status ".rabbits.states.Ready == 2"
'
test_expect_success '14: a mount whose workflow is no more' '
	dws_k8s create clientmounts "$(cat "$DWS_SRCDIR/t/data/lost-clientmount.json")" &&
	finds mounts "of no workflow any more: default/lost" &&
	dws_k8s delete clientmounts lost &&
	good --types none &&
	grep "mounts  *0 ClientMounts" out
'
test_expect_success 'a mount of a job that runs is as it should be' '
	jobid=$(flux submit -N1 -S dw="$DWS_DIRECTIVE" sleep inf) &&
	dws_wait_event $jobid start &&
	good --types none &&
	grep "mounts  *1 ClientMounts" out &&
	flux cancel $jobid && dws_clean
'
test_expect_success 'so is what NNF keeps of a persistent Lustre file system' '
	jobid=$(flux submit -N1 \
		-S dw="#DW create_persistent type=lustre capacity=5GiB name=kept" true) &&
	dws_wait_event $jobid clean && flux job status $jobid &&
	good --types none &&
	grep "mounts  *1 ClientMounts" out &&
	jobid=$(flux submit -N1 -S dw="#DW destroy_persistent name=kept" true) &&
	dws_wait_event $jobid clean && flux job status $jobid && dws_clean
'
test_expect_success 'a kubeconfig that others can read' '
	chmod 644 kubeconfig &&
	finds kubeconfig "/kubeconfig can be read by others" &&
	chmod 600 kubeconfig && good --types none
'
test_expect_success 'an epilog-timeout that ends epilogs before teardown' '
	cp "$DWS_TMP/conf.d/test.toml" before.toml &&
	cat >>"$DWS_TMP/conf.d/test.toml" <<-\EOF &&
	teardown_after = "80m"
	[[job-manager.plugins]]
	load = "dws-jobtap.so"
	conf.epilog-timeout = 3600.0
	EOF
	flux config reload &&
	finds "time limits" "epilog-timeout of dws-jobtap.so (3600 s) is not above" &&
	sed -i "s/3600.0/5400.0/" "$DWS_TMP/conf.d/test.toml" &&
	flux config reload && good --types none && grep "epilog-timeout is 5400 s" out &&
	cp before.toml "$DWS_TMP/conf.d/test.toml" && flux config reload
'
test_expect_success 'a job for each type of file system' '
	good &&
	for type in xfs gfs2 raw lustre; do
		grep "✓ $type job .*Setup .*Teardown" out ||
			{ cat out; return 1; }
	done &&
	test_expect_code 1 flux rabbit selftest -t ext4 2>err &&
	grep "ext4. is none of" err
'
test_expect_success '15: the mount daemon of a node does nothing' '
	dws_ctl hang-mount node0 on &&
	finds "xfs job" "hangs in PreRun, waiting for mounting" \
		--types xfs --requires=rank:0 --timeout 3 &&
	dws_ctl hang-mount node0 off && dws_clean
'
test_expect_success '16: the storage controllers fail' '
	dws_ctl fail Setup --severity Fatal --message "no drives" &&
	finds "xfs job" "no drives" --types xfs &&
	dws_ctl fail Setup --clear && dws_clean
'
test_expect_success FLUX_CORE '17: the shell does not find its plugin' '
	pluginpath=$(flux getattr conf.shell_pluginpath) &&
	flux setattr conf.shell_pluginpath /nonexistent &&
	finds "xfs job" "shell has not loaded dws_environment.so" --types xfs &&
	flux setattr conf.shell_pluginpath "$pluginpath" &&
	dws_clean
'
test_expect_success 'a guest is told to be the owner' '
	test_done_by_others=$(FLUX_HANDLE_USERID=4242 FLUX_HANDLE_ROLEMASK=0x2 \
		flux rabbit selftest --types none || :) &&
	echo "$test_done_by_others" | grep "✗"
'
test_done
