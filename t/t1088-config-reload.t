#!/bin/bash
# A configuration that is not good is refused by flux config reload as by
# flux-coral2-dws --check-config, and the agent and the module go on with the old one.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Configurations that are refused'
. "$(dirname "$0")/sharness.sh"
dws_config () {
	dws_guests
}
test_under_flux 2

CONFIG=$DWS_TMP/conf.d/test.toml

# start_agent: one that goes by rabbit.kubeconfig.
start_agent () {
	flux-coral2-dws -v >>agent.log 2>&1 &
	echo $! >"$DWS_TMP/agent.pid"
	dws_wait_status ".agent.synced == true"
}
# use_kubeconfig FILE: in place of the good one.
use_kubeconfig () {
	sed "s|^kubeconfig = .*|kubeconfig = \"$1\"|" good.toml >"$CONFIG" &&
	flux config reload
}
# serves: the agent of the beginning is there, and jobs run.
serves () {
	dws_wait_status ".agent.synced == true" &&
	kill -0 $agent &&
	dws_run_job "$DWS_DIRECTIVE" true
}

test_expect_success 'load everything' '
	cp "$CONFIG" plain.toml &&
	dws_start_sim && dws_load && start_agent &&
	cp "$CONFIG" good.toml &&
	agent=$(cat "$DWS_TMP/agent.pid")
'
test_expect_success 'the check and the reload agree over every key' '
	flux python "$DWS_SRCDIR/t/scripts/config_table.py" "$DWS_TMP/conf.d" plain.toml \
		"$PWD/kubeconfig" "$PWD/mapping.json"
'
test_expect_success 'none of that has ended the agent, and jobs run' '
	cp good.toml "$CONFIG" && flux config reload &&
	serves
'
test_expect_success 'a kubeconfig that is not there is refused: agent and module go on' '
	test_must_fail use_kubeconfig "$PWD/none" 2>err &&
	grep "rabbit.kubeconfig: $PWD/none: No such file or directory" err &&
	serves
'
test_expect_success 'one that is none is refused in the same way' '
	echo nonsense >bad.kubeconfig &&
	test_must_fail use_kubeconfig "$PWD/bad.kubeconfig" 2>err &&
	grep "rabbit.kubeconfig: kubeconfig $PWD/bad.kubeconfig: not a kubeconfig" err &&
	serves
'
test_expect_success 'one that is spoilt later is told by the agent, which keeps what it has' '
	cp kubeconfig bad.kubeconfig &&
	use_kubeconfig "$PWD/bad.kubeconfig" &&
	dws_wait_status ".agent.synced == true" &&
	echo nonsense >bad.kubeconfig &&
	flux module reload dws &&
	dws_until grep "rabbit.kubeconfig: kubeconfig $PWD/bad.kubeconfig: .*stays in use" agent.log &&
	serves
'
test_expect_success 'and takes that as soon as it can be read' '
	cp kubeconfig new && mv new bad.kubeconfig &&
	dws_until grep "kubeconfig $PWD/bad.kubeconfig can be read now" agent.log &&
	serves
'
test_expect_success 'an agent that cannot list anything says why, in its log and in the status' '
	sed "s|\(https://[^:\"]*\):[0-9]*|\1:1|" kubeconfig >away &&
	use_kubeconfig "$PWD/away" &&
	dws_wait_status ".agent.reachable == false" &&
	grep "watch of workflows: .*onnect" agent.log &&
	test_must_fail flux rabbit status >status &&
	grep "cannot reach the Kubernetes API server: .*Connection refused" status &&
	dws_status >all && jq -e ".agent.trouble | test(\"refused\")" all &&
	as_guest flux python "$DWS_SRCDIR/t/scripts/rpc.py" dws.status >guest &&
	jq -e ".agent.trouble == null" guest &&
	use_kubeconfig "$PWD/kubeconfig" && serves
'
test_expect_success 'a module that starts tells what is not as it should be, and serves' '
	cp kubeconfig gone && use_kubeconfig "$PWD/gone" &&
	dws_wait_status ".agent.synced == true" &&
	rm gone &&
	flux module reload dws &&
	flux dmesg >dmesg && grep "rabbit.kubeconfig: $PWD/gone: No such file" dmesg &&
	serves
'
test_expect_success 'an agent that ends while it is asked refuses nothing, nor does none' '
	kill -STOP $(cat "$DWS_TMP/agent.pid") &&
	{ use_kubeconfig "$PWD/bad.kubeconfig" & reload=$!; } &&
	dws_wait_status ".agent.commands == 1" &&
	kill -KILL $(cat "$DWS_TMP/agent.pid") &&
	wait $reload &&
	use_kubeconfig "$PWD/kubeconfig" &&
	echo nonsense >bad.kubeconfig &&
	use_kubeconfig "$PWD/bad.kubeconfig" &&
	test_must_fail flux-coral2-dws 2>err &&
	grep "kubeconfig $PWD/bad.kubeconfig: not a kubeconfig" err &&
	use_kubeconfig "$PWD/kubeconfig" &&
	start_agent && agent=$(cat "$DWS_TMP/agent.pid") &&
	serves
'
test_expect_success 'an agent that hangs is not asked about what is not its own' '
	kill -STOP $agent &&
	sed "/^kubeconfig = /a tc_timeout = 47" good.toml >"$CONFIG" &&
	flux config reload &&
	dws_wait_status ".agent.commands == 0" &&
	kill -CONT $agent &&
	serves
'
test_done
