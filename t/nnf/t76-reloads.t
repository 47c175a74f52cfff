#!/bin/bash
# Our plugin is loaded anew every second under many jobs, on a system with perilog and a
# prolog and an epilog of the site: no node is drained, no rabbit disabled, no job and no
# data lost. With more jobs by hand:
#   DWS_NNF_JOBS=100 t/nnf/run --under sched-rabbit t/nnf/t76-reloads.t
# SPDX-License-Identifier: LGPL-3.0-only

test_description='The plugin loaded anew every second under many jobs'

# The site's take a moment, or longer than ours.
dws_config () {
	cat <<-EOF
	[job-manager]
	plugins = [
	  { load = "perilog.so" },
	  { load = "$DWS_PLUGINS/dws-jobtap.so", conf = { epilog-timeout = 600.0 } },
	]
	[job-manager.prolog]
	command = [ "sh", "-c", "sleep \$((\$\$ % 3))" ]
	[job-manager.epilog]
	command = [ "sh", "-c", "sleep \$((\$\$ % 6))" ]
	EOF
}

. "$(dirname "$0")/../sharness.sh"
. "$DWS_SRCDIR/t/nnf/nnf.sh"
if test "$DWS_ENGINE" != flux-core; then
	skip_all='solo has no perilog'
	test_done
fi
test_under_flux $NNF_NODES

JOBS=${DWS_NNF_JOBS:-12}
COPY='#DW jobdw type=xfs capacity=1GiB name=fast
#DW copy_out source=$DW_JOB_fast/b destination=$DW_JOB_fast/c'

# under_reloads COMMAND...: says how often it was loaded anew meanwhile
under_reloads () {
	rm -f stop &&
	{ flux python "$DWS_SRCDIR/t/scripts/reload_plugin.py" "$DWS_PLUGINS/dws-jobtap.so" \
		"$PWD/stop" >reloads 2>reloads.err & } &&
	reloader=$! && { "$@"; rc=$?; } &&
	touch stop && wait $reloader && cat reloads && test $rc = 0
}
# once JOBID WHAT NAME: this prolog or epilog has begun and ended once
once () {
	for event in start finish; do
		test "$(grep -c " $2-$event description=\"$3\"" eventlog)" = 1 || return 1
	done
}
# ends_once JOBID: those of ours and of the site, and there is no exception
ends_once () {
	flux job eventlog $1 >eventlog &&
	once $1 prolog job-manager.prolog && once $1 prolog dws-setup &&
	once $1 epilog job-manager.epilog && once $1 epilog dws-epilog &&
	test_must_fail grep " exception " eventlog
}
many_jobs () {
	nnf_submit_many $JOBS "$COPY" &&
	flux python "$DWS_SRCDIR/t/scripts/crowd.py" outcome >outcome
}

test_expect_success 'load everything' '
	flux jobtap remove dws-jobtap.so &&
	nnf_setup
'
test_expect_success "$JOBS jobs, and the plugin loaded anew every second" '
	under_reloads many_jobs
'
test_expect_success 'all of them do well' '
	test $(wc -l <outcome) = $JOBS &&
	test_must_fail grep -v " completed$" outcome
'
test_expect_success 'each hold of ours and of the site has begun and ended once' '
	for id in $(sed "s/.* //" crowd); do
		ends_once $id || return 1
	done
'
test_expect_success 'all data was copied out' '
	for id in $(sed "s/.* //" crowd); do
		flux job info $id rabbit_dataout_timing >timing || return 1
	done &&
	test "$(flux rabbit losses --json)" = "[]"
'
test_expect_success 'no node is drained, no rabbit disabled, nothing is left' '
	nnf_clean &&
	dws_drained "" &&
	for rabbit in $NNF_RABBITS; do
		rig until storages $rabbit ".spec.state == \"Enabled\"" || return 1
	done
'
test_expect_success 'the plugin goes by the configuration still' '
	flux jobtap query dws-jobtap.so >query &&
	jq -e ".\"epilog-timeout\" == 600" query
'
test_done
