#!/bin/bash
# Faults that meet: each is nothing to a job by itself, and two at once are not either.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Two faults at once'
. "$(dirname "$0")/sharness.sh"

dws_config () {
	dws_clock
}
test_under_flux 4

LABEL=flux-framework.org/instance
OURS=$DWS_PLUGINS/dws-jobtap.so

# runs: a job does, name is its workflow
runs () {
	jobid=$(dws_submit sleep inf) && name=$(dws_workflow $jobid) &&
	dws_wait_event $jobid start
}
unlabel () {
	dws_k8s patch workflows $name \
		"{\"metadata\": {\"labels\": {\"$LABEL\": null}}}" >unlabelled
}
labelled () {
	dws_k8s get workflows $name >labelled.json &&
	jq -e ".metadata.labels | has(\"$LABEL\")" labelled.json
}
unharmed () {
	flux cancel $jobid &&
	dws_wait_event $jobid clean &&
	dws_clean &&
	dws_drained "" &&
	dws_disabled
}

test_expect_success 'load everything' '
	${CC:-cc} -Wall -Werror -shared -fPIC -o site.so \
		-I "$DWS_PREFIX/lib/flux-solo/include" "$DWS_SRCDIR/t/scripts/site.c" &&
	dws_setup
'
test_expect_success 'a workflow without its label, in a backup that is restored' '
	runs &&
	dws_kill_agent &&
	unlabel &&
	dws_ctl backup >backup.out &&
	dws_start_agent &&
	dws_until labelled &&
	dws_ctl restore >restore.out &&
	dws_until labelled &&
	dws_mounted 2 &&
	unharmed
'
test_expect_success 'the same while the module is away' '
	runs &&
	dws_ctl backup >backup.out &&
	flux module remove dws &&
	unlabel &&
	dws_ctl restore >restore.out &&
	unlabel &&
	flux module load "$DWS_MODULES/dws.so" &&
	dws_until labelled &&
	dws_mounted 2 &&
	unharmed
'
test_expect_success 'a backup that is older than the workflow, which has lost its label' '
	dws_ctl backup >backup.out &&
	runs &&
	dws_kill_agent &&
	unlabel &&
	dws_ctl restore >restore.out &&
	dws_start_agent && dws_wait_status ".agent.synced" &&
	unharmed
'
# let_go: a job that has mounts is, so that its rabbit is disabled
let_go () {
	jobid=$(dws_submit --requires=rank:0-1 sleep inf) && dws_wait_event $jobid start &&
	dws_ctl hold Teardown && dws_hang on &&
	flux cancel $jobid && dws_wait_event $jobid epilog-start &&
	flux rabbit release --yes $jobid >out &&
	dws_wait_event $jobid clean &&
	dws_wait_status ".rabbits.states.Disabled == 1"
}
on_the_other_rabbit () {
	jobid=$(dws_submit true) &&
	dws_wait_event $jobid alloc &&
	test "$(flux jobs -no "{nodelist}" $jobid)" = "node[2-3]"
}
test_expect_success 'a rabbit that is disabled, and a scheduler that is loaded anew' '
	let_go &&
	flux resource undrain 0-1 &&
	flux module reload sched-rabbit &&
	on_the_other_rabbit &&
	dws_ctl release Teardown && dws_hang off &&
	dws_wait_event $jobid clean && flux job status $jobid &&
	flux rabbit enable rabbit0 &&
	dws_clean
'
# servers FAULT: it meets Servers that NNF reads from an old cache
servers () {
	dws_ctl hold Setup && dws_ctl outdate-servers 1 &&
	jobid=$(dws_submit true) &&
	dws_ctl wait-state $(dws_workflow $jobid) Setup --timeout $DWS_LIMIT &&
	"$@" &&
	dws_ctl release Setup &&
	dws_ended_well $jobid &&
	dws_clean
}
empty () {
	dws_k8s patch servers $(dws_workflow $jobid)-0 \
		"{\"spec\": {\"allocationSets\": null}}" >emptied
}
delete () {
	dws_k8s delete servers $(dws_workflow $jobid)-0 >deleted
}
for what in empty delete; do
	test_expect_success "outdated Servers, and somebody who does: $what" '
		servers $what
	'
done
test_expect_success 'a clock that is set, and our plugin loaded anew beside a site with an epilog' '
	flux jobtap remove dws-jobtap.so &&
	flux jobtap load "$PWD/site.so" epilog=finish &&
	flux jobtap load "$OURS" epilog-timeout=600 && dws_wait_status ".plugin" &&
	runs &&
	dws_ctl hold PostRun &&
	flux cancel $jobid &&
	dws_wait_event -m description=site-epilog $jobid epilog-start &&
	dws_wait_event -m description=dws-epilog $jobid epilog-start &&
	dws_jump 3600 &&
	flux jobtap load --remove=dws-jobtap.so "$OURS" epilog-timeout=600 &&
	dws_wait_status ".plugin" &&
	dws_jump 0 &&
	rpc job-manager.site.end "{\"id\": \"$jobid\", \"what\": \"epilog\"}" &&
	dws_ctl release PostRun &&
	dws_wait_event $jobid clean &&
	flux job eventlog $jobid >eventlog &&
	test_must_fail grep dws-epilog-timeout eventlog &&
	dws_clean && dws_drained "" && dws_disabled
'
test_done
