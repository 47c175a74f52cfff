#!/bin/bash
# Prologs and epilogs of other plugins before, between and after ours, in each order of
# loading, and our plugin loaded anew at every step: only our own events count.
# SPDX-License-Identifier: LGPL-3.0-only
#
# FAULT site: `dws-jobtap.so` is reloaded, beside prologs and epilogs of other plugins
#   depend pending setup datain prerun running postrun dataout teardown: completed: The job runs
#     and ends as without the fault.

test_description='Prologs and epilogs of other plugins beside ours'
. "$(dirname "$0")/sharness.sh"
test_under_flux 4

OURS=$DWS_PLUGINS/dws-jobtap.so
COPY="$DWS_DIRECTIVE
#DW copy_out source=\$DW_JOB_scratch/out destination=/lus/global/out"

# load ORDER [OPTION...]: both plugins anew, in that order, the site's with these options.
load () {
	order=$1
	shift
	flux jobtap remove "[ds]*.so"
	test $order = site-first || flux jobtap load "$OURS" epilog-timeout=600 || return 1
	flux jobtap load "$PWD/site.so" "$@" || return 1
	test $order = ours-first || flux jobtap load "$OURS" epilog-timeout=600
}
# begun WHAT DESCRIPTION: this prolog or epilog of the job, and ended
begun () {
	dws_wait_event -m description=$2 $jobid $1-start
}
ended () {
	dws_wait_event -m description=$2 $jobid $1-finish
}
end_site () {
	rpc job-manager.site.end "{\"id\": \"$jobid\", \"what\": \"$1\"}"
}
# unharmed: the job ends as if nothing had been loaded anew
unharmed () {
	dws_wait_event $jobid clean &&
	flux job eventlog $jobid >eventlog &&
	test_must_fail grep " exception " eventlog &&
	flux job status $jobid &&
	nothing_lost
}
nothing_lost () {
	dws_clean &&
	flux job info $jobid rabbit_dataout_timing &&
	dws_drained "" &&
	dws_disabled &&
	test "$(flux rabbit losses --json)" = "[]"
}
# pass ORDER PROLOG EPILOG LAST: a job, with everything loaded anew at each step
pass () {
	anew="load $1 prolog=$2 epilog=$3"
	rm -f go && mkfifo go &&
	$anew && dws_wait_status ".plugin" &&
	dws_ctl hold PreRun &&
	jobid=$(flux submit -N2 -S dw="$COPY" cat "$PWD/go") &&
	begun prolog dws-setup &&
	{ test $2 != run || begun prolog site-prolog; } &&
	$anew &&
	dws_ctl release PreRun &&
	ended prolog dws-setup &&
	begun prolog site-prolog &&
	$anew &&
	end_site prolog &&
	dws_wait_event $jobid start &&
	$anew &&
	dws_ctl hold PostRun &&
	: >go &&
	begun epilog dws-epilog &&
	{ test $3 = epilog-finish || begun epilog site-epilog; } &&
	$anew &&
	{ test $4 != ours || end_site epilog; } &&
	dws_ctl release PostRun &&
	ended epilog dws-epilog &&
	{ test $4 = ours || { begun epilog site-epilog && $anew && end_site epilog; }; } &&
	unharmed
}
# written ORDER: the site updates the resources of a job, and we are loaded anew
written () {
	load $1 update=1 &&
	dws_ctl hold Proposal &&
	jobid=$(flux submit -N2 -S dw="$COPY" true) &&
	dws_wait_event $jobid jobspec-update &&
	load $1 update=1 &&
	dws_ctl release Proposal &&
	unharmed &&
	flux job info $jobid jobspec >jobspec &&
	jq -e "[.resources | .. | objects | select(.type == \"ssd\")] | length == 1" jobspec
}
# spoil ORDER: a job gets an exception between our prolog and its tasks
spoil () {
	load $1 raise=prolog-finish &&
	jobid=$(flux submit -N2 -S dw="$COPY" true) &&
	dws_wait_event -m type=site $jobid exception &&
	dws_wait_event $jobid clean &&
	flux job eventlog $jobid >eventlog &&
	sed -n "/ exception /,\$p" eventlog |
		grep " finish \| release \| epilog-start .*dws-epilog" >order &&
	head -n1 order | grep -v " epilog-start " &&
	grep " epilog-start " order &&
	dws_clean && dws_drained "" && dws_disabled
}

test_expect_success 'load everything' '
	${CC:-cc} -Wall -Werror -shared -fPIC -o site.so \
		-I "$DWS_PREFIX/lib/flux-solo/include" "$DWS_SRCDIR/t/scripts/site.c" &&
	dws_setup
'
for order in site-first ours-first; do
	for course in "run finish ours" "run finish site" "prolog-finish epilog-start ours" \
		"prolog-start epilog-start site" "prolog-finish epilog-finish site"; do
		test_expect_success "$order, its prolog and epilog on $course" "
			pass $order $course
		"
	done
done
for order in site-first ours-first; do
	test_expect_success "$order: prologs and epilogs that end at once" "
		load $order prolog=run epilog=finish brief=1
	"
	dws_fault site 'it is loaded anew' "
		load $order prolog=run epilog=finish brief=1 &&
		dws_crowd release &&
		load $order prolog=run epilog=finish brief=1
	"
done
# The event is there before our epilog begins: what ends a job while it runs does not
# keep its data.
test_expect_success 'an exception of a site at the end of the tasks costs no data' '
	load site-first raise=finish epilog=finish &&
	jobid=$(flux submit -N2 -S dw="$COPY" true) &&
	ended epilog dws-epilog &&
	end_site epilog &&
	dws_wait_event -m type=site $jobid exception &&
	dws_wait_event $jobid clean &&
	nothing_lost
'
# Flux has asked for the tasks by then: they may run before they are killed.
test_expect_success 'an exception as the tasks start: they end before Teardown' '
	spoil site-first && spoil ours-first
'
for order in site-first ours-first; do
	test_expect_success "$order, it writes the resources of a job: these are not ours" "
		written $order
	"
done
# Its options are those of the load command, which comes in the place of a reload.
test_expect_success FLUX_CORE 'perilog runs the prolog and the epilog of a site' '
	cat >>"$DWS_TMP/conf.d/test.toml" <<-\EOF &&
	[job-manager.prolog]
	command = [ "true" ]
	[job-manager.epilog]
	command = [ "true" ]
	EOF
	flux config reload &&
	flux jobtap remove "[ds]*.so" &&
	flux jobtap load perilog.so &&
	flux jobtap load "$OURS" &&
	rm -f go && mkfifo go &&
	jobid=$(flux submit -N2 -S dw="$COPY" cat "$PWD/go") &&
	dws_wait_event $jobid start &&
	flux jobtap load -r dws-jobtap.so "$OURS" epilog-timeout=600 &&
	: >go &&
	ended epilog job-manager.epilog &&
	unharmed &&
	flux jobtap remove perilog.so
'
test_done
