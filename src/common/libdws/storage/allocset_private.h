/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Internal: DirectiveBreakdown objects decoded, once, into structs. Strings
 * and JSON values are borrowed from the objects.
 */

#ifndef LIBDWS_ALLOCSET_PRIVATE_H
#define LIBDWS_ALLOCSET_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <jansson.h>

#include "libdws/util/error.h"

#define GIB (INT64_C (1) << 30)

enum alloc_strategy {
    ALLOC_PER_COMPUTE,    // one of minimumCapacity for each compute node
    ALLOC_PER_SERVER,     // one of minimumCapacity on each rabbit of the job
    ALLOC_ACROSS,         // some, of equal size, minimumCapacity in all
    ALLOC_SINGLE,         // one of minimumCapacity
};

struct alloc_set {
    enum alloc_strategy strategy;
    const char *label;
    int64_t minimum;      // bytes
    json_t *labels;       // array of "key=value" strings, or NULL
    int scale;            // 1-10, 0 if not given
    int64_t count;        // 0 if not given
    json_t *colocation;   // {type, key}, an array of such, or NULL
};

struct breakdown {
    const char *name;     // of the DirectiveBreakdown, for messages
    const char *servers;  // reference to the Servers object, NULL if the
    const char *servers_namespace;  // directive has no storage
    struct alloc_set *sets;
    size_t nsets;
    json_t *locations;    // array, or NULL
    json_t *requires;     // array of words, or NULL: daemons of the nodes
};

struct breakdown_list {
    struct breakdown *list;
    size_t count;
};

/* 'breakdowns' is an array of DirectiveBreakdown objects, or NULL or JSON
 * null for none. Fails with EINVAL, EAGAIN (not ready) or ENOMEM.
 */
struct breakdown_list *breakdown_list_create (json_t *breakdowns,
                                              dws_error_t *error);
void breakdown_list_destroy (struct breakdown_list *bl);

/* May the set lie on any rabbit, by its strategy? Others are bound to the nodes of
 * the job.
 */
bool alloc_set_roams (const struct alloc_set *set);

/* Bytes of each allocation of a set that has 'count' of them and none below 'least',
 * nor below what NNF makes (drives.h).
 */
int64_t alloc_set_size (const struct alloc_set *set, int64_t count,
                        int64_t least);

/* The most allocations that a set can be divided into so that none is smaller: 1 at
 * least, INT64_MAX where any will do.
 */
int64_t alloc_set_most (const struct alloc_set *set, int64_t least);

/* Bytes to GiB, rounded up. And a / b, rounded up, for positive numbers.
 */
int64_t bytes_to_gib (int64_t bytes);
int64_t div_up (int64_t a, int64_t b);

#endif /* !LIBDWS_ALLOCSET_PRIVATE_H */
