#!/bin/bash
# flux rabbit selftest finds what is wrong with the resource graph that Fluxion has.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='flux rabbit selftest and the resource graph'
. "$(dirname "$0")/sharness.sh"
test_under_flux 4

dws_has_fluxion && test_set_prereq FLUXION

# finds CHECK PATTERN: this check fails, or advises, with that text
finds () {
	flux rabbit selftest --types none --json >json
	jq -r ".checks[] | select(.check == \"$1\")
		| \"\(.verdict) \(.text) (\(.hint))\"" json >found &&
	grep "$2" found || { cat json; return 1; }
}
# graph FILE: Flux and Fluxion with that R
graph () {
	dws_use_fluxion $1 &&
	dws_wait_status ".health.scheduler == \"fluxion\""
}
# change FILTER: the good graph, changed by jq
change () {
	jq -c ".scheduling.graph.nodes |= map($1)" good.R >bad.R &&
	test_must_fail cmp good.R bad.R &&
	graph bad.R
}
make_graph () {
	jq "del(.scheduling)" R.plain | flux dws2jgf -c 4 --cluster-name=c "$@"
}

test_expect_success FLUXION 'a good graph' '
	dws_start_sim &&
	flux kvs get resource.R >R.plain &&
	dws_load && dws_start_agent &&
	cat >>"$DWS_TMP/conf.d/test.toml" <<-EOF &&
	[sched-fluxion-resource]
	match-format = "rv1"
	[sched-fluxion-qmanager]
	queue-policy = "conservative"
	EOF
	flux config reload &&
	make_graph mapping.json >good.R &&
	graph good.R &&
	finds "resource graph" "^passed 2 rabbits, 4 nodes" &&
	finds "sizes of rabbits" "^passed no rabbit of 2 has less" &&
	flux rabbit selftest --types none >out &&
	grep " 0 failed, 1 skipped" out # no systemd has nnf-clientmount here
'
test_expect_success FLUXION 'a rabbit that is missing, and one too many' '
	sed "s/rabbit1/rabbit9/g" mapping.json >others.json &&
	make_graph others.json >bad.R &&
	graph bad.R &&
	finds "resource graph" "^failed rabbit1 of the mapping not in the graph; rabbit9 of the graph not in the mapping" &&
	finds "resource graph" "flux dws2jgf"
'
test_expect_success FLUXION 'ssds of another size' '
	jq ".rabbits.rabbit0.capacity /= 2" mapping.json >others.json &&
	make_graph others.json >bad.R &&
	graph bad.R &&
	finds "resource graph" "^failed rabbit0 has ssds of .* together, .* in the mapping"
'
test_expect_success FLUXION 'fewer than the graph says' '
	change "if .metadata.properties.rabbit == \"rabbit1\"
		then .metadata.properties.ssdcount = \"5\" else . end" &&
	finds "resource graph" "^failed rabbit1 has 4 ssds and says that it has 5"
'
test_expect_success FLUXION 'a node next to another rabbit' '
	jq "{computes: (.computes + {node1: \"rabbit1\"}),
		rabbits: {rabbit0: (.rabbits.rabbit0 + {hostlist: \"node0\"}),
			rabbit1: (.rabbits.rabbit1 + {hostlist: \"node[1-3]\"})}}" \
		mapping.json >others.json &&
	make_graph others.json >bad.R &&
	graph bad.R &&
	finds "resource graph" "^failed node1 is next to rabbit1 in the graph, rabbit0 in the mapping"
'
test_expect_success FLUXION 'a graph that is older than resource.exclude' '
	graph good.R &&
	sed -i "s/^\[resource\]/&\nexclude = \"3\"/" "$DWS_TMP/conf.d/test.toml" &&
	flux config reload &&
	flux module remove sched-fluxion-qmanager &&
	flux module remove sched-fluxion-resource &&
	flux module reload resource &&
	flux module load sched-fluxion-resource match-format=rv1 &&
	flux module load sched-fluxion-qmanager &&
	finds "resource graph" "^failed node3 of the graph is in resource.exclude" &&
	make_graph mapping.json >fresh.R &&
	graph fresh.R &&
	finds "resource graph" "^passed 2 rabbits, 3 nodes"
'
test_expect_success FLUXION 'or than the end of it' '
	sed -i "/^exclude/d" "$DWS_TMP/conf.d/test.toml" &&
	flux config reload &&
	graph fresh.R &&
	finds "resource graph" "^failed node3 of R is not in the graph"
'
test_expect_success FLUXION 'other ranks' '
	change "if .metadata.type == \"node\" and .metadata.rank < 2
		then .metadata.rank = 1 - .metadata.rank else . end" &&
	finds "resource graph" "^failed node\[0-1\] has other ranks in R: node0 is 0 there, 1 in the graph"
'
test_expect_success FLUXION 'no graph at all' '
	dws_remove_scheduler &&
	cp R.plain "$DWS_TMP/R" &&
	flux module reload resource &&
	flux module load sched-fluxion-resource match-format=rv1 &&
	flux module load sched-fluxion-qmanager &&
	finds "resource graph" "^failed R has no graph"
'
test_expect_success FLUXION 'a match-format that leaves out rabbits' '
	graph good.R &&
	flux module remove sched-fluxion-qmanager &&
	flux module reload sched-fluxion-resource match-format=rv1_nosched &&
	flux module load sched-fluxion-qmanager &&
	finds "resource graph" "^failed Fluxion was loaded with match-format .rv1_nosched. (.*rv1 or rv1_shorthand"
'
test_expect_success FLUXION 'the short one is good' '
	flux module remove sched-fluxion-qmanager &&
	flux module reload sched-fluxion-resource match-format=rv1_shorthand &&
	flux module load sched-fluxion-qmanager &&
	finds "resource graph" "^passed 2 rabbits"
'
test_expect_success FLUXION 'a mapping that has more than there is' '
	jq ".rabbits.rabbit0.capacity *= 2" mapping.json >more.json &&
	sed -i "s|mapping.json|more.json|" "$DWS_TMP/conf.d/test.toml" &&
	flux config reload &&
	finds "sizes of rabbits" "^passed rabbit0 has .*, .* in the mapping (.*flux rabbitmapping" &&
	finds "resource graph" "^failed rabbit0 has ssds of"
'
test_expect_success FLUXION 'unload' '
	flux module remove sched-fluxion-qmanager &&
	flux module remove sched-fluxion-resource &&
	flux module load sched-simple
'
test_done
