/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The log of the broker, for lines with words of users and of Kubernetes in
 * them: flux_log() makes a line of its own of what follows a line feed.
 */

#ifndef LIBUTIL_SAFELOG_H
#define LIBUTIL_SAFELOG_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <flux/core.h>

#include "libdws/util/clean.h"
#include "libutil/errno_safe.h"

static inline void safe_vlog (flux_t *h, int level, const char *error,
                              const char *fmt, va_list ap)
{
    char *text = NULL;
    char *shown = NULL;

    if (vasprintf (&text, fmt, ap) < 0)
        text = NULL;
    else if ((shown = dws_clean_copy (text)))
        flux_log (h, level, "%s%s%s", shown, error ? ": " : "",
                  error ? error : "");
    free (shown);
    free (text);
}

/* As flux_log() and flux_log_error(), in one line that is cleaned. Both leave
 * errno alone.
 */
static inline void safe_log (flux_t *h, int level, const char *fmt, ...)
    __attribute__ ((format (printf, 3, 4)));

static inline void safe_log (flux_t *h, int level, const char *fmt, ...)
{
    ERRNO_SAFE_BLOCK;
    va_list ap;

    va_start (ap, fmt);
    safe_vlog (h, level, NULL, fmt, ap);
    va_end (ap);
}

static inline void safe_log_error (flux_t *h, const char *fmt, ...)
    __attribute__ ((format (printf, 2, 3)));

static inline void safe_log_error (flux_t *h, const char *fmt, ...)
{
    ERRNO_SAFE_BLOCK;
    va_list ap;

    va_start (ap, fmt);
    safe_vlog (h, LOG_ERR, strerror (errno), fmt, ap);
    va_end (ap);
}

#endif /* !LIBUTIL_SAFELOG_H */
