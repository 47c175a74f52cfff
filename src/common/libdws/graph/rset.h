/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Internal: what the graph needs of an R object (RFC 20), by host.
 */

#ifndef LIBDWS_RSET_H
#define LIBDWS_RSET_H

#include <stdbool.h>
#include <stddef.h>
#include <jansson.h>
#include <flux/idset.h>

#include "libdws/util/error.h"
#include "libdws/util/strtab.h"

/* The children of one kind of a host: cores 0-95.
 */
struct rset_children {
    char *type;
    unsigned int *ids;
    size_t count;
};

/* An entry of R_lite, shared by the hosts of its ranks.
 */
struct rset_entry {
    struct rset_children *children;
    size_t count;
    size_t total;         // children of all kinds
};

struct rset_host {
    char *name;
    unsigned int rank;
    const struct rset_entry *entry;
    bool excluded;
};

struct rset_property {
    char *name;
    struct idset *ranks;
};

struct rset {
    struct rset_host *hosts;      // in the order of nodelist
    size_t count;
    struct rset_entry *entries;
    size_t nentries;
    struct rset_property *properties;
    size_t nproperties;
    struct strtab *by_name;       // the first host of each name
};

/* 'exclude' is an idset, hosts counted from 0, or a hostlist, or NULL.
 * Fails with EINVAL or ENOMEM.
 */
struct rset *rset_create (json_t *R, const char *exclude, dws_error_t *error);
void rset_destroy (struct rset *rs);

/* The host of that name, or NULL.
 */
const struct rset_host *rset_find (const struct rset *rs, const char *name);

#endif /* !LIBDWS_RSET_H */
