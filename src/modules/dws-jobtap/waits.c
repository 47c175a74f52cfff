/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Waiting for the data of another job; see waits.h.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libdws/util/clean.h"
#include "libutil/errno_safe.h"
#include "libutil/safelog.h"

#include "waits.h"

/* The type of exception that flux-core's own dependencies raise.
 */
#define DEPENDENCY_EXCEPTION "dependency"

/* The interval at which dws.so is asked whether the data is still on the way (s).
 */
#define ASK_INTERVAL 10.

static void cancel_lookup (flux_future_t **slot)
{
    if (*slot) {
        ERRNO_SAFE_BLOCK;
        if (!flux_future_is_ready (*slot))
            (void)flux_kvs_lookup_cancel (*slot);
        flux_future_destroy (*slot);
        *slot = NULL;
    }
}

void dependency_settle (struct dependency *dep)
{
    cancel_lookup (&dep->f_record);
    cancel_lookup (&dep->f_losses);
    flux_future_destroy (dep->f_step);
    dep->f_step = NULL;
    flux_watcher_destroy (dep->again);
    dep->again = NULL;
    if (dep->prev)
        dep->prev->next = dep->next;
    else if (dep->ctx && dep->ctx->dependencies == dep)
        dep->ctx->dependencies = dep->next;
    if (dep->next)
        dep->next->prev = dep->prev;
    dep->prev = dep->next = NULL;
}

static void dependency_destroy (struct dependency *dep)
{
    if (dep) {
        ERRNO_SAFE_BLOCK;
        dependency_settle (dep);
        free (dep);
    }
}

struct dependency *dependency_create (struct jobtap *ctx,
                                      const struct kind *kind,
                                      flux_jobid_t id,
                                      flux_jobid_t target)
{
    struct dependency *dep;

    if (!(dep = calloc (1, sizeof (*dep))))
        return NULL;
    dep->kind = kind;
    dep->id = id;
    dep->target = target;
    if (flux_job_id_encode (target, "f58", dep->idf58, sizeof (dep->idf58)) < 0
        || flux_jobtap_job_aux_set (ctx->p,
                                    FLUX_JOBTAP_CURRENT_JOB,
                                    NULL,
                                    dep,
                                    (flux_free_f)dependency_destroy) < 0) {
        dependency_destroy (dep);
        return NULL;
    }
    snprintf (dep->description, sizeof (dep->description), "%s:%s",
              kind->scheme, dep->idf58);
    dep->ctx = ctx;
    dep->next = ctx->dependencies;
    if (dep->next)
        dep->next->prev = dep;
    ctx->dependencies = dep;
    return dep;
}

/* The end of a dependency
 */

/* A rabbit job that was cancelled is not yet gone.
 */
static bool still_held (struct dependency *dep)
{
    flux_plugin_arg_t *args;
    int state = -1;

    if ((args = flux_jobtap_job_lookup (dep->ctx->p, dep->id)))
        (void)flux_plugin_arg_unpack (args, FLUX_PLUGIN_ARG_IN, "{s:i}",
                                      "state", &state);
    flux_plugin_arg_destroy (args);
    return state == FLUX_JOB_STATE_DEPEND;
}

void dependency_fail (struct dependency *dep, const char *text)
{
    struct jobtap *ctx = dep->ctx;
    bool held = still_held (dep);
    char note[512];

    dws_clean (text, note, sizeof (note));
    dependency_settle (dep);
    if (held
        && flux_jobtap_raise_exception (ctx->p, dep->id, DEPENDENCY_EXCEPTION,
                                        0, "%s: %s", dep->description,
                                        note) < 0)
        safe_log_error (ctx->h, "dws: %s: exception", dep->description);
}

void dependency_broken (struct dependency *dep, const char *what)
{
    char text[256];

    snprintf (text, sizeof (text), "%s: %s", what, strerror (errno));
    dependency_fail (dep, text);
}

static void dependency_fulfil (struct dependency *dep)
{
    bool held = still_held (dep);

    dependency_settle (dep);
    if (held
        && flux_jobtap_dependency_remove (dep->ctx->p, dep->id,
                                          dep->description) < 0)
        dependency_broken (dep, "it is fulfilled, but could not be removed");
}

static void dependency_fail_lost (struct dependency *dep, const char *why)
{
    char text[512];

    snprintf (text, sizeof (text), "the data of job %s was not staged %s: %s",
              dep->idf58, dep->kind->success ? "out" : "in", why);
    dependency_fail (dep, text);
}

/* Waiting
 */

int dependency_await (struct dependency *dep,
                      flux_future_t **slot,
                      flux_future_t *f,
                      flux_continuation_f cb)
{
    if (!f || flux_future_then (f, -1., cb, dep) < 0) {
        ERRNO_SAFE (flux_future_destroy (f));
        dependency_broken (dep, "asking for what has become of the target");
        return -1;
    }
    flux_future_destroy (*slot);
    *slot = f;
    return 0;
}

flux_future_t *dependency_eventlog (struct jobtap *ctx, flux_jobid_t id)
{
    return flux_rpc_pack (ctx->h, "job-manager.getattr", FLUX_NODEID_ANY, 0,
                          "{s:I s:[s]}",
                          "id", (json_int_t)id,
                          "attrs", "eventlog");
}

static void judge (struct dependency *dep);

static void again_cb (flux_reactor_t *r, flux_watcher_t *w, int revents,
                      void *arg);

static void ask_again (struct dependency *dep)
{
    flux_reactor_t *r = flux_get_reactor (dep->ctx->h);

    if (!dep->again
        && !(dep->again = flux_timer_watcher_create (r, 0., 0., again_cb,
                                                     dep))) {
        dependency_broken (dep, "waiting for late data");
        return;
    }
    flux_timer_watcher_reset (dep->again, ASK_INTERVAL, 0.);
    flux_watcher_start (dep->again);
}

/* A service may be away for a while, as when Flux is stopped: that says nothing of
 * the data.
 */
static void lookup_failed (struct dependency *dep, const char *what)
{
    safe_log_error (dep->ctx->h, "dws: %s: %s", dep->description, what);
    ask_again (dep);
}

static void record_cb (flux_future_t *f, void *arg)
{
    struct dependency *dep = arg;

    if (flux_kvs_lookup_get (f, NULL) < 0) {
        cancel_lookup (&dep->f_record);
        lookup_failed (dep, "waiting for the record of its data");
    }
    else if (dep->kind->success)
        judge (dep);
    else
        dependency_fulfil (dep);
}

static int await_record (struct dependency *dep)
{
    char name[64];
    char key[128];
    flux_future_t *f = NULL;

    if (dep->f_record)
        return 0;
    snprintf (name, sizeof (name), DWS_KEY_TIMING, dep->kind->state);
    if (flux_job_kvs_key (key, sizeof (key), dep->target, name) >= 0)
        f = flux_kvs_lookup (dep->ctx->h, NULL, FLUX_KVS_WAITCREATE, key);
    return dependency_await (dep, &dep->f_record, f, record_cb);
}

/* Returns the text of the target's loss, or NULL. Data whose stage-out can be retried is
 * not lost yet.
 */
static const char *find_loss (json_t *losses, flux_jobid_t target)
{
    json_t *loss;
    size_t index;

    json_array_foreach (losses, index, loss) {
        json_int_t id;
        const char *text;

        if (json_unpack (loss, "{s:I s:s}", "id", &id, "text", &text) == 0
            && !json_object_get (loss, "until")
            && (flux_jobid_t)id == target)
            return text;
    }
    return NULL;
}

static void losses_cb (flux_future_t *f, void *arg)
{
    struct dependency *dep = arg;
    json_t *losses;
    const char *text;

    if (flux_kvs_lookup_get_unpack (f, "o", &losses) < 0) {
        cancel_lookup (&dep->f_losses);
        lookup_failed (dep, "watching " DWS_KEY_LOSSES);
        return;
    }
    if ((text = find_loss (losses, dep->target)))
        dependency_fail_lost (dep, text);
    else
        flux_future_reset (f);
}

/* dws.so does not know the target. Believe that once dws.so has read all jobs and
 * workflows.
 */
static void synced_cb (flux_future_t *f, void *arg)
{
    struct dependency *dep = arg;
    int jobs;
    int workflows;

    if (flux_rpc_get_unpack (f, "{s:b s:{s:b}}",
                             "synced", &jobs,
                             "agent",
                               "synced", &workflows) < 0
        || !jobs
        || !workflows)
        ask_again (dep);
    else {
        dep->forgotten = true;
        judge (dep);
    }
}

static void job_status_cb (flux_future_t *f, void *arg)
{
    struct dependency *dep = arg;

    if (flux_rpc_get (f, NULL) < 0 && errno == ENOENT)
        (void)dependency_await (dep, &dep->f_step,
                                flux_rpc_pack (dep->ctx->h, DWS_TOPIC_STATUS,
                                               FLUX_NODEID_ANY, 0, "{}"),
                                synced_cb);
    else
        ask_again (dep);
}

static void ask_module (struct dependency *dep)
{
    (void)dependency_await (dep, &dep->f_step,
                            flux_rpc_pack (dep->ctx->h, DWS_TOPIC_STATUS,
                                           FLUX_NODEID_ANY, 0, "{s:I}",
                                           "jobid", (json_int_t)dep->target),
                            job_status_cb);
}

static void await_late_record (struct dependency *dep)
{
    if (!dep->f_losses
        && dependency_await (dep, &dep->f_losses,
                             flux_kvs_lookup (dep->ctx->h, NULL,
                                              FLUX_KVS_WATCH
                                              | FLUX_KVS_WAITCREATE,
                                              DWS_KEY_LOSSES),
                             losses_cb) < 0)
        return;
    if (await_record (dep) == 0)
        ask_module (dep);
}

/* The judgement
 */

static bool has_record (const flux_kvsdir_t *dir, const char *state)
{
    flux_kvsitr_t *itr;
    const char *name;
    char wanted[64];
    bool found = false;

    if (!dir || !(itr = flux_kvsitr_create (dir)))
        return false;
    snprintf (wanted, sizeof (wanted), DWS_KEY_TIMING, state);
    while (!found && (name = flux_kvsitr_next (itr)))
        found = !strcmp (name, wanted);
    flux_kvsitr_destroy (itr);
    return found;
}

/* The target has ended well, as far as Flux knows, and there is no record. A target that
 * was purged before its data was out has none, but the list has it.
 */
static void moved_cb (flux_future_t *f, void *arg)
{
    struct dependency *dep = arg;
    json_t *moved = NULL;
    json_t *entry;
    size_t index;

    if (flux_kvs_lookup_get_unpack (f, "o", &moved) < 0 && errno != ENOENT) {
        lookup_failed (dep, "reading " DWS_KEY_MOVED);
        return;
    }
    json_array_foreach (moved, index, entry) {
        json_t *id = json_object_get (entry, "id");

        if ((flux_jobid_t)json_integer_value (id) == dep->target) {
            dependency_fulfil (dep);
            return;
        }
    }
    if (dep->removed)
        dependency_fail_lost (dep, "its file systems are removed");
    else if (dep->forgotten)
        dependency_fail_lost (dep, "its workflow is not there any more");
    else
        await_late_record (dep);
}

/* A listed loss says more than that the record is missing.
 */
static void last_cb (flux_future_t *f, void *arg)
{
    struct dependency *dep = arg;
    json_t *losses = NULL;
    const char *text;

    if (flux_kvs_lookup_get_unpack (f, "o", &losses) < 0 && errno != ENOENT)
        lookup_failed (dep, "reading " DWS_KEY_LOSSES);
    else if ((text = find_loss (losses, dep->target)))
        dependency_fail_lost (dep, text);
    else
        (void)dependency_await (dep, &dep->f_step,
                                flux_kvs_lookup (dep->ctx->h, NULL, 0,
                                                 DWS_KEY_MOVED),
                                moved_cb);
}

/* The directory of a job that was purged is not there.
 */
static void records_cb (flux_future_t *f, void *arg)
{
    struct dependency *dep = arg;
    const struct jobtap_ending *ending = &dep->ending;
    const flux_kvsdir_t *dir = NULL;

    if (flux_kvs_lookup_get_dir (f, &dir) < 0 && errno != ENOENT)
        lookup_failed (dep, "reading the records of the target");
    else if (has_record (dir, dep->kind->state))
        dependency_fulfil (dep);
    else if (ending->run[0])
        dependency_fail_lost (dep, ending->run);
    else if (ending->late[0])
        dependency_fail_lost (dep, ending->late);
    else if (!dep->kind->success)
        dependency_fail_lost (dep, "it ended before");
    else {
        dep->removed = has_record (dir, "teardown");
        (void)dependency_await (dep, &dep->f_step,
                                flux_kvs_lookup (dep->ctx->h, NULL, 0,
                                                 DWS_KEY_LOSSES),
                                last_cb);
    }
}

static void ending_cb (flux_future_t *f, void *arg)
{
    struct dependency *dep = arg;
    json_t *entries = NULL;
    char key[128];

    if (flux_rpc_get_unpack (f, "{s:o}", "eventlog", &entries) == 0)
        jobtap_ending_read (&dep->ending, entries);
    else if (errno != EINVAL) {
        lookup_failed (dep, "reading the eventlog of the target");
        return;
    }
    /* A target that was purged meanwhile has no eventlog, and counts as ended well. */
    if (dep->kind->success && dep->ending.run[0]) {
        char text[512];

        snprintf (text, sizeof (text), "job %s failed: %s", dep->idf58,
                  dep->ending.run);
        dependency_fail (dep, text);
        return;
    }
    if (flux_job_kvs_key (key, sizeof (key), dep->target, NULL) < 0) {
        dependency_broken (dep, "reading the records of the target");
        return;
    }
    (void)dependency_await (dep, &dep->f_step,
                            flux_kvs_lookup (dep->ctx->h, NULL,
                                             FLUX_KVS_READDIR, key),
                            records_cb);
}

static void judge (struct dependency *dep)
{
    (void)dependency_await (dep, &dep->f_step,
                            dependency_eventlog (dep->ctx, dep->target),
                            ending_cb);
}

void dependency_begin (struct dependency *dep)
{
    dep->begun = true;
    if (dep->over)
        judge (dep);
    else
        (void)await_record (dep);
}

/* An active target ends in any case, and is judged then.
 */
static void again_cb (flux_reactor_t *r, flux_watcher_t *w, int revents,
                      void *arg)
{
    dependency_begin (arg);
}

void dependency_target_over (struct dependency *dep)
{
    dep->over = true;
    if (dep->begun)
        judge (dep);
}
