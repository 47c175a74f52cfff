#!/bin/bash
# flux rabbit: what users see of rabbits and jobs, as text and as JSON.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='flux rabbit for users'
. "$(dirname "$0")/sharness.sh"
test_under_flux 4

# says FILE FILTER...: the jq filter is true of the JSON in the file
says () {
	file=$1 &&
	shift &&
	jq -e "$@" <$file >/dev/null || { cat $file; return 1; }
}
# now that output is not a terminal there may be no colour in it
no_colour () {
	test_must_fail grep -q "$(printf "\033")" "$@"
}

test_expect_success 'without the module it is said what is missing' '
	test_expect_code 1 flux rabbit status 2>err &&
	grep "the dws module is not loaded" err
'
test_expect_success 'load everything' '
	dws_setup
'
test_expect_success 'every command has help with examples' '
	flux rabbit --help >help &&
	for command in $(sed -n "s/^    \([a-z]*\) .*/\1/p" help); do
		echo $command >>commands &&
		flux rabbit $command --help >out &&
		grep "^examples:" out &&
		grep "flux rabbit $command" out || return 1
	done &&
	test $(wc -l <commands) = 23
'
test_expect_success 'a typing mistake is a usage error' '
	test_expect_code 2 flux rabbit lsit &&
	test_expect_code 2 flux rabbit list --frmat=x &&
	test_expect_code 1 flux rabbit list -o "{color}" 2>err &&
	grep "Unknown format field: color" err &&
	test_expect_code 1 flux rabbit show nonsense 2>err &&
	grep "nonsense. is not a job id" err &&
	for id in f1 0 18446744073709551615; do
		test_expect_code 1 flux rabbit show $id 2>err &&
		grep "$id. is not a job id" err || return 1
	done &&
	test_expect_code 1 flux rabbit show 12 2>err &&
	grep "there is no job" err
'
test_expect_success 'a command that there is not: the one that was meant is said' '
	test_expect_code 2 flux rabbit sho 2>err &&
	grep "there is no command .sho.; did you mean .show.?" err &&
	test_expect_code 2 flux rabbit status1 --json 2>err &&
	grep "did you mean .status.?" err &&
	test_expect_code 2 flux rabbit xyzzy 2>err &&
	grep "there is no command .xyzzy.; see flux rabbit --help" err
'
test_expect_success 'without a command the commands are listed' '
	test_expect_code 2 flux rabbit >out 2>err &&
	test_must_be_empty out &&
	flux rabbit --help >exp && test_cmp exp err
'
test_expect_success 'help and --version, as of other Flux commands' '
	flux rabbit --help >exp && flux rabbit help >out && test_cmp exp out &&
	flux rabbit df --help >exp && flux rabbit help df >out && test_cmp exp out &&
	flux rabbit --version >out && grep -E "^flux-dws [0-9]+\.[0-9]+" out &&
	flux rabbit -V >short && test_cmp out short
'
test_expect_success 'a word too many: the usage is that of the command' '
	test_expect_code 2 flux rabbit losses foo 2>err &&
	grep "^usage: flux rabbit losses" err &&
	grep "flux rabbit losses: error: unrecognized arguments: foo" err
'
test_expect_success 'stats of no job is no error, and a refusal names no service' '
	flux rabbit stats >out &&
	grep "^no finished rabbit job has left its times$" out &&
	test_expect_code 1 flux rabbit retry 12 2>err &&
	grep "^flux-rabbit: ERROR: fD: " err && test_must_fail grep "dws\.retry" err
'
test_expect_success 'status: all is well, and nothing is used' '
	flux rabbit status >out &&
	grep "Kubernetes .*connected" out &&
	grep "Rabbits  *2: 2 ready  0 degraded  0 offline  0 disabled" out &&
	grep "0B of 1.8TiB used" out &&
	no_colour out &&
	flux rabbit status --json >json &&
	says json ".healthy and .rabbits.count == 2 and .workflows == 0"
'
test_expect_success 'list: formats, sorting, states, hostlists' '
	cat >list.exp <<-\EOT &&
	RABBIT   STATE     CAPACITY    FREE  USE LINKS JOBS NODES
	rabbit0  Ready       910GiB  910GiB   0%   2/2    0 node[0-1]
	rabbit1  Ready       910GiB  910GiB   0%   2/2    0 node[2-3]
	EOT
	flux rabbit list >out && test_cmp list.exp out &&
	flux rabbit list -no "{name} {free:d} {nodes}" "rabbit[1]" >out &&
	echo "rabbit1 977343610880 node[2-3]" >exp && test_cmp exp out &&
	flux rabbit list --sort=-name -no "{name}" >out &&
	printf "rabbit1\nrabbit0\n" >exp && test_cmp exp out &&
	flux rabbit list -s offline -no "{name}" >out && test ! -s out &&
	flux rabbit list --json rabbit0 >json &&
	says json "[.rabbits[].name] == [\"rabbit0\"]" &&
	flux rabbit list -o help >out && grep "long  *With what is wrong" out &&
	test_expect_code 1 flux rabbit list rabbit7 2>err &&
	grep "there is no rabbit rabbit7" err &&
	test_expect_code 1 flux rabbit list "rabbit[" 2>err &&
	grep "is not a hostlist" err &&
	test_expect_code 1 flux rabbit list -s ready,broken 2>err &&
	grep "there is no state .broken.: Degraded, Disabled" err
'
test_expect_success 'list: how worn the drives are' '
	dws_ctl drive rabbit1 4 ok --wear 93 &&
	dws_ctl drive rabbit1 9 ok --wear 12 &&
	dws_ctl rabbit rabbit1 down &&
	dws_wait_status ".rabbits.states.Offline == 1" &&
	dws_ctl rabbit rabbit1 up &&
	dws_wait_status ".rabbits.states.Ready == 2" &&
	flux rabbit list -o long >out &&
	grep "LINKS WEAR JOBS" out && grep "^rabbit0 .* 0%    0 node" out &&
	grep "^rabbit1 .* 93%    0 node" out &&
	flux rabbit list >out && test_must_fail grep WEAR out &&
	test_expect_code 1 dws_ctl drive rabbit1 4 ok --wear -1 2>err &&
	grep "wear is a number of percent" err
'
test_expect_success 'colour when asked for, and not with NO_COLOR' '
	dws_ctl rabbit rabbit1 down &&
	dws_wait_status ".rabbits.states.Offline == 1" &&
	flux rabbit list --color=always >out &&
	test_must_fail no_colour out &&
	flux rabbit list -no "{name} {state}" -s Offline >out &&
	echo "rabbit1 Offline" >exp && test_cmp exp out &&
	flux rabbit status >out && grep "1 offline" out &&
	dws_ctl rabbit rabbit1 up &&
	dws_wait_status ".rabbits.states.Ready == 2"
'
test_expect_success 'jobs: what each waits for' '
	dws_ctl hold PreRun &&
	jobid=$(dws_submit true) &&
	dws_wait_status ".states.PreRun == 1" &&
	flux rabbit jobs >out &&
	grep "JOBID USER  *STATE  *TIME RABBITS  *WAITS FOR" out &&
	grep " $(id -un | cut -c1-8) *PreRun .*rabbit0 .*mount" out &&
	flux rabbit jobs -s prerun -no "{id.dec}" >out &&
	flux job id --to=dec $jobid >exp && test_cmp exp out &&
	flux rabbit jobs --filter=prerun -no "{id.dec}" >out && test_cmp exp out &&
	flux rabbit jobs -a -no "{id.dec}" >out && test_cmp exp out &&
	flux rabbit jobs -s Setup -no "{id}" >out && test ! -s out &&
	test_expect_code 1 flux rabbit jobs -s offline 2>err &&
	grep "there is no state .offline.: .*queued" err &&
	flux rabbit jobs --sort=-time -no "{id.f58}" >out &&
	grep $jobid out &&
	flux rabbit jobs --json >json &&
	says json ".jobs[0].workflow.desired == \"PreRun\""
'
test_expect_success 'status: the oldest, and space' '
	flux rabbit status >out &&
	grep "PreRun .* 1$" out &&
	grep "Oldest  *$jobid in PreRun for" out &&
	flux rabbit df >out &&
	grep "^rabbit0 .* 2%" out &&
	grep "^total  *1.8TiB" out &&
	flux rabbit df --json >df.out &&
	jq -e "[.rabbits[].used] | add > 20000000000" <df.out
'
test_expect_success 'show: an active job' '
	flux rabbit show $jobid >out &&
	grep "$jobid (true, .*) in PreRun: file systems are mounted" out &&
	grep "waits for  *mounting" out &&
	grep "rabbits  *rabbit0 (2.*GiB)" out &&
	grep "directives  *#DW jobdw type=xfs" out &&
	grep "nodes  *node\[0-1\]" out &&
	flux rabbit show --json $jobid >json &&
	says json ".active and .errors == [] and .timeline.active
		and (.timeline.spans | map(.name) | index(\"PreRun\"))"
'
test_expect_success 'top: one screen, of the size that was asked for' '
	flux rabbit top --size 80x24 >out &&
	test $(wc -l <out) = 24 &&
	no_colour out &&
	grep "rabbits by use: 2 ready" out &&
	grep "$jobid .*PreRun" out &&
	awk "length (\$0) > 160 { exit 1 }" out &&
	flux rabbit top --json >top.out &&
	jq -e "(.rabbits | length) == 2" <top.out &&
	flux rabbit top --svg top.svg --size 100x30 &&
	grep "<title>flux rabbit top</title>" top.svg &&
	test_expect_code 1 flux rabbit top --size huge
'
test_expect_success 'a guest sees rabbits, but no job of others' '
	as_guest flux rabbit status >out && grep "Workflows  *0" out &&
	as_guest flux rabbit list >out && grep "rabbit0 *Ready .*GiB.* node\[0-1\]" out &&
	as_guest flux rabbit jobs -no "{id}" >out && test ! -s out
'
test_expect_success 'watch: a line for each state, and the exit status' '
	flux rabbit watch $jobid >out &
	watch=$! &&
	dws_ctl release PreRun &&
	wait $watch &&
	sed "s/ .*//" out >states &&
	printf "%s\n" Proposal Setup DataIn PreRun the PostRun DataOut \
		Teardown >exp &&
	test_cmp exp states &&
	bad=$(dws_submit false) &&
	test_expect_code 1 flux rabbit watch --json $bad >json &&
	says json ".timeline.active == false"
'
test_expect_success 'watch: on a terminal, all states with their times' '
	cat >on_terminal.py <<-\EOT &&
	import os
	import sys

	sys.path.insert(0, sys.argv[1])
	from pty_support import Terminal

	terminal = Terminal(["flux", "rabbit", "watch", "-i", "0.1", sys.argv[2]], 80, 24)
	code = terminal.end()
	rows = terminal.screen()
	print("\n".join(rows))
	done = [row.split()[1] for row in rows if row.startswith("  ✓")]
	assert code == 0 and len(done) == 8, code
	assert not any(row.startswith("  ·") for row in rows)
	EOT
	jobid=$(dws_submit true) &&
	"$DWS_PYTHON" on_terminal.py "$DWS_SRCDIR/t/python" $jobid
'
test_expect_success 'timeline: phases and states follow each other' '
	flux rabbit timeline -w 80 $jobid >out &&
	for name in depend queued prolog run cleanup Proposal Setup DataIn PreRun \
		PostRun DataOut Teardown; do
		grep "^  $name  *[0-9.]*m\?s .*█" out || return 1
	done &&
	flux rabbit timeline --json $jobid >json &&
	says json ".timelines[0] | .active == false and (.spans | length) == 12
		and all(.spans[]; .begin <= .end)
		and ([.spans[] | select(.lane == \"rabbit\") | .begin]
			| . == sort)
		and (.spans[] | select(.name == \"PreRun\").end) as \$p
		| (.spans[] | select(.name == \"run\").begin) >= \$p - 0.001"
'
test_expect_success 'timeline: SVG, HTML, PNG' '
	flux rabbit timeline --svg t.svg --html t.html $jobid $bad >out &&
	printf "t.svg\nt.html\n" >exp && test_cmp exp out &&
	flux python -c "
import sys, xml.etree.ElementTree as tree
root = tree.parse(sys.argv[1]).getroot()
texts = \"\".join(root.itertext())
assert root.tag.endswith(\"svg\") and \"PreRun\" in texts, texts
assert sys.argv[2] in texts" t.svg $jobid &&
	grep "<svg" t.html && grep "<td>rabbit</td>" t.html &&
	test_must_fail grep -E "src=|href=|@import" t.html &&
	if flux rabbit timeline --png t.png $jobid 2>err; then
		head -c 4 t.png | tail -c 3 >magic && grep PNG magic
	else
		grep "PNG needs the Python package" err
	fi
'
test_expect_success 'stats: table and plot of finished jobs' '
	flux rabbit stats >out &&
	grep "^3 jobs" out &&
	grep "^STATE  *JOBS  *min  *median  *p90  *p99  *max" out &&
	grep "^Setup  *3 " out && grep "^Setup  .*█" out &&
	flux rabbit stats --json >json &&
	says json ".jobs == 3 and (.states | length) == 7
		and all(.states[]; .min <= .median and .median <= .max)" &&
	flux rabbit stats --svg s.svg $jobid && grep ">1 job<" s.svg
'
test_expect_success 'jobs -a: those that are over, with how they ended' '
	flux rabbit jobs -no "{id}" >out && test_must_be_empty out &&
	flux rabbit jobs -a -no "{id.f58} {state} {rabbits}" >out &&
	test $(wc -l <out) = 3 && grep "^$jobid completed rabbit" out &&
	flux rabbit jobs -a -c 1 -no "{id}" >out && test $(wc -l <out) = 1 &&
	flux rabbit jobs -a -f failed -no "{id.f58}" >out &&
	echo $bad >exp && test_cmp exp out &&
	flux rabbit jobs -a -u root -no "{id}" >out &&
	if test $(id -u) = 0; then test $(wc -l <out) = 3; else test_must_be_empty out; fi
'
test_expect_success 'watch: says what is over while the job runs, and in order' '
	cat >until_go.sh <<-\EOT &&
	#!/bin/sh
	while ! test -e "$1"; do sleep 0.05; done
	EOT
	chmod +x until_go.sh &&
	jobid=$(dws_submit "$PWD/until_go.sh" "$PWD/go") &&
	{ flux rabbit watch -i 0.1 $jobid >out & } &&
	watch=$! &&
	dws_wait_event $jobid start &&
	dws_wait 100 sh -c "until grep -q \"^PreRun \" out; do sleep 0.05; done" &&
	sed "s/ .*//" out >states &&
	printf "%s\n" Proposal Setup DataIn PreRun >exp && test_cmp exp states &&
	flux rabbit show $jobid >shown && grep "PreRun  *[0-9.]*m\?s .*█" shown &&
	grep "paths  *DW_JOB_[A-Za-z_]*=/" shown &&
	dws_wait 100 sh -c "flux rabbit watch $jobid | head -1" >first &&
	grep "^Proposal " first &&
	touch go && wait $watch &&
	sed "s/ .*//" out >states &&
	printf "%s\n" Proposal Setup DataIn PreRun the PostRun DataOut \
		Teardown >exp && test_cmp exp states
'
test_expect_success 'show: how the tasks of a failed job have ended, and where' '
	failed=$(dws_submit sh -c "exit 3") && dws_wait_event $failed clean &&
	flux rabbit show $failed >out && sed -n 1p out >first &&
	grep "failed with exit code 3 after" first && grep "nodes  *node\[0-1\]" out &&
	killed=$(dws_submit sh -c "kill -9 \$\$") && dws_wait_event $killed clean &&
	flux rabbit show $killed >out && sed -n 1p out >first &&
	grep "failed with exit code 137 (signal 9)\|failed by signal 9" first
'
test_expect_success 'show: who has canceled a job, and that it has no nodes any more' '
	flux queue stop && gone=$(dws_submit true) && dws_wait_event $gone priority &&
	flux cancel $gone && dws_wait_event $gone clean && flux queue start &&
	flux rabbit show $gone >out && grep "! raised by user $(id -un): cancel" out &&
	grep "nodes  *none$" out
'
test_expect_success 'show: errors come first' '
	dws_ctl fail Setup --severity Fatal --message "no space on rabbit0" &&
	broken=$(dws_submit true) &&
	dws_wait_event $broken clean &&
	dws_ctl fail Setup --clear &&
	flux rabbit show $broken >out &&
	sed -n 2p out >second &&
	grep -o "no space on rabbit0" out >times && test $(wc -l <times) = 1 &&
	grep "! dws-setup: .*no space on rabbit0" second &&
	flux rabbit show --json $broken >json &&
	says json "(.errors | length) >= 1 and .active == false" &&
	flux rabbit timeline -w 120 $broken >out &&
	grep "! at .*no space on rabbit0" out &&
	flux rabbit jobs -a >out && grep "$broken .* failed .*dws-setup: .*no space" out
'
test_expect_success 'show: a job without rabbits is told apart' '
	plain=$(flux submit true) && dws_wait_event $plain clean &&
	test_expect_code 1 flux rabbit show $plain 2>err &&
	grep "is not a rabbit job" err
'
# An instance that is a job of this one, as flux alloc and flux batch start it.
inside () {
	flux run -N1 -t 5m flux start "$@"
}
test_expect_success FLUX_CORE 'in an allocation it shows the system instance, and says so' '
	inside flux rabbit list --json >inside.json 2>err &&
	flux rabbit list --json >json &&
	test_cmp json inside.json &&
	grep "flux rabbit: of the system instance, local://" err &&
	inside flux rabbit show --json $broken >inside.json &&
	says inside.json "(.errors | length) >= 1"
'
test_expect_success 'elsewhere it says nothing of that' '
	flux rabbit list >out 2>err &&
	test_must_be_empty err
'
test_expect_success 'a dead agent is a bad status' '
	dws_kill_agent &&
	test_expect_code 3 flux rabbit status >out &&
	grep "no agent is attached" out &&
	test_expect_code 3 flux rabbit status --json >json &&
	says json ".healthy == false" &&
	dws_start_agent && dws_clean
'
test_done
