/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * For tests that have breakdowns as JSON.
 */

#ifndef LIBDWS_STORAGE_TEST_WITH_H
#define LIBDWS_STORAGE_TEST_WITH_H

#include "libdws/storage/breakdowns.h"
#include "libutil/errno_safe.h"

/* The value of 'call', which reads 'bd', the breakdowns of 'objects'; NULL with errno and
 * 'error' set if these cannot be read.
 */
#define WITH_BREAKDOWNS(objects, error, call) ({                            \
    struct dws_breakdowns *bd = dws_breakdowns_create (objects, error);     \
    __typeof__ (call) result_ = bd ? (call) : NULL;                         \
                                                                            \
    ERRNO_SAFE (dws_breakdowns_destroy (bd));                               \
    result_;                                                                \
})

/* The breakdowns of a job without any: the same each time.
 */
static inline struct dws_breakdowns *no_breakdowns (void)
{
    static struct dws_breakdowns *none;

    if (!none)
        none = dws_breakdowns_create (NULL, NULL);
    return none;
}

#endif /* !LIBDWS_STORAGE_TEST_WITH_H */
