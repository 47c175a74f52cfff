#!/bin/bash
# Persistent file systems that expire, with the controllers that destroy them.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='When persistent file systems expire, with NNF'
. "$(dirname "$0")/../sharness.sh"
. "$DWS_SRCDIR/t/nnf/nnf.sh"
test_under_flux 4

# create NAME TYPE LIFETIME
create () {
	jobid=$(nnf_submit "#DW create_persistent type=$2 capacity=10GiB name=$1 \
		expires=$3" -N1 true) &&
	dws_wait_event $jobid clean && flux job status $jobid
}
extend () {
	flux rabbit persistent extend $1 --expires $2
}
# is NAME FILTER
is () {
	dws_wait_status ".persistent | map(select(.name == \"$1\")) | $2"
}
gone () {
	is $1 "length == 0"
}

test_expect_success 'load everything' '
	nnf_setup
'
for type in xfs gfs2 raw lustre; do
	test_expect_success "nothing is left of a $type file system that has expired" '
		create old-$type $type 1d &&
		is old-$type ".[0] | .expires - .created == 86400" &&
		extend old-$type 1s && gone old-$type &&
		dws_wait_status ".expiry == {listed: 0, destroying: 0, destroyed: $((++n))}" &&
		nnf_clean
	'
done
test_expect_success 'one that is in use is kept until its job has ended' '
	create used lustre 1d && create other gfs2 1d &&
	jobid=$(nnf_submit "#DW persistentdw name=used" -N1 sleep inf) &&
	dws_wait_event $jobid start &&
	extend used 2s && extend other 2500ms && gone other &&
	is used ".[0].state == \"Active\" and .[0].destroying == false" &&
	flux module reload "$DWS_MODULES/dws.so" &&
	dws_wait_status ".synced and .agent.synced" &&
	is used ".[0].state == \"Active\"" &&
	flux cancel $jobid && dws_wait_event $jobid clean &&
	gone used && nnf_clean
'
test_expect_success 'one is gone that expired while nobody was there' '
	create away gfs2 1d && extend away 2s &&
	flux module remove dws && flux module load "$DWS_MODULES/dws.so" &&
	gone away && nnf_clean
'
test_done
