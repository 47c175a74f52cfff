/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See commits.h.
 */

#include <errno.h>
#include <stdlib.h>

#include "libutil/errno_safe.h"
#include "base/calls.h"
#include "base/commits.h"
#include "base/ctx.h"
#include "base/timer.h"

/* Upper bound on writers of one commit: with the largest records its message is
 * a few MiB.
 */
#define WRITERS_MAX 32

/* A commit, from its first write to its response.
 */
struct batch {
    struct commits *commits;
    flux_kvs_txn_t *txn;
    flux_future_t *f;           // of the commit, NULL before
    flux_future_t *writers[WRITERS_MAX];
    size_t count;
    struct batch *prev;
    struct batch *next;
};

struct commits {
    flux_t *h;
    flux_watcher_t *timer;
    struct batch *open;         // takes the present writes, or NULL
    struct batch *sent;         // batches without a response
};

static void batch_destroy (struct batch *batch)
{
    if (batch) {
        ERRNO_SAFE_BLOCK;
        for (size_t i = 0; i < batch->count; i++)
            flux_future_decref (batch->writers[i]);
        flux_future_destroy (batch->f);
        flux_kvs_txn_destroy (batch->txn);
        free (batch);
    }
}

static void tell_writers (struct batch *batch, int errnum)
{
    for (size_t i = 0; i < batch->count; i++) {
        if (errnum)
            flux_future_fulfill_error (batch->writers[i], errnum, NULL);
        else
            flux_future_fulfill (batch->writers[i], NULL, NULL);
    }
}

static void commit_cb (flux_future_t *f, void *arg)
{
    struct batch *batch = arg;

    tell_writers (batch, flux_future_get (f, NULL) < 0 ? errno : 0);
    if (batch->prev)
        batch->prev->next = batch->next;
    else
        batch->commits->sent = batch->next;
    if (batch->next)
        batch->next->prev = batch->prev;
    batch_destroy (batch);
}

static void send_batch (struct commits *commits)
{
    struct batch *batch = commits->open;

    flux_watcher_stop (commits->timer);
    commits->open = NULL;
    if (!(batch->f = flux_kvs_commit (commits->h, NULL, 0, batch->txn))
        || flux_future_then (batch->f, -1., commit_cb, batch) < 0) {
        tell_writers (batch, errno);
        batch_destroy (batch);
        return;
    }
    if ((batch->next = commits->sent))
        batch->next->prev = batch;
    commits->sent = batch;
}

static void commits_timer_cb (flux_reactor_t *r, flux_watcher_t *w, int revents,
                              void *arg)
{
    struct commits *commits = arg;

    if (commits->open)
        send_batch (commits);
}

flux_kvs_txn_t *commits_txn (struct commits *commits)
{
    struct batch *batch = commits->open;

    if (batch)
        return batch->txn;
    if (!(batch = calloc (1, sizeof (*batch))))
        return NULL;
    batch->commits = commits;
    if (!(batch->txn = flux_kvs_txn_create ())) {
        batch_destroy (batch);
        return NULL;
    }
    commits->open = batch;
    return batch->txn;
}

flux_future_t *commits_wait (struct commits *commits)
{
    struct batch *batch = commits->open;
    flux_future_t *f;

    if (!batch) {
        errno = EINVAL;
        return NULL;
    }
    if (!(f = flux_future_create (NULL, NULL)))
        return NULL;
    flux_future_set_flux (f, commits->h);
    flux_future_incref (f);
    batch->writers[batch->count++] = f;
    if (batch->count == WRITERS_MAX)
        send_batch (commits);
    else if (batch->count == 1) {
        flux_timer_watcher_reset (commits->timer, 0., 0.);
        flux_watcher_start (commits->timer);
    }
    return f;
}

struct commits *commits_create (flux_t *h)
{
    struct commits *commits;

    if (!(commits = calloc (1, sizeof (*commits))))
        return NULL;
    commits->h = h;
    if (!(commits->timer = timer_make (h, commits_timer_cb, commits))) {
        commits_destroy (commits);
        return NULL;
    }
    return commits;
}

void commits_destroy (struct commits *commits)
{
    if (commits) {
        ERRNO_SAFE_BLOCK;
        if (commits->open)
            send_batch (commits);
        while (commits->sent) {
            struct batch *next = commits->sent->next;
            batch_destroy (commits->sent);
            commits->sent = next;
        }
        flux_watcher_destroy (commits->timer);
        free (commits);
    }
}

flux_future_t *commits_write (struct dws_ctx *ctx, const char *key, json_t *o)
{
    flux_kvs_txn_t *txn = commits_txn (ctx->commits);

    if (!o)
        errno = ENOMEM;
    if (!o || !txn || flux_kvs_txn_pack (txn, 0, key, "O", o) < 0)
        return NULL;
    return commits_wait (ctx->commits);
}

int commits_save (struct dws_ctx *ctx, const char *key, json_t *o)
{
    return calls_log (ctx, commits_write (ctx, key, o), LOG_ERR, key);
}

int commits_load (flux_t *h, const char *key, json_t **o)
{
    flux_future_t *f;
    json_t *value = NULL;
    int rc;

    if (!(f = flux_kvs_lookup (h, NULL, 0, key)))
        return -1;
    rc = flux_kvs_lookup_get_unpack (f, "o", &value);
    if (rc < 0 && errno == ENOENT)
        rc = 0;
    *o = json_incref (value);
    ERRNO_SAFE (flux_future_destroy (f));
    return rc;
}
