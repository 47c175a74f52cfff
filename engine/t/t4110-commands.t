#!/bin/bash
# The commands that are not about single jobs.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='flux kvs, config, module, jobtap, resource, queue ...'
. "$(dirname "$0")/../../t/sharness.sh"
test_under_flux 4

test_expect_success 'kvs: what is put can be got' '
	flux kvs put a.b.c=42 a.b.d=\"foo\" e="bar baz" &&
	flux kvs get a.b.c a.b.d e >out &&
	printf "42\n\"foo\"\nbar baz\n" >expected &&
	test_cmp expected out
'
test_expect_success 'kvs: raw values come back as they are' '
	printf "a\\0b" >value &&
	flux kvs put --raw bin=- <value &&
	flux kvs get --raw bin >out &&
	cmp value out
'
test_expect_success 'kvs: a key that is not there' '
	test_must_fail flux kvs get no.such.key 2>err &&
	grep "no.such.key: No such file or directory" err
'
test_expect_success 'kvs: directories are listed' '
	flux kvs ls -1 a.b >out &&
	printf "c\nd\n" >expected &&
	test_cmp expected out &&
	flux kvs ls -1 a >out &&
	echo b >expected &&
	test_cmp expected out &&
	flux kvs dir -R a >out &&
	printf "a.b.c = 42\na.b.d = \"foo\"\n" >expected &&
	test_cmp expected out
'
test_expect_success 'kvs: what is put is on disk when asked for' '
	flux kvs put --sync e="bar baz" &&
	flux kvs sync &&
	test "$(flux kvs get e)" = "bar baz"
'
test_expect_success 'kvs: unlink' '
	flux kvs unlink e &&
	test_must_fail flux kvs get e &&
	test_must_fail flux kvs unlink a 2>err &&
	grep "Directory not empty" err &&
	flux kvs unlink -R a &&
	test_must_fail flux kvs get a.b.c &&
	test_must_fail flux kvs unlink a &&
	flux kvs unlink -f a
'
test_expect_success 'config: load replaces, reload returns to the files' '
	test "$(flux config get resource.noverify)" = true &&
	echo "{\"foo\":{\"bar\":[1,2],\"s\":\"x\"}}" | flux config load &&
	test "$(flux config get foo.s)" = x &&
	flux config get foo.bar >config.out &&
	jq -e ". == [1,2]" <config.out &&
	test_must_fail flux config get foo.nosuch &&
	test "$(flux config get --default=d foo.nosuch)" = d &&
	flux config reload &&
	test_must_fail flux config get foo.s
'
test_expect_success 'config: nonsense is refused' '
	echo "[unbalanced" | test_must_fail flux config load &&
	test "$(flux config get resource.noverify)" = true
'
test_expect_success 'attributes' '
	test "$(flux getattr rank)" = 0 &&
	test_must_fail flux getattr no-such-attribute 2>err &&
	grep "no-such-attribute: No such file or directory" err
'
test_expect_success 'modules' '
	flux module list >out &&
	grep "^job-manager  *[0-9idle]*  R" out &&
	test_must_fail flux module remove no-such-module &&
	flux module remove -f no-such-module &&
	test_must_fail flux module load no-such-module
'
test_expect_success 'jobtap' '
	flux jobtap list -a >list.out &&
	grep priority-default <list.out &&
	test_must_fail flux jobtap load no-such-plugin.so 2>err &&
	grep no-such-plugin err &&
	test_must_fail flux jobtap remove no-such-plugin
'
test_expect_success 'the log' '
	flux python -c "import flux; flux.Flux().log(3, \"hello there\")" &&
	flux dmesg >dmesg &&
	grep "err\[0\]: hello there" dmesg &&
	flux dmesg -C &&
	flux dmesg >dmesg &&
	test_must_fail grep "hello there" dmesg
'
test_expect_success 'resource list' '
	flux resource list -s all -no "{nnodes} {ncores} {nodelist}" >out &&
	echo "4 16 node[0-3]" >expected &&
	test_cmp expected out
'
test_expect_success 'resource drain and undrain' '
	flux resource drain node1 it is broken &&
	test_must_fail flux resource drain 1 again 2>err &&
	grep "already drained" err &&
	flux resource drain -o "{reason}:{nodelist}:{state}" -n >out &&
	echo "it is broken:node1:drained" >expected &&
	test_cmp expected out &&
	flux resource status -s drain -no "{nodelist}" >out &&
	echo node1 >expected &&
	test_cmp expected out &&
	flux resource undrain 1 &&
	test_must_fail flux resource undrain 1
'
test_expect_success 'a drained node gets no job' '
	flux resource drain 0-2 &&
	flux run hostname &&
	flux jobs -no "{nodelist}" $(flux job last) >out &&
	echo node3 >expected &&
	test_cmp expected out &&
	flux resource undrain 0-2
'
test_expect_success 'a stopped queue starts no job' '
	flux queue stop -m "for a while" >out &&
	grep "Scheduling is stopped: for a while" out &&
	jobid=$(flux submit true) &&
	flux job wait-event -t 300 $jobid priority &&
	flux jobs -no "{state}" $jobid >out &&
	echo SCHED >expected &&
	test_cmp expected out &&
	flux queue start &&
	flux job wait-event -t 300 $jobid clean
'
test_expect_success 'queue drain waits for the jobs' '
	flux submit --setattr=exec.test.run_duration=0.2s true &&
	flux queue drain -t 300 &&
	flux jobs -no "{id}" >out &&
	test ! -s out &&
	flux queue idle
'
# started COMMAND...: in an instance of its own with the scripts of rc/.
started () {
	env -u FLUX_URI FLUX_RC_EXTRA="$PWD/none:$PWD/rc" "$FLUX" start -s 1 "$@"
}
test_expect_success 'an instance runs scripts at its start and its end' '
	mkdir -p rc/rc1.d rc/rc3.d &&
	for level in 1 3; do
		for name in one two; do
			cat >rc/rc$level.d/$name <<-EOF || return 1
			#!/bin/sh
			echo "$level $name \$(flux getattr rank)" >>"$PWD/ran"
			EOF
			chmod +x rc/rc$level.d/$name || return 1
		done
	done &&
	echo "exit 1" >rc/rc1.d/no-program &&
	started sh -c "echo program >>ran" &&
	cat >expected <<-EOF &&
	1 one 0
	1 two 0
	program
	3 one 0
	3 two 0
	EOF
	test_cmp expected ran
'
test_expect_success 'it does not run its program if one fails' '
	printf "#!/bin/sh\nexit 7\n" >rc/rc1.d/one &&
	rm ran &&
	test_must_fail started sh -c "echo program >>ran" 2>err &&
	grep "rc1.d/one failed with exit code 7" err &&
	test "$(head -1 ran)" = "1 two 0" &&
	! grep program ran
'
test_expect_success 'it fails if one at the end does' '
	rm rc/rc1.d/one &&
	printf "#!/bin/sh\nexit 7\n" >rc/rc3.d/one &&
	rm ran &&
	! started sh -c "echo program >>ran" &&
	grep program ran
'
test_done
