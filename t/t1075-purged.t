#!/bin/bash
# Jobs that Flux has purged while their workflow is still there: nothing of them is
# written into the KVS any more, as Flux would take that for a lost job at its next start.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='No records of jobs that were purged'
. "$(dirname "$0")/sharness.sh"
test_under_flux 4

DWS_DIRECTIVE='#DW jobdw type=gfs2 capacity=1GiB name=scratch
#DW copy_out source=$DW_JOB_scratch/out destination=/lus/global/out profile=default'

# purge JOBID: delete its directory as Flux does. Some engines never purge jobs.
purge () {
	dir=$(flux job id --to=kvs $1) &&
	if test "$DWS_ENGINE" = flux-core; then
		flux job purge --force $(flux job id --to=f58 $1)
	else
		flux kvs unlink -R $dir
	fi &&
	no_directory
}
no_directory () {
	test_must_fail flux kvs ls $dir >ls.out 2>&1
}
# wrote KEYS...: the directory has been written to
wrote () {
	flux kvs ls -1 $dir >keys &&
	for key; do
		grep -x rabbit_$key keys || return 1
	done
}
in_state () {
	dws_ctl wait-state $(dws_workflow $jobid) $1 --timeout $DWS_LIMIT
}
# leaves: a job that is over, and whose data is still to be copied out. Sets jobid.
leaves () {
	dws_ctl hold DataOut &&
	jobid=$(dws_submit true) &&
	dws_wait_event $jobid clean && in_state DataOut
}
listed () {
	flux rabbit losses --json >losses && jq -e "$1" losses
}
outlived () {
	dws_ctl wait-idle --timeout $DWS_LIMIT && dws_wait_status ".jobs == 0"
}
restart () {
	dws_kill_agent && flux module reload dws && dws_start_agent &&
	dws_wait_status ".synced and .agent.synced and .workflows == 1"
}
restart_module () {
	flux module load "$DWS_MODULES/dws.so" &&
	dws_wait_status ".synced and .agent.synced"
}

test_expect_success 'load everything' '
	cat >rabbit.toml <<-\EOT &&
	release_nodes = "unmount"
	save_datamovements = 5
	EOT
	dws_setup
'
test_expect_success 'a job that is there has its records' '
	leaves && dir=$(flux job id --to=kvs $jobid) &&
	dws_ctl release DataOut && outlived &&
	wrote dataout_timing teardown_timing workflow datamovements
'
test_expect_success 'one that was purged has none, and is shown while its data is there' '
	leaves && purge $jobid &&
	flux rabbit show $jobid >shown &&
	grep "Flux has purged it; its storage is in DataOut" shown &&
	grep "workflow  *$(dws_workflow $jobid)" shown &&
	flux rabbit show --json $jobid >shown && jq -e ".workflow.desired == \"DataOut\"" shown &&
	dws_ctl release DataOut && outlived && no_directory &&
	listed "length == 0"
'
test_expect_success 'also after a restart of module and agent' '
	leaves && purge $jobid && restart &&
	dws_ctl release DataOut && outlived && no_directory
'
test_expect_success 'who waits for its data is told that it is out' '
	leaves &&
	next=$(flux submit -N1 --dependency=dws-out:$jobid true) &&
	dws_wait_event $next dependency-add &&
	purge $jobid && dws_ctl release DataOut && outlived &&
	dws_wait_event $next clean && flux job status $next && no_directory &&
	flux kvs get dws.moved >moved &&
	jq -e "map(.id) | index($(flux job id --to=dec $jobid)) != null" moved
'
test_expect_success 'also if the plugin was away when it was purged' '
	leaves &&
	next=$(flux submit -N1 --dependency=dws-out:$jobid true) &&
	dws_wait_event $next dependency-add &&
	flux jobtap remove dws-jobtap.so &&
	purge $jobid && dws_ctl release DataOut && outlived && no_directory &&
	flux jobtap load "$DWS_PLUGINS/dws-jobtap.so" &&
	dws_wait_event $next clean && flux job status $next
'
test_expect_success 'no more is kept of one user, and that does not cost another' '
	flux module remove dws &&
	jq -cn "[{id: 8, userid: 4242}, (range(256) | {id: ., userid: $(id -u)})]" \
		>before &&
	flux kvs put dws.moved="$(cat before)" && restart_module &&
	leaves && purge $jobid && dws_ctl release DataOut && outlived &&
	flux kvs get dws.moved >moved &&
	jq -e "map(.id) == [8, range(1; 256), $(flux job id --to=dec $jobid)]" moved
'
test_expect_success 'and that it is lost, which is on the list of losses' '
	dws_ctl fail DataOut --severity Fatal --message "disk full" &&
	leaves &&
	next=$(flux submit -N1 --dependency=dws-out:$jobid true) &&
	dws_wait_event $next dependency-add &&
	purge $jobid && dws_ctl release DataOut && outlived && no_directory &&
	id=$(flux job id --to=dec $jobid) &&
	listed ".[0].id == $id and (.[0].text | contains(\"disk full\"))" &&
	dws_wait_event -m type=dependency $next exception >exception &&
	grep "disk full" exception && dws_wait_event $next clean &&
	flux rabbit losses --ack $jobid
'
test_expect_success 'also one whose plugin was away meanwhile' '
	leaves &&
	next=$(flux submit -N1 --dependency=dws-out:$jobid true) &&
	dws_wait_event $next dependency-add &&
	purge $jobid && flux jobtap remove dws-jobtap.so &&
	dws_ctl release DataOut && outlived && listed "length == 1" &&
	flux jobtap load "$DWS_PLUGINS/dws-jobtap.so" &&
	dws_wait_event -m type=dependency $next exception >exception &&
	grep "disk full" exception && dws_wait_event $next clean &&
	flux rabbit losses --ack $jobid
'
test_expect_success 'a stage-out that is tried again' '
	dws_ctl fail all --clear && dws_ctl grant nnfdatamovements:delete &&
	cat >>"$DWS_TMP/conf.d/test.toml" <<-\EOT &&
	stage_out_retry = "1h"
	EOT
	flux config reload &&
	dws_ctl fail-copy --message "dcp: quota exceeded" && leaves &&
	purge $jobid && dws_ctl release DataOut &&
	id=$(flux job id --to=dec $jobid) &&
	dws_until listed "length == 1 and .[0].until > .[0].t" && no_directory &&
	dws_ctl fail-copy --clear && flux rabbit retry $jobid && outlived &&
	dws_until listed "length == 0" && no_directory
'
test_expect_success 'a job that was let go before it was unmounted' '
	jobid=$(dws_submit sleep inf) && dws_wait_event $jobid start &&
	dws_ctl hang-mount node1 on && flux cancel $jobid &&
	in_state PostRun && flux rabbit release --yes $jobid &&
	dws_wait_event $jobid clean && purge $jobid &&
	dws_hang off && outlived && no_directory
'
test_done
