#!/bin/bash
# sched-rabbit: nodes, cores, and GiB on the rabbits next to the nodes.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='The scheduler sched-rabbit'

# Two rabbits of 100 GiB with two nodes each. For this table flux-core would load
# the module and the plugin, which are not wanted here.
dws_config () {
	unset FLUX_MODPROBE_PATH_APPEND
	jq ".execution.properties = {batch: \"0-2\", debug: \"3\"}" \
		"$DWS_TMP/R" >"$DWS_TMP/R.new" &&
	mv "$DWS_TMP/R.new" "$DWS_TMP/R" &&
	cat >"$DWS_TMP/mapping.json" <<-\EOT
	{"computes": {"node0": "r0", "node1": "r0",
	              "node2": "r1", "node3": "r1"},
	 "rabbits": {
	  "r0": {"capacity": 107374182400, "hostlist": "node[0-1]"},
	  "r1": {"capacity": 107374182400, "hostlist": "node[2-3]"}}}
	EOT
	cat <<-EOT
	[rabbit]
	mapping = "$DWS_TMP/mapping.json"
	EOT
}

. "$(dirname "$0")/sharness.sh"
test_under_flux 4

# jobspec_gib N GIB [FILTER]: N groups of a node and GIB, changed by a jq
# filter, in job.json.
jobspec_gib () {
	flux submit -N1 --dry-run sleep inf >base.json &&
	jq -c --argjson n $1 --argjson g $2 ".resources = [
		{type: \"slot\", count: \$n, label: \"rabbit\", with: [
			{type: \"node\", count: 1, with: [
				{type: \"slot\", count: 1, label: \"task\",
				 with: [{type: \"core\", count: 1}]}]},
			{type: \"ssd\", count: \$g, exclusive: true}]}]
		| ${3:-.}" base.json >job.json
}
submit_gib () {
	jobspec_gib "$@" &&
	flux python "$DWS_SRCDIR/t/scripts/submit_json.py" job.json
}
expect () {
	event_job=$1 event_name=$2
	shift 2
	flux job wait-event -t 300 "$@" $event_job $event_name
}
free_gib () {
	rpc sched-rabbit.stats-get >rpc.out &&
	jq -c "[.rabbits[].free_gib]" <rpc.out
}
ranks () {
	flux jobs -no "{ranks}" $1
}
# taken RANKS: these are with jobs, or in housekeeping
taken () {
	test "$(flux resource list -s allocated -no "{ranks}")" = "$1"
}
end () {
	for id in "$@"; do
		flux cancel $id && expect $id clean || return 1
	done
}

test_expect_success 'load it in place of the scheduler' '
	dws_use_sched_rabbit &&
	test "$(free_gib)" = "[100,100]"
'
test_expect_success 'ordinary jobs run: cores, nodes, whole nodes' '
	flux run -n3 -c2 true &&
	flux run -N4 true &&
	flux run -N2 --exclusive true &&
	flux run -N2 -n4 -c2 true
'
test_expect_success 'a whole node has all of its cores in R' '
	jobid=$(flux submit -N1 --exclusive true) &&
	expect $jobid clean &&
	flux job info $jobid R >R &&
	jq -e ".execution.R_lite[0].children.core == \"0-3\"" R &&
	jq -e ".execution.nslots == 1" R &&
	test_must_fail jq -e .scheduling R
'
test_expect_success 'two jobs share a node, cores are not given twice' '
	a=$(flux submit -n1 -c2 sleep inf) &&
	b=$(flux submit -n1 -c2 sleep inf) &&
	expect $a start &&
	expect $b start &&
	test "$(ranks $a)" = "$(ranks $b)" &&
	for id in $a $b; do
		flux job info $id R >R.out &&
		jq -r ".execution.R_lite[0].children.core" <R.out || return 1
	done >cores &&
	printf "0-1\n2-3\n" >expected &&
	test_cmp expected cores &&
	end $a $b
'
test_expect_success 'GiB are taken from the rabbits of the nodes' '
	a=$(submit_gib 3 10) &&
	expect $a alloc &&
	test "$(ranks $a)" = "[0-2]" &&
	test "$(free_gib)" = "[80,90]" &&
	end $a &&
	a=$(submit_gib 2 40) &&
	expect $a alloc &&
	test "$(ranks $a)" = "[0-1]" &&
	test "$(free_gib)" = "[20,100]" &&
	flux job info $a R >R.out &&
	jq -c .scheduling <R.out >scheduling &&
	grep "\"r0\":80" scheduling
'
test_expect_success 'a job that does not fit there goes to the other rabbit' '
	b=$(submit_gib 1 60) &&
	expect $b alloc &&
	test "$(free_gib)" = "[20,40]" &&
	ranks $b | grep "^[23]\$"
'
test_expect_success 'one that fits nowhere waits until there is room' '
	c=$(submit_gib 1 50) &&
	expect $c priority &&
	d=$(submit_gib 1 50) &&
	expect $d priority &&
	end $a &&
	expect $c alloc &&
	expect $d alloc &&
	end $b $c $d &&
	test "$(free_gib)" = "[100,100]"
'
test_expect_success 'capacity is exact' '
	a=$(submit_gib 1 100) &&
	b=$(submit_gib 1 100) &&
	expect $a alloc &&
	expect $b alloc &&
	test "$(free_gib)" = "[0,0]" &&
	end $a $b
'
test_expect_success 'what can never be is refused with a reason' '
	a=$(submit_gib 1 101) &&
	expect $a exception -m type=alloc >out &&
	grep "needs 101 GiB per node; no rabbit has more than 100" out &&
	b=$(submit_gib 4 60) &&
	expect $b exception -m type=alloc >out &&
	grep "there is room for 2" out &&
	c=$(flux submit -N5 true) &&
	expect $c exception -m type=alloc >out &&
	grep "needs 5 nodes" out
'
test_expect_success 'so says the feasibility service' '
	jobspec_gib 1 101 &&
	jq -c "{jobspec: .}" job.json >request.json &&
	test_must_fail rpc feasibility.check "$(cat request.json)" 2>err &&
	grep "no rabbit has more than 100" err &&
	jobspec_gib 1 100 &&
	jq -c "{jobspec: .}" job.json >request.json &&
	rpc feasibility.check "$(cat request.json)"
'
test_expect_success 'constraints are kept' '
	a=$(submit_gib 1 10 ".attributes.system.constraints =
		{and: [{not: [{ranks: [\"0-1\"]}]},
		{not: [{properties: [\"badrabbit\"]}]}]}") &&
	expect $a alloc &&
	test "$(ranks $a)" = 2 &&
	test "$(free_gib)" = "[100,90]" &&
	end $a
'
test_expect_success 'chassis are different rabbits' '
	a=$(submit_gib 2 10 \
		".resources[0] |= (.type = \"chassis\" | del(.label))") &&
	expect $a alloc &&
	test "$(ranks $a)" = "[0,2]" &&
	test "$(free_gib)" = "[90,90]" &&
	end $a
'
test_expect_success 'drained nodes are not used' '
	flux resource drain 0-1 &&
	a=$(submit_gib 1 10) &&
	expect $a alloc &&
	test "$(ranks $a)" = 2 &&
	flux resource undrain 0-1 &&
	end $a
'
test_expect_success 'a restarted scheduler knows what is taken' '
	a=$(submit_gib 2 30) &&
	expect $a start &&
	flux module remove sched-rabbit &&
	flux module load $DWS_MODULES/sched-rabbit.py &&
	test "$(free_gib)" = "[40,100]" &&
	b=$(submit_gib 1 50) &&
	expect $b alloc &&
	test "$(ranks $b)" = 2 &&
	end $a $b &&
	test "$(free_gib)" = "[100,100]"
'
test_expect_success 'short jobs are backfilled, the others keep their place' '
	a=$(flux submit -N3 --exclusive -t 1h sleep inf) &&
	expect $a start &&
	b=$(flux submit -N4 --exclusive -t 1h sleep inf) &&
	expect $b priority &&
	c=$(flux submit -N1 --exclusive -t 2h sleep inf) &&
	expect $c priority &&
	d=$(flux submit -N1 --exclusive -t 10m sleep inf) &&
	expect $d start &&
	flux jobs -no "{state} {annotations.sched.t_estimate}" $b >estimate &&
	grep "SCHED [0-9]" estimate &&
	test "$(flux jobs -no "{state}" $c)" = SCHED &&
	end $c $d $a &&
	expect $b start &&
	end $b
'
test_expect_success 'backfill can be turned off' '
	flux module remove sched-rabbit &&
	flux module load $DWS_MODULES/sched-rabbit.py reservation-depth=0 &&
	a=$(flux submit -N3 --exclusive -t 1h sleep inf) &&
	expect $a start &&
	b=$(flux submit -N4 --exclusive -t 1h sleep inf) &&
	d=$(flux submit -N1 --exclusive -t 10m sleep inf) &&
	expect $d priority &&
	end $b &&
	expect $d start &&
	expect $b exception -f json >b.json &&
	expect $d alloc -f json >d.json &&
	jq -s -e ".[0].timestamp < .[1].timestamp" b.json d.json &&
	end $a $d
'
test_expect_success 'a wrong option is refused' '
	flux module remove sched-rabbit &&
	test_must_fail flux module load $DWS_MODULES/sched-rabbit.py \
		reservation-depth=many &&
	test_must_fail flux module load $DWS_MODULES/sched-rabbit.py \
		reservation=1 &&
	flux module load $DWS_MODULES/sched-rabbit.py
'
test_expect_success 'rabbits can be down or shrink, nodes get properties' '
	rpc sched-rabbit.health "{\"rabbits\": {
		\"r0\": {\"up\": false}, \"r1\": {\"capacity\": 53687091200}},
		\"properties\": {\"badrabbit\": \"node[2]\"}}" &&
	test "$(free_gib)" = "[100,50]" &&
	a=$(submit_gib 1 50 ".attributes.system.constraints =
		{not: [{properties: [\"badrabbit\"]}]}") &&
	expect $a alloc &&
	test "$(ranks $a)" = 3 &&
	b=$(submit_gib 1 1) &&
	expect $b priority &&
	test_must_fail rpc sched-rabbit.health "{\"rabbits\": {
		\"r0\": {\"up\": true}, \"r9\": {\"up\": true}}}" 2>err &&
	grep r9 err &&
	test "$(flux jobs -no "{state}" $b)" = SCHED &&
	rpc sched-rabbit.health "{\"rabbits\": {\"r0\": {\"up\": true},
		\"r1\": {\"capacity\": 107374182400}},
		\"properties\": {\"badrabbit\": \"\"}}" &&
	expect $b alloc &&
	test "$(ranks $b)" = 0 &&
	end $a $b &&
	test "$(free_gib)" = "[100,100]"
'
test_expect_success 'a scheduler that starts reads what the last one was told' '
	flux module remove sched-rabbit &&
	flux kvs put dws.held="{\"0\": {\"r0\": 10737418240}}" \
		dws.health="{\"rabbits\": {\"r0\": {\"up\": true,
			\"capacity\": 53687091200}, \"r1\": {\"up\": false,
			\"capacity\": 107374182400}, \"r9\": {\"up\": false,
			\"capacity\": 1}}, \"properties\": {\"badrabbit\": \"node0\"}}" &&
	flux module load $DWS_MODULES/sched-rabbit.py &&
	test "$(free_gib)" = "[40,100]" &&
	a=$(submit_gib 1 1 ".attributes.system.constraints =
		{not: [{properties: [\"badrabbit\"]}]}") &&
	expect $a alloc &&
	test "$(ranks $a)" = 1 &&
	b=$(submit_gib 3 1) &&
	expect $b priority &&
	c=$(flux submit -N1 true) && expect $c clean &&
	test "$(flux jobs -no "{state}" $b)" = SCHED &&
	end $a $b
'
test_expect_success 'what is no health there is passed over' '
	flux module remove sched-rabbit &&
	flux kvs put dws.held=7 dws.health="{\"rabbits\": {\"r0\": {\"up\": 1}}}" &&
	flux module load $DWS_MODULES/sched-rabbit.py &&
	test "$(free_gib)" = "[100,100]" &&
	flux module remove sched-rabbit &&
	flux kvs unlink dws.held dws.health &&
	flux module load $DWS_MODULES/sched-rabbit.py
'
# The module dws and the plugin are not there: the scheduler goes by the jobspec alone.
# Simulated execution, as the shell would ask the module for variables.
test_expect_success 'jobs with storage get no node without a working rabbit' '
	rpc sched-rabbit.health "{\"properties\": {\"badrabbit\": \"node[0,2]\"}}" &&
	dw=".attributes.system |= (.exec.test.run_duration = \"1h\"
		| .dw = \"#DW jobdw type=xfs capacity=1GiB name=scratch\")" &&
	a=$(submit_gib 2 1 "$dw") &&
	expect $a alloc &&
	test "$(ranks $a)" = "[1,3]" &&
	b=$(submit_gib 3 1 "$dw") &&
	expect $b priority &&
	c=$(flux submit -N2 true) && expect $c clean &&
	test "$(flux jobs -no "{state}" $b)" = SCHED &&
	end $a &&
	rpc sched-rabbit.health "{\"properties\": {\"badrabbit\": \"\"}}" &&
	expect $b alloc &&
	end $b
'
test_expect_success 'a stream tells of its end' '
	mkfifo notes &&
	{ flux python -c "
import flux
from flux.constants import FLUX_RPC_STREAMING as streaming
stream = flux.Flux().rpc(\"sched-rabbit.notify\", {}, flags=streaming)
stream.get()
print(\"open\", flush=True)
stream.reset()
try:
    stream.get()
except OSError as exc:
    print(exc.strerror, flush=True)" >notes & } &&
	exec 5<notes &&
	read -t 30 first <&5 &&
	flux module remove sched-rabbit &&
	read -t 30 second <&5 &&
	flux module load $DWS_MODULES/sched-rabbit.py &&
	test "$first $second" = "open unloaded"
'
test_expect_success 'of many streams the newest stay' '
	dws_wait 60 flux python -c "
import flux
from flux.constants import FLUX_RPC_STREAMING as streaming
handle = flux.Flux()
streams = []
for _ in range(17):
    streams.append(handle.rpc(\"sched-rabbit.notify\", {}, flags=streaming))
    streams[-1].get()
streams[0].reset()
try:
    streams[0].get()
except OSError as exc:
    print(exc.strerror)" >out &&
	grep "16 newer streams" out
'
test_expect_success 'only the owner may say so' '
	test_must_fail env FLUX_HANDLE_ROLEMASK=0x2 FLUX_HANDLE_USERID=4242 \
		flux python "$DWS_SRCDIR/t/scripts/rpc.py" sched-rabbit.health
'
test_expect_success 'without a good mapping ordinary jobs run' '
	flux module remove sched-rabbit &&
	cp "$DWS_TMP/mapping.json" mapping.json &&
	echo "{\"rabbits\": 7}" >"$DWS_TMP/mapping.json" &&
	flux module load $DWS_MODULES/sched-rabbit.py &&
	flux run -N2 true &&
	a=$(submit_gib 1 1) &&
	expect $a exception -m type=alloc >out &&
	grep "needs rabbits; there are none" out &&
	flux dmesg >dmesg.out &&
	grep "going without rabbits" <dmesg.out &&
	cp mapping.json "$DWS_TMP/mapping.json" &&
	flux module remove sched-rabbit &&
	flux module load $DWS_MODULES/sched-rabbit.py
'
# R of Fluxion: 60 GiB in three ssds of 25, next to node0
fluxion_R () {
	jq -c ".scheduling = {graph: {edges: [], nodes: ([
		[\"node\", 0, \"node0\", 1], [\"ssd\", 0, \"ssd0\", 25],
		[\"ssd\", 1, \"ssd1\", 25], [\"ssd\", 3, \"ssd3\", 25]] | map({
			id: .[2], metadata: {type: .[0], id: .[1], size: .[3],
			paths: {containment: \"/c0/chassis0/\\(.[2])\"}}}))}}" "$1"
}
# reload MAPPING: the configuration, with what that says of the mapping
reload () {
	sed "/^mapping = /d" "$DWS_TMP/conf.d/test.toml" >conf.toml &&
	if test -n "$1"; then sed -i "s|^\[rabbit\]|&\nmapping = \"$1\"|" conf.toml; fi &&
	cp conf.toml "$DWS_TMP/conf.d/test.toml" &&
	flux config reload
}
test_expect_success 'one that starts knows what Fluxion gave to jobs' '
	a=$(flux submit -N1 --exclusive --requires=rank:0 sleep inf) &&
	expect $a start &&
	flux job info $a R >R &&
	flux kvs put --raw $(flux job id --to=kvs $a).R="$(fluxion_R R)" &&
	flux module reload sched-rabbit &&
	test "$(free_gib)" = "[25,100]" &&
	b=$(submit_gib 1 60) && expect $b alloc &&
	test "$(ranks $b)" = 2 &&
	end $b
'
test_expect_success 'also one that starts before there is a mapping' '
	flux module remove sched-rabbit &&
	reload &&
	flux module load $DWS_MODULES/sched-rabbit.py &&
	test "$(free_gib)" = "[]" &&
	reload "$DWS_TMP/mapping.json" &&
	test "$(free_gib)" = "[25,100]" &&
	b=$(submit_gib 1 60) && expect $b alloc &&
	test "$(ranks $b)" = 2 &&
	end $b $a &&
	test "$(free_gib)" = "[100,100]"
'
test_expect_success 'a mapping that is not good is refused, the rabbits stay' '
	echo "{\"rabbits\": 7}" >bad.json &&
	test_must_fail reload "$PWD/bad.json" 2>err &&
	grep "not a rabbitmapping" err &&
	reload "$DWS_TMP/mapping.json" &&
	test "$(free_gib)" = "[100,100]"
'
test_expect_success 'it reads a mapping again when somebody begins to tell it of rabbits' '
	jq "del(.rabbits.r1)" "$DWS_TMP/mapping.json" >one.json &&
	cp "$DWS_TMP/mapping.json" two.json &&
	cp one.json "$DWS_TMP/mapping.json" &&
	flux module reload sched-rabbit &&
	test "$(free_gib)" = "[100]" &&
	cp two.json "$DWS_TMP/mapping.json" &&
	rpc sched-rabbit.notify &&
	test "$(free_gib)" = "[100,100]"
'
# One of two nodes is freed when its housekeeping is done, the other later.
test_expect_success FLUX_CORE 'a job in housekeeping that has given a node back has no GiB' '
	cat >"$DWS_TMP/housekeeping" <<-\EOT &&
	#!/bin/sh
	test "$(flux getattr rank)" = 1 || exec cat "$HOUSEKEEPING_WAITS"
	EOT
	chmod +x "$DWS_TMP/housekeeping" &&
	mkfifo waits &&
	cp "$DWS_TMP/conf.d/test.toml" before.toml &&
	cat >>"$DWS_TMP/conf.d/test.toml" <<-EOT &&
	[job-manager.housekeeping]
	command = ["env", "HOUSEKEEPING_WAITS=$PWD/waits", "$DWS_TMP/housekeeping"]
	release-after = "0"
	EOT
	flux config reload &&
	a=$(submit_gib 2 30) && expect $a start &&
	test "$(free_gib)" = "[40,100]" &&
	flux cancel $a && expect $a clean &&
	dws_until taken 0 &&
	test "$(free_gib)" = "[100,100]" &&
	flux module reload sched-rabbit &&
	test "$(free_gib)" = "[100,100]" &&
	taken 0 &&
	echo >waits &&
	dws_until taken "" &&
	cp before.toml "$DWS_TMP/conf.d/test.toml" && flux config reload
'
test_expect_success 'resource views are right' '
	a=$(flux submit -N2 --exclusive sleep inf) &&
	expect $a start &&
	test "$(flux resource list -s allocated -no "{nnodes}")" = 2 &&
	test "$(flux resource list -s free -no "{ncores}")" = 8 &&
	flux resource drain 0 &&
	flux resource drain 3 &&
	test "$(flux resource list -s down -no "{nnodes}")" = 2 &&
	test "$(flux resource list -s free -no "{nodelist}")" = node2 &&
	end $a &&
	test "$(flux resource list -s allocated -no "{nnodes}")" = 0 &&
	test "$(flux resource list -s free -no "{nodelist}")" = "node[1-2]" &&
	flux resource undrain 0,3 &&
	test "$(flux resource list -s free -no "{nodelist}")" = "node[0-3]"
'
test_expect_success 'a job says that it waits for what is down' '
	flux resource drain 3 &&
	a=$(flux submit -N4 true) &&
	flux run -N1 true &&
	flux jobs -no "{annotations.sched.reason_pending}" $a >out &&
	grep "nodes or rabbits that are down" out &&
	flux resource undrain 3 &&
	expect $a clean
'
# configure: queues and limits as on standard input.
configure () {
	cat "$DWS_TMP/conf.d/test.toml" - >conf.toml &&
	cp conf.toml "$DWS_TMP/conf.d/test.toml" &&
	flux config reload && flux module reload job-ingest
}
# refused TEXT OPTION...: when it is submitted
refused () {
	text=$1
	shift
	test_must_fail flux submit "$@" true 2>err && grep "$text" err
}
test_expect_success 'wrong limits are refused' '
	base="$DWS_TMP/conf.d/test.toml" &&
	for limit in "duration = 1.0" "duration = \"soon\"" \
		"job-size = 7" "job-size.max.nnodes = -42" \
		"job-size.min.ncores = \"x\""; do
		for table in policy.limits queues.debug.policy.limits; do
			printf "[$table]\n$limit\n" |
				cat "$base" - >wrong.toml &&
			test_must_fail flux config load wrong.toml || return 1
		done || return 1
	done
'
test_expect_success 'queues have nodes by their properties' '
	configure <<-EOT &&
	[policy.jobspec.defaults.system]
	queue = "batch"
	[policy.limits]
	duration = "1h"
	job-size.max.nnodes = 3
	job-size.max.ncores = 8
	[queues.batch]
	requires = ["batch"]
	[queues.debug]
	requires = ["debug"]
	[queues.debug.policy.limits]
	duration = "0"
	job-size.max.ncores = -1
	job-size.min.nnodes = 1
	EOT
	flux queue start --all &&
	a=$(flux submit -N3 --exclusive -t 1h sleep inf) &&
	b=$(flux submit -q debug -N1 sleep inf) &&
	c=$(flux submit -N1 -t 1m true) &&
	expect $a start && expect $b start && expect $c priority &&
	test "$(ranks $a) $(ranks $b)" = "[0-2] 3" &&
	d=$(flux submit -q debug -N2 true) &&
	expect $d exception -m type=alloc >out &&
	grep "needs 2 nodes.*there are 1 that meet its constraints" out &&
	end $a && expect $c clean && end $b
'
test_expect_success 'so have jobs with storage' '
	a=$(submit_gib 1 60 ".attributes.system.queue = \"debug\"") &&
	expect $a alloc &&
	test "$(ranks $a)" = 3 &&
	b=$(submit_gib 1 60 ".attributes.system += {queue: \"batch\", duration: 60}") &&
	expect $b alloc &&
	test "$(ranks $b)" = 0 &&
	test "$(free_gib)" = "[40,40]" &&
	c=$(submit_gib 1 101 ".attributes.system.queue = \"debug\"") &&
	expect $c exception -m type=alloc >out &&
	grep "no rabbit has more than 100" out &&
	end $a $b
'
test_expect_success 'limits are for all queues that do not say otherwise' '
	refused "duration (2h) exceeds policy limit of 1h for queue batch" \
		-N1 -t 2h &&
	refused "duration (unlimited) exceeds" -N1 -t 0 &&
	refused "nnodes (4) exceeds policy limit of 3 for queue batch" \
		-N4 -t 1m &&
	refused "ncores (9) exceeds policy limit of 8" -n9 -t 1m &&
	refused "ncores (12) exceeds policy limit of 8" -N3 -n3 -c4 -t 1m &&
	refused "nnodes (4) exceeds policy limit of 3 for queue debug" \
		-q debug -N4 &&
	refused "nnodes (0) is under policy limit of 1 for queue debug" \
		-q debug -n1 &&
	a=$(flux submit -q debug -N1 -n9 -t 2d true) &&
	expect $a exception -m type=alloc &&
	flux run -N2 -n8 -t 1h true
'
test_expect_success 'they hold for updates, too' '
	a=$(flux submit --urgency=hold -N1 -t 1m true) &&
	test_must_fail env FLUX_HANDLE_ROLEMASK=0x2 \
		flux update $a duration=2h &&
	flux update $a duration=30m &&
	flux cancel $a
'
test_expect_success 'a job whose constraints are nested too deeply is refused' '
	a=$(dws_submit_with "$(dws_nested 330)") &&
	expect $a exception -m type=alloc >out &&
	grep "constraints: nested too deeply" out &&
	a=$(dws_submit_with "$(dws_nested 31)") &&
	expect $a clean &&
	flux job info $a eventlog >log &&
	test_must_fail grep exception log
'
test_expect_success 'ranks that there are not are passed over' '
	a=$(dws_submit_with "{\"ranks\": [\"0-9999999\"]}") &&
	expect $a clean &&
	flux job info $a R >R
'
test_expect_success 'the scheduler lives, and none of that was an error of it' '
	flux dmesg >log &&
	test_must_fail grep "sched-rabbit.*RecursionError" log &&
	flux run -n1 -t 1m true
'
test_expect_success 'rabbits that are in R are storage nodes' '
	jq ".rabbits = {
		node2: {capacity: 107374182400, hostlist: \"node[0-1]\"},
		r1: {capacity: 107374182400, hostlist: \"node3\"}}" \
		"$DWS_TMP/mapping.json" >mapping.json &&
	cp mapping.json "$DWS_TMP/mapping.json" &&
	flux module remove sched-rabbit &&
	flux module load $DWS_MODULES/sched-rabbit.py &&
	a=$(submit_gib 1 60 ".attributes.system.duration = 600 |
		.attributes.system.exec = {test: {run_duration: \"500s\"}} |
		.resources[0] |= (.type = \"chassis\" | del(.label)) |
		.resources[0].with += [{type: \"storage_node\", count: 1,
			with: [{type: \"core\", count: 3, exclusive: true}]}]") &&
	expect $a alloc &&
	flux job info $a R >R &&
	jq -e ".execution.nodelist == [\"node[0,2]\"]" R &&
	jq -c "[.execution.R_lite[] | [.rank, .children.core]]" R >cores &&
	echo "[[\"0\",\"0\"],[\"2\",\"0-2\"]]" >expected &&
	test_cmp expected cores &&
	jq -e ".scheduling.rabbits == {node2: 60}" R &&
	b=$(flux submit -N3 -t 1m true) &&
	expect $b exception -m type=alloc >out &&
	grep "needs 3 nodes.*there are 2" out &&
	end $a
'
test_done
