/* SPDX-License-Identifier: LGPL-3.0-only */
/* resource.c - the resource module: the instance's nodes, for the scheduler
 * and for flux resource.
 *
 * With the argument "statedir" R comes from the file R in the directory that
 * the attribute of that name says, otherwise from the KVS.
 * All of its nodes are there from the start.  What happens to them is in
 * resource.eventlog; the scheduler hears of it as the answer to its
 * resource.acquire request (RFC 28).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "resource.h"

double time_now (void)
{
    struct timespec ts;

    clock_gettime (CLOCK_REALTIME, &ts);
    return ts.tv_sec + 1E-9 * ts.tv_nsec;
}

void set_idset (json_t *o, const char *key, const struct idset *ids)
{
    char *s = idset_encode (ids, IDSET_FLAG_RANGE);

    json_object_set_new (o, key, json_string (s ? s : ""));
    free (s);
}

/* Eventlog
 */

int event_post (struct resource *ctx,
                double timestamp,
                const char *name,
                json_t *context)
{
    json_t *entry = json_pack ("{s:f s:s s:o}",
                               "timestamp", timestamp,
                               "name", name,
                               "context", context);
    char *s = entry ? json_dumps (entry, JSON_COMPACT) : NULL;
    char *line = NULL;
    flux_kvs_txn_t *txn = flux_kvs_txn_create ();
    flux_future_t *f = NULL;
    const flux_msg_t *msg;
    int rc = -1;

    if (!s
        || !txn
        || asprintf (&line, "%s\n", s) < 0
        || flux_kvs_txn_put (txn,
                             FLUX_KVS_APPEND,
                             "resource.eventlog",
                             line) < 0
        || !(f = flux_kvs_commit (ctx->h, NULL, 0, txn))
        || flux_future_get (f, NULL) < 0)
        goto out;
    json_array_append (ctx->eventlog, entry);
    msg = flux_msglist_first (ctx->journals);
    while (msg) {
        respond_pack (ctx->h, msg, "{s:[O]}", "events", entry);
        msg = flux_msglist_next (ctx->journals);
    }
    rc = 0;
out:
    flux_future_destroy (f);
    flux_kvs_txn_destroy (txn);
    free (line);
    free (s);
    json_decref (entry);
    return rc;
}

/* Apply what happened before a restart.
 */
static int replay_eventlog (struct resource *ctx)
{
    flux_future_t *f;
    const char *s;
    int rc = -1;

    if (!(f = flux_kvs_lookup (ctx->h, NULL, 0, "resource.eventlog")))
        return -1;
    if (flux_kvs_lookup_get (f, &s) < 0) {
        rc = errno == ENOENT ? 0 : -1;
        goto out;
    }
    while (s && *s) {
        size_t len = strcspn (s, "\n");
        json_t *entry = json_loadb (s, len, 0, NULL);
        double timestamp;
        const char *name;
        json_t *context = NULL;

        if (json_unpack (entry,
                         "{s:F s:s s?o}",
                         "timestamp", &timestamp,
                         "name", &name,
                         "context", &context) == 0) {
            if (strcmp (name, "drain") == 0 || strcmp (name, "undrain") == 0)
                drain_replay (ctx, name, timestamp, context);
            json_array_append (ctx->eventlog, entry);
        }
        json_decref (entry);
        s += len + (s[len] == '\n');
    }
    rc = 0;
out:
    flux_future_destroy (f);
    return rc;
}

static void journal_cb (flux_t *h,
                        flux_msg_handler_t *mh,
                        const flux_msg_t *msg,
                        void *arg)
{
    struct resource *ctx = arg;

    if (!flux_msg_is_streaming (msg)) {
        errno = EPROTO;
        goto error;
    }
    if (flux_respond_pack (h,
                           msg,
                           "{s:O s:O}",
                           "events", ctx->eventlog,
                           "R", ctx->R) < 0
        || flux_respond_pack (h, msg, "{s:[]}", "events") < 0
        || flux_msglist_append (ctx->journals, msg) < 0)
        goto error;
    return;
error:
    respond_error (h, msg, NULL);
}

static void cancel_cb (flux_t *h,
                       flux_msg_handler_t *mh,
                       const flux_msg_t *msg,
                       void *arg)
{
    struct resource *ctx = arg;

    (void)flux_msglist_cancel (h, ctx->acquirers, msg);
    (void)flux_msglist_cancel (h, ctx->journals, msg);
}

static void disconnect_cb (flux_t *h,
                           flux_msg_handler_t *mh,
                           const flux_msg_t *msg,
                           void *arg)
{
    struct resource *ctx = arg;

    (void)flux_msglist_disconnect (ctx->acquirers, msg);
    (void)flux_msglist_disconnect (ctx->journals, msg);
    (void)flux_msglist_disconnect (ctx->status_requests, msg);
}

/* Status
 */

static void status_cb (flux_t *h,
                       flux_msg_handler_t *mh,
                       const flux_msg_t *msg,
                       void *arg)
{
    struct resource *ctx = arg;
    static const struct {
        const char *key;
        node_test_f test;
    } sets[] = {
        { "online", node_is_online },
        { "offline", node_is_offline },
        { "exclude", node_is_excluded },
    };
    json_t *R = json_copy (ctx->R);
    json_t *o = json_pack ("{s:O s:o s:s}",
                           "R", R,
                           "drain", drain_info (ctx),
                           "torpid", "");

    json_object_del (R, "scheduling");
    for (size_t i = 0; i < sizeof (sets) / sizeof (sets[0]); i++) {
        struct idset *ids = nodes_select (ctx, sets[i].test);
        set_idset (o, sets[i].key, ids);
        idset_destroy (ids);
    }
    respond_pack (h, msg, "O", o);
    json_decref (o);
    json_decref (R);
}

/* The job manager has said what is allocated.
 */
static void allocated_cb (flux_future_t *f, void *arg)
{
    struct resource *ctx = arg;
    struct idset *none = idset_create (ctx->size, 0);
    struct idset *all = idset_create (ctx->size, IDSET_FLAG_INITFULL);
    struct idset *excluded = nodes_select (ctx, node_is_excluded);
    struct idset *down = nodes_select (ctx, node_is_down);
    json_t *allocated = NULL;
    const flux_msg_t *msg;
    json_t *o;

    (void)idset_subtract (all, excluded);
    (void)flux_rpc_get_unpack (f, "{s:o}", "allocated", &allocated);
    if (!allocated || json_is_null (allocated))
        allocated = R_select (ctx, none, true);
    else
        allocated = R_with_properties (ctx, allocated);
    o = json_pack ("{s:o s:o s:o}",
                   "all", R_select (ctx, all, true),
                   "down", R_select (ctx, down, true),
                   "allocated", allocated);
    while ((msg = flux_msglist_pop (ctx->status_requests))) {
        respond_pack (ctx->h, msg, "O", o);
        flux_msg_decref (msg);
    }
    json_decref (o);
    idset_destroy (none);
    idset_destroy (all);
    idset_destroy (excluded);
    idset_destroy (down);
    flux_future_destroy (f);
    ctx->status_rpc = NULL;
}

static void sched_status_cb (flux_t *h,
                             flux_msg_handler_t *mh,
                             const flux_msg_t *msg,
                             void *arg)
{
    struct resource *ctx = arg;

    if (flux_msglist_append (ctx->status_requests, msg) < 0)
        goto error;
    if (!ctx->status_rpc
        && (!(ctx->status_rpc = flux_rpc (h,
                                          "job-manager.resource-status",
                                          NULL,
                                          FLUX_NODEID_ANY,
                                          0))
            || flux_future_then (ctx->status_rpc, -1, allocated_cb, ctx) < 0)) {
        (void)flux_msglist_last (ctx->status_requests);
        flux_msglist_delete (ctx->status_requests);
        goto error;
    }
    return;
error:
    respond_error (h, msg, NULL);
}

/* Configuration
 */

static int set_exclude (struct resource *ctx,
                        const flux_conf_t *conf,
                        flux_error_t *error)
{
    const char *targets = NULL;
    struct idset *ids = NULL;

    if (flux_conf_unpack (conf,
                          error,
                          "{s?{s?s}}",
                          "resource",
                            "exclude", &targets) < 0)
        return -1;
    if (targets && *targets && !(ids = targets_decode (ctx, targets, error)))
        return -1;
    for (unsigned int i = 0; i < ctx->size; i++)
        ctx->nodes[i].excluded = ids && idset_test (ids, i);
    idset_destroy (ids);
    return 0;
}

static void config_reload_cb (flux_t *h,
                              flux_msg_handler_t *mh,
                              const flux_msg_t *msg,
                              void *arg)
{
    struct resource *ctx = arg;
    flux_conf_t *conf;
    flux_error_t error = { .text = "" };

    if (flux_module_config_request_decode (msg, &conf) < 0)
        goto error;
    if (set_exclude (ctx, conf, &error) < 0) {
        flux_conf_decref (conf);
        goto error;
    }
    if (flux_set_conf_new (h, conf) < 0) {
        flux_conf_decref (conf);
        goto error;
    }
    acquire_update (ctx);
    respond_ok (h, msg);
    return;
error:
    respond_error (h, msg, error.text);
}

/* Start
 */

static int announce (struct resource *ctx)
{
    struct idset *all = idset_create (ctx->size, IDSET_FLAG_INITFULL);
    char *ranks = idset_encode (all, IDSET_FLAG_RANGE);
    char *hosts = hostlist_encode (ctx->hosts);
    double now = time_now ();
    int rc = -1;

    if (ranks
        && hosts
        && event_post (ctx, now, "restart",
                       json_pack ("{s:s s:s s:s}",
                                  "ranks", ranks,
                                  "online", "",
                                  "nodelist", hosts)) == 0
        && event_post (ctx, now, "online",
                       json_pack ("{s:s s:s}",
                                  "idset", ranks,
                                  "nodelist", hosts)) == 0)
        rc = event_post (ctx, now, "resource-define",
                         json_pack ("{s:s}", "method", "configuration"));
    free (ranks);
    free (hosts);
    idset_destroy (all);
    return rc;
}

static void resource_destroy (struct resource *ctx)
{
    const flux_msg_t *msg;

    if (!ctx)
        return;
    while (ctx->acquirers && (msg = flux_msglist_pop (ctx->acquirers))) {
        (void)flux_respond_error (ctx->h,
                                  msg,
                                  ECANCELED,
                                  "the resource module was unloaded");
        flux_msg_decref (msg);
    }
    flux_msg_handler_delvec (ctx->handlers);
    flux_future_destroy (ctx->status_rpc);
    flux_msglist_destroy (ctx->acquirers);
    flux_msglist_destroy (ctx->journals);
    flux_msglist_destroy (ctx->status_requests);
    for (unsigned int i = 0; ctx->nodes && i < ctx->size; i++)
        free (ctx->nodes[i].drain_reason);
    free (ctx->nodes);
    hostlist_destroy (ctx->hosts);
    json_decref (ctx->eventlog);
    json_decref (ctx->R);
    free (ctx);
}

static struct resource *resource_create (flux_t *h, const char *dir)
{
    struct resource *ctx;
    flux_error_t error = { .text = "" };

    if (!(ctx = calloc (1, sizeof (*ctx))))
        return NULL;
    ctx->h = h;
    if (!(ctx->acquirers = flux_msglist_create ())
        || !(ctx->journals = flux_msglist_create ())
        || !(ctx->status_requests = flux_msglist_create ())
        || !(ctx->eventlog = json_array ())
        || inventory_load (ctx, dir) < 0
        || replay_eventlog (ctx) < 0)
        goto error;
    if (set_exclude (ctx, flux_get_conf (h), &error) < 0) {
        flux_log (h, LOG_ERR, "resource.exclude: %s", error.text);
        goto error;
    }
    if (announce (ctx) < 0)
        goto error;
    return ctx;
error:
    resource_destroy (ctx);
    return NULL;
}

/* Tests play lost nodes with this: {"ranks": IDSET}, or with "up" nodes
 * that have come back.
 */
static void force_down_cb (flux_t *h,
                           flux_msg_handler_t *mh,
                           const flux_msg_t *msg,
                           void *arg)
{
    struct resource *ctx = arg;
    const char *ranks;
    int up = 0;
    struct idset *ids = NULL;
    flux_error_t error = { .text = "" };
    char *s = NULL;
    char *hosts = NULL;
    unsigned int i;

    if (flux_request_unpack (msg,
                             NULL,
                             "{s:s s?b}",
                             "ranks", &ranks,
                             "up", &up) < 0
        || !(ids = targets_decode (ctx, ranks, &error))
        || !(s = idset_encode (ids, IDSET_FLAG_RANGE))
        || !(hosts = hosts_encode (ctx, ids))
        || event_post (ctx,
                       time_now (),
                       up ? "online" : "offline",
                       json_pack ("{s:s s:s}",
                                  "idset", s,
                                  "nodelist", hosts)) < 0) {
        respond_error (h, msg, error.text);
        goto out;
    }
    for (i = idset_first (ids); i != IDSET_INVALID_ID; i = idset_next (ids, i))
        ctx->nodes[i].offline = !up;
    acquire_update (ctx);
    respond_ok (h, msg);
out:
    free (s);
    free (hosts);
    idset_destroy (ids);
}

static void get_cb (flux_t *h,
                    flux_msg_handler_t *mh,
                    const flux_msg_t *msg,
                    void *arg)
{
    struct resource *ctx = arg;

    respond_pack (h, msg, "O", ctx->R);
}

static const struct flux_msg_handler_spec htab[] = {
    { FLUX_MSGTYPE_REQUEST, "resource.acquire-cancel", cancel_cb, 0 },
    { FLUX_MSGTYPE_REQUEST, "resource.journal", journal_cb, 0 },
    { FLUX_MSGTYPE_REQUEST, "resource.journal-cancel", cancel_cb, 0 },
    { FLUX_MSGTYPE_REQUEST, "resource.status", status_cb, FLUX_ROLE_USER },
    { FLUX_MSGTYPE_REQUEST, "resource.sched-status", sched_status_cb,
      FLUX_ROLE_USER },
    { FLUX_MSGTYPE_REQUEST, "resource.config-reload", config_reload_cb, 0 },
    { FLUX_MSGTYPE_REQUEST, "resource.disconnect", disconnect_cb,
      FLUX_ROLE_USER },
    { FLUX_MSGTYPE_REQUEST, "resource.monitor-force-down", force_down_cb, 0 },
    { FLUX_MSGTYPE_REQUEST, "resource.get", get_cb, FLUX_ROLE_USER },
    FLUX_MSGHANDLER_TABLE_END,
};

int mod_main (flux_t *h, int argc, char **argv)
{
    flux_msg_handler_t **acquire_handlers = NULL;
    flux_msg_handler_t **drain_handlers = NULL;
    const char *dir = NULL;
    struct resource *ctx;
    int rc = -1;

    for (int i = 0; i < argc; i++) {
        if (strcmp (argv[i], "statedir") == 0)
            dir = flux_attr_get (h, "statedir");
        else {
            flux_log (h, LOG_ERR, "unknown module argument: %s", argv[i]);
            errno = EINVAL;
            return -1;
        }
    }
    if (!(ctx = resource_create (h, dir))) {
        flux_log_error (h, "cannot set up resources");
        return -1;
    }
    if (flux_msg_handler_addvec (h, htab, ctx, &ctx->handlers) == 0
        && flux_msg_handler_addvec (h,
                                    acquire_htab,
                                    ctx,
                                    &acquire_handlers) == 0
        && flux_msg_handler_addvec (h, drain_htab, ctx, &drain_handlers) == 0)
        rc = flux_reactor_run (flux_get_reactor (h), 0);
    flux_msg_handler_delvec (drain_handlers);
    flux_msg_handler_delvec (acquire_handlers);
    resource_destroy (ctx);
    return rc < 0 ? -1 : 0;
}
