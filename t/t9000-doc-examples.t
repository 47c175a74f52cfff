#!/bin/bash
# Every command that the documentation shows does what it says.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='The commands of the documentation'
. "$(dirname "$0")/sharness.sh"
test_under_flux 4

test_expect_success 'load everything' '
	echo "stage_out_retry = \"1h\"" >rabbit.toml &&
	dws_setup --containers run &&
	dws_ctl grant nnfdatamovements:delete
'
for page in "$DWS_SRCDIR"/doc/user/*.rst "$DWS_SRCDIR"/doc/admin/*.rst \
	"$DWS_SRCDIR"/doc/man*/*.rst; do
	grep -q "code-block:: console" "$page" || continue
	test_expect_success "doc/${page#"$DWS_SRCDIR"/doc/}" '
		flux python "$DWS_SRCDIR/t/scripts/doc_examples.py" "$page"
	'
done
test_expect_success 'nothing is left of them' '
	dws_clean
'
test_done
