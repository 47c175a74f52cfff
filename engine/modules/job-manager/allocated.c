/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * job-manager.resource-status: the union of what jobs have allocated, as R.
 */
#include <flux/hostlist.h>
#include <flux/idset.h>

#include "manager.h"

struct node {
    char *host;
    struct idset *cores;
    struct idset *gpus;
};

struct nodes {
    struct node *v;         // by rank
    size_t count;
};

static struct node *node_get (struct nodes *nodes, unsigned int rank)
{
    if (rank >= nodes->count) {
        size_t n = rank * 2 + 16;
        struct node *v = realloc (nodes->v, n * sizeof (*v));

        if (!v)
            return NULL;
        memset (&v[nodes->count], 0, (n - nodes->count) * sizeof (*v));
        nodes->v = v;
        nodes->count = n;
    }
    return &nodes->v[rank];
}

static void nodes_clear (struct nodes *nodes)
{
    for (size_t i = 0; i < nodes->count; i++) {
        free (nodes->v[i].host);
        idset_destroy (nodes->v[i].cores);
        idset_destroy (nodes->v[i].gpus);
    }
    free (nodes->v);
}

static void add_ids (struct idset **dst, json_t *ids)
{
    struct idset *set;

    if (!json_is_string (ids)
        || !(set = idset_decode (json_string_value (ids))))
        return;
    if (*dst || (*dst = idset_create (0, IDSET_FLAG_AUTOGROW)))
        (void)idset_add (*dst, set);
    idset_destroy (set);
}

static struct hostlist *R_hosts (json_t *R)
{
    struct hostlist *hl = hostlist_create ();
    size_t index;
    json_t *o;

    json_array_foreach (jp_get (R, "execution.nodelist"), index, o) {
        if (json_is_string (o))
            (void)hostlist_append (hl, json_string_value (o));
    }
    return hl;
}

/* Names in the nodelist go with the ranks of R_lite in ascending order. */
static void add_R (struct nodes *nodes, json_t *R)
{
    struct idset *all = idset_create (0, IDSET_FLAG_AUTOGROW);
    struct hostlist *hl = R_hosts (R);
    const char *host = hostlist_first (hl);
    size_t index;
    json_t *o;

    json_array_foreach (jp_get (R, "execution.R_lite"), index, o) {
        const char *s = json_string_value (json_object_get (o, "rank"));
        struct idset *ranks = s ? idset_decode (s) : NULL;
        unsigned int rank;

        if (!ranks)
            continue;
        (void)idset_add (all, ranks);
        for (rank = idset_first (ranks); rank != IDSET_INVALID_ID;
             rank = idset_next (ranks, rank)) {
            struct node *n = node_get (nodes, rank);

            if (n) {
                add_ids (&n->cores, jp_get (o, "children.core"));
                add_ids (&n->gpus, jp_get (o, "children.gpu"));
            }
        }
        idset_destroy (ranks);
    }
    for (unsigned int rank = idset_first (all);
         rank != IDSET_INVALID_ID && host;
         rank = idset_next (all, rank), host = hostlist_next (hl)) {
        if (!nodes->v[rank].host)
            nodes->v[rank].host = strdup (host);
    }
    hostlist_destroy (hl);
    idset_destroy (all);
}

static json_t *encode_ids (struct idset *ids)
{
    char *s = ids ? idset_encode (ids, IDSET_FLAG_RANGE) : NULL;
    json_t *o = s ? json_string (s) : NULL;

    free (s);
    return o;
}

static json_t *nodes_to_R (struct nodes *nodes)
{
    struct hostlist *hl = hostlist_create ();
    json_t *lite = json_array ();
    json_t *nodelist = json_array ();
    char *s;

    for (size_t i = 0; i < nodes->count; i++) {
        struct node *n = &nodes->v[i];
        char rank[24];

        if (!n->cores && !n->gpus)
            continue;
        snprintf (rank, sizeof (rank), "%zu", i);
        json_array_append_new (lite, json_pack ("{s:s s:{s:o* s:o*}}",
                                                "rank", rank,
                                                "children",
                                                  "core",
                                                    encode_ids (n->cores),
                                                  "gpu",
                                                    encode_ids (n->gpus)));
        (void)hostlist_append (hl, n->host ? n->host : "unknown");
    }
    if ((s = hostlist_encode (hl)) && *s)
        json_array_append_new (nodelist, json_string (s));
    free (s);
    hostlist_destroy (hl);
    return json_pack ("{s:i s:{s:o s:o s:i s:i}}",
                      "version", 1,
                      "execution",
                        "R_lite", lite,
                        "nodelist", nodelist,
                        "starttime", 0,
                        "expiration", 0);
}

void allocated_request (flux_t *h, flux_msg_handler_t *mh,
                        const flux_msg_t *msg, void *arg)
{
    struct manager *jm = arg;
    struct nodes nodes = { 0 };
    size_t count;
    struct job **jobs = (struct job **)idmap_values (jm->active, &count);

    for (size_t i = 0; i < count; i++) {
        if (jobs[i]->has_resources && jobs[i]->R && !jobs[i]->alloc_bypass)
            add_R (&nodes, jobs[i]->R);
    }
    free (jobs);
    respond_pack (h, msg, "{s:o}",
                  "allocated", nodes_to_R (&nodes));
    nodes_clear (&nodes);
}
