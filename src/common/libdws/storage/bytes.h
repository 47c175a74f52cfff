/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Bytes by rabbit: objects {RABBIT: BYTES}, in the form in which R, schedulers and
 * dws.status have them. A rabbit without an entry has 0 bytes; NULL is an empty map.
 */

#ifndef LIBDWS_BYTES_H
#define LIBDWS_BYTES_H

#include <stdbool.h>
#include <stdint.h>
#include <jansson.h>

int64_t dws_bytes_get (json_t *map, const char *rabbit);

/* Add 'n' bytes, which may be negative. A sum stops at INT64_MAX, and the entry of a
 * rabbit goes when its sum is 0 or less. Fails with ENOMEM.
 */
int dws_bytes_add (json_t *map, const char *rabbit, int64_t n);

/* Add all entries of 'other', or (sign -1) subtract them. Without memory a sum may stay
 * too low.
 */
void dws_bytes_add_map (json_t *map, json_t *other, int sign);

/* The bytes of all rabbits, at most 'most'.
 */
int64_t dws_bytes_sum (json_t *map, int64_t most);

/* Do two objects whose keys are rabbits have a rabbit in common?
 */
bool dws_bytes_meet (json_t *a, json_t *b);

#endif /* !LIBDWS_BYTES_H */
