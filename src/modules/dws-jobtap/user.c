/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See user.h.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>

#include "libutil/names.h"
#include "libutil/safelog.h"

#include "request.h"
#include "user.h"

/* The text may belong to the job, which can be over before this returns.
 */
static void refuse (struct jobtap_job *job, const char *what, const char *text)
{
    char buf[512];

    snprintf (buf, sizeof (buf), "%s%s", what, text);
    jobtap_job_raise (job, DWS_DEPENDENCY, buf);
}

/* A job that is past its dependencies was submitted while the plugin was away: the
 * dws service learns of it as it does of all such jobs.
 */
static void go_on (struct jobtap_job *job)
{
    if (!jobtap_facts_depend_held (&job->facts))
        jobtap_hello (job->ctx);
    else if (jobtap_request_create (job) < 0)
        refuse (job, "dws.create: ", strerror (errno));
}

static void user_cb (flux_future_t *f, void *arg)
{
    struct jobtap_job *job = arg;
    const char *user;

    if (flux_rpc_get_unpack (f, "{s:s}", "user", &user) < 0) {
        if (errno == ENOSYS || errno == EHOSTUNREACH)
            safe_log (job->ctx->h, LOG_WARNING,
                      "dws: %s waits for the dws service to name its user",
                      job->idf58);
        else
            refuse (job, "$USER: ", flux_future_error_string (f));
    }
    else if (!jobtap_job_is_early (job))
        return;
    else if (jobtap_job_name (job, user) < 0)
        refuse (job, "$USER: ", strerror (errno));
    else if (job->dw_error)
        refuse (job, "dw: ", job->dw_error);
    else
        go_on (job);
}

int jobtap_user_request (struct jobtap_job *job)
{
    return jobtap_job_await (job, &job->f_request,
                             flux_rpc_pack (job->ctx->h, DWS_TOPIC_USER,
                                            FLUX_NODEID_ANY, 0, "{s:I}",
                                            "userid", (json_int_t)job->userid),
                             -1., user_cb);
}

void jobtap_user_request_all (struct jobtap *ctx)
{
    for (struct jobtap_job *job = ctx->jobs; job; job = job->next) {
        if (job->nameless && job->known && jobtap_job_is_early (job)
            && (!job->f_request || flux_future_is_ready (job->f_request))
            && jobtap_user_request (job) < 0)
            safe_log_error (ctx->h, "dws: %s: " DWS_TOPIC_USER, job->idf58);
    }
}
