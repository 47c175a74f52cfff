#!/bin/bash
# flux rabbit presets: what a user may write in place of directives.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='flux rabbit presets'
. "$(dirname "$0")/sharness.sh"

XFS='#DW jobdw type=xfs capacity=10GiB name=scratch'
COPY='#DW copy_out source=$DW_JOB_scratch/out destination=/lus/out'
dws_config () {
	cat <<-EOF
	[rabbit.presets]
	scratch = "$XFS"
	saved = ["$XFS", '''
	$COPY
	''']
	EOF
}
test_under_flux 2

test_expect_success 'each is listed with its directives' '
	flux rabbit presets >out &&
	cat >expected <<-EOF &&
	saved    $XFS
	         $COPY
	scratch  $XFS
	EOF
	test_cmp expected out
'
test_expect_success 'also for guests' '
	as_guest flux rabbit presets >out && test_cmp expected out
'
test_expect_success 'by name, and for programs' '
	flux rabbit presets scratch --json >json &&
	jq -e ". == {scratch: [\"$XFS\"]}" json
'
test_expect_success 'one that is not there' '
	test_expect_code 1 flux rabbit presets scratsh 2>err &&
	grep "there is no preset .scratsh.: saved, scratch$" err
'

# reload TEXT: what follows [rabbit.presets]
reload () {
	sed -i "/rabbit.preset/,\$d" "$DWS_TMP/conf.d/test.toml" &&
	cat >>"$DWS_TMP/conf.d/test.toml" && flux config reload
}
MINE='#DW copy_out source=$DW_JOB_st/o destination=/lus/one/${UID}x/$JOBID/$QUEUE'
test_expect_success 'variables are listed with what they are' '
	reload <<-EOF &&
	[rabbit.presets]
	mine = ["#DW jobdw type=xfs capacity=1GiB name=st", "$MINE"]
	EOF
	flux rabbit presets >out &&
	grep "^mine  #DW jobdw" out &&
	grep -F "      $MINE" out &&
	grep -F "  \$UID: the number" out &&
	test_must_fail grep DW_JOB_st: out
'
test_expect_success 'or as they would be for who asks' '
	flux rabbit presets --expand >out &&
	grep "destination=/lus/one/$(id -u)x/JOBID/QUEUE\$" out
'
test_expect_success 'by --dw-check, too' '
	echo "[queues.batch]" >>"$DWS_TMP/conf.d/test.toml" && flux config reload &&
	dws_start_sim && dws_load && dws_start_agent && dws_wait_status ".agent.synced" &&
	flux submit -N1 --dw=mine -S queue=batch --dw-check true >out &&
	grep "destination=/lus/one/$(id -u)x/jobid/batch\$" out
'
test_expect_success 'a job has its own' '
	reload <<-EOF &&
	[rabbit]
	mapping = "$PWD/mapping.json"
	[rabbit.presets]
	mine = "#DW jobdw type=xfs capacity=2GiB name=u\${UID}-\$JOBID"
	banked = "#DW jobdw type=xfs capacity=1GiB name=\$BANK"
	EOF
	jobid=$(flux submit -N1 --dw=mine printenv) &&
	dws_wait_event $jobid clean && flux job status $jobid &&
	flux job eventlog $jobid >eventlog &&
	grep "capacity=2GiB name=u$(id -u)-$(flux job id --to=dec $jobid)" eventlog &&
	flux job attach $jobid >out && grep DW_JOB_u out
'
test_expect_success 'one that has none is refused with its name' '
	test_must_fail flux submit -N1 -S dw=banked true 2>err &&
	grep "(preset .banked.): .BANK: the job has none" err
'
test_expect_success 'nothing gets in by a value' '
	test_must_fail flux submit -N1 -S dw=banked -S bank="a name=b" true 2>err &&
	grep ".BANK: .a name=b. is not one word" err
'
test_expect_success 'the plugin starts again while such a job waits' '
	dws_ctl hold Proposal &&
	jobid=$(flux submit -N1 --dw=mine true) &&
	dws_ctl wait-state $(dws_workflow $jobid) Proposal --timeout $DWS_LIMIT &&
	flux jobtap remove dws-jobtap.so &&
	flux jobtap load "$DWS_PLUGINS/dws-jobtap.so" &&
	flux module reload -f "$DWS_MODULES/dws.so" &&
	dws_ctl release Proposal &&
	dws_wait_event $jobid clean && flux job status $jobid
'
# bad TEXT TABLE: this is refused by the plugin and by the check
bad () {
	cp "$DWS_TMP/conf.d/test.toml" good.toml &&
	printf "%b" "$2" >>"$DWS_TMP/conf.d/test.toml" &&
	test_must_fail flux config reload 2>err && grep "$1" err &&
	cp good.toml "$DWS_TMP/conf.d/test.toml"
}
test_expect_success 'a variable that there is not is a fault of the configuration' '
	bad "presets.bad: .SIEZ is not a variable" \
		"bad = \"#DW jobdw type=xfs capacity=\$SIEZ name=x\"\n"
'
test_expect_success 'a site has no variables of its own any more' '
	bad "preset_variables: remove it, and write what they stand for into the presets" \
		"[rabbit.preset_variables]\nSIZE = \"2GiB\"\n"
'
test_expect_success 'there are none' '
	sed -i "/rabbit.preset/,\$d" "$DWS_TMP/conf.d/test.toml" && flux config reload &&
	flux rabbit presets >out && grep "^no presets" out
'
test_done
