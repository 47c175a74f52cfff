/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Takes jobs in: unwraps and checks the jobspec, gives the job its ID,
 * writes J and jobspec to the KVS, and announces it to the job manager.
 * Requests that come together share a commit and an announcement.
 */
#include <time.h>

#include "common/respond.h"
#include "jobutil.h"

struct batch {
    struct ingest *ctx;
    flux_kvs_txn_t *txn;
    json_t *jobs;           // for job-manager.submit
    const flux_msg_t **requests;
    size_t count;
};

struct ingest {
    flux_t *h;
    struct batch *batch;    // the one that is filling
    bool committing;
    flux_watcher_t *timer;
    uint64_t timestamp;     // of the last ID, ms
    uint64_t clock_zero;
    uint64_t clock_start;
    unsigned int seq;
    bool novalidate;
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
        int saved_errno = errno;

        for (size_t i = 0; i < batch->count; i++)
            flux_msg_decref (batch->requests[i]);
        free (batch->requests);
        json_decref (batch->jobs);
        flux_kvs_txn_destroy (batch->txn);
        free (batch);
        errno = saved_errno;
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
    if (!ctx->committing)
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
            else if (flux_respond_pack (h, batch->requests[i], "{s:O}",
                                        "id", id) < 0)
                flux_log_error (h, "error responding to submit request");
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
        fail_batch (batch, "error sending job-manager.submit RPC");
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

/* The environment is in J, and bulky: the jobspec goes without. */
static int batch_add (struct ingest *ctx, const flux_msg_t *msg,
                      const char *J, json_t *jobspec, int urgency, int flags,
                      uint32_t userid)
{
    struct batch *batch;
    flux_jobid_t id = next_id (ctx);
    const flux_msg_t **requests;
    char keyJ[64];
    char keyspec[64];
    json_t *o;

    jp_del (jobspec, "attributes.system.environment");
    if (!(batch = batch_open (ctx))
        || !(requests = realloc (batch->requests,
                                 (batch->count + 1) * sizeof (*requests))))
        return -1;
    batch->requests = requests;
    if (flux_job_kvs_key (keyJ, sizeof (keyJ), id, "J") < 0
        || flux_job_kvs_key (keyspec, sizeof (keyspec), id, "jobspec") < 0
        || flux_kvs_txn_put (batch->txn, 0, keyJ, J) < 0
        || flux_kvs_txn_pack (batch->txn, 0, keyspec, "O", jobspec) < 0
        || !(o = json_pack ("{s:I s:I s:i s:f s:i s:O}",
                            "id", id,
                            "userid", (json_int_t)userid,
                            "urgency", urgency,
                            "t_submit", now_realtime (),
                            "flags", flags,
                            "jobspec", jobspec))
        || json_array_append_new (batch->jobs, o) < 0)
        return -1;
    batch->requests[batch->count++] = flux_msg_incref (msg);
    return 0;
}

static int deny (flux_error_t *error, int errnum, const char *fmt, ...)
    __attribute__ ((format (printf, 3, 4)));

static int deny (flux_error_t *error, int errnum, const char *fmt, ...)
{
    va_list ap;

    va_start (ap, fmt);
    vsnprintf (error->text, sizeof (error->text), fmt, ap);
    va_end (ap);
    errno = errnum;
    return -1;
}

static int check_request (struct flux_msg_cred cred, int urgency, int flags,
                          flux_error_t *error)
{
    const int allowed = FLUX_JOB_DEBUG | FLUX_JOB_WAITABLE
                        | FLUX_JOB_NOVALIDATE;

    if (flags & ~allowed)
        return deny (error, EPROTO, "invalid job flags");
    if (urgency < FLUX_JOB_URGENCY_MIN || urgency > FLUX_JOB_URGENCY_MAX)
        return deny (error, EINVAL, "urgency range is [%d:%d]",
                     FLUX_JOB_URGENCY_MIN, FLUX_JOB_URGENCY_MAX);
    if (cred.rolemask & FLUX_ROLE_OWNER)
        return 0;
    if (flags & FLUX_JOB_NOVALIDATE)
        return deny (error, EPERM, "only the instance owner can submit with "
                     "FLUX_JOB_NOVALIDATE");
    if (urgency > FLUX_JOB_URGENCY_DEFAULT)
        return deny (error, EINVAL, "only the instance owner can submit "
                     "with urgency >%d", FLUX_JOB_URGENCY_DEFAULT);
    if (flags & FLUX_JOB_WAITABLE)
        return deny (error, EINVAL, "only the instance owner can submit "
                     "with FLUX_JOB_WAITABLE");
    return deny (error, EPERM, "only instance owner can use sign-type=none");
}

/* Values a job does not set come from [policy.jobspec.defaults.system], or
 * from those of its queue, which may also name properties.
 */
static int apply_defaults (json_t *jobspec, json_t *defaults)
{
    const char *key;
    json_t *val;
    char path[256];

    json_object_foreach (defaults, key, val) {
        json_t *old;

        snprintf (path, sizeof (path), "attributes.system.%s", key);
        old = jp_get (jobspec, path);
        // "no limit" is how a job without a duration comes
        if ((!old || (streq (key, "duration")
                      && json_number_value (old) == 0.))
            && jp_set (jobspec, path, val) < 0)
            return -1;
    }
    return 0;
}

static int parse_duration_default (json_t *jobspec, flux_error_t *error)
{
    json_t *o = jp_get (jobspec, "attributes.system.duration");
    const char *s = json_string_value (o);
    double t;
    char unit = '\0';
    json_t *num;

    if (!s)
        return 0;
    if (sscanf (s, "%lf%c", &t, &unit) < 1)
        return deny (error, EINVAL, "invalid default duration '%s'", s);
    t *= unit == 'm' ? 60. : unit == 'h' ? 3600. : unit == 'd' ? 86400. : 1.;
    num = json_real (t);
    jp_set (jobspec, "attributes.system.duration", num);
    json_decref (num);
    return 0;
}

static int frobnicate (struct ingest *ctx, json_t *jobspec,
                       flux_error_t *error)
{
    json_t *defaults = NULL;
    json_t *queues = NULL;
    json_t *queue;
    const char *name;

    (void)flux_conf_unpack (flux_get_conf (ctx->h), NULL,
                            "{s?{s?{s?{s?o}}} s?o}",
                            "policy", "jobspec", "defaults", "system",
                              &defaults,
                            "queues", &queues);
    name = json_string_value (jp_get (jobspec, "attributes.system.queue"));
    if (!name) // the default queue is a default like others
        name = json_string_value (json_object_get (defaults, "queue"));
    queue = name ? json_object_get (queues, name) : NULL;
    if (name && !queue)
        return deny (error, EINVAL, "Invalid queue '%s' specified", name);
    if (queue) {
        json_t *requires = json_object_get (queue, "requires");
        json_t *c = jp_get (jobspec, "attributes.system.constraints");

        if (apply_defaults (jobspec, jp_get (queue,
                                    "policy.jobspec.defaults.system")) < 0)
            return deny (error, EINVAL, "error applying queue defaults");
        if (requires && json_object_size (c) > 0)
            c = json_pack ("{s:[{s:O} O]}", "and", "properties", requires, c);
        else if (requires)
            c = json_pack ("{s:O}", "properties", requires);
        if (requires) {
            jp_set (jobspec, "attributes.system.constraints", c);
            json_decref (c);
        }
    }
    if (apply_defaults (jobspec, defaults) < 0)
        return deny (error, EINVAL, "error applying jobspec defaults");
    return parse_duration_default (jobspec, error);
}

/* Which resources there are, and how they nest, is for the scheduler to judge
 * (ssd, chassis): here it is only made sure that they are well formed.
 */
static int check_resource (json_t *res, flux_error_t *error)
{
    json_error_t e;
    const char *type;
    const char *label = NULL;
    json_t *count;
    json_t *with = NULL;
    json_t *child;
    size_t index;

    if (json_unpack_ex (res, &e, 0, "{s:s s:o s?s s?o}",
                        "type", &type,
                        "count", &count,
                        "label", &label,
                        "with", &with) < 0)
        return deny (error, EINVAL, "resource: %s", e.text);
    if (json_is_integer (count)
        ? json_integer_value (count) < 1
        : !json_is_object (count) && !json_is_string (count))
        return deny (error, EINVAL, "%s count must be >= 1", type);
    if (streq (type, "slot") && !label)
        return deny (error, EINVAL, "slots must have labels");
    if (with && !json_is_array (with))
        return deny (error, EINVAL, "%s with must be an array", type);
    json_array_foreach (with, index, child) {
        if (check_resource (child, error) < 0)
            return -1;
    }
    return 0;
}

static int check_resources (json_t *resources, flux_error_t *error)
{
    json_t *res;
    size_t index;

    if (!json_is_array (resources) || json_array_size (resources) == 0)
        return deny (error, EINVAL, "resources must be a non-empty array");
    json_array_foreach (resources, index, res) {
        if (check_resource (res, error) < 0)
            return -1;
    }
    return 0;
}

/* All the rest is as in any jobspec V1: check it with V1 resources in place.
 */
static int validate (json_t *jobspec, flux_error_t *error)
{
    flux_jobspec1_t *spec = NULL;
    json_t *copy = NULL;
    char *s = NULL;
    int rc = -1;

    if (check_resources (json_object_get (jobspec, "resources"), error) < 0)
        return -1;
    if ((copy = json_copy (jobspec))
        && json_object_set_new (copy, "resources",
                                json_pack ("[{s:s s:i s:s s:[{s:s s:i}]}]",
                                           "type", "slot",
                                           "count", 1,
                                           "label", "task",
                                           "with",
                                           "type", "core",
                                           "count", 1)) == 0
        && (s = json_dumps (copy, 0))
        && (spec = flux_jobspec1_decode (s, error)))
        rc = flux_jobspec1_check (spec, error);
    flux_jobspec1_destroy (spec);
    free (s);
    json_decref (copy);
    if (rc < 0)
        errno = EINVAL;
    return rc;
}

static void submit_cb (flux_t *h, flux_msg_handler_t *mh,
                       const flux_msg_t *msg, void *arg)
{
    struct ingest *ctx = arg;
    struct flux_msg_cred cred;
    flux_error_t error;
    json_error_t jerr;
    const char *J;
    int urgency;
    int flags;
    uint32_t signer;
    char *spec = NULL;
    json_t *jobspec = NULL;

    error.text[0] = '\0';
    if (flux_request_unpack (msg, NULL, "{s:s s:i s:i}",
                             "J", &J,
                             "urgency", &urgency,
                             "flags", &flags) < 0
        || flux_msg_get_cred (msg, &cred) < 0
        || check_request (cred, urgency, flags, &error) < 0
        || !(spec = flux_unwrap_string (J, false, &signer, &error)))
        goto error;
    if (signer != cred.userid) {
        deny (&error, EPERM, "signer=%lu != requestor=%lu",
              (unsigned long)signer, (unsigned long)cred.userid);
        goto error;
    }
    if (!(jobspec = json_loads (spec, 0, &jerr))) {
        deny (&error, EINVAL, "jobspec: invalid JSON: %s", jerr.text);
        goto error;
    }
    if (!json_is_object (jobspec)) {
        deny (&error, EINVAL, "jobspec is not an object");
        goto error;
    }
    if (frobnicate (ctx, jobspec, &error) < 0
        || (!ctx->novalidate
            && !(flags & FLUX_JOB_NOVALIDATE)
            && validate (jobspec, &error) < 0)
        || batch_add (ctx, msg, J, jobspec, urgency, flags, cred.userid) < 0)
        goto error;
    free (spec);
    json_decref (jobspec);
    return;
error:
    respond_error (h, msg, error.text);
    free (spec);
    json_decref (jobspec);
}

static void reload_cb (flux_t *h, flux_msg_handler_t *mh,
                       const flux_msg_t *msg, void *arg)
{
    flux_conf_t *conf;

    if (flux_module_config_request_decode (msg, &conf) < 0
        || flux_set_conf_new (h, conf) < 0)
        respond_error (h, msg, NULL);
    else if (flux_respond (h, msg, NULL) < 0)
        flux_log_error (h, "error responding to config-reload");
}

static const struct flux_msg_handler_spec htab[] = {
    { FLUX_MSGTYPE_REQUEST, "job-ingest.submit", submit_cb, FLUX_ROLE_USER },
    { FLUX_MSGTYPE_REQUEST, "job-ingest.config-reload", reload_cb, 0 },
    FLUX_MSGHANDLER_TABLE_END,
};

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

int mod_main (flux_t *h, int argc, char **argv)
{
    flux_reactor_t *r = flux_get_reactor (h);
    struct ingest ctx = { .h = h };
    flux_msg_handler_t **handlers = NULL;
    int rc = -1;

    for (int i = 0; i < argc; i++) {
        if (streq (argv[i], "disable-validator"))
            ctx.novalidate = true;
    }
    if (init_clock (&ctx) < 0) {
        flux_log_error (h, "job-manager.getinfo");
        goto done;
    }
    if (!(ctx.timer = flux_timer_watcher_create (r, 0., 0., timer_cb, &ctx))
        || flux_msg_handler_addvec (h, htab, &ctx, &handlers) < 0) {
        flux_log_error (h, "error initializing job-ingest");
        goto done;
    }
    if ((rc = flux_reactor_run (r, 0)) > 0)
        rc = 0;
done:
    flux_msg_handler_delvec (handlers);
    if (ctx.batch) {
        errno = ENOSYS;
        fail_batch (ctx.batch, "job-ingest is unloading");
        batch_destroy (ctx.batch);
    }
    flux_watcher_destroy (ctx.timer);
    return rc;
}
