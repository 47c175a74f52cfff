#!/bin/bash
# What flux-python's calls do, by the tests in engine/t/conformance.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='flux-python does the same on every engine'
. "$(dirname "$0")/../../t/sharness.sh"
test_under_flux 4

run=$DWS_SRCDIR/engine/t/conformance/run.py

for path in "$DWS_SRCDIR"/engine/t/conformance/test_*.py; do
	name=$(basename "$path" .py)
	test_expect_success "$name" '
		dws_wait 300 flux python "$run" --record calls $name
	'
done
test_expect_success 'every public call is exercised or excused' '
	flux python "$run" --report calls
'
test_done
