#!/bin/bash
# What the tasks of a job see: environment, standard I/O, resources.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='The job shell'
. "$(dirname "$0")/../../t/sharness.sh"
test_under_flux 4

# lines N FILE
lines () {
	test "$(wc -l <"$2")" = "$1"
}

test_expect_success 'tasks know their place' '
	flux run -N2 -n4 sh -c "echo \$FLUX_TASK_RANK \$FLUX_TASK_LOCAL_ID \$FLUX_JOB_SIZE \$FLUX_JOB_NNODES" >out &&
	sort out >sorted &&
	cat >expected <<-EOF2 &&
	0 0 4 2
	1 1 4 2
	2 0 4 2
	3 1 4 2
	EOF2
	test_cmp expected sorted
'
test_expect_success 'uneven numbers of tasks are spread in blocks' '
	flux run -N2 -n3 sh -c "echo \$FLUX_TASK_RANK \$FLUX_TASK_LOCAL_ID" >out &&
	sort out >sorted &&
	cat >expected <<-EOF2 &&
	0 0
	1 1
	2 0
	EOF2
	test_cmp expected sorted
'
test_expect_success 'tasks per resource' '
	flux run -N2 --tasks-per-node=3 sh -c "echo \$FLUX_TASK_RANK" >out &&
	lines 6 out &&
	flux run -N2 --exclusive --tasks-per-core=1 true &&
	flux run -N1 --exclusive --tasks-per-core=2 echo x >out &&
	lines 8 out
'
test_expect_success 'the job ID and the way to the instance are in the environment' '
	flux run sh -c "echo \$FLUX_JOB_ID \$FLUX_KVS_NAMESPACE && flux getattr rank >/dev/null && echo \$FLUX_URI" >out &&
	jobid=$(flux job last) &&
	read id namespace <out &&
	test "$(flux job id $id)" = "$(flux job id $jobid)" &&
	test $namespace = "job-$(flux job id $jobid)" &&
	grep "^local://" out
'
test_expect_success 'the environment is the submitter'\''s' '
	DWS_TEST=foo flux run sh -c "echo \$DWS_TEST" >out &&
	echo foo >expected &&
	test_cmp expected out &&
	flux run --env=-* --env=PATH=$PATH --env=A="b c" sh -c "echo \$A" >out &&
	echo "b c" >expected &&
	test_cmp expected out
'
test_expect_success 'so is the working directory' '
	mkdir -p dir &&
	(cd dir && flux run pwd >../out) &&
	echo "$PWD/dir" >expected &&
	test_cmp expected out &&
	flux run --cwd=/ pwd >out &&
	echo / >expected &&
	test_cmp expected out
'
test_expect_success 'a directory that is not there becomes /tmp' '
	flux run --cwd=/no/such/dir pwd >out 2>err &&
	echo /tmp >expected &&
	test_cmp expected out &&
	grep "Could not change dir to /no/such/dir" err
'
test_expect_success 'stdout and stderr are kept apart' '
	flux run sh -c "echo out; echo err >&2" >out 2>err &&
	echo out >expected &&
	test_cmp expected out &&
	echo err >expected &&
	test_cmp expected err
'
test_expect_success 'output can be labelled' '
	flux run -n3 --label-io echo foo >out &&
	sort out >sorted &&
	printf "0: foo\n1: foo\n2: foo\n" >expected &&
	test_cmp expected sorted
'
test_expect_success 'output need not end in a newline, nor be text' '
	flux run printf "a\nb" >out &&
	printf "a\nb" >expected &&
	test_cmp expected out &&
	flux run printf "\\377\\376x\\n" >out &&
	printf "\\377\\376x\\n" >expected &&
	cmp expected out
'
test_expect_success 'much output arrives whole' '
	seq 1 20000 >expected &&
	flux run seq 1 20000 >out &&
	test_cmp expected out
'
test_expect_success 'input reaches all tasks' '
	printf "foo\nbar\n" | flux run -N2 -n2 cat >out &&
	test "$(grep -c foo out)" = 2 &&
	test "$(grep -c bar out)" = 2 &&
	lines 4 out
'
test_expect_success 'much input does, too' '
	seq 1 20000 >expected &&
	flux run cat <expected >out &&
	test_cmp expected out
'
test_expect_success 'a job that does not read its input ends' '
	cat >deaf.sh <<-\EOF &&
	exec <&-
	flux job wait-event -p guest.input -m eof=true $FLUX_JOB_ID data
	EOF
	dws_wait 300 flux run bash deaf.sh <expected &&
	flux run true </dev/null
'
test_expect_success SOLO 'files for input and output are refused' '
	touch input &&
	for option in output error input; do
		test_must_fail flux run --$option=input true 2>err &&
		grep "solo has no files" err || return 1
	done
'
test_expect_success SOLO 'a task that fails leaves the others alone' '
	test_expect_code 5 flux run -n2 -o exit-on-error sh -c \
		"test \$FLUX_TASK_RANK = 0 || exit 5; echo here" >out &&
	echo here >expected &&
	test_cmp expected out
'
test_expect_success 'options for what is not there are ignored' '
	flux run -o cpu-affinity=off -o gpu-affinity=off -o pmi=off true
'
test_done
