/* SPDX-License-Identifier: LGPL-3.0-only */
/* idset.c - sets of small integers, as a bitmap.
 *
 * With INITFULL the ids beyond the universe count as members, otherwise as
 * not members; the universe grows only when that stops being true for an id.
 */

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <flux/idset.h>

#include "libutil/errno_safe.h"

#define DEFAULT_SIZE 1024
#define WORD_BITS 64

struct idset {
    size_t size;                // universe
    int flags;
    size_t count;
    unsigned int alloc_last;
    uint64_t *words;            // bits beyond size are 0
    size_t low;                 // those before this are 0
};

static int fail (int errnum)
{
    errno = errnum;
    return -1;
}

static size_t word_count (size_t size)
{
    return (size + WORD_BITS - 1) / WORD_BITS;
}

static bool id_valid (unsigned int id)
{
    return id != IDSET_INVALID_ID && id != UINT_MAX;
}

static bool is_full (const struct idset *idset)
{
    return idset->flags & IDSET_FLAG_INITFULL;
}

/* Set or clear the bits lo to hi, all within the universe. */
static void fill (struct idset *idset, unsigned int lo, unsigned int hi,
                  bool value)
{
    for (size_t i = lo / WORD_BITS; i <= hi / WORD_BITS; i++) {
        uint64_t mask = ~0ull;
        uint64_t old = idset->words[i];
        if (i == lo / WORD_BITS)
            mask &= ~0ull << lo % WORD_BITS;
        if (i == hi / WORD_BITS)
            mask &= ~0ull >> (WORD_BITS - 1 - hi % WORD_BITS);
        idset->words[i] = value ? old | mask : old & ~mask;
        idset->count += __builtin_popcountll (idset->words[i]);
        idset->count -= __builtin_popcountll (old);
    }
    if (value && lo / WORD_BITS < idset->low)
        idset->low = lo / WORD_BITS;
}

struct idset *idset_create (size_t size, int flags)
{
    struct idset *idset;

    if (flags & ~(IDSET_FLAG_AUTOGROW | IDSET_FLAG_INITFULL
                  | IDSET_FLAG_COUNT_LAZY | IDSET_FLAG_ALLOC_RR)) {
        errno = EINVAL;
        return NULL;
    }
    if (size == 0)
        size = DEFAULT_SIZE;
    if (size > IDSET_MAX_UNIVERSE) {
        errno = ERANGE;
        return NULL;
    }
    if (!(idset = calloc (1, sizeof (*idset))))
        return NULL;
    if (!(idset->words = calloc (word_count (size), sizeof (uint64_t)))) {
        free (idset);
        return NULL;
    }
    idset->size = size;
    idset->flags = flags;
    idset->alloc_last = IDSET_INVALID_ID;
    if (is_full (idset))
        fill (idset, 0, size - 1, true);
    return idset;
}

void idset_destroy (struct idset *idset)
{
    if (idset) {
        ERRNO_SAFE_BLOCK;
        free (idset->words);
        free (idset);
    }
}

struct idset *idset_copy (const struct idset *idset)
{
    struct idset *cpy;

    if (!idset) {
        errno = EINVAL;
        return NULL;
    }
    if (!(cpy = idset_create (idset->size,
                              idset->flags & ~IDSET_FLAG_INITFULL)))
        return NULL;
    memcpy (cpy->words, idset->words,
            word_count (idset->size) * sizeof (uint64_t));
    cpy->flags = idset->flags;
    cpy->count = idset->count;
    cpy->alloc_last = idset->alloc_last;
    cpy->low = idset->low;
    return cpy;
}

/* Double the universe until it holds id. */
static int grow (struct idset *idset, unsigned int id)
{
    size_t size = idset->size;
    uint64_t *words;

    if (id < size)
        return 0;
    if (id >= IDSET_MAX_UNIVERSE)
        return fail (ERANGE);
    if (!(idset->flags & IDSET_FLAG_AUTOGROW))
        return fail (EINVAL);
    while (size <= id)
        size *= 2;
    if (size > IDSET_MAX_UNIVERSE)
        size = IDSET_MAX_UNIVERSE;
    if (!(words = realloc (idset->words, word_count (size) * sizeof (*words))))
        return -1;
    memset (words + word_count (idset->size), 0,
            (word_count (size) - word_count (idset->size)) * sizeof (*words));
    idset->words = words;
    idset->size = size;
    return 0;
}

static int change (struct idset *idset, unsigned int lo, unsigned int hi,
                   bool value)
{
    size_t old_size;

    if (!idset || !id_valid (lo) || !id_valid (hi))
        return fail (EINVAL);
    if (lo > hi) {
        unsigned int tmp = lo;
        lo = hi;
        hi = tmp;
    }
    old_size = idset->size;
    if (hi >= old_size) {
        if (is_full (idset) == value) {     // true of those outside anyway
            if (lo >= old_size)
                return 0;
            hi = old_size - 1;
        }
        else {
            if (grow (idset, hi) < 0)
                return -1;
            if (is_full (idset))
                fill (idset, old_size, idset->size - 1, true);
        }
    }
    fill (idset, lo, hi, value);
    return 0;
}

int idset_set (struct idset *idset, unsigned int id)
{
    return change (idset, id, id, true);
}

int idset_range_set (struct idset *idset, unsigned int lo, unsigned int hi)
{
    return change (idset, lo, hi, true);
}

int idset_clear (struct idset *idset, unsigned int id)
{
    return change (idset, id, id, false);
}

int idset_range_clear (struct idset *idset, unsigned int lo, unsigned int hi)
{
    return change (idset, lo, hi, false);
}

bool idset_test (const struct idset *idset, unsigned int id)
{
    return idset && id < idset->size
           && (idset->words[id / WORD_BITS] >> id % WORD_BITS & 1);
}

/* The first member that is not below id. */
static unsigned int find_up (const struct idset *idset, unsigned int id)
{
    size_t i = id / WORD_BITS;
    uint64_t word;

    if (!idset || id >= idset->size)
        return IDSET_INVALID_ID;
    word = idset->words[i] & ~0ull << id % WORD_BITS;
    if (i < idset->low)
        word = idset->words[i = idset->low];
    while (!word) {
        if (++i >= word_count (idset->size))
            return IDSET_INVALID_ID;
        word = idset->words[i];
    }
    return i * WORD_BITS + __builtin_ctzll (word);
}

/* The last member that is not above id. */
static unsigned int find_down (const struct idset *idset, unsigned int id)
{
    size_t i = id / WORD_BITS;
    uint64_t word;

    if (!idset || id >= idset->size)
        return IDSET_INVALID_ID;
    word = idset->words[i] & ~0ull >> (WORD_BITS - 1 - id % WORD_BITS);
    while (!word) {
        if (i-- == 0)
            return IDSET_INVALID_ID;
        word = idset->words[i];
    }
    return i * WORD_BITS + WORD_BITS - 1 - __builtin_clzll (word);
}

unsigned int idset_first (const struct idset *idset)
{
    return find_up (idset, 0);
}

unsigned int idset_next (const struct idset *idset, unsigned int id)
{
    return find_up (idset, id + 1);
}

unsigned int idset_last (const struct idset *idset)
{
    return find_down (idset, idset ? idset->size - 1 : 0);
}

size_t idset_count (const struct idset *idset)
{
    return idset ? idset->count : 0;
}

bool idset_equal (const struct idset *a, const struct idset *b)
{
    unsigned int id;

    if (!a || !b || a->count != b->count)
        return false;
    for (id = idset_first (a); id != IDSET_INVALID_ID; id = idset_next (a, id)) {
        if (!idset_test (b, id))
            return false;
    }
    return true;
}

/* Set or clear in a all that b has. */
static int apply (struct idset *a, const struct idset *b, bool value)
{
    unsigned int id;

    if (!a)
        return fail (EINVAL);
    for (id = idset_first (b); id != IDSET_INVALID_ID; id = idset_next (b, id)) {
        if (change (a, id, id, value) < 0)
            return -1;
    }
    return 0;
}

int idset_add (struct idset *a, const struct idset *b)
{
    return apply (a, b, true);
}

int idset_subtract (struct idset *a, const struct idset *b)
{
    return apply (a, b, false);
}

static struct idset *copy_and_apply (const struct idset *a,
                                     const struct idset *b, bool value)
{
    struct idset *result = idset_copy (a);

    if (!result)
        return NULL;
    if (value)
        result->flags = IDSET_FLAG_AUTOGROW;
    if (apply (result, b, value) < 0) {
        idset_destroy (result);
        return NULL;
    }
    return result;
}

struct idset *idset_union (const struct idset *a, const struct idset *b)
{
    return copy_and_apply (a, b, true);
}

struct idset *idset_difference (const struct idset *a, const struct idset *b)
{
    return copy_and_apply (a, b, false);
}

struct idset *idset_intersect (const struct idset *a, const struct idset *b)
{
    struct idset *result;
    unsigned int id;

    if (a && b && b->count < a->count)
        return idset_intersect (b, a);
    if (!b)
        errno = EINVAL;
    if (!b || !(result = idset_copy (a)))
        return NULL;
    for (id = idset_first (a); id != IDSET_INVALID_ID; id = idset_next (a, id)) {
        if (!idset_test (b, id))
            fill (result, id, id, false);
    }
    return result;
}

int idset_alloc (struct idset *idset, unsigned int *val)
{
    unsigned int id = IDSET_INVALID_ID;

    if (!idset || !is_full (idset) || !val)
        return fail (EINVAL);
    if ((idset->flags & IDSET_FLAG_ALLOC_RR)
        && idset->alloc_last != IDSET_INVALID_ID)
        id = idset_next (idset, idset->alloc_last);
    if (id == IDSET_INVALID_ID) {
        if ((id = idset_first (idset)) == IDSET_INVALID_ID)
            id = idset->size;
        else
            idset->low = id / WORD_BITS;
    }
    if (change (idset, id, id, false) < 0)
        return -1;
    idset->alloc_last = id;
    *val = id;
    return 0;
}

void idset_free (struct idset *idset, unsigned int val)
{
    if (idset && is_full (idset))
        change (idset, val, val, true);
}
