#!/bin/bash
# Characters permitted in words of directives, above all in paths, which NNF passes to a
# shell of root. The command rejects others, and so does the plugin.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Characters of words and paths in directives'
. "$(dirname "$0")/sharness.sh"

dws_config () {
	cat <<-\EOT
	[rabbit.presets]
	kept = ["#DW jobdw type=xfs capacity=1GiB name=st",
	        "#DW copy_out source=$DW_JOB_st/o destination=/lus/global/$UID/{{id}}"]
	EOT
}
test_under_flux 2

export FLUX_CLI_PLUGINPATH_OVERRIDE=$DWS_SRCDIR/etc/cli/plugins
LF="
"
XFS="#DW jobdw type=xfs capacity=1GiB name=st"
ME=$(id -un)
OUT="#DW copy_out source=\$DW_JOB_st destination=/lus/global"

has () {
	file=$1 &&
	shift &&
	for text in "$@"
	do
		grep -F -e "$text" $file || { cat $file >&2; return 1; }
	done
}
# refused DW TEXT...: by the command and by --dw-check, with each text
refused () {
	dw=$1 &&
	shift &&
	test_must_fail flux submit -N1 -S dw="$dw" true 2>err &&
	has err "$@" &&
	test_must_fail flux submit -N1 --dw="$dw" --dw-check true 2>err &&
	has err "$@"
}
# past_command <DW: submit jobs as a program that uses the API alone, one for each line
# "DW | TEXT", where "; " begins a line of DW: a refusal has to say TEXT. Without one the
# job is submitted.
past_command () {
	flux submit --dry-run -N1 true >plain.json &&
	cat >lines &&
	flux python "$DWS_SRCDIR/t/scripts/submit_words.py" plain.json <lines
}
directives () {
	dws_ctl wait-state $(dws_workflow $1) Proposal --timeout $DWS_LIMIT &&
	dws_k8s get workflows $(dws_workflow $1) >workflow.json &&
	jq -r ".spec.dwDirectives[]" workflow.json
}
# copies_to JOBID PATH: so says its workflow, and its jobspec
copies_to () {
	directives $1 >have &&
	grep -e " destination=$2\$" have &&
	flux job info $1 jobspec >jobspec.json &&
	jq -r ".attributes.system.dw[]" jobspec.json >have &&
	grep -e " destination=$2\$" have
}

test_expect_success 'load everything' '
	dws_setup && dws_ctl hold Proposal
'
test_expect_success 'what means something to a shell is refused, and named' '
	refused "$XFS$LF$OUT/out;id" "destination '\''/lus/global/out;id'\'' has '\'';'\''" &&
	refused "$XFS$LF#DW copy_out source=\$DW_JOB_st/../../../etc/shadow destination=/lus/x" \
		"source '\''\$DW_JOB_st/../../../etc/shadow'\'' has '\''..'\''"
'
test_expect_success 'past the command, too, as are other words that NNF hands on' '
	past_command <<-EOT
	$XFS; $OUT/a;id | destination '\''/lus/global/a;id'\'' has '\'';'\''
	$XFS; $OUT/\$(id) | has '\''\$'\''
	$XFS; $OUT/\`id\` | has '\''\`'\''
	$XFS; $OUT/a&b | has '\''&'\''
	$XFS; $OUT/* | has '\''*'\''
	$XFS; $OUT/~u | has '\''~'\''
	$XFS; $OUT/%s | has '\''%'\''
	$XFS; $OUT/{{name}} | has '\''{'\''
	$XFS; $OUT/\$HOME | has '\''\$'\''
	$XFS; $OUT/../../etc | has '\''..'\''
	$XFS profile=a;b | profile '\''a;b'\''
	$XFS requires=copy-offload,\$(id) | requires '\''\$(id)'\'' has '\''\$'\''
	$XFS stripes=\`id\` | stripes '\''\`id\`'\'' has
	#DW container name=cc profile=pp DW_GLOBAL_aa=/lus/../etc | DW_GLOBAL_aa '\''/lus/../etc'\'' has
	#DW create_persistent type=xfs capacity=1GiB name=a;b | name '\''a;b'\''
	EOT
'
test_expect_success 'characters that are not seen, or separate words for DWS, are, too' '
	refused "#DW jobdw type=xfs$(printf "\302\240")capacity=1GiB name=st" \
		"<U+00A0>" "U+00A0 NO-BREAK SPACE" "write a blank for it" &&
	past_command <<-EOT
	#DW jobdw type=xfs$(printf "\302\240")capacity=1GiB name=st | U+00A0 NO-BREAK SPACE
	$XFS$(printf "\342\200\250")#DW jobdw | U+2028 LINE SEPARATOR
	$XFS$(printf "\342\200\256") | U+202E RIGHT-TO-LEFT OVERRIDE
	$(printf "\357\273\277")$XFS | '\''<U+FEFF>#DW'\'' has U+FEFF BYTE ORDER MARK
	$XFS$(printf "\013")profile=aa | U+000B VERTICAL TAB
	#DW jobdw type = xfs capacity=1GiB name=st | a blank at the '\''='\'' of '\''type'\''
	EOT
'
test_expect_success 'the words of shells, Slurm and DataWarp are, with what to write' '
	refused "#DW jobdw type=\"xfs\" capacity=1GiB name=st" "write type=xfs" &&
	refused "#DW jobdw type = xfs capacity=1GiB name=st" "write '\''type=xfs'\''" &&
	refused "$XFS\\n#DW jobdw type=gfs2 capacity=1GiB name=two" "is no new line" \
		"--dw once for each directive" &&
	refused "#DW jobdw type=lustre access_mode=striped capacity=1TiB name=st" \
		"'\''access_mode'\'' is of DataWarp" "leave it out" &&
	refused "#DW stage_in type=file source=/lus/a destination=\$DW_JOB_STRIPED/a" \
		"write #DW copy_in source=PATH" &&
	refused "#BB create_persistent name=st capacity=1GB" \
		"'\''#BB'\'' is of Slurm" "begins with '\''#DW'\''"
'
test_expect_success 'an attribute beside right directives is what is to be corrected' '
	jobid=$(flux submit -N1 -S dw="$XFS" -S dw_near=nothing-there true) &&
	dws_wait_event $jobid clean && flux job eventlog $jobid >log &&
	has log "dw_near: there is no persistent file system" \
		"name a job or a persistent file system of your own" &&
	test_must_fail grep "correct the directive" log &&
	jobid=$(flux submit -N1 -S dw="$XFS" -S dw_group=no-such-group true) &&
	dws_wait_event $jobid clean && flux job eventlog $jobid >log &&
	has log "dw_group: no-such-group" "ask for a group that you are in"
'
test_expect_success 'lines of a script, too, and what ends a line for others' '
	printf "#!/bin/sh\n\357\273\277$XFS\ntrue\n" >bom.sh &&
	printf "#!/bin/sh\n#\342\200\213DW jobdw type=xfs\ntrue\n" >zero.sh &&
	printf "#!/bin/sh\n$XFS\302\240\ntrue\n" >end.sh &&
	printf "#!/bin/sh\n#DW\302\240jobdw type=xfs\ntrue\n" >nbsp.sh &&
	chmod +x bom.sh zero.sh end.sh nbsp.sh &&
	test_must_fail flux submit ./bom.sh 2>err &&
	has err "./bom.sh:2" "U+FEFF BYTE ORDER MARK" &&
	test_must_fail flux submit ./zero.sh 2>err &&
	has err "./zero.sh:2" "U+200B ZERO WIDTH SPACE" &&
	test_must_fail flux submit ./end.sh 2>err &&
	has err "./end.sh:2" "U+00A0 NO-BREAK SPACE" &&
	test_must_fail flux submit ./nbsp.sh 2>err &&
	has err "./nbsp.sh:2" "U+00A0 NO-BREAK SPACE" &&
	printf "$XFS\r\n" >dos.dw &&
	flux submit -N1 --dw=./dos.dw --dw-check true >out &&
	grep "$XFS\$" out
'
test_expect_success 'what a path can have reaches NNF as it is' '
	TO=/lus/global/aZ09._-+=@:,/ü/out &&
	jobid=$(flux submit -N1 -S dw="$XFS$LF#DW copy_out source=\$DW_JOB_st/a=b destination=$TO" true) &&
	directives $jobid >have &&
	grep -Fx "#DW copy_out source=\$DW_JOB_st/a=b destination=$TO" have &&
	flux cancel $jobid && dws_wait_event $jobid clean
'
test_expect_success '$USER and {{id}} are filled in, past the command too' '
	jobid=$(flux submit -N1 -S dw="$XFS$LF$OUT/\$USER/\${USER}x.{{id}}" true) &&
	copies_to $jobid /lus/global/$ME/${ME}x.$(flux job id --to=f58plain $jobid) &&
	flux cancel $jobid && dws_wait_event $jobid clean &&
	jobid=$(echo "$XFS; $OUT/{{id}} |" | past_command) &&
	copies_to $jobid /lus/global/$(flux job id --to=f58plain $jobid) &&
	flux cancel $jobid && dws_wait_event $jobid clean
'
test_expect_success '--dw-check shows them, with "jobid" for the id' '
	flux submit -N1 -S dw="$XFS$LF$OUT/\$USER/{{id}}" --dw-check true >out &&
	grep "destination=/lus/global/$ME/jobid\$" out
'
test_expect_success 'each job of --cc has its own' '
	flux submit --cc=1-2 -N1 --dw="$XFS$LF$OUT/{cc}.{{id}}" true >ids &&
	test $(wc -l <ids) -eq 2 &&
	n=0 &&
	for jobid in $(cat ids)
	do
		n=$((n + 1)) &&
		copies_to $jobid /lus/global/$n.$(flux job id --to=f58plain $jobid) &&
		flux cancel $jobid && dws_wait_event $jobid clean || return 1
	done
'
test_expect_success 'presets can have them' '
	jobid=$(flux submit -N1 --dw=kept true) &&
	copies_to $jobid /lus/global/$(id -u)/$(flux job id --to=f58plain $jobid) &&
	flux cancel $jobid && dws_wait_event $jobid clean
'
test_expect_success 'and are judged as the words of users are' '
	cp "$DWS_TMP/conf.d/test.toml" kept.toml &&
	sed -i "s,/{{id}},/../x," "$DWS_TMP/conf.d/test.toml" &&
	test_must_fail flux config reload 2>err &&
	has err kept "has '\''..'\'' in it" &&
	cp kept.toml "$DWS_TMP/conf.d/test.toml" && flux config reload
'
test_expect_success 'plugin and module start again: the job keeps its paths' '
	jobid=$(flux submit -N1 -S dw="$XFS$LF$OUT/\$USER/{{id}}" true) &&
	copies_to $jobid /lus/global/$ME/$(flux job id --to=f58plain $jobid) &&
	flux module remove dws && flux jobtap remove dws-jobtap.so &&
	flux jobtap load "$DWS_PLUGINS/dws-jobtap.so" &&
	flux module load "$DWS_MODULES/dws.so" &&
	dws_wait_status ".jobs == 1 and .workflows == 1" &&
	flux rabbit show $jobid >out &&
	grep "destination=/lus/global/$ME/$(flux job id --to=f58plain $jobid)" out &&
	dws_ctl release Proposal &&
	dws_wait_event $jobid clean && flux job status $jobid
'
test_expect_success 'nothing is left' '
	dws_ctl release all && dws_clean
'
test_done
