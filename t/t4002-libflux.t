#!/bin/bash
# What libflux-core's functions do for a program in an instance.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='The C interface is the same on every engine'
. "$(dirname "$0")/sharness.sh"
test_under_flux 4

tests=$DWS_SRCDIR/t/libflux
lib=${DWS_FLUX_LIBDIR:-$DWS_PREFIX/lib/flux-solo}
export CMOCKA_MESSAGE_OUTPUT=TAP

for path in "$tests"/*.c; do
	name=$(basename "$path" .c)
	test_expect_success "$name" '
		${CC:-cc} -std=gnu11 -Wall -Wextra -Werror -Wno-unused-parameter \
			-I "$DWS_SRCDIR/src/solo/include" \
			-I "$DWS_SRCDIR/src/solo/libflux/test" \
			-o $name "$path" -L"$lib" -Wl,-rpath,"$lib" \
			-lflux-core -lcmocka -ljansson &&
		dws_wait 60 ./$name
	'
done
test_expect_success 'every function that solo has is in a test, or listed' '
	python3 "$tests/untested.py" "$DWS_SRCDIR"
'
test_done
