#!/bin/bash
# What is foreseen of a job (--dw-check), against what DWS and NNF make of it.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='What is foreseen, with the controllers of NNF'
. "$(dirname "$0")/../sharness.sh"
. "$DWS_SRCDIR/t/nnf/nnf.sh"
test_under_flux 4

test_expect_success 'load everything' '
	nnf_setup
'
for type in xfs gfs2 raw lustre; do
	test_expect_success "of $type it is the least that the job gets, and not much less" '
		script=job.$type &&
		printf "%s\n" "#!/bin/sh" \
			"#DW jobdw type=$type capacity=10GiB name=scratch" \
			"test -n \"\$DW_JOB_scratch\"" >$script &&
		chmod +x $script &&
		flux run -N2 --dw-check-json ./$script >told &&
		least=$(jq .scheduled.gib told) && test $least -ge 5 &&
		jobid=$(flux submit -N2 ./$script) && dws_ended_well $jobid &&
		flux job info $jobid jobspec >jobspec &&
		gib=$(jq "[.. | objects | select(.type == \"ssd\").count] | add" jobspec) &&
		echo "$least foreseen, $gib reserved" &&
		test $gib -ge $least && test $gib -le $(($least + 6))
	'
done
test_expect_success 'nothing is left, and looking leaves nothing' '
	nnf_clean &&
	flux run -N2 --dw-check ./job.xfs >told && grep "reserved: 10 GiB" told &&
	rig list workflows >workflows && jq -e ".items == []" workflows
'
test_done
