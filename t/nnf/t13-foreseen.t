#!/bin/bash
# The forecast for a job (--dw-check) agrees with DWS and NNF.
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
# least LABEL WANT: of so little NNF makes so many bytes on the rabbit, the ledger has
# as many as NNF for all sets, and the scheduler whole GiB that are no more than it takes.
least () {
	type=$1 &&
	test $type != ost || type=lustre &&
	jobid=$(nnf_submit "#DW jobdw type=$type capacity=1GiB name=small" -N1 sleep 300) &&
	dws_wait_event $jobid start &&
	rig list servers >servers &&
	jq -e "[.items[].status.allocationSets[] | select(.label == \"$1\")
		| .storage[].allocationSize] == [$2]" servers &&
	made=$(jq "[.items[].status.allocationSets[].storage[].allocationSize] | add" servers) &&
	whole=$(jq "[.items[].status.allocationSets[].storage[].allocationSize
		| . / 1073741824 | ceil] | add" servers) &&
	flux rabbit df --json >df &&
	jq -e "[.rabbits[].used] | add == $made" df &&
	flux job info $jobid jobspec >jobspec &&
	jq -e "[.. | objects | select(.type == \"ssd\").count] == [$whole]" jobspec &&
	flux cancel $jobid && dws_wait_event $jobid clean
}
for type in xfs gfs2 raw; do
	test_expect_success "1 GiB of $type, and the padding, is what NNF makes" "
		least $type $(((1 << 30) + (300 << 20)))
	"
done
test_expect_success 'a target of Lustre that is to be smaller becomes one of 4 GB' '
	least ost 4000055296
'
test_expect_success 'nothing is left, and looking leaves nothing' '
	nnf_clean &&
	flux run -N2 --dw-check ./job.xfs >told && grep "reserved: 10 GiB" told &&
	rig list workflows >workflows && jq -e ".items == []" workflows
'
test_done
