/* SPDX-License-Identifier: LGPL-3.0-only */
/* rset.c - sets of nodes, and the part of R (RFC 20) that belongs to them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "resource.h"

static int error_set (flux_error_t *error, const char *what, const char *which)
{
    snprintf (error->text, sizeof (error->text), "%s%s", what, which);
    errno = EINVAL;
    return -1;
}

static struct idset *hosts_decode (struct resource *ctx,
                                   const char *targets,
                                   flux_error_t *error)
{
    struct hostlist *hl = hostlist_decode (targets);
    struct hostlist *unknown = hostlist_create ();
    struct idset *ids = idset_create (ctx->size, 0);

    if (!hl) {
        error_set (error, "invalid targets: invalid hostlist: ", targets);
        goto error;
    }
    // several made-up nodes may have the name of this host
    for (unsigned int i = 0; i < ctx->size; i++)
        if (hostlist_find (hl, hostlist_nth (ctx->hosts, i)) >= 0)
            idset_set (ids, i);
    for (const char *s = hostlist_first (hl); s; s = hostlist_next (hl))
        if (hostlist_find (ctx->hosts, s) < 0)
            hostlist_append (unknown, s);
    if (hostlist_count (unknown) > 0) {
        char *s = hostlist_encode (unknown);
        error_set (error, "invalid targets: invalid hosts: ", s ? s : "");
        free (s);
        goto error;
    }
    hostlist_destroy (unknown);
    hostlist_destroy (hl);
    return ids;
error:
    hostlist_destroy (unknown);
    hostlist_destroy (hl);
    idset_destroy (ids);
    errno = EINVAL;
    return NULL;
}

struct idset *targets_decode (struct resource *ctx,
                              const char *targets,
                              flux_error_t *error)
{
    struct idset *ids = idset_decode (targets);

    if (!ids && !(ids = hosts_decode (ctx, targets, error)))
        return NULL;
    if (idset_count (ids) == 0)
        error_set (error, "idset is empty", "");
    else if (idset_last (ids) >= ctx->size)
        error_set (error, "idset is out of range", "");
    else
        return ids;
    idset_destroy (ids);
    errno = EINVAL;
    return NULL;
}

char *hosts_encode (struct resource *ctx, const struct idset *ranks)
{
    struct hostlist *hl = hostlist_create ();
    unsigned int i;
    char *s;

    for (i = idset_first (ranks);
         i != IDSET_INVALID_ID;
         i = idset_next (ranks, i))
        hostlist_append (hl, hostlist_nth (ctx->hosts, i));
    s = hostlist_encode (hl);
    hostlist_destroy (hl);
    return s;
}

bool node_is_online (const struct node *node)
{
    return !node->offline;
}

bool node_is_offline (const struct node *node)
{
    return node->offline;
}

bool node_is_excluded (const struct node *node)
{
    return node->excluded;
}

bool node_is_up (const struct node *node)
{
    return !node->offline && !node->drained && !node->excluded;
}

bool node_is_down (const struct node *node)
{
    return (node->offline || node->drained) && !node->excluded;
}

struct idset *nodes_select (struct resource *ctx, node_test_f test)
{
    struct idset *ids = idset_create (ctx->size, 0);

    for (unsigned int i = 0; ids && i < ctx->size; i++)
        if (test (&ctx->nodes[i]))
            idset_set (ids, i);
    return ids;
}

/* {NAME: RANKS} of those ranks that are in 'ranks'.
 */
static json_t *properties_select (struct resource *ctx,
                                  const struct idset *ranks)
{
    json_t *all = json_object_get (json_object_get (ctx->R, "execution"),
                                   "properties");
    json_t *o = json_object ();
    const char *name;
    json_t *value;

    json_object_foreach (all, name, value) {
        struct idset *ids = idset_decode (json_string_value (value));
        struct idset *both = ids ? idset_intersect (ids, ranks) : NULL;

        if (both && idset_count (both) > 0) {
            char *s = idset_encode (both, IDSET_FLAG_RANGE);
            json_object_set_new (o, name, json_string (s));
            free (s);
        }
        idset_destroy (ids);
        idset_destroy (both);
    }
    return o;
}

json_t *R_select (struct resource *ctx, const struct idset *ranks, bool thin)
{
    json_t *execution = json_object_get (ctx->R, "execution");
    json_t *R_lite = json_array ();
    json_t *properties = properties_select (ctx, ranks);
    char *hosts = hosts_encode (ctx, ranks);
    json_t *entry, *R, *o;
    size_t i;

    json_array_foreach (json_object_get (execution, "R_lite"), i, entry) {
        json_t *rank = json_object_get (entry, "rank");
        struct idset *ids = idset_decode (json_string_value (rank));
        struct idset *both = ids ? idset_intersect (ids, ranks) : NULL;

        if (both && idset_count (both) > 0) {
            char *s = idset_encode (both, IDSET_FLAG_RANGE);
            json_array_append_new (
                R_lite,
                json_pack ("{s:s s:O}",
                           "rank", s,
                           "children", json_object_get (entry, "children")));
            free (s);
        }
        idset_destroy (ids);
        idset_destroy (both);
    }
    R = json_copy (ctx->R);
    o = json_copy (execution);
    json_object_set_new (o, "R_lite", R_lite);
    json_object_set_new (o, "nodelist", json_pack ("[s]", hosts ? hosts : ""));
    json_object_del (o, "properties");
    if (json_object_size (properties) > 0)
        json_object_set (o, "properties", properties);
    json_object_set_new (R, "execution", o);
    if (thin)
        json_object_del (R, "scheduling");
    json_decref (properties);
    free (hosts);
    return R;
}

json_t *R_with_properties (struct resource *ctx, json_t *R)
{
    struct idset *ranks = idset_create (ctx->size, 0);
    json_t *cpy = json_deep_copy (R);
    json_t *execution = json_object_get (cpy, "execution");
    json_t *entry, *properties;
    size_t i;

    json_array_foreach (json_object_get (execution, "R_lite"), i, entry) {
        json_t *rank = json_object_get (entry, "rank");
        (void)idset_decode_add (ranks, json_string_value (rank), -1, NULL);
    }
    properties = properties_select (ctx, ranks);
    if (execution && json_object_size (properties) > 0)
        json_object_set (execution, "properties", properties);
    json_decref (properties);
    idset_destroy (ranks);
    return cpy;
}
