#!/bin/bash
# flux getrabbit: compute nodes and jobs to rabbits, and back.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='flux getrabbit'
. "$(dirname "$0")/sharness.sh"
test_under_flux 2

DATA=$SHARNESS_TEST_SRCDIR/data/rabbitmap

# says HOSTLIST ARGS...: what flux getrabbit prints
says () {
	echo "$1" >expected &&
	shift &&
	flux getrabbit "$@" >actual &&
	test_cmp expected actual
}

test_expect_success 'without a configured mapping the key is named' '
	test_must_fail flux getrabbit 2>err &&
	grep "rabbit.mapping" err
'
test_expect_success 'a mapping that is not there is named' '
	cp $DWS_TMP/conf.d/test.toml saved.toml &&
	cp "$DWS_SRCDIR/t/data/rabbitmap/mapping.json" gone.json &&
	printf "[rabbit]\nmapping = \"$PWD/gone.json\"\n" \
		>>$DWS_TMP/conf.d/test.toml &&
	flux config reload &&
	rm gone.json &&
	test_must_fail flux getrabbit 2>err &&
	grep "/gone.json: No such file" err
'
test_expect_success 'configure a mapping' '
	cp saved.toml $DWS_TMP/conf.d/test.toml &&
	printf "[rabbit]\nmapping = \"%s\"\n" $DATA/mapping.json \
		>>$DWS_TMP/conf.d/test.toml &&
	flux config reload
'
test_expect_success 'all rabbits' '
	says "fig[101-102]"
'
test_expect_success 'rabbits to computes' '
	says "fig[1-2]" fig101 &&
	says "fig[1-3]" "fig[101-102]" &&
	says "fig[1-3]" fig102 fig101 fig102
'
test_expect_success 'computes to rabbits' '
	says fig101 -c fig2 &&
	says "fig[101-102]" --computes "fig[1-2]" fig3
'
test_expect_success 'what is not there is named' '
	test_must_fail flux getrabbit fig103 2>err &&
	grep fig103 err &&
	test_must_fail flux getrabbit -c fig1 fig7 2>err &&
	grep fig7 err &&
	test_must_fail flux getrabbit -c "fig[" 2>err &&
	grep "fig\[" err
'
test_expect_success 'an empty hostlist is no host: it may be a variable that is not set' '
	for words in "" "-c"; do
		test_expect_code 1 flux getrabbit $words "" >out 2>err &&
		grep "names no host" err &&
		test_must_be_empty out || return 1
	done
'
test_expect_success 'it ends with its reader, and without standard streams' '
	{ flux getrabbit 2>err || echo $? >rc; } | true &&
	test_must_be_empty err &&
	flux getrabbit >&- 2>err &&
	test_must_be_empty err
'
test_expect_success 'arguments that exclude each other' '
	test_must_fail flux getrabbit --computes 2>err &&
	test_must_fail flux getrabbit fig101 -c fig1 2>err &&
	grep combined err &&
	test_must_fail flux getrabbit fig101 -j f1 2>err &&
	grep combined err
'
test_expect_success 'jobs to rabbits, by their memo' '
	jobid=$(flux submit -n1 sleep 300) &&
	flux job memo $jobid rabbits="fig[101,105]" &&
	says "fig[101,105]" -j $jobid &&
	says "fig[101-102,105]" -j $jobid -c fig3 &&
	flux cancel $jobid &&
	flux job wait-event $jobid clean
'
test_expect_success 'jobs without rabbits, and none at all' '
	jobid=$(flux submit -n1 true) &&
	test_must_fail flux getrabbit -j $jobid 2>err &&
	grep "uses no rabbits" err &&
	test_must_fail flux getrabbit -j 12.5 2>err &&
	grep "12.5" err &&
	test_must_fail flux getrabbit -j foobar 2>err &&
	grep foobar err
'
test_done
