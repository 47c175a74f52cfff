/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Points in time as Kubernetes writes them.
 */

#ifndef LIBDWS_TIMESTAMP_H
#define LIBDWS_TIMESTAMP_H

/* Seconds since the epoch of an RFC 3339 time in UTC, with or without a
 * fraction. Returns 0 for anything else, NULL among it.
 */
double dws_timestamp (const char *s);

#endif /* !LIBDWS_TIMESTAMP_H */
