#!/bin/bash
# flux rabbit presets: what a user may write in place of directives.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='flux rabbit presets'
. "$(dirname "$0")/sharness.sh"

XFS='#DW jobdw type=xfs capacity=10GiB name=scratch'
COPY='#DW copy_out source=$DW_JOB_scratch/out destination=/lus/out'
dws_config () {
	cat <<-EOF
	[rabbit.presets]
	scratch = "$XFS"
	saved = ["$XFS", '''
	$COPY
	''']
	EOF
}
test_under_flux 2

as_guest () {
	FLUX_HANDLE_USERID=4242 FLUX_HANDLE_ROLEMASK=0x2 "$@"
}
test_expect_success 'each is listed with its directives' '
	flux rabbit presets >out &&
	cat >expected <<-EOF &&
	saved    $XFS
	         $COPY
	scratch  $XFS
	EOF
	test_cmp expected out
'
test_expect_success 'also for guests' '
	as_guest flux rabbit presets >out && test_cmp expected out
'
test_expect_success 'by name, and for programs' '
	flux rabbit presets scratch --json >json &&
	jq -e ". == {scratch: [\"$XFS\"]}" json
'
test_expect_success 'one that is not there' '
	test_expect_code 1 flux rabbit presets scratsh 2>err &&
	grep "there is no preset .scratsh.: saved, scratch" err
'
test_expect_success 'there are none' '
	sed -i "/rabbit.presets/,\$d" "$DWS_TMP/conf.d/test.toml" && flux config reload &&
	flux rabbit presets >out && test_must_be_empty out
'
test_done
