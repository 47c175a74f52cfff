#!/bin/bash
# #DW lines of scripts, --dw and --dw-check: what the option plugin of flux commands
# makes of them.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='#DW lines in scripts'
. "$(dirname "$0")/sharness.sh"
test_under_flux 4

export FLUX_CLI_PLUGINPATH_OVERRIDE=$DWS_SRCDIR/etc/cli/plugins
XFS="#DW jobdw type=xfs capacity=10GiB name=scratch"
GFS2="#DW jobdw type=gfs2 capacity=5GiB name=the-shared"

# asked FILE: what the jobspec in FILE asks for
asked () {
	jq -r ".attributes.system.dw" "$1"
}
# script NAME LINE...: a script of these lines
script () {
	name=$1
	shift
	printf "%s\n" "#!/bin/sh" "$@" >"$name" && chmod +x "$name"
}
# refuses TEXT COMMAND...: with this on standard error, and no job
refuses () {
	text=$1
	shift
	flux jobs -ano {id} >before &&
	test_must_fail "$@" 2>err && cat err && grep -e "$text" err &&
	flux jobs -ano {id} >after && test_cmp before after
}

test_expect_success 'flux run has the options, with help' '
	flux run --help >help && grep -e "--dw=TEXT|FILE" help && grep -e --dw-check help &&
	flux run --help=dw >help && grep "as with Slurm" help
'
test_expect_success 'without directives nothing changes' '
	script plain.sh "# about #DW" true &&
	flux submit -N1 --dry-run ./plain.sh >jobspec &&
	FLUX_CLI_PLUGINPATH_OVERRIDE= flux submit -N1 --dry-run ./plain.sh >expected &&
	jq .attributes.system.dw jobspec >dw && grep -Fx null dw &&
	jq -S "del(.attributes.system.environment)" jobspec >actual &&
	jq -S "del(.attributes.system.environment)" expected >wanted &&
	test_cmp wanted actual
'
test_expect_success 'load everything, with a preset' '
	echo "presets.tiny = \"$XFS\"" >rabbit.toml &&
	dws_setup
'
test_expect_success 'lines of a program that is submitted are read' '
	script job.sh "" "# what it needs" "$XFS" "$GFS2" "test -d \"\$DW_JOB_scratch\"" &&
	flux submit -N1 --dry-run ./job.sh >jobspec && asked jobspec >actual &&
	printf "%s\n" "$XFS" "$GFS2" >expected && test_cmp expected actual
'
test_expect_success 'and where the job will find it: by PATH, and by its own folder' '
	mkdir -p bin && cp job.sh bin/found.sh &&
	PATH=$PWD/bin:$PATH flux submit -N1 --dry-run found.sh >jobspec &&
	asked jobspec >actual && test_cmp expected actual &&
	flux submit -N1 --cwd="$PWD/bin" --dry-run ./found.sh >jobspec &&
	asked jobspec >actual && test_cmp expected actual &&
	mkfifo pipe && chmod +x pipe && flux submit -N1 --dry-run ./pipe >jobspec &&
	printf "%s\n" "$XFS" >data && chmod +x data &&
	flux submit -N1 --dry-run ./data >jobspec && asked jobspec >actual &&
	grep -Fx null actual
'
test_expect_success 'the job gets them' '
	flux run -N1 ./job.sh
'
test_expect_success 'a fault is named with file, line and word, at submission' '
	script bad.sh "$XFS" "" "#DW jobdw type=xsf capacity=1GiB name=aa" true &&
	refuses "./bad.sh:4: #DW directive 2: type " flux submit -N1 ./bad.sh &&
	grep xsf err
'
test_expect_success 'lines go on with #DW, as with Slurm, or with words, as NNF has it' '
	script long.sh "#DW jobdw type=xfs \\" "#DW  capacity=10GiB \\" \
		"#DW name=scratch" "$GFS2" "#DW container name=cc profile=pp \\" \
		"    DW_JOB_x=the-shared" true &&
	flux submit -N1 --dry-run ./long.sh >jobspec &&
	asked jobspec >dw &&
	flux python -c "from flux_k8s import dws
for d in dws.parse_directives(open(\"dw\").read())[\"directives\"]: print(d[\"text\"])" \
		>actual &&
	printf "%s\n" "$XFS" "$GFS2" \
		"#DW container name=cc profile=pp DW_JOB_x=the-shared" >expected &&
	test_cmp expected actual &&
	script bad.sh "#DW jobdw type=xfs \\" "#DW name=aa \\" "#DW capacity=1G" true &&
	refuses "./bad.sh:4: #DW directive 1: capacity" flux submit -N1 ./bad.sh &&
	script bad.sh "#DW jobdw type=xfs name=aa \\" "#  capacity=1GiB" true &&
	refuses "./bad.sh:2: ends in" flux submit -N1 ./bad.sh &&
	script bad.sh "$XFS \\" "my-app a=b" &&
	refuses "./bad.sh:2: ends in" flux submit -N1 ./bad.sh
'
test_expect_success 'what is not #DW is said to be, or is a comment' '
	script bad.sh "#dw jobdw type=xfs capacity=1GiB name=aa" true &&
	refuses "./bad.sh:2: " flux submit -N1 ./bad.sh && grep "did you mean .#DW" err &&
	script bad.sh "#DWjobdw type=xfs capacity=1GiB name=aa" true &&
	refuses "./bad.sh:2: " flux submit -N1 ./bad.sh && grep "did you mean .#DW" err &&
	script not.sh "## $XFS" "# $XFS" "#DWARF" true &&
	flux submit -N1 --dry-run ./not.sh >jobspec && asked jobspec >actual &&
	grep -Fx null actual
'
test_expect_success 'what looks like a directive and is none is said to be' '
	for line in "# DW jobdw type=xfs capacity=1GiB name=aa" "  $XFS" "	$XFS" \
		"#  DW create_persistent \\"; do
		script bad.sh "$line" true &&
		flux submit -N1 --dry-run ./bad.sh >jobspec 2>err &&
		grep "flux-submit: warning: ./bad.sh:2: .* is not read" err &&
		asked jobspec >actual && grep -Fx null actual || return 1
	done &&
	script bad.sh "#Dw jobdw type=xfs capacity=1GiB name=aa" true &&
	refuses "./bad.sh:2: " flux submit -N1 ./bad.sh && grep "did you mean .#DW" err &&
	script bb.sh "#BB create_persistent name=aa" "$XFS" true &&
	flux submit -N1 --dry-run ./bb.sh >jobspec 2>err &&
	grep "warning: ./bb.sh:2: .#BB. is not read" err &&
	asked jobspec >actual && grep -Fx "$XFS" actual
'
test_expect_success 'as are lines of Flux, which flux batch alone reads' '
	for line in "# flux: --dw=tiny" "#FLUX: -N1 -S dw=tiny" "# flux: --coral2-chassis=1"; do
		script flux.sh "$line" true && flux submit -N1 --dry-run ./flux.sh >jobspec 2>err &&
		grep "warning: ./flux.sh:2: .* read by flux batch only" err || return 1
	done
'
test_expect_success 'and the lines of a script that is run by another program' '
	flux submit -N1 --dry-run bash ./job.sh >jobspec 2>err &&
	grep "warning: ./job.sh:4: .* run ./job.sh by its own name" err &&
	asked jobspec >actual && grep -Fx null actual &&
	flux submit -N1 --dry-run cat ./job.sh >jobspec 2>err && test_must_be_empty err
'
# flux run becomes flux job attach: what is in the buffer of a file then would be lost.
test_expect_success 'flux run says so, too, whatever standard error is' '
	script late.sh "" true "$XFS" &&
	flux run -N1 ./late.sh 2>err && grep "flux-run: warning: ./late.sh:4: " err
'
test_expect_success 'below the first command none is read, and that is said' '
	script late.sh "" "cd /tmp" "$XFS" &&
	flux submit -N1 --dry-run ./late.sh >jobspec 2>err &&
	grep "flux-submit: warning: ./late.sh:4: .*first command, which is on line 3" err &&
	asked jobspec >actual && grep -Fx null actual
'
test_expect_success '--dw takes text, a file, or a preset, and more than one' '
	flux submit -N1 --dw="$XFS" --dw="$GFS2" --dry-run true >jobspec &&
	asked jobspec >actual && printf "%s\n\n%s\n" "$XFS" "$GFS2" >expected &&
	test_cmp expected actual &&
	printf "%s\n" "# two" "$XFS" "$GFS2" >two.dw &&
	flux submit -N1 --dw=two.dw --dry-run true >jobspec &&
	asked jobspec >actual && printf "%s\n" "# two" "$XFS" "$GFS2" "" >expected &&
	test_cmp expected actual &&
	printf "%s\n" "" "#DW jobdw type=xfs capacity=1 name=aa" >bad.dw &&
	refuses "bad.dw:2: #DW directive 1: capacity" flux submit -N1 --dw=bad.dw true &&
	flux submit -N1 --dw=tiny --dry-run true >jobspec &&
	asked jobspec >actual && grep -Fx tiny actual &&
	refuses "./none.dw" flux submit -N1 --dw=./none.dw true &&
	refuses "there is no directive" flux submit -N1 --dw= true &&
	refuses "--dw: #DW directive 1: " flux submit -N1 --dw=nix true &&
	grep "nix. is neither .*known: tiny" err
'
test_expect_success 'an option or attribute without directives is an error, or said to be' '
	: >empty.dw && printf "\n  \n" >blank.dw && printf "# none\n" >none.dw &&
	for file in empty blank none; do
		refuses "$file.dw: there is no directive" \
			flux submit -N1 --dw=$file.dw --dw="$XFS" true || return 1
	done &&
	refuses "there is no directive" flux submit -N1 --dw="# $XFS" true &&
	for dw in "\"\"" "[\" \"]"; do
		flux submit -N1 -S dw="$dw" --dry-run true >jobspec 2>err &&
		grep "warning: -S dw: is empty" err || return 1
	done
'
# copies JQ COMMAND...: what the jobs that it submits ask for
copies () {
	filter=$1
	shift
	"$@" >ids && for id in $(cat ids); do
		flux job info --base $id jobspec >jobspec &&
		jq -r ".attributes.system | $filter" jobspec || return 1
	done >actual && cat actual
}
test_expect_success 'each job of --cc and --bcc has the options, with {cc} in them expanded' '
	for cc in cc bcc; do
		copies .dw flux submit --$cc=1-2 -N1 \
			--dw="#DW jobdw type=xfs capacity=1GiB name=aa{cc}" true &&
		printf "#DW jobdw type=xfs capacity=1GiB name=aa%s\n" 1 2 >expected &&
		test_cmp expected actual || return 1
	done &&
	copies "[.dw_rabbits, .dw_data_first] | @csv" flux submit --cc=0-1 -N1 \
		--dw=tiny --dw-rabbits=rabbit{cc} --dw-data-first true &&
	printf "\"rabbit%s\",true\n" 0 1 >expected && test_cmp expected actual &&
	copies .dw_near flux submit --cc=1-2 -N1 --dw=tiny --dw-near=$(cat ids | head -1) true &&
	test $(sort -u actual | wc -l) = 1 && test_must_fail grep null actual &&
	echo "$GFS2" >cc2.dw && copies .dw flux submit --cc=2 -N1 --dw=cc{cc}.dw true &&
	grep -Fx "$GFS2" actual &&
	for id in $(flux submit --cc=1-2 -N2 --coral2-chassis={cc} true); do
		flux job info --base $id jobspec >jobspec &&
		jq -r ".resources[0] | .type, .count" jobspec || return 1
	done >actual && printf "chassis\n%s\n" 1 2 >expected && test_cmp expected actual &&
	refuses "did you mean .capacity" flux submit --cc=1-2 -N1 \
		--dw="#DW jobdw type=xfs capcity=1GiB name=aa" true &&
	refuses "not a positive number" flux submit --cc=0 -N2 --coral2-chassis={cc} true
'
test_expect_success 'and --dw-check shows the first of them, and submits none' '
	flux jobs -ano {id} >before &&
	flux submit --cc=3-4 -N1 --dw-check \
		--dw="#DW jobdw type=xfs capacity=1GiB name=aa{cc}" true >out 2>err &&
	grep "in the environment: DW_JOB_aa3" out && grep "the first of the jobs 3-4" err &&
	flux submit --bcc=3-4 -N1 --dw-check-json --dw=tiny true >out &&
	jq -e ".scheduled.gib == 10" out &&
	flux jobs -ano {id} >after && test_cmp before after
'
test_expect_success FLUX_CORE 'each job of flux bulksubmit has the options, with {} expanded' '
	copies .dw flux bulksubmit -N1 --dw="#DW jobdw type=xfs capacity={0}GiB name={1}" \
		true ::: 1 2 ::: aa bb &&
	for gib in 1 2; do
		printf "#DW jobdw type=xfs capacity=${gib}GiB name=%s\n" aa bb
	done >expected && sort actual >sorted && test_cmp expected sorted &&
	copies .dw flux bulksubmit -N1 --cc=1-2 --dw="#DW persistentdw name={}{cc}" \
		true ::: pp &&
	sort actual >sorted &&
	printf "#DW persistentdw name=pp%s\n" 1 2 >expected && test_cmp expected sorted &&
	copies "[.dw_rabbits, .dw_data_first] | @csv" flux bulksubmit -N1 --dw=tiny \
		--dw-rabbits={} --dw-data-first true ::: rabbit0 rabbit1 &&
	printf "\"rabbit%s\",true\n" 0 1 >expected && test_cmp expected actual &&
	flux bulksubmit -N2 --coral2-chassis={} true ::: 1 2 >ids &&
	for id in $(cat ids); do
		flux job info --base $id jobspec >jobspec &&
		jq -r ".resources[0].count" jobspec || return 1
	done >actual && seq 1 2 >expected && test_cmp expected actual
'
test_expect_success 'all places together are what the job asks for' '
	script one.sh "$XFS" true &&
	flux submit -N1 -S dw="$GFS2" \
		--dw="#DW copy_in source=/etc destination=\$DW_JOB_scratch/" \
		--dry-run ./one.sh >jobspec &&
	asked jobspec >dw && grep -c "^#DW" dw >count && grep -Fx 3 count
'
test_expect_success 'what contradicts is refused, with both places' '
	refuses "-S dw: #DW directive 2: name .scratch. is that of directive 1 already" \
		flux submit -N1 -S dw="$XFS" ./one.sh &&
	grep "(./one.sh:2)" err &&
	refuses "--dw: #DW directive 2: destroy_persistent must be the only" \
		flux submit -N1 --dw="#DW destroy_persistent name=pp" ./one.sh &&
	refuses "is not a text of directives" flux submit -N1 -S dw ./one.sh
'
test_expect_success '--dw-check shows what a job would get, and makes nothing' '
	dws_clean && flux jobs -ano {id} >before &&
	flux submit -N3 --dw-check --dw="$GFS2
#DW persistentdw name=kept
#DW jobdw type=lustre capacity=90GiB name=big profile=fast" ./one.sh >out &&
	cat >expected <<-EOF &&
	./one.sh:2: $XFS
	  xfs: 3 x 10.0GiB or more, one for each node
	  not known before: what the default profile adds, as padding
	  in the environment: DW_JOB_scratch
	--dw, line 1: $GFS2
	  gfs2: 3 x 5.0GiB or more, one for each node
	  not known before: what the default profile adds, as padding
	  in the environment: DW_JOB_the_shared
	--dw, line 2: #DW persistentdw name=kept
	  in the environment: DW_PERSISTENT_kept
	--dw, line 3: #DW jobdw type=lustre capacity=90GiB name=big profile=fast
	  ost: 90.0GiB or more, on the rabbits of the job together
	  not known before: what profile fast adds: mdt, mgt, more for ost
	  in the environment: DW_JOB_big
	nodes: 3
	taken: 135GiB or more of rabbits, for 135GiB asked for
	reserved: 45 GiB or more for each node, on its rabbit
	rabbits: 1 to 2 of 2; 2 have room for 45 GiB now
	EOF
	test_cmp expected out &&
	flux jobs -ano {id} >after && test_cmp before after &&
	dws_k8s get workflows >workflows && jq -e ".items == []" workflows
'
test_expect_success 'as JSON, and for a guest too' '
	as_guest flux submit -N2 --dw-check-json ./one.sh >out &&
	jq -e ".scheduled == {groups: 2, nodes: 1, gib: 10} and .nodes == 2 and
		.rabbits == {least: 1, most: 2, there: 2, roomy: 2} and
		(.directives | length) == 1 and .directives[0].place == \"./one.sh:2\"
		and .directives[0].sets == [{label: \"xfs\", bytes: 10737418240, count: 2}]
		and .directives[0].variables == [\"DW_JOB_scratch\"]" out &&
	as_guest flux submit -N1 --dw-check --dw=tiny true >out &&
	grep "^--dw: $XFS" out
'
test_expect_success 'it comes after what other options do, in any order' '
	mkdir ours theirs && cp "$DWS_SRCDIR"/etc/cli/plugins/dws_*.py ours &&
	cp "$DWS_SRCDIR"/etc/cli/plugins/coral2_*.py theirs &&
	for path in ours:theirs theirs:ours; do
		FLUX_CLI_PLUGINPATH_OVERRIDE=$path flux submit -N4 --coral2-chassis=2 \
			--dw-check ./one.sh >out &&
		grep "reserved: 20 GiB or more for each 2 nodes" out &&
		grep "rabbits: 2 of 2" out || return 1
	done
'
test_expect_success 'what it foresees is the least that jobs get' '
	for what in "xfs capacity=10GiB" "gfs2 capacity=700MiB" "lustre capacity=90GiB"; do
		dw="#DW jobdw type=$what name=aa" &&
		flux submit -N2 --dw-check-json --dw="$dw" true >out &&
		least=$(jq .scheduled.gib out) && test $least -ge 1 &&
		jobid=$(flux submit -N2 --dw="$dw" true) && dws_wait_event $jobid clean &&
		flux job info $jobid jobspec >jobspec &&
		jq -e "[.. | objects | select(.type == \"ssd\").count] as [\$gib]
			| \$gib >= $least and \$gib <= $least + 5" jobspec || return 1
	done
'
test_expect_success 'it says what the job would be refused for, and of none that it is none' '
	refuses "number of nodes (-N)" flux submit -n1 --dw-check ./one.sh &&
	refuses "no rabbit has more than" flux submit -N1 --dw-check \
		--dw="#DW jobdw type=xfs capacity=999TiB name=aa" true &&
	flux submit -N1 --dw-check true >out && grep "no #DW directives" out
'
test_expect_success 'where Flux has no rabbits it says so' '
	flux module remove dws && flux submit -N2 --dw-check ./one.sh >out &&
	grep "rabbits: 1 to 2 (which there are is not known)" out &&
	flux module load "$DWS_MODULES/dws.so"
'
# An instance of a batch job, for example. A job there may only use storage that the
# batch job has, by its name.
test_expect_success 'where nobody acts on directives a job is refused' '
	dws_clean && flux jobtap remove dws-jobtap.so &&
	refuses "storage that this instance does not have" flux submit -N1 ./one.sh &&
	refuses "storage that this instance does not have" flux run -N1 -S dw="$XFS" true &&
	refuses "storage that this instance does not have" flux submit -N1 --dw-check ./one.sh &&
	as_guest flux submit -N1 --dry-run ./one.sh >jobspec && asked jobspec >actual &&
	grep -Fx "$XFS" actual &&
	export DW_JOB_scratch="$PWD" &&
	refuses "storage that this instance" flux submit -N1 --dw="$GFS2" ./one.sh &&
	refuses "storage that this instance" flux submit -N1 --dw-rabbits=rabbit1 ./one.sh &&
	flux run -N1 -S dw="$XFS" sh -c "test \"\$DW_JOB_scratch\" = \"$PWD\"" 2>err &&
	grep "flux-run: warning: .* file systems of the batch job" err &&
	unset DW_JOB_scratch && flux jobtap load "$DWS_PLUGINS/dws-jobtap.so" &&
	dws_wait_status .agent.synced
'
# solo has no flux batch.
test_expect_success FLUX_CORE 'flux batch reads its script, also from standard input' '
	flux batch -N1 --dry-run job.sh >jobspec && asked jobspec >actual &&
	printf "%s\n" "$XFS" "$GFS2" >expected && test_cmp expected actual &&
	flux batch -N1 --dry-run <job.sh >jobspec && asked jobspec >actual &&
	test_cmp expected actual &&
	flux batch -N1 --wrap --dry-run ./job.sh >jobspec && asked jobspec >actual &&
	test_cmp expected actual &&
	flux batch -N1 --wrap --dry-run <job.sh >jobspec && asked jobspec >actual &&
	test_cmp expected actual &&
	flux batch -N1 --wrap --dry-run true >jobspec && asked jobspec >actual &&
	grep -Fx null actual
'
test_expect_success FLUX_CORE 'besides lines of Flux, wherever these say dw' '
	script flux.sh "# flux: -N1" "# flux: --dw=\"$GFS2\"" "$XFS" "# flux: -S dw=\"\"\"" \
		"# flux: #DW copy_in source=/etc destination=\$DW_JOB_scratch/" \
		"# flux: \"\"\"" true &&
	flux batch --dry-run flux.sh >jobspec && asked jobspec >dw &&
	grep -o "^#DW [a-z_]*" dw >actual &&
	printf "#DW %s\n" jobdw jobdw copy_in >expected && test_cmp expected actual
'
test_expect_success FLUX_CORE 'its faults are named, with the first line that is too late' '
	script bad.sh "# flux: -N1" "$XFS" "#DW jobdw type=xfs capcity=1GiB name=aa" &&
	refuses "bad.sh:4: #DW directive 2: unknown key" flux batch bad.sh &&
	refuses "stdin:4: #DW directive 2" flux batch <bad.sh &&
	refuses "late.sh:4: " flux batch -N1 late.sh && grep "or indent it" err &&
	script worse.sh "# flux: -N1" "  $XFS" true &&
	refuses "worse.sh:3: .* is not read" flux batch worse.sh &&
	script worse.sh "# flux: -N1" "# DW jobdw type=xfs" true &&
	refuses "worse.sh:3: .* is not read" flux batch worse.sh &&
	refuses "stdin:3: .* is not read" flux batch --wrap -N1 <worse.sh
'
# Its instance begins with Fluxion, where there is one, whatever the system instance has.
test_expect_success FLUX_CORE 'the batch job has the storage' '
	script batch.sh "# flux: -N2" "$XFS" "test -d \"\$DW_JOB_scratch\"" &&
	jobid=$(flux batch --output=batch.out batch.sh) && dws_wait_event $jobid clean &&
	cat batch.out && flux job status $jobid
'
test_expect_success FLUX_CORE 'a guest submits his script, and gets the storage' '
	test_must_fail as_guest flux batch -N1 --dry-run bad.sh 2>err && grep "bad.sh:4: " err &&
	as_guest flux submit -N1 --dry-run ./one.sh >jobspec &&
	jobid=$(flux python "$DWS_SRCDIR/t/scripts/submit_as.py" $(id -u nobody) <jobspec) &&
	dws_wait_event $jobid clean && dws_wait_event $jobid dws_environment >event &&
	flux job eventlog $jobid >eventlog && grep DW_JOB_scratch eventlog && dws_clean
'
test_expect_success FLUX_CORE 'flux bulksubmit reads what it runs' '
	flux bulksubmit -N1 {} ::: ./plain.sh ./one.sh >ids &&
	for id in $(cat ids); do
		flux job info --base $id jobspec >jobspec && asked jobspec || return 1
	done >actual &&
	printf "%s\n" null "$XFS" >expected && test_cmp expected actual
'
test_expect_success FLUX_CORE 'flux alloc has the options' '
	flux alloc -N1 --dw="$XFS" --dry-run >jobspec && asked jobspec >actual &&
	grep -Fx "$XFS" actual &&
	flux alloc -N1 --dw="$XFS" --dw-check >out && grep "reserved: 10 GiB" out &&
	flux alloc -N1 --dry-run ./one.sh >jobspec && asked jobspec >actual &&
	grep -Fx "$XFS" actual
'
test_done
