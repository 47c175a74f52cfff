/* SPDX-License-Identifier: LGPL-3.0-only */
/* errprintf.h - fill a flux_error_t.  errp may be NULL; errno is kept.
 * Returns -1.
 */
#ifndef SOLO_ERRPRINTF_H
#define SOLO_ERRPRINTF_H

#include <flux/core.h>

#include "libutil/errno_safe.h"

static inline int __attribute__ ((format (printf, 2, 3)))
errprintf (flux_error_t *errp, const char *fmt, ...)
{
    ERRNO_SAFE_BLOCK;
    va_list ap;

    if (errp) {
        va_start (ap, fmt);
        vsnprintf (errp->text, sizeof (errp->text), fmt, ap);
        va_end (ap);
    }
    return -1;
}

#endif
