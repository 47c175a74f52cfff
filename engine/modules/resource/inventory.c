/* SPDX-License-Identifier: LGPL-3.0-only */
/* inventory.c - where R comes from: the KVS, a file of the state directory, or
 * one that resource.reload names.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "resource.h"

/* Take R: what is known of nodes stays with their ranks.
 */
static int set_R (struct resource *ctx, json_t *R, unsigned int max,
                  flux_error_t *error)
{
    struct hostlist *hosts = hostlist_create ();
    struct idset *ranks = idset_create (0, IDSET_FLAG_AUTOGROW);
    struct node *nodes = NULL;
    unsigned int size;
    json_t *nodelist;
    json_t *lite;
    json_t *entry;
    size_t i;

    strcpy (error->text, "R is not valid");
    if (!hosts || !ranks
        || json_unpack (R,
                        "{s:{s:o s:o}}",
                        "execution",
                          "nodelist", &nodelist,
                          "R_lite", &lite) < 0)
        goto error;
    json_array_foreach (nodelist, i, entry)
        if (hostlist_append (hosts, json_string_value (entry)) < 0)
            goto error;
    json_array_foreach (lite, i, entry) {
        const char *s = json_string_value (json_object_get (entry, "rank"));
        if (!s || idset_decode_add (ranks, s, -1, NULL) < 0)
            goto error;
    }
    size = hostlist_count (hosts);
    if (size == 0 || idset_count (ranks) != size
        || idset_last (ranks) != size - 1)
        goto error;
    if (size > max) {
        snprintf (error->text, sizeof (error->text),
                  "R has more ranks than the instance, %u", max);
        goto error;
    }
    if (!(nodes = calloc (size, sizeof (*nodes))))
        goto error;
    for (unsigned int rank = 0; rank < ctx->size; rank++) {
        if (rank < size)
            nodes[rank] = ctx->nodes[rank];
        else
            free (ctx->nodes[rank].drain_reason);
    }
    free (ctx->nodes);
    hostlist_destroy (ctx->hosts);
    json_decref (ctx->R);
    ctx->nodes = nodes;
    ctx->hosts = hosts;
    ctx->size = size;
    ctx->R = json_incref (R);
    idset_destroy (ranks);
    return 0;
error:
    idset_destroy (ranks);
    hostlist_destroy (hosts);
    errno = EINVAL;
    return -1;
}

static int put_R (flux_t *h, json_t *R)
{
    flux_kvs_txn_t *txn = flux_kvs_txn_create ();
    flux_future_t *f = NULL;
    int rc = -1;

    if (txn
        && flux_kvs_txn_pack (txn, 0, "resource.R", "O", R) == 0
        && (f = flux_kvs_commit (h, NULL, 0, txn)))
        rc = flux_future_get (f, NULL);
    flux_future_destroy (f);
    flux_kvs_txn_destroy (txn);
    return rc;
}

static json_t *file_R (const char *path, flux_error_t *error)
{
    json_error_t jerror;
    json_t *R;

    if (!(R = json_load_file (path, 0, &jerror))) {
        snprintf (error->text, sizeof (error->text), "%s", jerror.text);
        errno = EINVAL;
    }
    return R;
}

int inventory_load (struct resource *ctx, const char *dir)
{
    flux_error_t error = { .text = "no resources in resource.R" };
    flux_future_t *f = NULL;
    const char *s;
    char *path = NULL;
    json_t *R = NULL;
    int rc = -1;

    if (dir) {
        if (asprintf (&path, "%s/R", dir) >= 0
            && (R = file_R (path, &error))
            && put_R (ctx->h, R) == 0)
            rc = 0;
    }
    else if ((f = flux_kvs_lookup (ctx->h, NULL, 0, "resource.R"))
             && flux_kvs_lookup_get (f, &s) == 0
             && (R = json_loads (s ? s : "", 0, NULL)))
        rc = 0;
    if (rc == 0)
        rc = set_R (ctx, R, UINT_MAX, &error);
    if (rc < 0)
        flux_log (ctx->h, LOG_ERR, "%s", error.text);
    ctx->max_size = ctx->size;
    flux_future_destroy (f);
    json_decref (R);
    free (path);
    return rc;
}
