/* SPDX-License-Identifier: LGPL-3.0-only */
/* flux/idset.h - sets of non-negative integers and their text form (RFC 22).
 * Functions that return int: 0 or -1 with errno; ids: IDSET_INVALID_ID if
 * there is none.
 */
#ifndef SOLO_FLUX_IDSET_H
#define SOLO_FLUX_IDSET_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

enum idset_flags {
    IDSET_FLAG_AUTOGROW = 1,
    IDSET_FLAG_BRACKETS = 2,
    IDSET_FLAG_RANGE = 4,
    IDSET_FLAG_INITFULL = 8,
    IDSET_FLAG_COUNT_LAZY = 16,
    IDSET_FLAG_ALLOC_RR = 32,
};

#define IDSET_INVALID_ID (UINT_MAX - 1)
#define IDSET_MAX_UNIVERSE ((size_t)INT_MAX + 1)

typedef struct {
    char text[160];
} idset_error_t;

struct idset;

struct idset *idset_create (size_t size, int flags);
void idset_destroy (struct idset *idset);
struct idset *idset_copy (const struct idset *idset);

/* Text.  len -1: up to the NUL. */
char *idset_encode (const struct idset *idset, int flags);
struct idset *idset_decode (const char *s);
int idset_decode_add (struct idset *idset, const char *s, ssize_t len,
                      idset_error_t *error);

/* Members. */
int idset_set (struct idset *idset, unsigned int id);
int idset_range_set (struct idset *idset, unsigned int lo, unsigned int hi);
int idset_clear (struct idset *idset, unsigned int id);
int idset_range_clear (struct idset *idset, unsigned int lo, unsigned int hi);
bool idset_test (const struct idset *idset, unsigned int id);
unsigned int idset_first (const struct idset *idset);
unsigned int idset_next (const struct idset *idset, unsigned int id);
unsigned int idset_last (const struct idset *idset);
size_t idset_count (const struct idset *idset);

/* Set algebra. */
bool idset_equal (const struct idset *a, const struct idset *b);
struct idset *idset_union (const struct idset *a, const struct idset *b);
struct idset *idset_difference (const struct idset *a, const struct idset *b);
struct idset *idset_intersect (const struct idset *a, const struct idset *b);
int idset_add (struct idset *a, const struct idset *b);
int idset_subtract (struct idset *a, const struct idset *b);
#define idset_clear_all(x) idset_subtract ((x), (x))

/* As an allocator: members are the free ids (create with INITFULL). */
int idset_alloc (struct idset *idset, unsigned int *val);
void idset_free (struct idset *idset, unsigned int val);

#ifdef __cplusplus
}
#endif
#endif
