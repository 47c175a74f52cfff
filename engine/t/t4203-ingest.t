#!/bin/bash
# Frobnicator and validator plugins, as [ingest] has them.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Plugins that change and judge jobspecs'
. "$(dirname "$0")/../../t/sharness.sh"

# "mark" tells what it was given; what a job asks for by attributes happens.
# "judge" refuses what has system.bad.
dws_config () {
	cat >"$DWS_TMP/mark.py" <<-EOF &&
	"""Leave a mark on the job."""
	import os
	from flux.job.frobnicator import FrobnicatorPlugin

	class Frobnicator(FrobnicatorPlugin):
	    def __init__(self, parser):
	        parser.add_argument("--mark", default="none")

	    def configure(self, args, config):
	        self.mark = args.mark

	    def frob(self, jobspec, userid, urgency, flags):
	        system = jobspec.attributes["system"]
	        if "crash" in system:
	            os._exit(3)
	        if "refuse" in system:
	            raise ValueError(f"refused for {system['refuse']}")
	        if "block" in system:
	            open(system["block"], "w").write("blocked")
	            open(system["block"] + ".end").read()
	        system["mark"] = [self.mark, userid, urgency, flags]
	EOF
	cat >"$DWS_TMP/judge.py" <<-EOF &&
	"""Refuse what is bad."""
	from flux.job.validator import ValidatorPlugin

	class Validator(ValidatorPlugin):
	    def validate(self, job):
	        if "mark" not in job.jobspec["attributes"]["system"]:
	            return (22, "no mark")
	        if "bad" in job.jobspec["attributes"]["system"]:
	            return (22, f"bad job of {job.userid}")
	EOF
	cat <<-EOF
	[ingest.frobnicator]
	plugins = ["defaults", "$DWS_TMP/mark.py"]
	args = ["--mark=one"]
	[ingest.validator]
	plugins = ["jobspec", "$DWS_TMP/judge.py"]
	[policy.jobspec.defaults.system]
	duration = "90s"
	EOF
}
test_under_flux 2

frob=$DWS_TMP/mark.py
fifo=$DWS_TMP/fifo
# The processes that run this test's plugins, as long as they have to do.
workers () {
	pgrep -f "job-frobnicator.*$frob" || :
}
# reconfigure: take standard input in place of all tables of [ingest]
reconfigure () {
	sed "/^\[ingest/,\$d" "$DWS_TMP/conf.d/test.toml" >conf &&
	cat >>conf &&
	cp conf "$DWS_TMP/conf.d/test.toml" &&
	flux config reload
}

test_expect_success 'a job is what the plugins make of it' '
	jobid=$(flux submit --urgency=5 --flags=debug true) &&
	flux job wait-event -t 60 $jobid clean &&
	flux job info $jobid jobspec >jobspec &&
	jq -e ".attributes.system | .mark == [\"one\", $(id -u), 5, 2] and
		.duration == 90" jobspec &&
	flux job eventlog -f json $jobid >eventlog && head -n 1 eventlog >first &&
	jq -e ".name == \"submit\" and .context.userid == $(id -u) and
		.context.urgency == 5" first
'
test_expect_success 'what was asked for is kept, too' '
	flux job info --original $jobid jobspec >original &&
	jq -e ".attributes.system | (has(\"mark\") or .duration == 90) | not" original
'
test_expect_success 'they can refuse it, with a reason' '
	test_must_fail flux submit -S refuse=fun true 2>err &&
	grep "refused for fun" err &&
	test_must_fail flux submit -S bad true 2>err &&
	grep "bad job of $(id -u)" err
'
test_expect_success 'plugins do not replace the check of the jobspec' '
	flux submit --dry-run true >submit.out &&
	jq "del(.tasks)" <submit.out >notasks &&
	test_must_fail flux python -c "
import flux, sys
from flux.job import submit
submit(flux.Flux(), open(\"notasks\").read())" 2>err &&
	grep -i tasks err
'
test_expect_success 'the owner can go without the validator' '
	flux submit -S bad --flags=novalidate true
'
test_expect_success 'a plugin that ends its process ends one request' '
	test_must_fail flux submit -S crash true 2>err &&
	grep "worker unexpectedly exited" err &&
	flux submit true
'
test_expect_success 'many at once are shared by processes' '
	flux submit --cc=1-100 --quiet true &&
	flux queue drain -t 120 &&
	flux jobs -ano "{status}" >status &&
	test $(grep -c COMPLETED status) -ge 100
'
test_expect_success 'a new configuration starts new processes' '
	workers >before &&
	reconfigure <<-EOF &&
	[ingest.frobnicator]
	plugins = ["$frob"]
	args = ["--mark=two"]
	EOF
	jobid=$(flux submit true) &&
	flux job info $jobid jobspec >jobspec.out &&
	jq -e ".attributes.system.mark[0] == \"two\"" <jobspec.out &&
	workers >after &&
	test_must_fail test_cmp before after
'
test_expect_success 'a faulty one is refused, with what is wrong' '
	test_must_fail reconfigure 2>err <<-EOF &&
	[ingest.frobnicator]
	plugins = [1]
	EOF
	grep "ingest.frobnicator.*plugins" err &&
	test_must_fail reconfigure 2>err <<-EOF &&
	[ingest.validator]
	args = "foo"
	EOF
	grep "ingest.validator.*args" err &&
	flux submit true
'
test_expect_success 'a plugin that is not there refuses all' '
	reconfigure <<-EOF &&
	[ingest.frobnicator]
	plugins = ["no-such-plugin"]
	EOF
	test_must_fail flux submit true 2>err &&
	grep "worker unexpectedly exited" err
'
test_expect_success 'plugins of flux-python can be chosen' '
	reconfigure <<-EOF &&
	[ingest.validator]
	plugins = ["jobspec", "require-instance"]
	args = ["--require-instance-minnodes=2"]
	EOF
	flux submit -N1 true &&
	test_must_fail flux submit -N2 true 2>err &&
	grep "disabled for jobs >= 2 nodes" err
'
test_expect_success 'both can be disabled' '
	reconfigure <<-EOF &&
	[ingest.frobnicator]
	disable = true
	plugins = ["$frob"]
	[ingest.validator]
	disable = true
	plugins = ["require-instance"]
	EOF
	jobid=$(flux submit -N2 -S refuse true) &&
	flux job info $jobid jobspec >jobspec.out &&
	jq -e ".attributes.system.mark == null" <jobspec.out
'
test_expect_success 'a queue gives defaults, and adds what it requires' '
	reconfigure <<-EOF &&
	[ingest.frobnicator]
	plugins = ["defaults", "constraints"]
	[queues.foo]
	requires = ["foo"]
	[queues.foo.policy.jobspec.defaults.system]
	duration = "5m"
	EOF
	test_must_fail flux submit true 2>err && grep "no queue specified" err &&
	test_must_fail flux submit -q bar true 2>err &&
	grep "Invalid queue .bar. specified" err &&
	: >constraints &&
	for opt in -n1 --requires=bar,foo --requires=rank:0; do
		flux submit -n1 -q foo --urgency=hold $opt true >id || return 1
		flux job info $(cat id) jobspec >jobspec &&
		jq -c .attributes.system.constraints jobspec >>constraints &&
		jq -e ".attributes.system.duration == 300" jobspec || return 1
	done &&
	cat >expected <<-EOF &&
	{"properties":["foo"]}
	{"properties":["bar","foo"]}
	{"and":[{"ranks":["0"]},{"properties":["foo"]}]}
	EOF
	test_cmp expected constraints &&
	flux cancel --all
'
test_expect_success 'options of the module go before the configuration' '
	reconfigure </dev/null &&
	flux module reload job-ingest validator-plugins=require-instance &&
	test_must_fail flux submit -N2 true 2>err &&
	grep "for all jobs" err &&
	flux module reload job-ingest disable-validator &&
	flux submit -N2 true &&
	test_must_fail flux module reload job-ingest no-such-option &&
	flux module load job-ingest
'
test_expect_success SOLO 'no request is lost when the module is removed' '
	reconfigure <<-EOF &&
	[ingest.frobnicator]
	plugins = ["$frob"]
	EOF
	mkfifo "$fifo" "$fifo.end" &&
	{ flux submit -S block=$fifo true 2>err & } &&
	pid=$! &&
	dws_wait 300 cat "$fifo" &&
	flux module reload job-ingest &&
	test_must_fail wait $pid &&
	test -s err &&
	flux submit true
'
test_expect_success 'the programs can be tried by hand' '
	flux job-frobnicator --list-plugins >out && grep defaults out &&
	flux job-validator --list-plugins >out && grep jobspec out &&
	flux submit --dry-run true >good &&
	flux job-validator --jobspec-only <good >out && jq -e ".errnum == 0" out &&
	test_must_fail flux job-validator --jobspec-only <notasks >out &&
	jq -e ".errnum != 0 and (.errstr | test(\"tasks\"; \"i\"))" out &&
	flux job-frobnicator --plugins=$frob --mark=hand --jobspec-only <good >out &&
	jq -e ".data.attributes.system.mark == [\"hand\", $(id -u), 16, 0]" out &&
	test_must_fail flux job-validator --plugins=no-such-plugin <good
'
test_done
