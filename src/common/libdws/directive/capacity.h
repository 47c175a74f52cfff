/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The sizes of directives: a whole number and a unit.
 */

#ifndef LIBDWS_CAPACITY_H
#define LIBDWS_CAPACITY_H

#include <stdint.h>

/* The units, for messages.
 */
#define DWS_CAPACITY_UNITS "KiB, KB, MiB, MB, GiB, GB, TiB, TB"

/* Read a size such as "10GiB" as bytes. Fails with EINVAL (not a size) or
 * ERANGE (more than can be counted).
 */
int dws_capacity_parse (const char *s, int64_t *bytes);

#endif /* !LIBDWS_CAPACITY_H */
