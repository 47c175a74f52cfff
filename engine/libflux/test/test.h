/* SPDX-License-Identifier: LGPL-3.0-only */
/* test.h - what the tests of libflux share. */
#ifndef SOLO_TEST_H
#define SOLO_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <flux/core.h>

#define assert_errno(expr, errnum) \
    do { \
        errno = 0; \
        assert_true (expr); \
        assert_int_equal (errno, errnum); \
    } while (0)

#endif
