/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See rset.h.
 */

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <flux/hostlist.h>

#include "libutil/errno_safe.h"
#include "libdws/util/bounds.h"
#include "libdws/util/lists.h"
#include "rset.h"

void rset_destroy (struct rset *rs)
{
    if (rs) {
        ERRNO_SAFE_BLOCK;
        for (size_t i = 0; i < rs->count; i++)
            free (rs->hosts[i].name);
        free (rs->hosts);
        for (size_t i = 0; i < rs->nentries; i++) {
            struct rset_entry *e = &rs->entries[i];

            for (size_t j = 0; j < e->count; j++) {
                free (e->children[j].type);
                free (e->children[j].ids);
            }
            free (e->children);
        }
        free (rs->entries);
        for (size_t i = 0; i < rs->nproperties; i++) {
            free (rs->properties[i].name);
            idset_destroy (rs->properties[i].ranks);
        }
        free (rs->properties);
        strtab_destroy (rs->by_name);
        free (rs);
    }
}

static int decode_children (struct rset_children *c,
                            const char *type,
                            json_t *value,
                            dws_error_t *error)
{
    const char *s = json_string_value (value);
    struct idset *ids;
    unsigned int id;

    if (!(ids = dws_idset_decode (s, DWS_MAX_CHILDREN)))
        return dws_error (error,
                          EINVAL,
                          "R: children.%.60s is not an idset",
                          type);
    c->type = strdup (type);
    c->ids = calloc (idset_count (ids) + 1, sizeof (*c->ids));
    if (c->type && c->ids) {
        for (id = idset_first (ids);
             id != IDSET_INVALID_ID;
             id = idset_next (ids, id))
            c->ids[c->count++] = id;
    }
    idset_destroy (ids);
    if (!c->type || !c->ids)
        return dws_error_nomem (error);
    return 0;
}

static int decode_entry (struct rset_entry *e,
                         json_t *children,
                         dws_error_t *error)
{
    const char *type;
    json_t *value;

    e->children = calloc (json_object_size (children) + 1,
                          sizeof (*e->children));
    if (!e->children)
        return dws_error_nomem (error);
    json_object_foreach (children, type, value) {
        struct rset_children *c = &e->children[e->count++];

        if (decode_children (c, type, value, error) < 0)
            return -1;
        e->total += c->count;
    }
    return 0;
}

/* Assign the ranks of one R_lite entry to the next hosts, starting with host
 * number 'next'. Returns the number of the host after them.
 */
static int decode_ranks (struct rset *rs,
                         size_t next,
                         const struct rset_entry *e,
                         json_t *value,
                         dws_error_t *error)
{
    struct idset *ranks = NULL;
    unsigned int id;

    if (json_is_integer (value) && json_integer_value (value) >= 0
        && json_integer_value (value) < DWS_MAX_HOSTS) {
        if (next >= rs->count)
            goto short_list;
        rs->hosts[next].rank = json_integer_value (value);
        rs->hosts[next].entry = e;
        return next + 1;
    }
    if (!json_is_string (value)
        || !(ranks = dws_idset_decode (json_string_value (value),
                                       DWS_MAX_HOSTS)))
        return dws_error (error, EINVAL, "R: rank is not an idset");
    for (id = idset_first (ranks);
         id != IDSET_INVALID_ID;
         id = idset_next (ranks, id)) {
        if (next >= rs->count)
            goto short_list;
        rs->hosts[next].rank = id;
        rs->hosts[next].entry = e;
        next++;
    }
    idset_destroy (ranks);
    return next;
short_list:
    idset_destroy (ranks);
    return dws_error (error,
                      EINVAL,
                      "R: there are more ranks than the %zu hosts of"
                      " nodelist",
                      rs->count);
}

static int compare_ranks (const void *a, const void *b)
{
    unsigned int x = ((const struct rset_host *)a)->rank;
    unsigned int y = ((const struct rset_host *)b)->rank;

    return (x > y) - (x < y);
}

/* Hosts are in the order of their ranks (RFC 20); an entry of R_lite may have ranks
 * between those of another.
 */
static int sort_ranks (struct rset *rs)
{
    struct rset_host *sorted;

    if (!(sorted = malloc ((rs->count + 1) * sizeof (*sorted))))
        return -1;
    memcpy (sorted, rs->hosts, rs->count * sizeof (*sorted));
    qsort (sorted, rs->count, sizeof (*sorted), compare_ranks);
    for (size_t i = 0; i < rs->count; i++) {
        rs->hosts[i].rank = sorted[i].rank;
        rs->hosts[i].entry = sorted[i].entry;
    }
    free (sorted);
    return 0;
}

static int decode_r_lite (struct rset *rs, json_t *list, dws_error_t *error)
{
    size_t i;
    json_t *value;
    uint64_t children = 0;
    int next = 0;

    rs->entries = calloc (json_array_size (list) + 1, sizeof (*rs->entries));
    if (!rs->entries)
        return dws_error_nomem (error);
    json_array_foreach (list, i, value) {
        struct rset_entry *e = &rs->entries[rs->nentries++];
        json_t *rank;
        json_t *kinds;

        if (json_unpack (value,
                         "{s:o s:o}",
                         "rank", &rank,
                         "children", &kinds) < 0
            || !json_is_object (kinds))
            return dws_error (error,
                              EINVAL,
                              "R: R_lite[%zu] must have rank and children",
                              i);
        if (decode_entry (e, kinds, error) < 0
            || (next = decode_ranks (rs, next, e, rank, error)) < 0)
            return -1;
    }
    if ((size_t)next != rs->count)
        return dws_error (error,
                          EINVAL,
                          "R: nodelist has %zu hosts, but there are %d ranks",
                          rs->count,
                          next);
    if (sort_ranks (rs) < 0)
        return dws_error_nomem (error);
    for (i = 0; i < rs->count; i++)
        children += rs->hosts[i].entry->total;
    if (children > DWS_MAX_VERTICES)
        return dws_error (error,
                          EINVAL,
                          "R: more than %d cores, gpus and the like",
                          DWS_MAX_VERTICES);
    return 0;
}

static int decode_nodelist (struct rset *rs,
                            json_t *nodelist,
                            dws_error_t *error)
{
    struct hostlist *hl;
    const char *host;
    size_t i;
    json_t *value;

    if (!(hl = hostlist_create ()))
        return dws_error_nomem (error);
    json_array_foreach (nodelist, i, value) {
        const char *s = json_string_value (value);

        if (dws_hostlist_append (hl, s) < 0) {
            hostlist_destroy (hl);
            return dws_error (error,
                              EINVAL,
                              "R: nodelist[%zu] %s",
                              i,
                              dws_hostlist_fault (errno));
        }
        if (hostlist_count (hl) > DWS_MAX_HOSTS) {
            hostlist_destroy (hl);
            return dws_error (error,
                              EINVAL,
                              "R: nodelist has more than %d hosts",
                              DWS_MAX_HOSTS);
        }
    }
    rs->hosts = calloc (hostlist_count (hl) + 1, sizeof (*rs->hosts));
    rs->by_name = strtab_create (hostlist_count (hl));
    if (!rs->hosts || !rs->by_name)
        goto nomem;
    for (host = hostlist_first (hl); host; host = hostlist_next (hl)) {
        char *copy;

        if (!(copy = strdup (host)))
            goto nomem;
        rs->hosts[rs->count].name = copy;
        if (strtab_insert (rs->by_name, copy, rs->count++) < 0
            && errno != EEXIST)
            goto nomem;
    }
    hostlist_destroy (hl);
    return 0;
nomem:
    hostlist_destroy (hl);
    return dws_error_nomem (error);
}

static int decode_properties (struct rset *rs,
                              json_t *properties,
                              dws_error_t *error)
{
    const char *name;
    json_t *value;

    rs->properties = calloc (json_object_size (properties) + 1,
                             sizeof (*rs->properties));
    if (!rs->properties)
        return dws_error_nomem (error);
    json_object_foreach (properties, name, value) {
        struct rset_property *p = &rs->properties[rs->nproperties++];
        const char *s = json_string_value (value);

        if (!(p->ranks = dws_idset_decode (s, DWS_MAX_HOSTS)))
            return dws_error (error,
                              EINVAL,
                              "R: properties.%.60s is not an idset",
                              name);
        if (!(p->name = strdup (name)))
            return dws_error_nomem (error);
    }
    return 0;
}

/* Try an idset first, then a hostlist. Hosts and numbers that are not in R do not
 * matter.
 */
static int decode_exclude (struct rset *rs,
                           const char *exclude,
                           dws_error_t *error)
{
    struct idset *ids;
    struct hostlist *hl;
    const char *host;

    if (!exclude || !*exclude)
        return 0;
    if ((ids = dws_idset_decode (exclude, DWS_MAX_HOSTS))) {
        for (size_t i = 0; i < rs->count; i++)
            rs->hosts[i].excluded = idset_test (ids, i);
        idset_destroy (ids);
        return 0;
    }
    if (!(hl = dws_hostlist_decode (exclude)))
        return dws_error (error,
                          EINVAL,
                          "resource.exclude '%.60s' is neither an idset nor"
                          " a hostlist",
                          exclude);
    for (host = hostlist_first (hl); host; host = hostlist_next (hl)) {
        int index = strtab_find (rs->by_name, host);

        if (index >= 0)
            rs->hosts[index].excluded = true;
    }
    hostlist_destroy (hl);
    return 0;
}

struct rset *rset_create (json_t *R, const char *exclude, dws_error_t *error)
{
    struct rset *rs;
    json_int_t version = 1;
    json_t *r_lite;
    json_t *nodelist;
    json_t *properties = NULL;

    if (json_unpack (R,
                     "{s?I s:{s:o s:o s?o}}",
                     "version", &version,
                     "execution",
                       "R_lite", &r_lite,
                       "nodelist", &nodelist,
                       "properties", &properties) < 0
        || version != 1
        || !json_is_array (r_lite)
        || !json_is_array (nodelist)) {
        dws_error (error,
                   EINVAL,
                   "R must be of version 1 and have execution.R_lite and"
                   " execution.nodelist");
        return NULL;
    }
    if (!(rs = calloc (1, sizeof (*rs)))) {
        dws_error_nomem (error);
        return NULL;
    }
    if (decode_nodelist (rs, nodelist, error) < 0
        || decode_r_lite (rs, r_lite, error) < 0
        || decode_properties (rs, properties, error) < 0
        || decode_exclude (rs, exclude, error) < 0) {
        rset_destroy (rs);
        return NULL;
    }
    return rs;
}

const struct rset_host *rset_find (const struct rset *rs, const char *name)
{
    int index = strtab_find (rs->by_name, name);

    return index < 0 ? NULL : &rs->hosts[index];
}
