#!/bin/bash
# Jobs of flux-coral2 go on with flux-dws when Flux is started again with the other
# plugin, as a site does that installs packages: with a job in every phase.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Taking over from flux-coral2 with a restart of Flux'
. "$(dirname "$0")/sharness.sh"

if ! coral2_found; then
	skip_all='no flux-coral2 with a package kubernetes for it, or no Fluxion'
	test_done
fi
DWS_NODES=12
DWS_TMP=$(mktemp -d "${TMPDIR:-/tmp}/dws-state-XXXXXX") # no blank in its path
dws_prepare

export DWS_PYTHON DWS_LIMIT DWS_DIRECTIVE
for name in $(compgen -A function | grep -E '^(dws|coral2)_'); do
	export -f $name
done

# instance SCRIPT [OPTION]: run it in the instance.
instance () {
	mkdir -p "$DWS_TMP/state" &&
	dws_instance -S statedir="$DWS_TMP/state" $2 \
		${SHELL_PATH:-/bin/bash} -e "$PWD/$1"
}
# kill_instance: with the state that it has now, and the service.
kill_instance () {
	kill -9 $(cat "$DWS_TMP"/*.pid | grep -v "$(cat "$DWS_TMP/sim.pid")") &&
	rm -f "$DWS_TMP/coral2.pid" "$DWS_TMP/agent.pid" &&
	flux kvs sync &&
	kill -9 $(flux getattr broker.pid)
}
# plugin FILE: that Flux loads
plugin () {
	printf '[job-manager]\nplugins = [ { load = "%s" } ]\n' "$1" >"$DWS_TMP/conf.d/plugin.toml"
}
in_state () {
	dws_ctl wait-state $(dws_workflow $1) $2 --timeout 300
}
# held_back: a job that waits for its urgency. Sets jobid.
held_back () {
	jobid=$(flux submit -N1 --urgency=0 -S dw="$DWS_DIRECTIVE" true) &&
	dws_wait_event $jobid depend
}
hold () {
	dws_ctl hold $1 --workflow $(dws_workflow $jobid)
}
export -f kill_instance in_state held_back hold

test_expect_success 'a cluster, and the configuration' '
	dws_start_sim --rabbits "rabbit[0-5]" &&
	coral2_graph <"$DWS_TMP/R" >R.graph &&
	cp R.graph "$DWS_TMP/R" &&
	cat >"$DWS_TMP/conf.d/test.toml" <<-EOF &&
	[resource]
	path = "$DWS_TMP/R"
	noverify = true
	[sched-fluxion-resource]
	match-format = "rv1"
	[rabbit]
	mapping = "$PWD/mapping.json"
	kubeconfig = "$PWD/kubeconfig"
	EOF
	plugin "$CORAL2/lib/flux/job-manager/plugins/dws-jobtap.so"
'
# And one that has failed, one that is cancelled, one with a file system that lasts.
test_expect_success 'Flux is killed with a job of flux-coral2 in every phase' '
	cat >first.sh <<-\EOF &&
	coral2_service
	flux run -N1 --requires=rank:0 \
		-S dw="#DW create_persistent type=xfs capacity=10GiB name=keep" true
	lasting=$(flux submit -N1 --requires=rank:0 \
		-S dw="#DW persistentdw name=keep" sleep inf)
	dws_wait_event $lasting start
	dws_crowd catch
	echo "persistent $(flux job id --to=dec $lasting)" >>crowd
	held_back
	hold Teardown
	dws_ctl fail Setup --workflow $(dws_workflow $jobid)
	flux job urgency $jobid default
	dws_wait_event -m type=exception $jobid exception
	in_state $jobid Teardown
	echo "error $(flux job id --to=dec $jobid)" >>crowd
	held_back
	hold PreRun
	hold Teardown
	flux job urgency $jobid default
	in_state $jobid PreRun
	flux cancel $jobid
	in_state $jobid Teardown
	echo "cancelled $(flux job id --to=dec $jobid)" >>crowd
	kill_instance
	EOF
	modprobe=$FLUX_MODPROBE_PATH_APPEND &&
	unset FLUX_MODPROBE_PATH_APPEND &&
	test_expect_code 137 instance first.sh --test-exit-timeout=0.1s
'
test_expect_success 'started again with flux-dws, and killed again' '
	export FLUX_MODPROBE_PATH_APPEND=$modprobe &&
	plugin "$DWS_PLUGINS/dws-jobtap.so" &&
	cat >second.sh <<-\EOF &&
	dws_start_agent
	dws_until coral2_labelled
	kill_instance
	EOF
	test_expect_code 137 instance second.sh --test-exit-timeout=0.1s
'
test_expect_success 'jobs end clean, none is lost' '
	cat >third.sh <<-\EOF &&
	dws_start_agent
	dws_crowd release
	coral2_ended <<-EOT
	depend completed
	pending completed
	setup completed
	datain completed
	prerun completed
	running failed exec
	postrun completed
	dataout completed
	teardown completed
	persistent failed exec
	error failed exception
	cancelled failed cancel
	EOT
	flux run -N1 -S dw="#DW destroy_persistent name=keep" true
	dws_clean
	for id in $(cut -d" " -f2 crowd); do
		flux job eventlog $id >eventlog
		test $(grep -c "epilog-finish.*dws-epilog" eventlog) = 1
	done
	EOF
	instance third.sh
'
for pid in "$DWS_TMP"/*.pid; do
	test -f "$pid" && kill -9 "$(cat "$pid")"
done
rm -rf "$DWS_TMP"
test_done
