#!/bin/bash
# What programs expect of the engine at the level of messages.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='Attributes, RPC, services, events, roles and log'
. "$(dirname "$0")/../../t/sharness.sh"
test_under_flux 2

api=$DWS_SRCDIR/engine/t/scripts/engine-api.py

test_expect_success 'list the tests' '
	sed -n "s/^    def \(test_[a-z_]*\).*/\1/p" "$api" >tests &&
	test "$(wc -l <tests)" -ge 10
'
for name in $(cat tests); do
	test_expect_success "$name" '
		dws_wait 300 flux python "$api" TestEngine.$name
	'
done
test_done
