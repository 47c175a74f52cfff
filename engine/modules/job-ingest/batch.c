/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The last step of ingest: gives the job its ID, writes J and jobspec to the
 * KVS, and announces it to the job manager. Requests that come together share
 * a commit and an announcement.
 */
#include <time.h>

#include "libutil/errno_safe.h"
#include "common/respond.h"
#include "ingest.h"

struct batch {
    struct ingest *ctx;
    flux_kvs_txn_t *txn;
    json_t *jobs;           // for job-manager.submit
    const flux_msg_t **requests;
    size_t count;
};

static uint64_t clock_ms (void)
{
    struct timespec ts;

    clock_gettime (CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* A FLUID (RFC 19): 40 bits of time since the first job, 14 of generator
 * (here 0), 10 of sequence.
 */
static flux_jobid_t next_id (struct ingest *ctx)
{
    uint64_t now = clock_ms () - ctx->clock_zero + ctx->clock_start;

    if (now > ctx->timestamp) {
        ctx->timestamp = now;
        ctx->seq = 0;
    }
    else if (++ctx->seq == 1024) { // borrow from the future
        ctx->timestamp++;
        ctx->seq = 0;
    }
    return ctx->timestamp << 24 | ctx->seq;
}

static void batch_destroy (struct batch *batch)
{
    if (batch) {
        ERRNO_SAFE_BLOCK;

        for (size_t i = 0; i < batch->count; i++)
            flux_msg_decref (batch->requests[i]);
        free (batch->requests);
        json_decref (batch->jobs);
        flux_kvs_txn_destroy (batch->txn);
        free (batch);
    }
}

static void start_timer (struct ingest *ctx)
{
    flux_timer_watcher_reset (ctx->timer, 0., 0.);
    flux_watcher_start (ctx->timer);
}

static struct batch *batch_open (struct ingest *ctx)
{
    struct batch *batch;

    if (ctx->batch)
        return ctx->batch;
    if (!(batch = calloc (1, sizeof (*batch))))
        return NULL;
    batch->ctx = ctx;
    if (!(batch->txn = flux_kvs_txn_create ())
        || !(batch->jobs = json_array ())) {
        batch_destroy (batch);
        return NULL;
    }
    ctx->batch = batch;
    if (!ctx->committing && !ctx->batch_count)
        start_timer (ctx);
    return batch;
}

static void fail_batch (struct batch *batch, const char *text)
{
    for (size_t i = 0; i < batch->count; i++)
        respond_error (batch->ctx->h, batch->requests[i], text);
}

static void unlink_cb (flux_future_t *f, void *arg)
{
    if (flux_future_get (f, NULL) < 0)
        flux_log_error (arg, "error removing rejected jobs from the KVS");
    flux_future_destroy (f);
}

/* Nothing remains of jobs that were turned down. */
static void unlink_rejected (flux_t *h, json_t *ids)
{
    flux_kvs_txn_t *txn;
    flux_future_t *f = NULL;
    size_t index;
    json_t *id;
    char key[64];

    if (json_array_size (ids) == 0 || !(txn = flux_kvs_txn_create ()))
        return;
    json_array_foreach (ids, index, id) {
        if (flux_job_kvs_key (key, sizeof (key),
                              json_integer_value (id), NULL) > 0)
            (void)flux_kvs_txn_unlink (txn, 0, key);
    }
    if (!(f = flux_kvs_commit (h, NULL, 0, txn))
        || flux_future_then (f, -1., unlink_cb, h) < 0) {
        flux_log_error (h, "error removing rejected jobs from the KVS");
        flux_future_destroy (f);
    }
    flux_kvs_txn_destroy (txn);
}

static const char *error_of (json_t *errors, flux_jobid_t id)
{
    size_t index;
    json_t *o;

    json_array_foreach (errors, index, o) {
        flux_jobid_t id2;
        const char *text;

        if (json_unpack (o, "[Is]", &id2, &text) == 0 && id == id2)
            return text;
    }
    return NULL;
}

static void announce_cb (flux_future_t *f, void *arg)
{
    struct batch *batch = arg;
    flux_t *h = batch->ctx->h;
    json_t *errors = NULL;
    json_t *rejected = json_array ();
    bool failed = flux_rpc_get_unpack (f, "{s?o}", "errors", &errors) < 0;

    if (failed)
        fail_batch (batch, flux_future_error_string (f));
    for (size_t i = 0; i < batch->count; i++) {
        json_t *id = json_object_get (json_array_get (batch->jobs, i), "id");
        const char *text = NULL;

        if (!failed) {
            if ((text = error_of (errors, json_integer_value (id)))) {
                errno = EINVAL;
                respond_error (h, batch->requests[i], text);
            }
            else
                respond_pack (h, batch->requests[i], "{s:O}", "id", id);
        }
        if (failed || text)
            json_array_append (rejected, id);
    }
    unlink_rejected (h, rejected);
    json_decref (rejected);
    batch_destroy (batch);
    flux_future_destroy (f);
}

static void commit_cb (flux_future_t *f, void *arg)
{
    struct batch *batch = arg;
    struct ingest *ctx = batch->ctx;
    flux_future_t *f2 = NULL;

    ctx->committing = false;
    if (ctx->batch)
        start_timer (ctx);
    if (flux_future_get (f, NULL) < 0)
        fail_batch (batch, "KVS commit failed");
    else if (!(f2 = flux_rpc_pack (ctx->h, "job-manager.submit",
                                   FLUX_NODEID_ANY, 0,
                                   "{s:O}", "jobs", batch->jobs))
             || flux_future_then (f2, -1., announce_cb, batch) < 0) {
        fail_batch (batch, "cannot ask the job manager");
        flux_future_destroy (f2);
        f2 = NULL;
    }
    if (!f2)
        batch_destroy (batch);
    flux_future_destroy (f);
}

static void timer_cb (flux_reactor_t *r, flux_watcher_t *w, int revents,
                      void *arg)
{
    struct ingest *ctx = arg;
    struct batch *batch = ctx->batch;
    flux_future_t *f;

    if (!batch || ctx->committing)
        return;
    ctx->batch = NULL;
    if (!(f = flux_kvs_commit (ctx->h, NULL, 0, batch->txn))
        || flux_future_then (f, -1., commit_cb, batch) < 0) {
        fail_batch (batch, "KVS commit failed");
        flux_future_destroy (f);
        batch_destroy (batch);
        return;
    }
    ctx->committing = true;
}

// the environment is in J, and bulky: the jobspec goes without
int batch_add (struct submission *sub)
{
    struct ingest *ctx = sub->ctx;
    struct batch *batch;
    flux_jobid_t id = next_id (ctx);
    const flux_msg_t **requests;
    char keyJ[64];
    char keyspec[64];
    json_t *o;

    jp_del (sub->jobspec, "attributes.system.environment");
    if (!(batch = batch_open (ctx))
        || !(requests = realloc (batch->requests,
                                 (batch->count + 1) * sizeof (*requests))))
        return -1;
    batch->requests = requests;
    if (flux_job_kvs_key (keyJ, sizeof (keyJ), id, "J") < 0
        || flux_job_kvs_key (keyspec, sizeof (keyspec), id, "jobspec") < 0
        || flux_kvs_txn_put (batch->txn, 0, keyJ, sub->J) < 0
        || flux_kvs_txn_pack (batch->txn, 0, keyspec, "O", sub->jobspec) < 0
        || !(o = json_pack ("{s:I s:I s:i s:f s:i s:O}",
                            "id", id,
                            "userid", (json_int_t)sub->userid,
                            "urgency", sub->urgency,
                            "t_submit", now_realtime (),
                            "flags", sub->flags,
                            "jobspec", sub->jobspec))
        || json_array_append_new (batch->jobs, o) < 0)
        return -1;
    batch->requests[batch->count++] = flux_msg_incref (sub->msg);
    if (batch->count == (size_t)ctx->batch_count && !ctx->committing)
        start_timer (ctx);
    return 0;
}

/* IDs go on after the highest that the job manager knows. */
static int init_clock (struct ingest *ctx)
{
    flux_future_t *f;
    flux_jobid_t max;
    int rc;

    if (!(f = flux_rpc (ctx->h, "job-manager.getinfo", NULL, 0, 0)))
        return -1;
    if ((rc = flux_rpc_get_unpack (f, "{s:I}", "max_jobid", &max)) == 0) {
        ctx->clock_zero = clock_ms ();
        ctx->clock_start = ctx->timestamp = (max >> 24) + 1;
    }
    flux_future_destroy (f);
    return rc;
}

int batch_init (struct ingest *ctx)
{
    flux_reactor_t *r = flux_get_reactor (ctx->h);

    if (init_clock (ctx) < 0) {
        flux_log_error (ctx->h, "job-manager.getinfo");
        return -1;
    }
    if (!(ctx->timer = flux_timer_watcher_create (r, 0., 0., timer_cb, ctx)))
        return -1;
    return 0;
}

void batch_fini (struct ingest *ctx)
{
    if (ctx->batch) {
        errno = ENOSYS;
        fail_batch (ctx->batch, "job-ingest is unloading");
        batch_destroy (ctx->batch);
    }
    flux_watcher_destroy (ctx->timer);
}
