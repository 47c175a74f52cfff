#!/bin/bash
# The whole instance is killed, and started again from its state directory, with
# jobs in every phase. Two instances share a cluster.
# SPDX-License-Identifier: LGPL-3.0-only
#
# FAULT instance: the Flux instance is killed, and started again from its state directory
#   depend pending setup datain prerun: completed: The job runs and ends as without the fault.
#   running: failed exec: Flux loses the tasks; the job ends, and flux-dws cleans up its file
#     systems. Flux runs no epilog script, so `flux.service` and the rc script start
#     `nnf-clientmount.service` on every node.
#   postrun dataout teardown: completed: The job runs and ends as without the fault.

test_description='Rabbit jobs outlive the instance; two instances on one cluster'
. "$(dirname "$0")/sharness.sh"

DWS_NODES=4
DWS_TMP=$(mktemp -d "${TMPDIR:-/tmp}/dws-state-XXXXXX") # no blank in its path
dws_prepare

export DWS_PYTHON DWS_LIMIT DWS_DIRECTIVE
for name in $(compgen -A function dws_); do
	export -f $name
done
TEST=$DWS_SRCDIR/t/$(basename "$0")
export TEST

# instance STATEDIR SCRIPT [OPTION]: run it in an instance with that state.
instance () {
	mkdir -p "$DWS_TMP/$1" &&
	dws_instance -S statedir="$DWS_TMP/$1" $3 \
		${SHELL_PATH:-/bin/bash} -e "$PWD/$2"
}
# Where there is a broker for each node those that are left do not end at once.
if test "$DWS_ENGINE" = flux-core; then
	alone=--test-exit-timeout=0.1s
fi
# kill_instance: with the state that it has now.
kill_instance () {
	flux kvs sync
	kill -9 $(flux getattr broker.pid)
}
# Initial setup of each instance. The plugin is configured; flux-core loads the
# modules by etc/modprobe.
begin () {
	if test "$DWS_ENGINE" = solo; then
		dws_use_sched_rabbit &&
		flux module load "$DWS_MODULES/dws.so" || return 1
	fi
	dws_start_agent
}
end () {
	kill -9 "$(cat "$DWS_TMP/agent.pid")"
	rm "$DWS_TMP/agent.pid"
}
export -f begin end kill_instance

test_expect_success 'a cluster, and the configuration' '
	dws_start_sim &&
	sed -i "s/sched-simple/sched-rabbit/" "$DWS_TMP/conf.d/test.toml" &&
	cat >>"$DWS_TMP/conf.d/test.toml" <<-EOF
	[job-manager]
	plugins = [ { load = "$DWS_PLUGINS/dws-jobtap.so" } ]
	[rabbit]
	mapping = "$PWD/mapping.json"
	kubeconfig = "$PWD/kubeconfig"
	EOF
'
test_expect_success 'make a systemctl that only takes notes' '
	mkdir bin &&
	cat >bin/systemctl <<-EOF &&
	#!/bin/sh
	echo "\$@" >>"$PWD/calls"
	EOF
	chmod +x bin/systemctl &&
	PATH=$PWD/bin:$PATH
'
test_expect_success 'it is killed with a job in every phase' '
	cat >first.sh <<-\EOF &&
	begin
	dws_crowd catch
	flux kvs get dws.instance >name
	end
	kill_instance
	EOF
	test_expect_code 137 instance one first.sh $alone
'
test_expect_success 'started again, it finds its workflows and goes on' '
	cat >second.sh <<-\EOF &&
	begin
	test "$(flux kvs get dws.instance)" = "$(cat name)"
	dws_crowd release
	dws_outcomes instance "$TEST"
	flux job eventlog $(sed -n "s/^running //p" crowd) >running.log
	grep "epilog-finish.*dws-epilog" running.log
	end
	EOF
	rm -f calls &&
	instance one second.sh
'
# Only a flux-core has rc scripts.
test_expect_success FLUX_CORE 'each node has started what the prolog script had stopped' '
	yes -- "--no-block start nnf-clientmount" | head -n $DWS_NODES >expected &&
	test_cmp expected calls
'
test_expect_success 'it is killed while it cleans up after an abandoned job' '
	cat >abandon.sh <<-\EOF &&
	begin
	jobid=$(flux submit -N4 -S dw="$DWS_DIRECTIVE" sleep inf)
	dws_wait_event $jobid start
	end
	flux module remove dws
	dws_hang on
	flux cancel $jobid
	dws_wait_event $jobid epilog-start
	flux job raise --type=dws-epilog-timeout --severity=0 $jobid
	dws_wait_event $jobid clean
	kill_instance
	EOF
	test_expect_code 137 instance one abandon.sh $alone
'
test_expect_success 'started again, it takes the nodes out of use' '
	cat >quarantine.sh <<-\EOF &&
	begin
	dws_until dws_drained "node[0-3]"
	dws_hang off
	dws_clean
	end
	EOF
	instance one quarantine.sh &&
	dws_ctl state >state.out &&
	jq -e ".health.Disabled == 2" <state.out &&
	for rabbit in rabbit0 rabbit1; do
		dws_k8s patch storages $rabbit \
			"{\"spec\": {\"state\": \"Enabled\"}}" || return 1
	done
'
test_expect_success 'another instance leaves the workflows of the first alone' '
	cat >theirs.sh <<-\EOF &&
	DWS_TMP=$DWS_TMP/their
	begin
	dws_wait_status ".synced and .workflows == 0"
	jobid=$(flux submit -N1 -S dw="$DWS_DIRECTIVE" true)
	dws_wait_event $jobid clean
	flux job status $jobid
	dws_ctl wait-state fluxjob-$(flux job id --to=dec $jobid) gone
	end
	EOF
	cat >both.sh <<-\EOF &&
	begin
	flux resource undrain "$(flux resource drain -no "{nodelist}" >drain.out && paste -sd, <drain.out)"
	dws_ctl hold PreRun
	mine=$(flux submit -N1 -S dw="$DWS_DIRECTIVE" true)
	dws_ctl wait-state $(dws_workflow $mine) PreRun --timeout 300
	dws_ctl hold PreRun --workflow $(dws_workflow $mine)
	dws_ctl release PreRun --workflow "*"
	instance two theirs.sh
	dws_wait_status ".workflows == 1"
	dws_ctl release PreRun
	dws_wait_event $mine clean
	flux job status $mine
	dws_clean
	end
	EOF
	mkdir "$DWS_TMP/their" &&
	export -f instance &&
	instance one both.sh
'
test_expect_success 'where another has the name a job takes a second one' '
	cat >taken.sh <<-\EOF &&
	begin
	dws_ctl api --status 503 --count 1000000
	dws_ctl hold PreRun
	jobid=$(flux submit -N1 -S dw="$DWS_DIRECTIVE" true)
	name=$(dws_workflow $jobid)
	second=$name-$(flux kvs get dws.instance >kvs.out && tr -d "\"" <kvs.out | cut -c1-8)
	dws_k8s create workflows "{
		\"metadata\": {\"name\": \"$name\",
			\"labels\": {\"flux-framework.org/instance\": \"x\"}},
		\"spec\": {\"desiredState\": \"Proposal\", \"wlmID\": \"flux\",
			\"jobID\": \"x\", \"userID\": 1, \"groupID\": 1,
			\"dwDirectives\": []}}"
	dws_ctl api --clear
	dws_ctl wait-state $second PreRun --timeout 300
	flux module reload "$DWS_MODULES/dws.so"
	dws_wait_status ".synced and .agent.synced and .workflows == 1"
	dws_ctl release PreRun
	dws_wait_event $jobid clean
	flux job status $jobid
	flux jobs -no "{user.rabbit_workflow}" $jobid >memo
	test "$(cat memo)" = $second
	dws_ctl wait-state $second gone
	dws_k8s get workflows $name >object.out
	jq -e "
		.metadata.deletionTimestamp == null
		and .spec.desiredState == \"Proposal\"" <object.out
	dws_k8s delete workflows $name
	dws_clean
	end
	EOF
	instance one taken.sh
'
test_expect_success 'and ends if that is taken, too' '
	cat >both-taken.sh <<-\EOF &&
	begin
	dws_ctl api --status 503 --count 1000000
	jobid=$(flux submit -N1 -S dw="$DWS_DIRECTIVE" true)
	name=$(dws_workflow $jobid)
	second=$name-$(flux kvs get dws.instance >kvs.out && tr -d "\"" <kvs.out | cut -c1-8)
	for taken in $name $second; do
		dws_k8s create workflows "{
			\"metadata\": {\"name\": \"$taken\"},
			\"spec\": {\"desiredState\": \"Proposal\",
				\"wlmID\": \"flux\", \"jobID\": \"x\",
				\"userID\": 1, \"groupID\": 1,
				\"dwDirectives\": []}}"
	done
	dws_ctl api --clear
	dws_wait_event -m type=dws-create $jobid exception >exception
	grep "$second belongs to another Flux instance" exception
	dws_wait_event $jobid clean
	dws_k8s delete workflows $name
	dws_k8s delete workflows $second
	dws_clean
	end
	EOF
	instance one both-taken.sh
'
# flux-core goes back to the last checkpoint of its KVS: here to nothing.
test_expect_success 'it is killed before Flux has saved anything' '
	cat >unsaved.sh <<-\EOF &&
	begin
	dws_ctl hold PreRun
	jobid=$(flux submit -N1 -S dw="$DWS_DIRECTIVE" true)
	dws_workflow $jobid >workflow
	dws_ctl wait-state $(cat workflow) PreRun --timeout 300
	flux kvs get dws.instance >name
	end
	kill -9 $(flux getattr broker.pid)
	EOF
	test_expect_code 137 instance unsaved unsaved.sh $alone
'
test_expect_success 'started again, it has its name, and cleans up after jobs it forgot' '
	cat >forgotten.sh <<-\EOF &&
	begin
	flux kvs get dws.instance >again
	diff -u name again
	dws_ctl release PreRun
	dws_ctl wait-state $(cat workflow) gone --timeout 300
	dws_clean
	end
	EOF
	instance unsaved forgotten.sh
'
free_gib () {
	flux python "$DWS_SRCDIR/t/scripts/rpc.py" sched-rabbit.stats-get >rpc.out &&
	jq ".rabbits.rabbit0.free_gib" <rpc.out
}
has_free_gib () {
	test "$(free_gib)" = "$1"
}
# submit_large: a job on the first node that takes most of its rabbit.
submit_large () {
	flux submit -N1 --exclusive --requires=rank:0 \
		-S dw="#DW jobdw type=xfs capacity=$(($(cat total) * 6 / 10))GiB name=scratch" true
}
export -f free_gib has_free_gib submit_large

test_expect_success 'it is killed while the data of a job that is over is staged out' '
	sed -i "s|^\[rabbit\]|&\nrelease_nodes = \"unmount\"|" \
		"$DWS_TMP/conf.d/test.toml" &&
	cat >moving.sh <<-\EOF &&
	begin
	dws_wait_status ".health.settled"
	free_gib >total
	dws_ctl hold DataOut
	submit_large >jobid
	dws_wait_event $(cat jobid) clean
	dws_ctl wait-state $(dws_workflow $(cat jobid)) DataOut --timeout 300
	free_gib >left
	test $(cat left) -lt $(($(cat total) * 6 / 10))
	submit_large >second
	dws_wait_event $(cat second) priority
	flux run -N1 --exclusive --requires=rank:0 true
	test "$(flux jobs -no "{state}" $(cat second))" = SCHED
	end
	kill_instance
	EOF
	test_expect_code 137 instance one moving.sh $alone
'
test_expect_success 'started again, it goes on with that, and only then gives the space away' '
	cat >moved.sh <<-\EOF &&
	begin
	dws_wait_status ".agent.synced and .workflows == 2"
	dws_until has_free_gib $(cat left)
	flux run -N1 --exclusive --requires=rank:0 true
	test "$(flux jobs -no "{state}" $(cat second))" = SCHED
	dws_ctl wait-state $(dws_workflow $(cat jobid)) DataOut --timeout 300
	dws_ctl release DataOut
	dws_wait_event $(cat second) clean
	flux job status $(cat jobid) $(cat second)
	dws_clean
	dws_until has_free_gib $(cat total)
	flux job info $(cat jobid) rabbit_dataout_timing
	dws_status >status.out
	jq -e ".losses.total == 0" <status.out
	end
	EOF
	instance one moved.sh
'
test_expect_success 'it is killed while a job waits for the data of another' '
	cat >waiting.sh <<-\EOF &&
	begin
	dws_wait_status ".health.settled"
	dws_ctl hold DataOut
	flux submit -N1 -S dw="$DWS_DIRECTIVE
	#DW copy_out source=\$DW_JOB_scratch/out destination=/lus/global/out" true >jobid
	wanted=dws-out:$(flux job id --to=f58 $(cat jobid))
	flux submit -N1 --dependency=$wanted true >second
	dws_wait_event -m description=$wanted $(cat second) dependency-add
	dws_wait_event $(cat jobid) clean
	dws_ctl wait-state $(dws_workflow $(cat jobid)) DataOut --timeout 300
	end
	kill_instance
	EOF
	test_expect_code 137 instance one waiting.sh $alone
'
test_expect_success 'started again, it lets that run when the data is out' '
	cat >arrived.sh <<-\EOF &&
	begin
	dws_wait_status ".agent.synced and .workflows == 1"
	test "$(flux jobs -no "{state}" $(cat second))" = DEPEND
	dws_ctl release DataOut
	dws_wait_event $(cat second) clean
	flux job status $(cat second)
	dws_clean
	end
	EOF
	instance one arrived.sh
'
# waits JOBID: for what its user may have at one time, and without a workflow
waits () {
	flux python "$DWS_SRCDIR/t/scripts/wait_note.py" $1 "15 GiB: 15.29 GiB of the 20 GiB" &&
	! dws_k8s get workflows $(dws_workflow $1)
}
export -f waits

test_expect_success 'it is killed while a job waits for its user to give storage back' '
	cat >>"$DWS_TMP/conf.d/test.toml" <<-EOF &&
	[rabbit.limits.everybody]
	total = "20GiB"
	EOF
	cat >limited.sh <<-\EOF &&
	begin
	dws_wait_status ".health.settled"
	dws_ctl hold PreRun
	large="#DW jobdw type=xfs capacity=15GiB name=scratch"
	flux submit -N1 -S dw="$large" true >jobid
	dws_ctl wait-state $(dws_workflow $(cat jobid)) PreRun --timeout 300
	flux submit -N1 -S dw="$large" true >second
	waits $(cat second)
	end
	kill_instance
	EOF
	test_expect_code 137 instance one limited.sh $alone
'
test_expect_success 'started again, it waits still, and goes on when that is done' '
	cat >given-back.sh <<-\EOF &&
	begin
	dws_wait_status ".agent.synced and .workflows == 1"
	waits $(cat second)
	dws_ctl release PreRun
	dws_wait_event $(cat second) clean
	flux job status $(cat jobid) $(cat second)
	dws_clean
	end
	EOF
	instance one given-back.sh
'
for pid in "$DWS_TMP"/*.pid "$DWS_TMP"/their/*.pid; do
	test -f "$pid" && kill -9 "$(cat "$pid")"
done
rm -rf "$DWS_TMP"
test_done
