/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The clocks of this host, for libdws/util/timeline.h.
 */

#ifndef LIBUTIL_CLOCKS_H
#define LIBUTIL_CLOCKS_H

#include <stdio.h>
#include <string.h>
#include <time.h>

/* What a clock says (s): CLOCK_REALTIME or CLOCK_MONOTONIC.
 */
static inline double clock_seconds (clockid_t id)
{
    struct timespec ts = { 0 };

    (void)clock_gettime (id, &ts);
    return ts.tv_sec + ts.tv_nsec * 1E-9;
}

/* A name of the time since the host was booted, which the monotonic clock counts. ""
 * where there is none. Returns buf.
 */
#define BOOT_NAME_SIZE 64
static inline const char *boot_name (char buf[BOOT_NAME_SIZE])
{
    FILE *file = fopen ("/proc/sys/kernel/random/boot_id", "r");

    if (!file || !fgets (buf, BOOT_NAME_SIZE, file))
        buf[0] = '\0';
    buf[strcspn (buf, "\n")] = '\0';
    if (file)
        fclose (file);
    return buf;
}

#endif /* !LIBUTIL_CLOCKS_H */
