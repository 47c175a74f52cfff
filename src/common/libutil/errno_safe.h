/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Clean up after a failure without losing the errno that says what failed.
 */

#ifndef LIBUTIL_ERRNO_SAFE_H
#define LIBUTIL_ERRNO_SAFE_H

#include <errno.h>

static inline void errno_safe_restore (const int *kept)
{
    errno = *kept;
}

/* As a statement in a block, a destructor's for example: when the block is
 * left, by whatever way, errno is again what it is here.
 */
#define ERRNO_SAFE_BLOCK                                                    \
    __attribute__ ((cleanup (errno_safe_restore), unused))                  \
    const int errno_safe_kept = errno

/* Evaluate one expression, such as a call of a destructor, so that it leaves
 * errno alone.
 */
#define ERRNO_SAFE(expression)                                              \
    do {                                                                    \
        ERRNO_SAFE_BLOCK;                                                   \
        (void)(expression);                                                 \
    } while (0)

#endif /* !LIBUTIL_ERRNO_SAFE_H */
