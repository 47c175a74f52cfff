/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See limits.h. The jobtap plugin rejects what it can at submission. The check here is
 * complete: names are resolved, the bank is known, and jobs submitted without the
 * plugin are covered, too.
 */

#include <errno.h>
#include <stdlib.h>

#include "libdws/config/limits.h"
#include "libdws/directive/command.h"
#include "libutil/errno_safe.h"
#include "libutil/safelog.h"
#include "act/groups.h"
#include "act/limits.h"
#include "base/worker.h"
#include "facts/config.h"
#include "facts/totals.h"

/* Do limits apply to the job? Not to one whose storage is being created, nor to one
 * that only destroys storage.
 */
static bool is_concerned (const struct job *job)
{
    return dws_limits_any (job->ctx->config->storage_limits)
        && job->facts->phase == DWS_PHASE_DEPEND
        && !(job->wf && job->wf->desired > DWS_STATE_PROPOSAL)
        && (job->facts->commands & ~DWS_COMMAND_DESTROY_PERSISTENT) != 0;
}

/* A group that does not exist has no members.
 */
static enum dws_known is_member (const char *group, void *arg)
{
    const struct job *job = arg;
    struct groups *groups = job->ctx->groups;
    dws_error_t error;
    gid_t gid;

    if (!groups_ready (groups, job->facts->userid, group))
        return DWS_KNOWN_NOT;
    if (groups_find (groups, job->facts->userid, group, &gid, &error) == 0)
        return DWS_KNOWN_YES;
    return errno == EPERM || errno == ENOENT ? DWS_KNOWN_NO : DWS_KNOWN_NOT;
}

/* Find the rules for a job, once. Returns false for an unknown user, whose job is
 * refused when its workflow is to be created.
 */
static bool find_rules (struct job *job)
{
    struct dws_subject subject = {
        .userid = job->facts->userid,
        .user = groups_user (job->ctx->groups, job->facts->userid,
                             job->facts->group),
        .bank = job->facts->bank,
        .queue = job->facts->queue,
        .member = is_member,
        .arg = job,
    };
    struct dws_applying applying;

    if (!subject.user
        || !dws_limits_find (job->ctx->config->storage_limits, &subject,
                             &applying))
        return false;
    totals_set_rules (job, &applying);
    return true;
}

bool limits_ready (struct job *job)
{
    dws_error_t error;

    if (!is_concerned (job))
        return true;
    if (!totals_rules (job)) {
        if (!groups_ready (job->ctx->groups, job->facts->userid,
                           job->facts->group))
            return false;
        if (!find_rules (job)) {
            if (!job->wf && !groups_user (job->ctx->groups, job->facts->userid,
                                          job->facts->group))
                return true;
            jobs_wake (job, GROUPS_LIFETIME_FAILED);
            return false;
        }
    }
    if (!totals_sizes (job)) {
        jobs_wake (job, GROUPS_LIFETIME_FAILED);
        return false;
    }
    return limits_check (job, &error) < 0
        || totals_admit (job->ctx->totals, job);
}

int limits_check (struct job *job, dws_error_t *error)
{
    const struct dws_applying *applying = totals_rules (job);
    const struct dws_sizes *sizes = totals_sizes (job);

    if (!is_concerned (job) || !applying || !sizes)
        return 0;
    return dws_limits_check (job->ctx->config->storage_limits, applying, sizes,
                             error);
}

/* Names in the configuration
 */

struct names {
    json_t *limits;             // a copy
    json_t *unknown;            // texts
    limits_names_f done;
    void (*destroy)(void *arg);
    void *arg;
};

static void names_destroy (void *task)
{
    struct names *names = task;

    if (names) {
        ERRNO_SAFE_BLOCK;
        json_decref (names->limits);
        json_decref (names->unknown);
        if (names->destroy)
            names->destroy (names->arg);
        free (names);
    }
}

/* In the thread.
 */
static void names_run (void *task)
{
    struct names *names = task;

    names->unknown = dws_config_unknown_names (names->limits);
}

static void names_done (void *task, void *arg)
{
    struct names *names = task;

    names->done (arg, names->unknown, names->arg);
}

static const struct work names_work = {
    .run = names_run,
    .done = names_done,
    .destroy = names_destroy,
};

int limits_find_names (struct dws_ctx *ctx, json_t *limits, limits_names_f done,
                       void (*destroy)(void *arg), void *arg)
{
    struct names *names;

    if (!(names = calloc (1, sizeof (*names)))) {
        ERRNO_SAFE_BLOCK;
        if (destroy)
            destroy (arg);
        return -1;
    }
    names->done = done;
    names->destroy = destroy;
    names->arg = arg;
    if (!(names->limits = json_deep_copy (limits))) {
        names_destroy (names);
        errno = ENOMEM;
        return -1;
    }
    return worker_submit (ctx->worker, &names_work, names, ctx);
}

static void log_names (struct dws_ctx *ctx, json_t *unknown, void *arg)
{
    json_t *text;
    size_t index;

    json_array_foreach (unknown, index, text)
        safe_log (ctx->h, LOG_WARNING, "%s", json_string_value (text));
}

void limits_check_names (struct dws_ctx *ctx)
{
    json_t *limits = ctx->config->limits_table;

    if (dws_config_has_names (limits)
        && limits_find_names (ctx, limits, log_names, NULL, NULL) < 0)
        safe_log_error (ctx->h, "rabbit.limits: looking up names");
}
