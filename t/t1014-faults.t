#!/bin/bash
# Actions of admins, users and DWS itself on jobs in every phase.
# SPDX-License-Identifier: LGPL-3.0-only
#
# FAULT deleted: somebody deletes the workflow
#   depend pending setup datain prerun: completed: flux-dws creates the workflow again; the job
#     goes on from its phase.
#   running postrun dataout: completed: The job ends as if its file systems had been unmounted;
#     data that was not staged out yet is lost.
#   teardown: completed: The job runs and ends as without the fault.
# FAULT torn-down: somebody sets the workflow's desiredState to Teardown
#   depend pending setup datain prerun: completed: flux-dws creates the workflow again; the job
#     goes on from its phase.
#   running postrun dataout: completed: The job ends as if its file systems had been unmounted;
#     data that was not staged out yet is lost.
#   teardown: completed: The job runs and ends as without the fault.
# FAULT cancelled: the job is cancelled
#   depend pending setup datain prerun postrun dataout teardown: failed cancel: The workflow
#     goes straight to Teardown; no more data is copied.
#   running: failed cancel: The end is the usual one: unmount, stage out, teardown.
# FAULT error: DWS reports an error in each state, in Teardown a passing one
#   depend: failed dws-create: flux-dws refuses the job, with the error of DWS.
#   pending setup datain prerun: failed dws-setup: The job does not start; its exception has the
#     error of DWS.
#   running postrun dataout: failed dws-epilog: The job's exception has the error of DWS; no
#     more data is copied.
#   teardown: failed dws-epilog: The job's exception has the error of DWS; Teardown goes on
#     until it succeeds or the epilog times out.
# FAULT transient: TransientCondition lasts longer than `tc_timeout`
#   depend: failed dws-create: flux-dws refuses the job, with the error of DWS.
#   pending setup datain prerun: failed dws-setup: The job does not start; its exception has the
#     error of DWS.
#   running postrun dataout: failed dws-epilog: The job's exception has the error of DWS; no
#     more data is copied.
#   teardown: completed: Teardown goes on until it succeeds or the epilog times out.
# FAULT limits: a state takes longer than its time limit
#   depend pending datain running: completed: The state has no time limit; the job waits.
#   setup prerun: failed dws-timeout: The job does not start, or goes on without the nodes that
#     caused the delay (`dw_failure_tolerance`).
#   postrun dataout: failed dws-timeout: No more data is copied; flux-dws drains the nodes that
#     still have a mount.
#   teardown: completed: Teardown goes on until it succeeds or the epilog times out.
# FAULT epilog-timeout: the exception of the epilog timeout is raised
#   depend pending setup datain prerun: failed dws-epilog-timeout: The workflow goes straight to
#     Teardown; no more data is copied.
#   running: failed dws-epilog-timeout: The end is the usual one: unmount, stage out, teardown.
#   postrun dataout teardown: failed dws-epilog-timeout: flux-dws drains the nodes that still
#     have a mount, disables the rabbits with allocations, and ends the epilog.

test_description='Deletion, cancellation, errors and limits in every phase'
. "$(dirname "$0")/sharness.sh"
test_under_flux 4

STATES="Proposal Setup DataIn PreRun PostRun DataOut"

# each COMMAND...: with each job id in decimal
each () {
	for id in $(cut -d" " -f2 crowd); do
		"$@" $id || return 1
	done
}
job () {
	sed -n "s/^$1 //p" crowd
}
delete () {
	dws_k8s delete workflows fluxjob-$1 >>deleted
}
tear_down () {
	dws_k8s patch workflows fluxjob-$1 \
		"{\"spec\": {\"desiredState\": \"Teardown\"}}" >>torn
}
# configure [LINE...]: time limits
configure () {
	cp test.toml.orig "$DWS_TMP/conf.d/test.toml" &&
	printf "%s\n" "$@" >>"$DWS_TMP/conf.d/test.toml" &&
	flux config reload
}
# fail SEVERITY: all states do, Teardown a few times only
fail () {
	for state in $STATES; do
		dws_ctl fail $state --severity $1 || return 1
	done &&
	dws_ctl fail Teardown --severity $1 --count 20
}
heal () {
	dws_ctl fail all --clear
}

test_expect_success 'load everything' '
	dws_setup &&
	cp "$DWS_TMP/conf.d/test.toml" test.toml.orig
'
dws_fault deleted 'all are' '
	each delete
'
dws_fault torn-down 'all are' '
	each tear_down
'
dws_fault cancelled 'all are' '
	flux cancel $(cut -d" " -f2 crowd)
'
dws_fault error 'in all states' '
	fail Fatal
'
test_expect_success 'error: mended' '
	heal
'
dws_fault transient 'in all states' '
	configure "tc_timeout = 0.3" &&
	fail Major
'
test_expect_success 'transient: mended' '
	heal && configure
'
dws_fault limits 'of all states that have one, for those that are held' '
	configure "setup_timeout = 0.1" "prerun_timeout = 0.1" \
		"postrun_timeout = 0.1" "teardown_after = 0.2" &&
	for phase in setup prerun postrun dataout; do
		dws_wait_event -m type=dws-timeout $(job $phase) exception ||
			return 1
	done &&
	configure
'
test_expect_success 'limits: drained nodes are given back' '
	flux resource undrain "$(flux resource drain -no "{nodelist}")"
'
# On a busy machine the plugin drains it, not the module, which gives it back then.
postrun_drained () {
	flux dmesg >dmesg &&
	grep "resource.*drain .*reason=rabbit: .*fluxjob-$(job postrun)" dmesg
}
dws_fault epilog-timeout 'for all' '
	each flux job raise --type=dws-epilog-timeout --severity=0 &&
	dws_until postrun_drained
'
test_expect_success 'epilog-timeout: drained nodes are given back' '
	nodes=$(flux resource drain -no "{nodelist}") &&
	{ test -z "$nodes" || flux resource undrain $nodes; }
'
test_done
