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

/* A guess at the duration that was meant by another text: other names of units, blanks,
 * several numbers, as "5 min" or "1h30m". Returns buf, or NULL.
 */
#define DWS_DURATION_SIZE 32
const char *dws_duration_guess (const char *s, char buf[DWS_DURATION_SIZE]);

#endif /* !LIBDWS_DURATION_H */
