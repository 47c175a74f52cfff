#!/bin/bash
# A rabbit job under Fluxion: it hands out whole ssds, and what it has set aside
# on each rabbit is what the job's storage goes to.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Rabbit jobs under Fluxion'
. "$(dirname "$0")/sharness.sh"
test_under_flux 4

test "$DWS_ENGINE" = flux-core &&
	test -e "$DWS_FLUX_LIBDIR/flux/modules/sched-fluxion-resource.so" &&
	test_set_prereq FLUXION

test_expect_success FLUXION 'rabbits of four parts of 25 GiB, in Fluxion' '
	dws_start_sim --capacity 100GiB &&
	flux kvs get resource.R >R &&
	flux dws2jgf -c 4 --cluster-name=c mapping.json <R |
		sed "s/,\"status\":1//g" >R.up &&
	cat >"$DWS_TMP/conf.d/test.toml" <<-EOF &&
	[resource]
	noverify = true
	[rabbit]
	mapping = "$PWD/mapping.json"
	EOF
	flux kvs put resource.R="$(cat R.up)" &&
	for module in sched-simple sched-fluxion-qmanager \
		sched-fluxion-feasibility sched-fluxion-resource; do
		if flux module list | grep -q "^$module "; then
			flux module remove $module || return 1
		fi
	done &&
	flux config reload &&
	flux module reload resource &&
	flux module load sched-fluxion-resource match-format=rv1 &&
	flux module load sched-fluxion-qmanager &&
	flux module load "$DWS_MODULES/dws.so" &&
	flux jobtap load "$DWS_PLUGINS/dws-jobtap.so" &&
	dws_start_agent
'
# 45 GiB over 3 nodes are 15 for each, so each gets one ssd: 50 GiB are set
# aside on the rabbit with two of the nodes and 25 on the other. One target on
# each rabbit would be of 23 GiB, which fits.
test_expect_success FLUXION 'the job runs with its storage in its ssds' '
	dws_ctl hold PreRun &&
	jobid=$(flux submit -N3 \
		-S dw="#DW jobdw type=lustre capacity=45GiB name=scratch" true) &&
	dws_ctl wait-state $(dws_workflow $jobid) PreRun --timeout 60 &&
	flux job info $jobid R | jq -e ".scheduling.graph.nodes
		| map(select(.metadata.type == \"ssd\")) | length >= 3" &&
	dws_ctl release PreRun &&
	dws_wait_event $jobid clean &&
	flux job status $jobid
'
test_expect_success FLUXION 'unload' '
	flux module remove sched-fluxion-qmanager &&
	flux module remove sched-fluxion-resource &&
	flux module load sched-simple
'
test_done
