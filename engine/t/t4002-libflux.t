#!/bin/bash
# What libflux-core's functions do for a program in an instance.
# SPDX-License-Identifier: LGPL-3.0-only

test_description='The C interface is the same on every engine'
. "$(dirname "$0")/../../t/sharness.sh"
test_under_flux 4

tests=$DWS_SRCDIR/engine/t/libflux
lib=${DWS_FLUX_LIBDIR:-$DWS_PREFIX/lib/flux-solo}
export CMOCKA_MESSAGE_OUTPUT=TAP

# Results of a program are indented, or they were taken for ours.
for path in "$tests"/*.c; do
	name=$(basename "$path" .c)
	test_expect_success "$name" '
		${CC:-cc} -std=gnu11 -Wall -Wextra -Werror -Wno-unused-parameter \
			-I "$DWS_PREFIX/lib/flux-solo/include" \
			-I "$DWS_SRCDIR/engine/libflux/test" \
			-o $name "$path" -L"$lib" -Wl,-rpath,"$lib" \
			-lflux-core -lcmocka -ljansson &&
		{ dws_wait 300 ./$name >$name.out 2>&1 ||
			{ sed "s/^/  /" $name.out; false; }; }
	'
done
test_done
