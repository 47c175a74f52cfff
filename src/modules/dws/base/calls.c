/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See calls.h.
 */

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <jansson.h>

#include "libdws/util/jsontext.h"
#include "libutil/errno_safe.h"
#include "libutil/idmap.h"
#include "libutil/safelog.h"
#include "base/calls.h"
#include "base/ctx.h"

struct calls {
    struct idmap *pending;      // sequence number -> struct pending
    uint64_t seq;
};

struct pending {
    struct call call;
    uint64_t seq;
    flux_future_t *f;
    call_f cb;
};

static void pending_destroy (void *value)
{
    struct pending *p = value;

    if (p) {
        ERRNO_SAFE_BLOCK;
        flux_future_destroy (p->f);
        free (p);
    }
}

struct calls *calls_create (void)
{
    struct calls *calls;

    if (!(calls = calloc (1, sizeof (*calls))))
        return NULL;
    if (!(calls->pending = idmap_create (pending_destroy))) {
        free (calls);
        return NULL;
    }
    return calls;
}

void calls_destroy (struct calls *calls)
{
    if (calls) {
        ERRNO_SAFE_BLOCK;
        idmap_destroy (calls->pending);
        free (calls);
    }
}

flux_future_t *calls_rpc (flux_t *h, const char *topic, const char *fmt, ...)
{
    flux_future_t *f = NULL;
    json_error_t error;
    json_t *payload;
    char *text = NULL;
    va_list ap;

    va_start (ap, fmt);
    payload = json_vpack_ex (&error, 0, fmt, ap);
    va_end (ap);
    if (!payload)
        errno = json_error_code (&error) == json_error_out_of_memory
                ? ENOMEM : EINVAL;
    else if (dws_jsontext_set (&text, payload) == 0)
        f = flux_rpc (h, topic, text, FLUX_NODEID_ANY, 0);
    ERRNO_SAFE (free (text));
    ERRNO_SAFE (json_decref (payload));
    return f;
}

static void call_ready_cb (flux_future_t *f, void *arg)
{
    struct pending *p = arg;
    struct calls *calls = p->call.ctx->calls;

    p->cb (&p->call, f);
    idmap_delete (calls->pending, p->seq);
}

/* Takes over 'f'. 'call' is copied.
 */
static int add_pending (struct calls *calls, flux_future_t *f, double seconds,
                        const struct call *call, call_f cb)
{
    struct pending *p;

    if (!f)
        return -1;
    if (!(p = calloc (1, sizeof (*p)))) {
        flux_future_destroy (f);
        errno = ENOMEM;
        return -1;
    }
    p->call = *call;
    p->seq = ++calls->seq;
    p->f = f;
    p->cb = cb;
    if (flux_future_then (f, seconds, call_ready_cb, p) < 0
        || idmap_insert (calls->pending, p->seq, p) < 0) {
        pending_destroy (p);
        return -1;
    }
    return 0;
}

int calls_add (struct dws_ctx *ctx,
               flux_future_t *f,
               uint64_t jobid,
               int kind,
               call_f cb)
{
    struct call call = { .ctx = ctx, .jobid = jobid, .kind = kind };

    return add_pending (ctx->calls, f, -1., &call, cb);
}

int calls_add_with (struct dws_ctx *ctx,
                    flux_future_t *f,
                    double seconds,
                    uint64_t jobid,
                    const void *arg,
                    call_f cb)
{
    struct call call = { .ctx = ctx, .jobid = jobid, .arg = arg };

    return add_pending (ctx->calls, f, seconds, &call, cb);
}

static void log_cb (const struct call *call, flux_future_t *f)
{
    if (flux_future_get (f, NULL) < 0)
        safe_log (call->ctx->h, call->kind, "%s: %s", (const char *)call->arg,
                  future_strerror (f, errno));
}

int calls_log (struct dws_ctx *ctx, flux_future_t *f, int level, const char *what)
{
    struct call call = { .ctx = ctx, .kind = level, .arg = what };
    int rc = add_pending (ctx->calls, f, -1., &call, log_cb);

    if (rc < 0)
        safe_log_error (ctx->h, "%s", what);
    return rc;
}
