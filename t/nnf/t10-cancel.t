#!/bin/bash
# A job is cancelled in every phase.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Cancelled with the controllers of NNF'
. "$(dirname "$0")/../sharness.sh"
. "$DWS_SRCDIR/t/nnf/nnf.sh"
test_under_flux 4

test_expect_success 'load everything' '
	nnf_setup
'
test_expect_success 'a job is cancelled in each phase' '
	nnf_crowd cancel
'
test_expect_success 'each ends as it should, nothing is left' '
	nnf_outcome cancelled t1014-faults.t
'
test_done
