/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See labels.h.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <flux/hostlist.h>

#include "libdws/util/hosts.h"
#include "libdws/util/lists.h"
#include "libutil/errno_safe.h"
#include "allocset_private.h"
#include "labels.h"

#define LABEL_SIZE 320          // a prefix of 253 characters, '/', and 63

static bool has_label (json_t *labels, const char *want)
{
    size_t len = strcspn (want, "=");
    char name[LABEL_SIZE];
    const char *have;

    if (len >= sizeof (name))
        return false;
    memcpy (name, want, len);
    name[len] = '\0';
    have = json_string_value (json_object_get (labels, name));
    return have && !strcmp (have, want + len + (want[len] == '='));
}

const char *dws_labels_missing (json_t *wanted, json_t *labels)
{
    size_t i;
    json_t *entry;

    json_array_foreach (wanted, i, entry) {
        const char *want = json_string_value (entry);

        if (want && !has_label (labels, want))
            return want;
    }
    return NULL;
}

/* The rabbits that may be used, by their number in the mapping, and how many nodes
 * hang on these.
 */
struct choice {
    const struct dws_topology *topo;
    bool *allowed;
    int64_t hosts;
};

static int64_t count_hosts (const struct dws_topology *topo, int index)
{
    const char *hosts = dws_topology_hostlist (topo, index);
    struct hostlist *hl = dws_hostlist_decode (hosts);
    int64_t count = hl ? hostlist_count (hl) : 0;

    hostlist_destroy (hl);
    return count;
}

/* Start with those of 'from' (NULL: all). Returns false if out of memory.
 */
static bool choice_init (struct choice *c, const struct dws_topology *topo,
                         const struct choice *from)
{
    size_t n = dws_topology_count (topo);

    c->topo = topo;
    if (!(c->allowed = calloc (n + 1, sizeof (*c->allowed))))
        return false;
    for (size_t i = 0; i < n; i++)
        c->allowed[i] = !from || from->allowed[i];
    c->hosts = from ? from->hosts : (int64_t)dws_topology_host_count (topo);
    return true;
}

static json_t *labels_of (json_t *storage)
{
    return json_object_get (json_object_get (storage, "metadata"), "labels");
}

/* Without the rabbits that lack a label.
 */
static void choice_restrict (struct choice *c, json_t *storages, json_t *wanted)
{
    for (size_t i = 0; i < dws_topology_count (c->topo); i++) {
        json_t *storage = json_object_get (storages,
                                           dws_topology_name (c->topo, i));

        if (storage
            && c->allowed[i]
            && dws_labels_missing (wanted, labels_of (storage))) {
            c->allowed[i] = false;
            c->hosts -= count_hosts (c->topo, i);
        }
    }
}

static bool needs_all_rabbits (const struct alloc_set *set)
{
    return set->strategy == ALLOC_PER_COMPUTE
        || set->strategy == ALLOC_PER_SERVER;
}

static bool is_everywhere (const char *want, const struct dws_topology *topo,
                           json_t *storages)
{
    for (size_t i = 0; i < dws_topology_count (topo); i++) {
        json_t *storage = json_object_get (storages, dws_topology_name (topo, i));

        if (storage && !has_label (labels_of (storage), want))
            return false;
    }
    return true;
}

/* The wanted labels that not all rabbits have, cut to fit.
 */
static const char *join_labels (json_t *wanted, const struct dws_topology *topo,
                                json_t *storages, char *buf, size_t size)
{
    size_t used = 0;
    size_t i;
    json_t *entry;

    buf[0] = '\0';
    json_array_foreach (wanted, i, entry) {
        const char *want = json_string_value (entry);

        if (want && !is_everywhere (want, topo, storages) && used < size)
            used += snprintf (buf + used, size - used, "%s%s",
                              used ? ", " : "", want);
    }
    return buf;
}

/* Returns -1 if the job cannot have the set.
 */
static int restrict_to_set (struct choice *c,
                            const struct breakdown *b,
                            const struct alloc_set *set,
                            json_t *storages,
                            int64_t nodes,
                            dws_error_t *error)
{
    char labels[80];
    int64_t wanted = nodes < INT32_MAX ? nodes : 1;
    struct choice some;

    if (!dws_labels_missing (set->labels, NULL))
        return 0;
    if (!choice_init (&some, c->topo, c))
        return dws_error_nomem (error);
    choice_restrict (&some, storages, set->labels);
    if (some.hosts == c->hosts) {
        free (some.allowed);
        return 0;
    }
    if (some.hosts == 0
        || (some.hosts < wanted && needs_all_rabbits (set))) {
        dws_error (error,
                   ENOSPC,
                   "%s, set %.20s: the rabbits with label %s have %lld"
                   " nodes, the job needs %lld",
                   b->name,
                   set->label,
                   join_labels (set->labels, c->topo, storages, labels,
                                sizeof (labels)),
                   (long long)some.hosts,
                   (long long)(needs_all_rabbits (set) ? wanted : 1));
        free (some.allowed);
        return -1;
    }
    if (needs_all_rabbits (set) || some.hosts >= nodes) {
        free (c->allowed);
        *c = some;
    }
    else
        free (some.allowed);
    return 0;
}

static json_t *encode_choice (const struct choice *c, dws_error_t *error)
{
    struct hostlist *hl = hosts_list_create (error);
    json_t *result = NULL;
    int rc = hl ? 0 : -1;

    for (size_t i = 0; rc >= 0 && i < dws_topology_count (c->topo); i++) {
        if (c->allowed[i])
            rc = hosts_list_append (hl, dws_topology_hostlist (c->topo, i), error);
    }
    if (rc >= 0)
        result = hosts_list_constraint (hl, error);
    ERRNO_SAFE (hostlist_destroy (hl));
    return result;
}

json_t *dws_labels_constraint (const struct dws_breakdowns *breakdowns,
                               json_t *storages,
                               const struct dws_topology *topo,
                               int64_t nodes,
                               bool anywhere,
                               dws_error_t *error)
{
    const struct dws_breakdowns *bl = breakdowns_or_none (breakdowns);
    struct choice c = { 0 };
    json_t *result = NULL;

    if (!choice_init (&c, topo, NULL)) {
        dws_error_nomem (error);
        goto done;
    }
    /* Sets that need all rabbits come first: the job cannot do without their labels. */
    for (int all = 1; all >= (anywhere ? 1 : 0); all--) {
        for (size_t i = 0; i < bl->count; i++) {
            const struct breakdown *b = &bl->list[i];

            for (size_t j = 0; j < b->nsets; j++) {
                if (needs_all_rabbits (&b->sets[j]) == all
                    && restrict_to_set (&c, b, &b->sets[j], storages, nodes,
                                        error) < 0)
                    goto done;
            }
        }
    }
    if (c.hosts < (int64_t)dws_topology_host_count (topo))
        result = encode_choice (&c, error);
    else
        result = json_null ();
done:
    free (c.allowed);
    return result;
}
