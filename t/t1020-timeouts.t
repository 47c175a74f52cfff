#!/bin/bash
# States that are not ready in time: jobs fail, or go on without the nodes at fault,
# which are drained.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Timeouts of states, failure tolerance, epilog timeout'
. "$(dirname "$0")/sharness.sh"
# Root runs prolog and epilog, and is a guest where the site does not say otherwise.
dws_config () {
	dws_guests
}
test_under_flux 4

drained () {
	flux resource drain -no "{nodelist}" >drain.out &&
	sort <drain.out >drained &&
	echo "$@" | tr " " "\n" | sort >drained.want &&
	test_cmp drained.want drained
}
exception () {
	dws_wait_event -m type=$2 $1 exception >exception &&
	grep "severity=$3" exception
}

is_transient () {
	dws_k8s get workflows $(dws_workflow $1) >transient.out &&
	jq -e ".status.status == \"TransientCondition\"" transient.out >/dev/null
}

test_expect_success 'load everything' '
	dws_setup
'
test_expect_success 'a file system that is not made in time fails the job' '
	dws_ctl hold Setup &&
	dws_limit setup_timeout "\"500ms\"" &&
	jobid=$(dws_submit true) &&
	exception $jobid dws-timeout 0 &&
	grep "creating file systems took longer" exception &&
	dws_wait_event $jobid clean &&
	dws_ctl release Setup &&
	dws_clean
'
test_expect_success 'a limit of 0 is none' '
	for key in setup_timeout tc_timeout prerun_timeout postrun_timeout; do
		dws_limit $key 0 || return 1
		case $key in
		setup_timeout) state=Setup ;;
		postrun_timeout) state=PostRun ;;
		*) state=PreRun ;;
		esac
		if test $key = tc_timeout; then
			dws_ctl fail $state --severity Major --message busy
		else
			dws_ctl hold $state
		fi &&
		jobid=$(dws_submit true) &&
		dws_ctl wait-state $(dws_workflow $jobid) $state --timeout $DWS_LIMIT &&
		if test $key = tc_timeout; then
			dws_until is_transient $jobid &&
			dws_ctl fail $state --clear
		else
			dws_ctl release $state
		fi &&
		dws_ended_well $jobid || return 1
	done &&
	dws_clean
'
test_expect_success 'so does a mount that hangs' '
	dws_limit &&
	dws_ctl hang-mount node0 on &&
	jobid=$(flux submit -N4 -S dw="$DWS_DIRECTIVE" true) &&
	dws_until dws_mounted 3 &&
	dws_limit prerun_timeout 0.5 &&
	exception $jobid dws-timeout 0 &&
	grep "mounting file systems took longer" exception &&
	grep "(not ready: node0) .fault: storage" exception &&
	dws_ctl hang-mount node0 off &&
	dws_wait_event $jobid clean &&
	dws_clean
'
test_expect_success 'but not when the job can do without the node' '
	dws_limit &&
	dws_ctl hang-mount node0 on &&
	jobid=$(flux submit -N4 -S dw="$DWS_DIRECTIVE" \
		--setattr=system.dw_failure_tolerance=1 sleep inf) &&
	dws_until dws_mounted 3 &&
	dws_limit prerun_timeout 0.5 &&
	exception $jobid dws-node-failure 1 &&
	grep node0 exception &&
	dws_wait_event $jobid start &&
	drained node0
'
test_expect_success 'which the workflow remembers' '
	dws_ctl hang-mount node0 off &&
	flux cancel $jobid &&
	dws_wait_event $jobid clean &&
	flux job info $jobid rabbit_workflow >workflow &&
	jq -e ".metadata.annotations[\"flux-framework.org/failed-nodes\"] == \"node0\"" \
		workflow &&
	flux resource undrain node0 &&
	dws_clean
'
test_expect_success 'nor when the module is loaded again meanwhile' '
	dws_limit &&
	dws_ctl hang-mount node0 on &&
	jobid=$(flux submit -N4 -S dw="$DWS_DIRECTIVE" \
		--setattr=system.dw_failure_tolerance=1 sleep inf) &&
	dws_until dws_mounted 3 &&
	flux module remove dws &&
	dws_limit prerun_timeout 0.5 &&
	flux module load "$DWS_MODULES/dws.so" &&
	exception $jobid dws-node-failure 1 &&
	grep node0 exception &&
	dws_wait_event $jobid start &&
	dws_mounted 3 &&
	drained node0 &&
	dws_ctl hang-mount node0 off &&
	flux cancel $jobid &&
	dws_wait_event $jobid clean &&
	flux resource undrain node0 &&
	dws_clean
'
test_expect_success 'two nodes are too many' '
	dws_ctl hang-mount node0 on &&
	dws_ctl hang-mount node1 on &&
	jobid=$(flux submit -N4 -S dw="$DWS_DIRECTIVE" \
		--setattr=system.dw_failure_tolerance=1 true) &&
	exception $jobid dws-timeout 0 &&
	dws_ctl hang-mount node0 off &&
	dws_ctl hang-mount node1 off &&
	dws_wait_event $jobid clean &&
	dws_clean
'
test_expect_success 'a node that does not unmount is drained' '
	dws_limit &&
	jobid=$(flux submit -N4 -S dw="$DWS_DIRECTIVE" sleep inf) &&
	dws_wait_event $jobid start &&
	dws_ctl hang-mount node3 on &&
	flux cancel $jobid &&
	dws_until dws_mounted 1 &&
	dws_limit postrun_timeout "\"0.5s\"" &&
	exception $jobid dws-timeout 0 &&
	grep "unmounting took longer" exception &&
	dws_ctl hang-mount node3 off &&
	dws_wait_event $jobid clean &&
	drained node3 &&
	flux resource undrain node3 &&
	dws_clean
'
test_expect_success 'data is moved until teardown_after' '
	dws_limit &&
	dws_ctl latency copy 3600 &&
	DWS_DIRECTIVE="$DWS_DIRECTIVE
#DW copy_out source=\$DW_JOB_scratch/ destination=/lus/global/out" &&
	jobid=$(dws_submit true) &&
	dws_ctl wait-state $(dws_workflow $jobid) DataOut --timeout 300 &&
	dws_limit teardown_after 0.1 &&
	exception $jobid dws-timeout 0 &&
	grep "data movement took longer" exception &&
	dws_wait_event $jobid clean &&
	sed -i "/^teardown_after/d" "$DWS_TMP/conf.d/test.toml" &&
	DWS_DIRECTIVE="${DWS_DIRECTIVE%%
*}" &&
	dws_clean
'
# The prolog script, which the job manager of a real system runs on each node.
PROLOG=$DWS_SRCDIR/etc/prolog.d/zstop_nnf_clientmount.sh

# while_away COMMAND...: without the module, until the command has asked it for the job
while_away () {
	flux module remove dws &&
	flux module load --name=dws "$DWS_SRCDIR/t/scripts/fake-dws.py" away &&
	{
		"$@" &
		asker=$!
	} &&
	rpc dws.wait "{\"name\": \"status\", \"jobid\": $(flux job id $jobid)}" &&
	flux module remove dws &&
	flux module load "$DWS_MODULES/dws.so" &&
	wait $asker
}
# Its own limit is over long before the copy, which it has to ask the module about.
test_expect_success 'the limit of the prolog does not end a copy_in that moves' '
	mkdir bin &&
	printf "#!/bin/sh\n" >bin/systemctl &&
	cat >bin/flux <<-EOF &&
	#!/bin/sh
	case "\$*" in
	"config get "*" rabbit.prolog_timeout") echo 1s ;;
	*) exec "$(command -v flux)" "\$@" ;;
	esac
	EOF
	chmod +x bin/systemctl bin/flux &&
	dws_limit prolog_timeout "\"20s\"" &&
	dws_ctl latency copy 30 &&
	jobid=$(flux submit -N2 -S dw="$DWS_DIRECTIVE
#DW copy_in source=/lus/global/in destination=\$DW_JOB_scratch/" true) &&
	dws_ctl wait-state $(dws_workflow $jobid) DataIn --timeout $DWS_LIMIT &&
	while_away env FLUX_JOB_ID=$jobid PATH="$PWD/bin:$PATH" "$PROLOG" &&
	dws_ended_well $jobid
'
# prolog_late: the mounts come after the script has looked, and before it asks the module
prolog_late () {
	mkdir -p late &&
	ln -sf "$PWD/bin/systemctl" late/systemctl &&
	rm -f late/asked &&
	cat >late/flux <<-EOF &&
	#!/bin/sh
	case "\$*" in
	"job wait-event "*) test -e "$PWD/late/asked" || exit 1 ;;
	"python -c "*job-info*) test -e "$PWD/late/asked" || { touch "$PWD/late/asked"; exit 1; } ;;
	esac
	exec "$PWD/bin/flux" "\$@"
	EOF
	chmod +x late/flux &&
	FLUX_JOB_ID=$jobid PATH=$PWD/late:$PATH "$PROLOG" &&
	test -e late/asked
}
test_expect_success 'nor when the mounts come with the end of its limit' '
	dws_limit &&
	dws_ctl latency copy 0 &&
	jobid=$(flux submit -N2 -S dw="$DWS_DIRECTIVE" sleep inf) &&
	dws_wait_event $jobid start &&
	prolog_late &&
	flux cancel $jobid &&
	dws_wait_event $jobid clean &&
	jobid=$(dws_submit true) &&
	dws_ended_well $jobid &&
	prolog_late
'
test_expect_success 'it ends one that stands still' '
	dws_limit prolog_timeout "\"2s\"" &&
	dws_ctl latency copy 36000 &&
	jobid=$(flux submit -N2 -S dw="$DWS_DIRECTIVE
#DW copy_in source=/lus/global/in destination=\$DW_JOB_scratch/" true) &&
	exception $jobid dws-timeout 0 &&
	grep "staging data in took longer than 2s, and does not get on" exception &&
	dws_wait_event $jobid clean &&
	dws_ctl latency copy 0 &&
	dws_clean
'
EPILOG=$DWS_SRCDIR/etc/epilog.d/start_nnf_clientmount.sh
# as_root SCRIPT JOBID: root without the rights of the owner
as_root () {
	GUEST=0 FLUX_JOB_ID=$2 PATH=$PWD/bin:$PATH as_guest "$1" 2>err
}
# submit_as_guest OPTION...: not as root, whose own jobs root can read. The task is
# simulated.
submit_as_guest () {
	flux submit --dry-run -N1 -S exec.test.run_duration=1000s "$@" true >guest.json &&
	flux python "$DWS_SRCDIR/t/scripts/submit_as.py" 4242 <guest.json
}
test_expect_success 'root that cannot read jobs does not touch plain ones' '
	jobid=$(submit_as_guest) &&
	dws_wait_event $jobid start &&
	as_root "$PROLOG" $jobid &&
	as_root "$EPILOG" $jobid &&
	test_must_be_empty err &&
	flux cancel $jobid &&
	dws_wait_event $jobid clean
'
test_expect_success 'nor while the module is loaded again' '
	jobid=$(submit_as_guest) &&
	dws_wait_event $jobid start &&
	while_away as_root "$PROLOG" $jobid &&
	test_must_be_empty err &&
	while_away as_root "$EPILOG" $jobid &&
	test_must_be_empty err &&
	flux cancel $jobid &&
	dws_wait_event $jobid clean
'
test_expect_success 'and says what it needs for others' '
	jobid=$(submit_as_guest -S dw="$DWS_DIRECTIVE") &&
	dws_wait_event $jobid start &&
	test_must_fail as_root "$PROLOG" $jobid &&
	grep "could not read the jobspec of $jobid; root needs access.allow-root-owner" err &&
	test_must_fail as_root "$EPILOG" $jobid &&
	grep "which daemons $jobid requires; root needs access.allow-root-owner" err &&
	flux cancel $jobid &&
	dws_wait_event $jobid clean &&
	dws_clean
'
root_asks () {
	GUEST=0 as_guest rpc dws.status "{\"jobid\": 5}"
}
test_expect_success 'other users are not told which jobs are there' '
	test_must_fail as_guest rpc dws.status "{\"jobid\": 5}" 2>err &&
	grep "Operation not permitted" err &&
	test_must_fail root_asks 2>err &&
	grep "No such file" err
'
test_expect_success 'and any other state' '
	dws_ctl hold Setup &&
	jobid=$(dws_submit true) &&
	exception $jobid dws-timeout 0 &&
	grep "not mounted within 2s: the job waited for them to be created" exception &&
	grep "fault: not known; submit again" exception &&
	dws_ctl release Setup &&
	dws_wait_event $jobid clean &&
	dws_limit &&
	dws_clean
'
test_expect_success 'limits can be changed: no time limit for unmounting' '
	sed -i "/teardown_after/d" "$DWS_TMP/conf.d/test.toml" &&
	flux config reload
'
test_expect_success 'the epilog timeout lets the job go and drains its node' '
	jobid=$(flux submit -N4 -S dw="$DWS_DIRECTIVE" sleep inf) &&
	dws_wait_event $jobid start &&
	dws_ctl hang-mount node2 on &&
	flux cancel $jobid &&
	dws_until dws_mounted 1 &&
	flux jobtap remove dws-jobtap.so &&
	flux jobtap load "$DWS_PLUGINS/dws-jobtap.so" epilog-timeout=0.5 &&
	dws_wait_event $jobid clean &&
	dws_until dws_drained node2
'
test_expect_success 'DWS does not wait for it until it is undrained' '
	dws_disabled node2 &&
	flux resource undrain node2 &&
	dws_disabled
'
test_expect_success 'and takes its rabbits out of use until somebody looks' '
	dws_ctl hang-mount node2 off &&
	dws_wait_status ".jobs == 0" &&
	dws_ctl state >state &&
	jq -e ".health.Disabled == 2" state
'
test_done
