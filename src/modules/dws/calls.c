/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See calls.h.
 */

#include <errno.h>
#include <stdlib.h>

#include "calls.h"
#include "ctx.h"
#include "idmap.h"

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
        int saved_errno = errno;
        flux_future_destroy (p->f);
        free (p);
        errno = saved_errno;
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
        int saved_errno = errno;
        idmap_destroy (calls->pending);
        free (calls);
        errno = saved_errno;
    }
}

static void continuation (flux_future_t *f, void *arg)
{
    struct pending *p = arg;
    struct calls *calls = p->call.ctx->calls;

    p->cb (&p->call, f);
    idmap_delete (calls->pending, p->seq);
}

int calls_add (struct dws_ctx *ctx,
               flux_future_t *f,
               uint64_t jobid,
               int kind,
               call_f cb)
{
    struct calls *calls = ctx->calls;
    struct pending *p;

    if (!f)
        return -1;
    if (!(p = calloc (1, sizeof (*p)))) {
        flux_future_destroy (f);
        errno = ENOMEM;
        return -1;
    }
    p->call.ctx = ctx;
    p->call.jobid = jobid;
    p->call.kind = kind;
    p->seq = ++calls->seq;
    p->f = f;
    p->cb = cb;
    if (flux_future_then (f, -1., continuation, p) < 0
        || idmap_insert (calls->pending, p->seq, p) < 0) {
        pending_destroy (p);
        return -1;
    }
    return 0;
}
