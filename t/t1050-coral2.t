#!/bin/bash
# Jobs of flux-coral2 go on with flux-dws: jobs in every phase, and its plugin and its
# service are replaced while they live.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Taking over from flux-coral2'
. "$(dirname "$0")/sharness.sh"

if ! coral2_found; then
	skip_all='no flux-coral2 with a package kubernetes for it, or no Fluxion'
	test_done
fi
test_under_flux 12

LABEL=flux-framework.org/instance

in_state () {
	dws_ctl wait-state $(dws_workflow $1) $2 --timeout 300
}
# held_back [OPTION...]: a job that waits for its urgency. Sets jobid.
held_back () {
	jobid=$(flux submit -N1 --urgency=0 -S dw="$DWS_DIRECTIVE" "$@") &&
	dws_wait_event $jobid depend
}
hold () {
	dws_ctl hold $1 --workflow $(dws_workflow $jobid)
}
test_expect_success 'flux-coral2 serves, with a file system that lasts' '
	dws_start_sim --rabbits "rabbit[0-5]" && coral2_configure && coral2_start &&
	flux run -N1 --requires=rank:0 \
		-S dw="#DW create_persistent type=xfs capacity=10GiB name=keep" true
'
# Before others take the nodes of that rabbit.
test_expect_success 'a job uses it' '
	mkfifo go &&
	jobid=$(flux submit -N1 --requires=rank:0 -S dw="#DW persistentdw name=keep" cat go) &&
	dws_wait_event $jobid start &&
	flux job id --to=dec $jobid >persistent
'
test_expect_success 'it has a job in every phase' '
	dws_crowd catch &&
	echo "persistent $(cat persistent)" >>crowd
'
test_expect_success 'one that has failed, one that is cancelled' '
	held_back true &&
	hold Teardown &&
	dws_ctl fail Setup --workflow $(dws_workflow $jobid) &&
	flux job urgency $jobid default &&
	dws_wait_event -m type=exception $jobid exception &&
	in_state $jobid Teardown &&
	echo "error $(flux job id --to=dec $jobid)" >>crowd &&
	held_back true &&
	hold PreRun && hold Teardown &&
	flux job urgency $jobid default &&
	in_state $jobid PreRun &&
	flux cancel $jobid &&
	in_state $jobid Teardown &&
	echo "cancelled $(flux job id --to=dec $jobid)" >>crowd
'
test_expect_success 'one that waits for nodes' '
	jobid=$(flux submit -N4 -S dw="$DWS_DIRECTIVE" true) &&
	dws_wait_event $jobid priority &&
	echo "waiting $(flux job id --to=dec $jobid)" >>crowd
'
test_expect_success 'no workflow has a label' '
	test $(coral2_workflows .metadata.name | wc -l) = 13 &&
	coral2_workflows ".metadata.labels.\"$LABEL\"" >labels &&
	test "$(sort -u labels)" = null
'
test_expect_success 'its service is stopped, and the plugins are replaced' '
	kill -STOP $(cat "$DWS_TMP/coral2.pid") &&
	flux jobtap load --remove=dws-jobtap.so "$DWS_PLUGINS/dws-jobtap.so" &&
	coral2_stop &&
	flux module load "$DWS_MODULES/dws.so" &&
	dws_start_agent
'
test_expect_success 'its workflows are ours' '
	dws_until coral2_labelled &&
	dws_wait_status ".workflows == 13"
'
test_expect_success 'no job has ended, or gone on' '
	cat crowd &&
	flux jobs -no "{id} {state} {status} {name}" >jobs.out &&
	cat jobs.out &&
	test $(wc -l <jobs.out) = 13
'
id_of () {
	sed -n "s/^$1 //p" crowd
}
node_of () {
	flux jobs -no "{nodelist}" $(id_of $1)
}
# flux-coral2 writes Computes when Setup is done.
test_expect_success 'what is to be mounted will be on the nodes of the job' '
	for phase in setup datain prerun; do
		dws_k8s get computes $(dws_workflow $(id_of $phase)) >computes.out &&
		test "$(jq -r ".data[].name" computes.out)" = "$(node_of $phase)" || return 1
	done
'
test_expect_success 'an epilog is not let go while something is mounted' '
	node=$(node_of postrun) &&
	dws_ctl hang-mount $node on &&
	dws_ctl release PostRun --workflow $(dws_workflow $(id_of postrun)) &&
	flux run -N1 --urgency=31 -S dw="$DWS_DIRECTIVE" true &&
	in_state $(id_of postrun) PostRun &&
	flux job eventlog $(id_of postrun) >eventlog &&
	grep "epilog-start.*dws-epilog" eventlog &&
	test_must_fail grep epilog-finish eventlog &&
	dws_ctl hang-mount $node off
'
test_expect_success 'jobs end clean, none is lost' '
	dws_crowd release &&
	coral2_ended <<-EOF
	depend completed
	pending completed
	setup completed
	datain completed
	prerun completed
	running completed
	postrun completed
	dataout completed
	teardown completed
	persistent completed
	error failed exception
	cancelled failed cancel
	waiting completed
	EOF
'
test_expect_success 'each by its epilog' '
	for id in $(cut -d" " -f2 crowd); do
		flux job eventlog $id >eventlog &&
		test $(grep -c "epilog-finish.*dws-epilog" eventlog) = 1 || return 1
	done
'
test_expect_success 'the file system that lasts is still there, and goes when asked for' '
	flux run -N1 -S dw="#DW destroy_persistent name=keep" true &&
	dws_clean
'
test_done
