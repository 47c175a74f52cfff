/* SPDX-License-Identifier: LGPL-3.0-only */
/* drain.c - take nodes out of scheduling and back, with a reason.
 *
 * A request is checked, its event is written, then the change is made.
 * Drained nodes are found again in the eventlog after a restart.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "resource.h"

enum overwrite { NO, REASON, REASON_AND_TIME };

static void drain_node (struct node *n,
                        double timestamp,
                        const char *reason,
                        int overwrite)
{
    if (n->drained && n->drain_reason && overwrite == NO)
        return;
    free (n->drain_reason);
    n->drain_reason = reason ? strdup (reason) : NULL;
    if (!n->drained || overwrite == REASON_AND_TIME)
        n->drain_time = timestamp;
    n->drained = true;
}

static void undrain_node (struct node *n)
{
    n->drained = false;
    free (n->drain_reason);
    n->drain_reason = NULL;
}

/* Ranks of an event, by host where the nodes have changed places.
 */
static struct idset *replay_ranks (struct resource *ctx, json_t *context)
{
    const char *idset, *nodelist = NULL;
    struct idset *ids = NULL;
    struct idset *result = idset_create (ctx->size, 0);
    struct hostlist *hl = NULL;
    unsigned int i;
    int n = 0;

    if (json_unpack (context,
                     "{s:s s?s}",
                     "idset", &idset,
                     "nodelist", &nodelist) < 0
        || !(ids = idset_decode (idset)))
        return result;
    if (nodelist)
        hl = hostlist_decode (nodelist);
    for (i = idset_first (ids); i != IDSET_INVALID_ID; i = idset_next (ids, i)) {
        const char *host = hl ? hostlist_nth (hl, n++) : NULL;
        const char *here = i < ctx->size ? hostlist_nth (ctx->hosts, i) : NULL;

        if (!host || (here && strcmp (host, here) == 0)) {
            if (i < ctx->size)
                idset_set (result, i);
        }
        else {
            int rank = hostlist_find (ctx->hosts, host);
            if (rank >= 0)
                idset_set (result, rank);
        }
    }
    hostlist_destroy (hl);
    idset_destroy (ids);
    return result;
}

void drain_replay (struct resource *ctx,
                   const char *name,
                   double timestamp,
                   json_t *context)
{
    struct idset *ids = replay_ranks (ctx, context);
    const char *reason = NULL;
    int overwrite = REASON;
    unsigned int i;

    (void)json_unpack (context,
                       "{s?s s?i}",
                       "reason", &reason,
                       "overwrite", &overwrite);
    for (i = idset_first (ids); i != IDSET_INVALID_ID; i = idset_next (ids, i)) {
        if (strcmp (name, "drain") == 0)
            drain_node (&ctx->nodes[i], timestamp, reason, overwrite);
        else
            undrain_node (&ctx->nodes[i]);
    }
    idset_destroy (ids);
}

static bool same_drain (const struct node *a, const struct node *b)
{
    return b->drained
           && round (a->drain_time) == round (b->drain_time)
           && strcmp (a->drain_reason ? a->drain_reason : "",
                      b->drain_reason ? b->drain_reason : "") == 0;
}

json_t *drain_info (struct resource *ctx)
{
    struct idset *done = idset_create (ctx->size, 0);
    json_t *o = json_object ();

    for (unsigned int i = 0; i < ctx->size; i++) {
        struct node *n = &ctx->nodes[i];
        struct idset *same;
        char *s;

        if (!n->drained || idset_test (done, i))
            continue;
        same = idset_create (ctx->size, 0);
        for (unsigned int j = i; j < ctx->size; j++)
            if (same_drain (n, &ctx->nodes[j]))
                idset_set (same, j);
        idset_add (done, same);
        s = idset_encode (same, IDSET_FLAG_RANGE);
        json_object_set_new (o,
                             s,
                             json_pack ("{s:f s:s}",
                                        "timestamp", round (n->drain_time),
                                        "reason",
                                        n->drain_reason ? n->drain_reason
                                                        : ""));
        free (s);
        idset_destroy (same);
    }
    idset_destroy (done);
    return o;
}

static int overwrite_decode (const char *mode, bool *update, int *overwrite)
{
    *update = mode && strcmp (mode, "update") == 0;
    *overwrite = NO;
    if (mode && strcmp (mode, "overwrite") == 0)
        *overwrite = REASON;
    else if (mode && strcmp (mode, "force-overwrite") == 0)
        *overwrite = REASON_AND_TIME;
    else if (mode && !*update) {
        errno = EINVAL;
        return -1;
    }
    return 0;
}

/* Say which of the ranks cannot be drained (or undrained), and why.
 */
static int check_ranks (struct resource *ctx,
                        const struct idset *ids,
                        bool drain,
                        flux_error_t *error)
{
    struct idset *bad = idset_create (ctx->size, 0);
    bool drained = false;
    bool excluded = false;
    unsigned int i;
    int rc = 0;

    for (i = idset_first (ids); i != IDSET_INVALID_ID; i = idset_next (ids, i)) {
        struct node *n = &ctx->nodes[i];

        if (drain && n->excluded)
            excluded = true;
        if (drain && n->drained && n->drain_reason)
            drained = true;
        if (drain ? n->excluded || (n->drained && n->drain_reason)
                  : !n->drained)
            idset_set (bad, i);
    }
    if (idset_count (bad) > 0) {
        char *s = idset_encode (bad, IDSET_FLAG_RANGE);

        snprintf (error->text,
                  sizeof (error->text),
                  "rank%s %s %s%s%s",
                  idset_count (bad) > 1 ? "s" : "",
                  s ? s : "",
                  !drain ? "not drained" : drained ? "already drained" : "",
                  drained && excluded ? " or " : "",
                  excluded ? "excluded" : "");
        free (s);
        errno = !drain || drained ? EEXIST : EINVAL;
        rc = -1;
    }
    idset_destroy (bad);
    return rc;
}

static void drain_cb (flux_t *h,
                      flux_msg_handler_t *mh,
                      const flux_msg_t *msg,
                      void *arg)
{
    struct resource *ctx = arg;
    const char *topic, *targets;
    const char *mode = NULL;
    const char *reason = NULL;
    flux_error_t error = { .text = "" };
    struct idset *ids = NULL;
    char *ranks = NULL;
    char *hosts = NULL;
    bool update, drain;
    int overwrite;
    double now = time_now ();
    json_t *context = NULL;

    if (flux_request_unpack (msg,
                             &topic,
                             "{s:s s?s s?s}",
                             "targets", &targets,
                             "mode", &mode,
                             "reason", &reason) < 0)
        goto error;
    drain = strcmp (topic, "resource.drain") == 0;
    if (!(ids = targets_decode (ctx, targets, &error)))
        goto error;
    if (overwrite_decode (mode, &update, &overwrite) < 0) {
        snprintf (error.text, sizeof (error.text), "Invalid mode specified");
        goto error;
    }
    if (!update
        && overwrite == NO
        && check_ranks (ctx, ids, drain, &error) < 0)
        goto error;
    ranks = idset_encode (ids, IDSET_FLAG_RANGE);
    hosts = hosts_encode (ctx, ids);
    context = json_pack ("{s:s s:s s:i}",
                         "idset", ranks,
                         "nodelist", hosts,
                         "overwrite", overwrite);
    if (reason)
        json_object_set_new (context, "reason", json_string (reason));
    if (event_post (ctx,
                    now,
                    drain ? "drain" : "undrain",
                    json_incref (context)) < 0)
        goto error;
    drain_replay (ctx, drain ? "drain" : "undrain", now, context);
    flux_log (h,
              LOG_INFO,
              "%sdrain idset=%s nodelist=%s overwrite=%d reason=%s",
              drain ? "" : "un",
              ranks,
              hosts,
              overwrite,
              reason ? reason : "");
    acquire_update (ctx);
    respond_ok (h, msg);
    goto out;
error:
    respond_error (h, msg, error.text);
out:
    json_decref (context);
    free (ranks);
    free (hosts);
    idset_destroy (ids);
}

const struct flux_msg_handler_spec drain_htab[] = {
    { FLUX_MSGTYPE_REQUEST, "resource.drain", drain_cb, 0 },
    { FLUX_MSGTYPE_REQUEST, "resource.undrain", drain_cb, 0 },
    FLUX_MSGHANDLER_TABLE_END,
};
