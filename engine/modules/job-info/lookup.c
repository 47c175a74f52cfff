/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * job-info.lookup: values of KVS keys of a job.  The eventlog is always
 * looked up as well, since it tells whose job it is.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/errno_safe.h"
#include "job-info.h"

struct lookup {
    struct lookup *next;
    struct info *ctx;
    const flux_msg_t *msg;
    flux_jobid_t id;
    json_t *keys;
    int flags;
    flux_future_t *f;   // all lookups; each is a child named by its key
};

static void lookup_destroy (struct lookup *l)
{
    if (l) {
        ERRNO_SAFE_BLOCK;

        flux_future_destroy (l->f);
        flux_msg_decref (l->msg);
        json_decref (l->keys);
        free (l);
    }
}

void lookups_destroy (struct info *ctx)
{
    while (ctx->lookups) {
        struct lookup *l = ctx->lookups;

        ctx->lookups = l->next;
        lookup_destroy (l);
    }
}

/* The value of 'key' with the changes that are in the eventlog. */
static json_t *make_current (const char *val, const char *key,
                             const char *eventlog)
{
    json_t *o = json_loads (val, 0, NULL);
    json_t *log = eventlog_parse (eventlog);
    size_t index;
    json_t *entry;
    json_t *context;
    const char *name;

    if (!o || !log) {
        json_decref (o);
        o = NULL;
        errno = EPROTO;
    }
    else json_array_foreach (log, index, entry) {
        if (streq (key, "jobspec")
            && entry_parse (entry, NULL, &name, &context) == 0
            && streq (name, "jobspec-update"))
            (void)jobspec_apply (o, context);
    }
    json_decref (log);
    return o;
}

static json_t *make_value (struct lookup *l, const char *key,
                           const char *val, const char *eventlog)
{
    bool is_json = streq (key, "R") || streq (key, "jobspec");
    json_t *o;
    json_t *str;
    char *s;

    if (!is_json || l->flags == 0)
        return json_string (val);
    if (!(l->flags & FLUX_JOB_LOOKUP_CURRENT))
        return json_loads (val, 0, NULL);
    if (!(o = make_current (val, key, eventlog))
        || (l->flags & FLUX_JOB_LOOKUP_JSON_DECODE))
        return o;
    s = json_dumps (o, 0);
    str = json_string (s);
    free (s);
    json_decref (o);
    return str;
}

static const char *child_value (flux_future_t *f, const char *key)
{
    flux_future_t *child = flux_future_get_child (f, key);
    const char *s;

    if (!child || flux_kvs_lookup_get (child, &s) < 0)
        return NULL;
    if (!s)
        errno = EPROTO;
    return s;
}

static json_t *make_response (struct lookup *l, flux_error_t *error)
{
    const char *eventlog;
    json_t *o;
    size_t index;
    json_t *keyobj;

    if (!(eventlog = child_value (l->f, "eventlog"))) {
        set_error (error, "%s", errno == ENOENT ? "invalid job id"
                                                : strerror (errno));
        return NULL;
    }
    if (info_authorize (l->msg, eventlog) < 0) {
        set_error (error, "%s",
                   errno == EPERM ? "restricted to the user of the job"
                                  : "malformed eventlog");
        return NULL;
    }
    if (!(o = json_pack ("{s:I}", "id", l->id)))
        return NULL;
    json_array_foreach (l->keys, index, keyobj) {
        const char *key = json_string_value (keyobj);
        const char *s;

        if (!(s = child_value (l->f, key))) {
            set_error (error, "%s: %s", key,
                       errno == ENOENT ? "key not found" : strerror (errno));
            goto error;
        }
        errno = EPROTO;
        if (json_object_set_new (o, key,
                                 make_value (l, key, s, eventlog)) < 0) {
            set_error (error, "%s: no valid JSON", key);
            goto error;
        }
    }
    return o;
error:
    json_decref (o);
    return NULL;
}

static void lookup_continuation (flux_future_t *f, void *arg)
{
    struct lookup *l = arg;
    struct lookup **lp;
    flux_error_t error;
    json_t *o;

    error.text[0] = '\0';
    if (!(o = make_response (l, &error)))
        respond_error (l->ctx->h, l->msg, error.text);
    else
        respond_pack (l->ctx->h, l->msg, "o", o);
    for (lp = &l->ctx->lookups; *lp != l; lp = &(*lp)->next)
        ;
    *lp = l->next;
    lookup_destroy (l);
}

static int push_key (struct lookup *l, const char *key)
{
    flux_future_t *child = NULL;
    char full[256];
    int rc;

    errno = EPROTO;
    if (!key)
        return -1;
    if (flux_future_get_child (l->f, key))
        return 0;
    rc = flux_job_kvs_key (full, sizeof (full), l->id, key);
    if (rc >= 0 && (child = flux_kvs_lookup (l->ctx->h, NULL, 0, full))
        && flux_future_push (l->f, key, child) == 0)
        return 0;
    flux_future_destroy (child);
    return -1;
}

static int start_lookup (struct info *ctx, const flux_msg_t *msg,
                         flux_jobid_t id, json_t *keys, int flags)
{
    struct lookup *l;
    size_t index;
    json_t *key;

    if (!(l = calloc (1, sizeof (*l))))
        return -1;
    l->ctx = ctx;
    l->id = id;
    l->flags = flags;
    l->msg = flux_msg_incref (msg);
    l->keys = json_incref (keys);
    if (!(l->f = flux_future_wait_all_create ()))
        goto error;
    flux_future_set_flux (l->f, ctx->h);
    if (push_key (l, "eventlog") < 0)
        goto error;
    json_array_foreach (keys, index, key) {
        if (push_key (l, json_string_value (key)) < 0)
            goto error;
    }
    if (flux_future_then (l->f, -1., lookup_continuation, l) < 0)
        goto error;
    l->next = ctx->lookups;
    ctx->lookups = l;
    return 0;
error:
    lookup_destroy (l);
    return -1;
}

void lookup_request (flux_t *h, flux_msg_handler_t *mh,
                     const flux_msg_t *msg, void *arg)
{
    const int known = FLUX_JOB_LOOKUP_CURRENT | FLUX_JOB_LOOKUP_JSON_DECODE;
    const char *why = NULL;
    int flags;
    json_t *keys;
    flux_jobid_t id;
    int rc;

    rc = flux_request_unpack (msg, NULL, "{s:i s:o s:I}",
                              "flags", &flags,
                              "keys", &keys,
                              "id", &id);
    if (rc == 0) {
        errno = EPROTO;
        if ((flags | known) != known)
            why = "unknown flags";
        else if (!json_is_array (keys))
            why = "keys are not an array";
        else if (start_lookup (arg, msg, id, keys, flags) == 0)
            return;
    }
    respond_error (h, msg, why);
}
