/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Internal: what struct dws_breakdowns (breakdowns.h) holds, and the arithmetic of its
 * allocation sets.
 */

#ifndef LIBDWS_ALLOCSET_PRIVATE_H
#define LIBDWS_ALLOCSET_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <jansson.h>

#include "breakdowns.h"

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

/* A set of a Servers object that the job's nodes must be next to.
 */
struct location {
    char *name;           // of the Servers object
    char *namespace;
    unsigned int set;     // index in its spec.allocationSets
};

struct breakdown {
    char *name;           // of the DirectiveBreakdown, for messages
    char *servers;        // reference to the Servers object, NULL if the
    char *servers_namespace;        // directive has no storage
    struct alloc_set *sets;
    size_t nsets;
    struct location *locations;
    size_t nlocations;
    json_t *requires;     // array of words, or NULL: daemons of the nodes
};

struct dws_breakdowns {
    struct breakdown *list;
    size_t count;
};

/* Returns 'breakdowns', or an empty list if NULL.
 */
const struct dws_breakdowns *breakdowns_or_none (
    const struct dws_breakdowns *breakdowns);

/* Is this Servers object that of one of the breakdowns?
 */
bool breakdowns_have (const struct dws_breakdowns *bl, const char *name,
                      const char *namespace);

/* May the set lie on any rabbit, by its strategy? Others are bound to the nodes of
 * the job.
 */
bool alloc_set_unbound (const struct alloc_set *set);

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
