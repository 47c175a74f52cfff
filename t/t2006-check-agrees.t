#!/bin/bash
# --dw-check says of a request what becomes of it when it is submitted: 100 requests in a
# table, of nodes, space, queues, constraints, copies and words.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='--dw-check and submission agree'
. "$(dirname "$0")/sharness.sh"

dws_config () {
	cat >"$DWS_TMP/R" <<-EOT
	{"version": 1, "execution": {"R_lite": [{"rank": "0-5",
	 "children": {"core": "0-3"}}], "starttime": 0, "expiration": 0,
	 "nodelist": ["node[0-5]"], "properties": {"batch": "0-3", "norab": "4-5"}}}
	EOT
	cat <<-EOT
	[queues.batch]
	requires = ["batch"]
	[queues.norab]
	requires = ["norab"]
	[queues.closed]
	requires = ["batch"]
	[policy.jobspec.defaults.system]
	queue = "batch"
	EOT
}
test_under_flux 6

export FLUX_CLI_PLUGINPATH_OVERRIDE=$DWS_SRCDIR/etc/cli/plugins

test_expect_success 'load everything, with persistent storage' '
	echo "presets.tiny = \"#DW jobdw type=xfs capacity=1GiB name=tiny\"" >rabbit.toml &&
	dws_setup --nodes "node[0-3]" &&
	flux queue start --all &&
	for name in kept other; do
		flux run -N1 -S dw="#DW create_persistent type=xfs capacity=1GiB name=$name" \
			true || return 1
	done
'
test_expect_success 'each request of the table: the same verdict by both' '
	flux python "$DWS_SRCDIR/t/scripts/check_table.py" \
		"$DWS_SRCDIR/t/data/checks/requests.txt" >out &&
	tail -1 out
'
test_expect_success FLUX_CORE 'a queue that takes no jobs' '
	flux queue disable -m "under repair" closed &&
	test_must_fail flux submit -N1 -q closed --dw=tiny true &&
	test_must_fail flux submit -N1 -q closed --dw=tiny --dw-check true 2>err &&
	grep "job submission to queue .closed. is disabled: under repair" err
'
test_expect_success 'a guest is told, too' '
	test_must_fail as_guest flux submit -N1 -q norab --dw-check \
		--dw="#DW jobdw type=xfs capacity=1GiB name=aa" true 2>err &&
	grep "there is room for 0 that queue .norab. leave" err
'
test_expect_success 'nothing is left' '
	flux run -N1 -S dw="#DW destroy_persistent name=kept" true &&
	flux run -N1 -S dw="#DW destroy_persistent name=made" true &&
	dws_clean
'
test_done
