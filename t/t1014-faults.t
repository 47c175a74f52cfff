#!/bin/bash
# What admins, users and DWS itself may do to jobs in every phase.
# SPDX-License-Identifier: LGPL-3.0-only
#
# FAULT deleted: somebody deletes the workflow
#   depend pending setup datain prerun: completed: The workflow is made again, the job goes on where it is.
#   running postrun dataout: completed: The job ends, as if its file systems had been unmounted; what
#     was not copied yet is lost with them.
#   teardown: completed: The job ends as it would have.
# FAULT torn-down: somebody sets the workflow's desiredState to Teardown
#   depend pending setup datain prerun: completed: The workflow is made again, the job goes on where it is.
#   running postrun dataout: completed: The job ends, as if its file systems had been unmounted; what
#     was not copied yet is lost with them.
#   teardown: completed: The job ends as it would have.
# FAULT cancelled: the job is cancelled
#   depend pending setup datain prerun postrun dataout teardown: failed cancel: Straight to Teardown; nothing more is copied.
#   running: failed cancel: As at any end: unmounted, copied out, torn down.
# FAULT error: DWS reports an error in each state, in Teardown a passing one
#   depend: failed dws-create: The job is refused, in the words of DWS.
#   pending setup datain prerun: failed dws-setup: The job does not start, and is told in the words of DWS.
#   running postrun dataout: failed dws-epilog: The job is told in the words of DWS, nothing more is copied.
#   teardown: failed dws-epilog: The job is told in the words of DWS; Teardown goes on until it
#     succeeds, or the epilog times out.
# FAULT transient: TransientCondition lasts longer than `tc_timeout`
#   depend: failed dws-create: The job is refused, in the words of DWS.
#   pending setup datain prerun: failed dws-setup: The job does not start, and is told in the words of DWS.
#   running postrun dataout: failed dws-epilog: The job is told in the words of DWS, nothing more is copied.
#   teardown: completed: Teardown goes on until it succeeds, or the epilog times out.
# FAULT limits: a state takes longer than its time limit
#   depend pending datain running: completed: There is no limit, the job waits.
#   setup prerun: failed dws-timeout: The job does not start, or goes on without the nodes that are to blame (`dw_failure_tolerance`).
#   postrun dataout: failed dws-timeout: Nothing more is copied; nodes that are still mounted are drained.
#   teardown: completed: Teardown goes on until it succeeds, or the epilog times out.
# FAULT epilog-timeout: the exception of the epilog timeout is raised
#   depend pending setup datain prerun: failed dws-epilog-timeout: Straight to Teardown; nothing more is copied.
#   running: failed dws-epilog-timeout: As at any end: unmounted, copied out, torn down.
#   postrun dataout teardown: failed dws-epilog-timeout: Nodes that are still mounted are drained, rabbits with allocations are disabled; the job is let go.

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
