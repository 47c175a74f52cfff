/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See limits.h. The jobtap plugin refuses what it can when a job is submitted. Here
 * nothing gets past: names are known, a bank has been found, and a job that was
 * submitted while the plugin was away comes by, too.
 */

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <unistd.h>

#include "libdws/config/limits.h"
#include "libdws/directive/command.h"
#include "libutil/errno_safe.h"
#include "libutil/safelog.h"
#include "act/groups.h"
#include "act/limits.h"
#include "base/worker.h"
#include "facts/config.h"
#include "facts/totals.h"

/* A job that has got something stays, and who gives storage back is not kept from it.
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

/* The rules for a job are looked for once. A user that is not known is refused for
 * that, when the job is to get a workflow.
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
    totals_set_rules (job->ctx->totals, job, &applying);
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
    flux_t *h;
    json_t *table;              // a copy
    json_t *unknown;            // texts
};

static void names_destroy (void *task)
{
    struct names *names = task;

    if (names) {
        ERRNO_SAFE_BLOCK;
        json_decref (names->table);
        json_decref (names->unknown);
        free (names);
    }
}

static bool is_number (const char *s)
{
    return *s >= '0' && *s <= '9';
}

/* Nothing is said of a name service that fails.
 */
static bool no_user (const char *name)
{
    struct passwd pw;
    struct passwd *result = NULL;
    char space[16384];

    return getpwnam_r (name, &pw, space, sizeof (space), &result) == 0
        && !result;
}

static bool no_group (const char *name)
{
    struct group gr;
    struct group *result = NULL;
    char space[65536];

    return getgrnam_r (name, &gr, space, sizeof (space), &result) == 0
        && !result;
}

/* In the thread.
 */
static void names_run (void *task)
{
    struct names *names = task;
    const char *rule;
    json_t *value;

    json_object_foreach (names->table, rule, value) {
        const char *user = NULL;
        const char *group = NULL;

        (void)json_unpack (value, "{s?s s?s}", "user", &user, "group", &group);
        if (user && !is_number (user) && no_user (user))
            json_array_append_new (names->unknown, json_sprintf (
                "rabbit.limits.%s.user: there is no user %s", rule, user));
        if (group && !is_number (group) && no_group (group))
            json_array_append_new (names->unknown, json_sprintf (
                "rabbit.limits.%s.group: there is no group %s", rule, group));
    }
}

static void names_done (void *task, void *arg)
{
    struct names *names = task;
    json_t *text;
    size_t index;

    json_array_foreach (names->unknown, index, text)
        safe_log (names->h, LOG_WARNING, "%s", json_string_value (text));
}

static const struct work names_work = {
    .run = names_run,
    .done = names_done,
    .destroy = names_destroy,
};

void limits_check_names (struct dws_ctx *ctx)
{
    struct names *names;

    if (!dws_limits_any (ctx->config->storage_limits))
        return;
    if (!(names = calloc (1, sizeof (*names)))
        || !(names->table = json_deep_copy (ctx->config->limits_table))
        || !(names->unknown = json_array ())) {
        names_destroy (names);
        return;
    }
    names->h = ctx->h;
    if (worker_submit (ctx->worker, &names_work, names, NULL) < 0)
        safe_log_error (ctx->h, "rabbit.limits: looking up names");
}
