#!/bin/bash
# Somebody takes the instance's label off workflows, or gives them another: watches and
# lists, which select by it, do not show them any more.
# SPDX-License-Identifier: LGPL-3.0-only
#
# FAULT label-removed: somebody removes the label `flux-framework.org/instance` from the workflow
#   depend pending setup datain prerun running postrun dataout teardown: completed: flux-dws
#     reads the workflow by its name and restores the label; the job goes on.
# FAULT label-changed: somebody changes that label
#   depend pending setup datain prerun running postrun dataout teardown: completed: flux-dws
#     reads the workflow by its name and restores the label; the job goes on.

test_description='A workflow that is out of sight is not taken for gone'
. "$(dirname "$0")/sharness.sh"
test_under_flux 4

LABEL=flux-framework.org/instance

# each COMMAND...: with each job id in decimal
each () {
	for id in $(cut -d" " -f2 crowd); do
		"$@" $id || return 1
	done
}
# label VALUE ID
label () {
	dws_k8s patch workflows fluxjob-$2 \
		"{\"metadata\": {\"labels\": {\"$LABEL\": $1}}}" >>labelled.out
}

is_labelled () {
	dws_k8s get workflows $1 >labelled.json &&
	jq -e ".metadata.labels.\"$LABEL\" == $instance" labelled.json
}
annotate () {
	dws_k8s patch workflows $name \
		"{\"metadata\": {\"annotations\": {\"$LABEL\": $1}}}" >annotated.out
}
is_annotated () {
	dws_k8s get workflows $name >annotated.json &&
	jq -e ".metadata.annotations.\"$LABEL\" == $1" annotated.json
}
another () {
	jq -n "{metadata: {name: \"fluxjob-4711\", annotations: {\"$LABEL\": \"another\"}},
		spec: {desiredState: \"Proposal\", wlmID: \"flux\", jobID: \"f1\", userID: 1,
			groupID: 1, dwDirectives: []}}"
}
our_label () {
	echo "{\"metadata\": {\"labels\": {\"$LABEL\": $instance}}}"
}
requests () {
	dws_ctl state >state.out && jq .requests state.out
}

test_expect_success 'load everything' '
	dws_setup &&
	dws_wait_status ".agent.synced" &&
	instance=$(flux kvs get dws.instance) &&
	case $instance in \"*) ;; *) instance="\"$instance\"" ;; esac
'
dws_fault label-removed 'of all' '
	each label null
'
dws_fault label-changed 'of all' '
	each label "\"another\""
'

# A job runs, its agent or module is away, and LABEL takes the label off.
run_and () {
	jobid=$(dws_submit sleep inf) && name=$(dws_workflow $jobid) &&
	id=${name#fluxjob-} &&
	dws_wait_event $jobid start &&
	"$@"
}
without_agent () {
	dws_kill_agent && label $1 $id && dws_start_agent && dws_wait_status ".agent.synced"
}
without_module () {
	flux module remove dws && label $1 $id && flux module load "$DWS_MODULES/dws.so" &&
	dws_wait_status ".agent.synced and .synced"
}
# Cancel the job while the module is not loaded.
cancelled_without_module () {
	flux module remove dws && label $1 $id && flux cancel $jobid &&
	dws_wait_event $jobid epilog-start && flux module load "$DWS_MODULES/dws.so"
}
unmounted_and_clean () {
	dws_wait_event $jobid clean && dws_mounted 0 && dws_clean
}
for value in null \"another\"; do
	for away in without_agent without_module; do
		test_expect_success "$away, label $value: it has its label again, and ends clean" '
			run_and $away $value &&
			dws_until is_labelled $name &&
			flux cancel $jobid &&
			unmounted_and_clean
		'
	done
	test_expect_success "cancelled_without_module, label $value: it is unmounted before its end" '
		run_and cancelled_without_module $value &&
		unmounted_and_clean
	'
done
test_expect_success 'a workflow of an older release, with its label alone, stays its job'"'"'s' '
	run_and annotate null &&
	dws_until is_annotated null &&
	label "\"another\"" $id &&
	dws_until is_labelled $name &&
	flux cancel $jobid &&
	unmounted_and_clean
'
test_expect_success 'a workflow that another instance has made is left alone' '
	dws_k8s create workflows "$(another)" >another.json &&
	dws_k8s patch workflows fluxjob-4711 "$(our_label)" >patched &&
	jobid=$(dws_submit true) &&
	dws_wait_event $jobid clean &&
	dws_k8s get workflows fluxjob-4711 >another.json &&
	jq -e ".spec.desiredState == \"Proposal\"" another.json &&
	dws_wait_status ".jobs == 0" &&
	dws_k8s delete workflows fluxjob-4711 >deleted &&
	dws_clean
'
test_expect_success 'a few requests are enough' '
	run_and true &&
	requests >before &&
	label "\"another\"" $id &&
	dws_until is_labelled $name &&
	dws_wait_status ".agent.commands == 0" &&
	requests >after &&
	test $(($(cat after) - $(cat before))) -lt 60 &&
	flux cancel $jobid &&
	unmounted_and_clean
'
refused () {
	flux dmesg >dmesg.out && grep "($name): adopt: .*forbidden" dmesg.out
}
test_expect_success 'a refusal to give it the label is seen, and tried again' '
	run_and dws_ctl deny workflows:patch &&
	label null $id &&
	dws_until refused &&
	dws_ctl deny &&
	dws_until is_labelled $name &&
	flux cancel $jobid &&
	unmounted_and_clean
'
test_done
