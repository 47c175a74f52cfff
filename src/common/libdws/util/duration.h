/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Spans of time as people write them.
 */

#ifndef LIBDWS_DURATION_H
#define LIBDWS_DURATION_H

/* Seconds of a Flux Standard Duration (RFC 23): a number with an optional unit ms,
 * s, m, h, d, or infinity. Returns -1 for anything else.
 */
int dws_duration_parse (const char *s, double *seconds);

#endif /* !LIBDWS_DURATION_H */
