/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Bytes by rabbit: what is taken, reserved or free on each. JSON {RABBIT: BYTES} is for
 * R, schedulers, the KVS and dws.status only, and is read and written here.
 *
 * A rabbit without an entry has 0 bytes. Functions that only read take NULL for a map
 * without entries.
 */

#ifndef LIBDWS_BYTES_H
#define LIBDWS_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <jansson.h>

struct dws_bytes_of {
    char *rabbit;
    int64_t bytes;        // more than 0
};

/* { 0 } has no entries.
 */
struct dws_bytes {
    struct dws_bytes_of *list;  // by the name of the rabbit
    size_t count;
    size_t size;                // entries that 'list' has memory for
    bool lost;                  // memory ran out: bytes are missing
};

void dws_bytes_clear (struct dws_bytes *map);

int64_t dws_bytes_get (const struct dws_bytes *map, const char *rabbit);

/* Add 'n' bytes, which may be negative. A sum stops at INT64_MAX, and the entry of a
 * rabbit goes when its sum is 0 or less. Without memory 'lost' is set, and the sum stays
 * too low.
 */
void dws_bytes_add (struct dws_bytes *map, const char *rabbit, int64_t n);

/* Add all entries of 'other', or (sign -1) subtract them.
 */
void dws_bytes_add_map (struct dws_bytes *map, const struct dws_bytes *other,
                        int sign);

/* The bytes of all rabbits, at most 'most'.
 */
int64_t dws_bytes_sum (const struct dws_bytes *map, int64_t most);

/* Add what 'a' has on each rabbit above what 'b' has there. Returns false if that is
 * nothing.
 */
bool dws_bytes_add_excess (struct dws_bytes *map, const struct dws_bytes *a,
                           const struct dws_bytes *b);

/* The rabbits as a hostlist, which the caller frees. Returns NULL with errno ENOMEM.
 */
char *dws_bytes_rabbits (const struct dws_bytes *map);

/* Add the entries of an object {RABBIT: BYTES}; all else adds nothing.
 */
void dws_bytes_decode (struct dws_bytes *map, json_t *o);

/* Returns NULL with errno ENOMEM.
 */
json_t *dws_bytes_encode (const struct dws_bytes *map);

#endif /* !LIBDWS_BYTES_H */
