#!/bin/bash
# Fluxion takes the resource graph of flux dws2jgf and gives nodes with ssds.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='The resource graph in Fluxion'
. "$(dirname "$0")/sharness.sh"
test_under_flux 4

dws_has_fluxion && test_set_prereq FLUXION

cat >mapping.json <<-EOF
{"computes":{"node0":"rabbit0","node1":"rabbit0","node2":"rabbit1"},
"rabbits":{"rabbit0":{"capacity":42949672960,"hostlist":"node[0-1]"},
"rabbit1":{"capacity":42949672960,"hostlist":"node2"}}}
EOF

# jobspec NODES GIB: nodes with ssds, as flux-dws rewrites jobspec
jobspec () {
	flux submit --dry-run -N$1 true >submit.out &&
	jq ".resources = [{type: \"slot\", count: $1, label: \"rabbit\",
		with: [(.resources[0] | .count = 1),
		{type: \"ssd\", count: $2, exclusive: true}]}]" <submit.out
}

test_expect_success FLUXION 'make the graph, four parts of 10 GiB a rabbit' '
	flux kvs get resource.R >R &&
	flux dws2jgf -c 4 --cluster-name=c mapping.json <R >R.down &&
	sed "s/,\"status\":1//g" R.down >R.up
'
test_expect_success FLUXION 'Fluxion loads it and runs jobs' '
	dws_use_fluxion R.down &&
	flux run -N4 true
'
test_expect_success FLUXION 'all ssds begin as down' '
	flux ion-resource find --format=jgf status=down >down.out &&
	grep "^{" down.out >down.json &&
	jq -r ".graph.nodes[].metadata | select(.type == \"ssd\")
		| .paths.containment" down.json >ssd &&
	test $(wc -l <ssd) -eq 8
'
test_expect_success FLUXION 'with ssds up, a job gets nodes next to them' '
	dws_use_fluxion R.up &&
	jobspec 3 15 >job.json &&
	jobid=$(flux job submit job.json) &&
	flux job wait-event -t 300 $jobid clean &&
	flux job info $jobid R >R.job &&
	jq -r ".execution.nodelist[]" R.job >nodes &&
	echo "node[0-2]" >expected &&
	test_cmp expected nodes &&
	jq -r ".scheduling.graph.nodes[].metadata | select(.type == \"node\")
		| .paths.containment" R.job | sort >places &&
	printf "/c/chassis%s\n" 0/node0 0/node1 1/node2 >expected &&
	test_cmp expected places
'
test_expect_success FLUXION 'whole ssds are set aside: two of 10 for 15 GiB' '
	jq -r ".scheduling.graph.nodes[].metadata | select(.type == \"ssd\")
		| .paths.containment" R.job | sort >ssd &&
	grep -c chassis0 ssd >count &&
	grep -c chassis1 ssd >>count &&
	printf "4\n2\n" >expected &&
	test_cmp expected count
'
test_expect_success FLUXION 'node3 has no rabbit, so four nodes are too many' '
	jobspec 4 5 >job.json &&
	jobid=$(flux job submit job.json) &&
	flux job wait-event -t 300 $jobid clean &&
	flux job eventlog $jobid >log &&
	grep "exception.*alloc" log
'
test_expect_success FLUXION 'unload' '
	flux module remove sched-fluxion-qmanager &&
	flux module remove sched-fluxion-resource
'
test_done
