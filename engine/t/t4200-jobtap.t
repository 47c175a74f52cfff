#!/bin/bash
# The plugin interface: which callbacks come when, and what they may do.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Callbacks of job manager plugins'
. "$(dirname "$0")/../../t/sharness.sh"
test_under_flux 2

# Events that differ between schedulers and do not matter here
probe_log () {
	grep -v -e job.event.annotations -e debug probe.log
}

# probe MODE: run a job that asks the plugin for MODE, keep the log of it.
# All callbacks are over when the clean event is in the eventlog.
probe () {
	: >probe.log &&
	jobid=$(flux submit --setattr=user.probe=$1 true) &&
	flux job wait-event -q -t 300 $jobid clean &&
	probe_log >out
}
events () {
	flux job eventlog -f json $1 >eventlog.out &&
	jq -r .name <eventlog.out
}
call () {
	flux python -c "
import sys, flux
from flux.job import JobID
flux.Flux().rpc(\"job-manager.probe.call\",
    {\"id\": JobID(sys.argv[1]), \"call\": sys.argv[2]}).get()" $1 $2
}

test_expect_success 'a plugin builds against our headers and loads' '
	${CC:-cc} -D_GNU_SOURCE -Wall -Werror -shared -fPIC -o probe.so \
		-I "$DWS_PREFIX/lib/flux-solo/include" \
		"$DWS_SRCDIR/engine/t/plugins/jobtap-probe.c" &&
	flux jobtap load "$PWD/probe.so" log="$PWD/probe.log" &&
	flux jobtap list >list &&
	grep probe.so list
'
test_expect_success 'it answers plugin.query' '
	flux jobtap query probe.so >query &&
	test "$(jq -r .probe query)" = here &&
	test "$(jq -r .name query)" = probe.so
'
test_expect_success 'it cannot be loaded twice' '
	test_must_fail flux jobtap load "$PWD/probe.so" log=/dev/null 2>err &&
	grep "already loaded" err
'
test_expect_success 'the callbacks of an ordinary job come in order' '
	probe none &&
	cat >expected <<-EOF &&
	job.create N priority=-1
	job.validate N priority=-1
	job.new N priority=-1
	    subscribe: ok
	    aux: ok
	job.event.validate D priority=-1
	job.state.depend N>D priority=-1
	job.event.depend P priority=-1
	job.state.priority D>P priority=-1
	job.event.priority S priority=16
	job.state.sched P>S priority=16
	job.event.alloc R priority=16 R
	job.state.run S>R priority=16 R
	job.event.start R priority=16 R
	job.event.finish C priority=16 R end
	job.state.cleanup R>C priority=16 R end
	job.event.release C priority=16 R end
	job.event.free C priority=16 R end
	job.event.clean I priority=16 R end
	job.state.inactive C>I priority=16 R end
	    late event: ENOENT
	job.inactive-add I priority=16 R end
	job.destroy I priority=16 R end
	aux freed
	EOF
	test_cmp expected out
'
for mode in reject "reject-default" fail; do
	case $mode in
	reject) text="no, thanks" ;;
	reject-default) text="rejected by job-manager plugin .probe.so." ;;
	fail) text="rejected by job-manager plugin" ;;
	esac
	test_expect_success "job.validate can turn a job down: $mode" '
		: >probe.log &&
		test_must_fail flux submit --setattr=user.probe=$mode true 2>err &&
		grep "$text" err &&
		test "$(tail -1 probe.log | cut -d" " -f1)" = job.destroy
	'
done
test_expect_success 'events posted in a callback come after it' '
	probe post &&
	grep -A2 "^job.state.depend" out >part &&
	cat >expected <<-EOF &&
	job.state.depend N>D priority=-1
	    post: ok
	job.event.foo D priority=-1
	EOF
	test_cmp expected part
'
test_expect_success 'a dependency holds until it is removed' '
	probe dependency &&
	sed -n "/^job.state.depend/,/^job.state.priority/p" out >part &&
	cat >expected <<-EOF &&
	job.state.depend N>D priority=-1
	    add: ok
	    add again: ok
	    remove: ok
	job.event.dependency-add D priority=-1
	job.event.dependency-add D priority=-1
	job.event.dependency-remove D priority=-1
	job.event.depend P priority=-1
	job.state.priority D>P priority=-1
	EOF
	test_cmp expected part
'
test_expect_success 'a jobspec update is applied when the callback is back' '
	probe update &&
	sed -n "/^job.state.depend/,/^job.event.depend/p" out >part &&
	cat >expected <<-EOF &&
	job.state.depend N>D priority=-1
	    update: ok
	    update by id: EINVAL
	    update of version: EINVAL
	job.event.jobspec-update D priority=-1
	job.update D priority=-1
	job.event.depend P priority=-1
	EOF
	test_cmp expected part
'
test_expect_success SOLO 'and to that job, whatever goes on in between' '
	held=$(flux submit --urgency=hold true) &&
	jobid=$(flux submit --setattr=user.probe=update-post \
		--setattr=user.other=$(flux job id --to=dec $held) true) &&
	flux job wait-event -q -t 300 $jobid clean &&
	events $jobid | grep jobspec-update &&
	events $held >names &&
	grep foo names &&
	! grep jobspec-update names &&
	flux cancel $held
'
test_expect_success 'a fatal exception ends the job' '
	probe raise &&
	grep "^job.state" out >part &&
	cat >expected <<-EOF &&
	job.state.depend N>D priority=-1
	job.state.cleanup D>C priority=-1 end
	job.state.inactive C>I priority=-1 end
	EOF
	test_cmp expected part &&
	flux job eventlog -f json $jobid >log &&
	test "$(jq -r "select(.name == \"exception\").context.note" log)" = "a note"
'
test_expect_success 'a lesser one does not' '
	probe warn &&
	events $jobid >names &&
	grep exception names &&
	grep finish names
'
test_expect_success 'annotations from a callback reach the job' '
	probe annotate &&
	flux jobs -a -no "{annotations.probe}" $jobid >note &&
	grep hello note
'
test_expect_success 'what makes no sense is refused' '
	probe misuse &&
	grep "^    " out | grep -v -e subscribe -e aux: -e late >part &&
	cat >expected <<-EOF &&
	    epilog: EINVAL
	    aux of nobody: ENOENT
	EOF
	test_cmp expected part
'
test_expect_success 'the plugin decides on priority' '
	probe priority &&
	grep "^job.state.sched P>S priority=42" out
'
test_expect_success 'prolog and epilog come in between' '
	probe perilog &&
	events $jobid >names &&
	cat >expected <<-EOF &&
	submit
	validate
	depend
	priority
	alloc
	prolog-start
	prolog-finish
	start
	finish
	epilog-start
	epilog-finish
	release
	free
	clean
	EOF
	test_cmp expected names &&
	grep "^    " out | grep -v -e subscribe -e aux: -e late >part &&
	cat >expected <<-EOF &&
	    prolog: ok
	    prolog over: ok
	    prolog: EINVAL
	    epilog: ok
	    epilog over: ok
	EOF
	test_cmp expected part
'
test_expect_success 'what is for callbacks is refused outside, updates by ID are not' '
	jobid=$(flux submit --urgency=hold true) &&
	flux job wait-event -q -t 300 $jobid priority &&
	test_must_fail call $jobid prolog &&
	call $jobid update &&
	flux cancel $jobid &&
	flux job wait-event -q -t 300 $jobid clean &&
	test_must_fail call $jobid update
'
test_expect_success 'an update is asked about by the topic of its key' '
	jobid=$(flux submit --urgency=hold true) &&
	flux job wait-event -q -t 300 $jobid priority &&
	: >probe.log &&
	flux update $jobid one=1 two=2 &&
	flux job wait-event -q -t 300 -c 2 $jobid priority &&
	cat >expected <<-EOF &&
	job.update.attributes.system.one S priority=0
	job.update.attributes.system.two S priority=0
	job.validate S priority=0
	job.event.jobspec-update P priority=0
	job.update P priority=0
	job.state.priority S>P priority=0
	job.event.priority S priority=0
	job.state.sched P>S priority=0
	EOF
	probe_log >out &&
	test_cmp expected out
'
test_expect_success 'the plugin may refuse it' '
	: >probe.log &&
	test_must_fail flux update $jobid one=3 deny=1 2>err &&
	grep "not that" err &&
	! grep jobspec-update probe.log
'
test_expect_success 'and may add to it, and vouch for it' '
	: >probe.log &&
	flux update $jobid more=1 &&
	flux job wait-event -q -t 300 -c 3 $jobid priority &&
	! grep job.validate probe.log &&
	flux job info $jobid jobspec >spec &&
	jq -e ".attributes.system | .one == 1 and .more == 1 and .extra == 5" spec &&
	flux cancel $jobid &&
	flux job wait-event -q -t 300 $jobid clean
'
test_expect_success 'a reloaded plugin is told of active jobs' '
	held=$(flux submit --urgency=hold true) &&
	run=$(flux submit sleep inf) &&
	flux job wait-event -q -t 300 $run start &&
	flux jobtap remove probe.so &&
	: >probe.log &&
	flux jobtap load "$PWD/probe.so" log="$PWD/probe.log" &&
	sort >expected <<-EOF &&
	job.create S priority=0
	job.new S priority=0
	    subscribe: ok
	    aux: ok
	job.create R priority=16 R
	job.new R priority=16 R
	    subscribe: ok
	    aux: ok
	EOF
	grep -v job.priority.get probe.log | sort >out &&
	test_cmp expected out &&
	flux jobtap remove probe.so &&
	test "$(grep -c freed probe.log)" = 2 &&
	flux cancel $held $run &&
	flux job wait-event -q -t 300 $run clean
'
test_expect_success 'configuration that a plugin refuses is refused' '
	flux jobtap load "$PWD/probe.so" log=/dev/null &&
	echo "{\"probe\": {\"say\": 1}}" | flux python -c "
import json, sys, flux
conf = flux.Flux().rpc(\"config.get\").get()
conf.update(json.load(sys.stdin))
print(json.dumps(conf))" >bad.json &&
	test_must_fail flux config load bad.json 2>err &&
	grep "probe.say must be a string" err
'
test_expect_success 'removing what is not there fails' '
	flux jobtap remove all &&
	test_must_fail flux jobtap remove probe.so &&
	test_must_fail flux jobtap load nosuch.so
'
test_done
