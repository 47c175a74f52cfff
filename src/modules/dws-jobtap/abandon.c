/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See abandon.h. A reload repeats all steps: nodes that are drained already stay
 * drained.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <syslog.h>
#include <flux/idset.h>

#include "libdws/facts/workflow.h"
#include "libdws/health/health.h"
#include "libdws/util/bounds.h"
#include "libdws/util/lists.h"
#include "libutil/drain.h"
#include "libutil/errno_safe.h"
#include "libutil/safelog.h"

#include "abandon.h"

/* How long the dws service may take to answer, and when a failed step is tried again (s).
 */
#define ANSWER_WAIT 10.
#define RETRY_WAIT 1.

static void drain_all (struct jobtap_job *job);

/* Release the epilog; the record may not be used afterwards. On failure the job is still
 * there, and can be given up once more.
 */
static void release (struct jobtap_job *job)
{
    if (jobtap_job_release_epilog (job, 1) < 0) {
        safe_log_error (job->ctx->h, "dws: %s: epilog", job->idf58);
        flux_future_destroy (job->f_abandon);
        job->f_abandon = NULL;
    }
}

static void retry_cb (flux_reactor_t *r, flux_watcher_t *w, int revents,
                      void *arg)
{
    drain_all (arg);
}

static void retry_later (struct jobtap_job *job, const char *what)
{
    flux_reactor_t *r = flux_get_reactor (job->ctx->h);

    if (job->again)
        flux_timer_watcher_reset (job->again, RETRY_WAIT, 0.);
    else {
        safe_log_error (job->ctx->h, "dws: %s: %s", job->idf58, what);
        job->again = flux_timer_watcher_create (r, RETRY_WAIT, 0., retry_cb,
                                                job);
    }
    if (job->again)
        flux_watcher_start (job->again);
    else
        safe_log_error (job->ctx->h, "dws: %s: timer", job->idf58);
}

/* EINVAL and ENOENT: nodes that the resource module does not know cannot be allocated, so
 * the job is released. After other errors nodes may not be drained, so try again.
 */
static void drained_cb (flux_future_t *f, void *arg)
{
    struct jobtap_job *job = arg;

    if (flux_future_get (f, NULL) < 0) {
        if (errno != EINVAL && errno != ENOENT) {
            retry_later (job, "resource.drain");
            return;
        }
        safe_log (job->ctx->h, LOG_ERR, "dws: %s: resource.drain: %s",
                  job->idf58, flux_future_error_string (f));
    }
    release (job);
}

static char *ranks_of (json_t *R_lite)
{
    struct idset *ids;
    json_t *entry;
    size_t index;
    char *s = NULL;

    if (!(ids = idset_create (0, IDSET_FLAG_AUTOGROW)))
        return NULL;
    json_array_foreach (R_lite, index, entry) {
        const char *ranks;

        if (json_unpack (entry, "{s:s}", "rank", &ranks) < 0
            || dws_idset_decode_add (ids, ranks, DWS_MAX_HOSTS) < 0) {
            errno = EPROTO;
            goto done;
        }
    }
    s = idset_encode (ids, IDSET_FLAG_RANGE);
done:
    ERRNO_SAFE (idset_destroy (ids));
    return s;
}

static flux_future_t *drain_R (struct jobtap_job *job, json_t *R_lite)
{
    char name[DWS_NAME_SIZE];
    char reason[128];
    flux_future_t *f;
    char *ranks;

    if (!(ranks = ranks_of (R_lite)))
        return NULL;
    snprintf (reason, sizeof (reason), "%s %s", DWS_DRAIN_MAYBE,
              dws_workflow_name (job->id, NULL, name));
    safe_log (job->ctx->h, LOG_ERR, "dws: %s: drain all its nodes (ranks %s):"
              " it is not known which of them are still mounted",
              job->idf58, ranks);
    f = drain_nodes (job->ctx->h, ranks, "update", reason);
    ERRNO_SAFE (free (ranks));
    return f;
}

static void R_cb (flux_future_t *f, void *arg)
{
    struct jobtap_job *job = arg;
    json_t *R_lite;

    /* The request is made before its future takes the place of the answer. */
    if (flux_kvs_lookup_get_unpack (f, "{s:{s:o}}",
                                    "execution",
                                      "R_lite", &R_lite) < 0
        || jobtap_job_await (job, &job->f_abandon, drain_R (job, R_lite), -1.,
                             drained_cb) < 0)
        retry_later (job, "draining the nodes of R");
}

/* Without a prolog of ours nothing was mounted.
 */
static void drain_all (struct jobtap_job *job)
{
    char key[64];

    if (!job->facts.prolog_started) {
        release (job);
        return;
    }
    if (flux_job_kvs_key (key, sizeof (key), job->id, "R") < 0
        || jobtap_job_await (job, &job->f_abandon,
                             flux_kvs_lookup (job->ctx->h, NULL, 0, key), -1.,
                             R_cb) < 0)
        retry_later (job, "reading R");
}

static void answer_cb (flux_future_t *f, void *arg)
{
    struct jobtap_job *job = arg;

    if (flux_future_get (f, NULL) == 0) {
        release (job);
        return;
    }
    safe_log (job->ctx->h, LOG_WARNING, "dws: %s: dws.abort: %s", job->idf58,
              errno == ETIMEDOUT ? "no answer" : flux_future_error_string (f));
    drain_all (job);
}

void jobtap_abandon (struct jobtap_job *job)
{
    if (job->f_abandon)
        return;
    flux_watcher_stop (job->timer);
    if (jobtap_job_await (job, &job->f_abandon,
                          flux_rpc_pack (job->ctx->h, "dws.abort",
                                         FLUX_NODEID_ANY, 0, "{s:I}",
                                         "jobid", (json_int_t)job->id),
                          ANSWER_WAIT, answer_cb) < 0) {
        safe_log_error (job->ctx->h, "dws: %s: dws.abort", job->idf58);
        drain_all (job);
    }
}

void jobtap_let_go (struct jobtap_job *job)
{
    if (!job->f_abandon)
        drain_all (job);
}
