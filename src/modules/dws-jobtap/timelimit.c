/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See timelimit.h. The scheduler is asked first, as flux-core's job manager does for
 * "flux update ID duration=": one that plans ahead may refuse.
 */

#include <errno.h>
#include <string.h>
#include <syslog.h>

#include "libutil/safelog.h"
#include "timelimit.h"

/* Shorter delays are not made up for (s): every job loses some milliseconds before its
 * tasks start, which is less than an event for each would cost.
 */
#define WORTH_S 1.

/* flux-core's default */
#define START_DELAY_PERCENT 25.

/* At and above that the exec service itself gives the time back, also after an update
 * of the expiration.
 */
static double delay_percent (struct jobtap *ctx)
{
    const flux_conf_t *conf = flux_get_conf (ctx->h);
    double percent = START_DELAY_PERCENT;

    if (conf)
        (void)flux_conf_unpack (conf, NULL, "{s?{s?F}}",
                                "exec", "max-start-delay-percent", &percent);
    return percent;
}

/* The expiration that the job must get, or 0 if its own is right.
 */
static double new_expiration (struct jobtap_job *job, flux_plugin_arg_t *args)
{
    double start = 0.;
    double end = 0.;
    double limit = 0.;
    double delay;
    int state;

    if (flux_plugin_arg_unpack (args,
                                FLUX_PLUGIN_ARG_IN,
                                "{s:i s:{s:{s:F s:F}} s:{s:{s:{s:F}}}}",
                                "state", &state,
                                "R",
                                "execution",
                                "starttime", &start,
                                "expiration", &end,
                                "jobspec",
                                "attributes",
                                "system",
                                "duration", &limit) < 0
        || state != FLUX_JOB_STATE_RUN
        || start <= 0. || end <= start || limit <= 0.)
        return 0.;
    delay = job->facts.t_start - start;
    if (delay < WORTH_S
        || delay * 100. > (end - start) * delay_percent (job->ctx))
        return 0.;
    return end + delay;
}

static double wanted (struct jobtap_job *job)
{
    flux_plugin_arg_t *args;
    double expiration;

    if (!job->facts.run_started || job->facts.prolonged
        || !(args = flux_jobtap_job_lookup (job->ctx->p, job->id)))
        return 0.;
    expiration = new_expiration (job, args);
    flux_plugin_arg_destroy (args);
    return expiration;
}

/* A scheduler that does not know the request has nothing to refuse.
 */
static void answer_cb (flux_future_t *f, void *arg)
{
    struct jobtap_job *job = arg;
    double expiration;

    if (flux_future_get (f, NULL) < 0 && errno != ENOSYS) {
        safe_log (job->ctx->h, LOG_WARNING, "dws: %s: the scheduler refuses to add"
                  " the time of its prolog to its time limit: %s", job->idf58,
                  flux_future_error_string (f));
        return;
    }
    if ((expiration = wanted (job)) <= 0.)
        return;
    job->facts.prolonged = true;
    if (flux_jobtap_event_post_pack (job->ctx->p,
                                     job->id,
                                     "resource-update",
                                     "{s:f}",
                                     "expiration", expiration) < 0)
        safe_log_error (job->ctx->h, "dws: %s: resource-update", job->idf58);
}

void jobtap_timelimit_prolong (struct jobtap_job *job)
{
    double expiration = wanted (job);

    if (expiration > 0.
        && jobtap_job_await (job,
                             &job->f_expiration,
                             flux_rpc_pack (job->ctx->h,
                                            "sched.expiration",
                                            FLUX_NODEID_ANY,
                                            0,
                                            "{s:I s:f}",
                                            "id", (json_int_t)job->id,
                                            "expiration", expiration),
                             -1.,
                             answer_cb) < 0)
        safe_log_error (job->ctx->h, "dws: %s: sched.expiration", job->idf58);
}
