#!/bin/bash
# scripts/demo works, as the first contact of most users with flux-dws.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='The demo'
. "$(dirname "$0")/sharness.sh"

# As scripts/demo does it: the path of this directory has a space in it.
work=$(mktemp -d) || exit 1
cleanup "rm -rf $work"

test_expect_success 'one job from submit to clean' '
	"$FLUX_DWS_PREFIX/bin/python3" "$DWS_SRCDIR/scripts/lib/instance.py" \
		--flux "$FLUX" --prefix "$FLUX_DWS_PREFIX" --workdir "$work" \
		"$DWS_SRCDIR/scripts/lib/demo.py" --fast --picture "$PWD/timeline" \
		>out 2>&1
'
test_expect_success 'it shows each state of the workflow, and that nothing is left' '
	for state in Proposal Setup DataIn PreRun PostRun DataOut Teardown; do
		grep "^  ✓ $state  *[0-9]* ms" out || return 1
	done &&
	test "$(grep -c "^  ● the job" out)" = 3 &&
	grep "^  result.1: rank 1 wrote this" out &&
	grep "^All is well" out
'
test_expect_success 'and draws where the time went' '
	grep "<html" timeline.html && grep "<svg" timeline.svg
'
test_done
