/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See expire.h.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libdws/tell/notice.h"
#include "libutil/errno_safe.h"
#include "libutil/names.h"
#include "libutil/safelog.h"
#include "act/expire.h"
#include "agent/agent.h"
#include "agent/commands.h"
#include "base/retry.h"
#include "base/timeline.h"
#include "base/timer.h"
#include "facts/config.h"
#include "facts/leases.h"
#include "facts/persistent.h"
#include "facts/sweeps.h"
#include "facts/sync.h"
#include "tell/notices.h"

/* Upper bound on file systems being destroyed at one time.
 */
#define EXPIRE_MAX 8

/* Jobs change all the time: the shortest interval between checks (s).
 */
#define PAUSE 0.5

/* Delay before a failed workflow is created again (s); failed commands are retried
 * sooner.
 */
#define FAILED_PAUSE 60.
#define RETRY_MIN 1.
#define RETRY_MAX 60.

/* The group of such a workflow has no effect, as no file system is created or mounted.
 * The owner's group may be unknown by then.
 */
#define NO_GROUP 65534

struct expire {
    struct dws_ctx *ctx;
    flux_watcher_t *timer;
    struct retry *retry;
    json_t *busy;               // workflow -> what was asked for has no result yet,
                                //  or has failed and is not to be repeated yet
    json_t *failed;             // likewise -> when its last Proposal failed
    double t_look;              // the last look
    bool soon;                  // the next is not far
};

/* Results
 */

struct asked {
    char workflow[DWS_NAME_SIZE];
    char name[DWS_PERSISTENT_NAME_SIZE];
    enum dws_lease_action action;
};

static const char *const asked_names[] = {
    [DWS_LEASE_BEGIN] = "create",
    [DWS_LEASE_DESTROY] = "tear down",
    [DWS_LEASE_SPARE] = "delete",
    [DWS_LEASE_END] = "delete",
    [DWS_LEASE_LOOK] = "get",
    [DWS_LEASE_LABEL] = "label",
};

/* Is the workflow gone, though the watch has not reported that yet?
 */
static bool is_missing (const struct asked *asked, int status)
{
    return status == 404 && asked->action != DWS_LEASE_BEGIN;
}

static void take_result (struct expire *expire, const struct asked *asked,
                         const struct command *cmd, json_t *report)
{
    struct sweeps *sweeps = expire->ctx->sweeps;
    const char *message = "";
    int status = 0;
    int ok = 0;

    (void)json_unpack (report, "{s?b s?i s?s}", "ok", &ok, "status", &status,
                       "message", &message);
    /* A refused create carries the workflow that exists. */
    if (sweeps_learn (sweeps, cmd->workflow, false))
        ok = true;
    else if (is_missing (asked, status))
        sweeps_forget (sweeps, asked->workflow);
    else if (!ok) {
        safe_log (expire->ctx->h, LOG_ERR, "persistent file system '%s' has "
                  "expired: cannot %s workflow %s: %s", asked->name,
                  asked_names[asked->action], asked->workflow, message);
        retry_later (expire->retry);
        return;
    }
    if (ok && (asked->action == DWS_LEASE_SPARE
               || asked->action == DWS_LEASE_END))
        sweeps_deleting (sweeps, asked->workflow);
    json_object_del (expire->busy, asked->workflow);
    retry_reset (expire->retry);
    expire_look (expire);
}

static void result_cb (struct dws_ctx *ctx, struct job *job,
                       const struct command *cmd, json_t *report)
{
    struct asked asked = { .action = cmd->index };
    const char *key;
    json_t *value;

    json_object_foreach (ctx->expire->busy, key, value) {
        if (json_integer_value (json_object_get (value, "seq"))
            == (json_int_t)cmd->seq) {
            const char *name = "";

            (void)json_unpack (value, "{s:s}", "name", &name);
            snprintf (asked.workflow, sizeof (asked.workflow), "%s", key);
            snprintf (asked.name, sizeof (asked.name), "%s", name);
            take_result (ctx->expire, &asked, cmd, report);
            return;
        }
    }
}

static void retry_cb (void *arg)
{
    struct expire *expire = arg;

    json_object_clear (expire->busy);
    expire_look (expire);
}

void expire_agent_lost (struct expire *expire)
{
    json_object_clear (expire->busy);
}

/* Commands
 */

static json_t *new_workflow (struct dws_ctx *ctx, const struct lease_of *of)
{
    json_t *directive = json_sprintf ("#DW destroy_persistent name=%s",
                                      of->name);

    return json_pack ("{s:{s:s s:s s:{s:s} s:{s:s}}"
                      " s:{s:s s:s s:s s:I s:i s:[o]}}",
                      "metadata",
                        "name", of->workflow,
                        "namespace", DWS_NAMESPACE,
                        "labels",
                          DWS_INSTANCE_LABEL, ctx->instance,
                        "annotations",
                          DWS_INSTANCE_LABEL, ctx->instance,
                      "spec",
                        "desiredState", dws_state_name (DWS_STATE_PROPOSAL),
                        "wlmID", "flux",
                        "jobID", "expiry",
                        "userID", of->userid,
                        "groupID", NO_GROUP,
                        "dwDirectives", directive);
}

static json_t *label_command (struct dws_ctx *ctx, const struct lease_of *of)
{
    safe_log (ctx->h, LOG_NOTICE, "persistent file system '%s': workflow %s gets "
              "its label " DWS_INSTANCE_LABEL " again, which somebody has changed",
              of->name, of->workflow);
    return command_create_with ("patch", "workflows", DWS_NAMESPACE,
                                of->workflow, "patch",
                                json_pack ("{s:{s:{s:s}}}", "metadata",
                                           "labels", DWS_INSTANCE_LABEL,
                                           ctx->instance));
}

static json_t *command_for (struct dws_ctx *ctx, const struct lease_of *of)
{
    if (of->lease.action == DWS_LEASE_LOOK)
        return command_create ("get", "workflows", DWS_NAMESPACE, of->workflow);
    if (of->lease.action == DWS_LEASE_LABEL)
        return label_command (ctx, of);
    if (of->lease.action == DWS_LEASE_BEGIN)
        return command_create_with ("create", "workflows", DWS_NAMESPACE,
                                    of->workflow, "object",
                                    new_workflow (ctx, of));
    if (of->lease.action == DWS_LEASE_DESTROY)
        return command_create_with ("patch", "workflows", DWS_NAMESPACE,
                                    of->workflow, "patch",
                                    json_pack ("{s:{s:s}}", "spec",
                                        "desiredState",
                                        dws_state_name (DWS_STATE_TEARDOWN)));
    return command_create ("delete", "workflows", DWS_NAMESPACE, of->workflow);
}

static void ask (struct expire *expire, const struct lease_of *of)
{
    struct dws_ctx *ctx = expire->ctx;
    json_t *command = command_for (ctx, of);
    json_int_t seq;

    json_incref (command);
    if (agent_send (ctx->agent, NULL, result_cb, NULL, of->lease.action,
                    command) < 0) {
        safe_log_error (ctx->h, "persistent file system '%s'", of->name);
        retry_later (expire->retry);
        seq = -1;
    }
    else
        seq = json_integer_value (json_object_get (command, "seq"));
    json_object_set_new (expire->busy, of->workflow,
                         json_pack ("{s:s s:I}", "name", of->name, "seq", seq));
    json_decref (command);
}

/* Log a workflow that has failed in Proposal, and note when.
 */
static void note_failure (struct expire *expire, const struct lease_of *of)
{
    const char *message = sweeps_message (expire->ctx->sweeps, of->workflow);

    if (!of->lease.failed || of->lease.desired == DWS_STATE_TEARDOWN)
        return;
    safe_log (expire->ctx->h, LOG_ERR, "persistent file system '%s' has expired "
              "and cannot be destroyed: workflow %s: %s", of->name, of->workflow,
              message);
    json_object_set_new (expire->failed, of->workflow,
                         json_real (monotonic_now ()));
}

static void notice (struct expire *expire, const struct lease_of *of)
{
    struct dws_ctx *ctx = expire->ctx;
    json_t *o = persistent_find (ctx->persistent, of->name);
    const char *user = "";
    double after = of->lease.expires - flux_reactor_time ();

    (void)json_unpack (o, "{s:s}", "user", &user);
    if (after > 0.)
        safe_log (ctx->h, LOG_NOTICE, "persistent file system '%s' of user %s "
                  "expires in %.1f h", of->name, user, after / 3600.);
    else
        safe_log (ctx->h, LOG_NOTICE, "persistent file system '%s' of user %s "
                  "has expired%s", of->name, user,
                  of->lease.wanted ? ", and is in use" : "");
    notices_file_system (ctx, DWS_NOTICE_EXPIRING, of->name, of->userid,
                         of->lease.expires);
    leases_told (ctx, of->name);
    expire_look (expire);
}

static void carry_out (struct expire *expire, const struct lease_of *of)
{
    if (of->lease.action == DWS_LEASE_NOTHING
        || json_object_get (expire->busy, of->workflow))
        return;
    if (of->lease.action == DWS_LEASE_NOTICE) {
        notice (expire, of);
        return;
    }
    if (of->lease.action == DWS_LEASE_SPARE)
        note_failure (expire, of);
    ask (expire, of);
}

/* Look
 */

/* Spare a file system whose workflow has just failed. Returns for how long still (s),
 * or 0.
 */
static double leave_alone (struct expire *expire, struct lease_of *of)
{
    json_t *failed = json_object_get (expire->failed, of->workflow);
    double left = json_real_value (failed) + FAILED_PAUSE - monotonic_now ();

    if (!failed || of->lease.has_workflow)
        return 0.;
    if (left > 0.) {
        of->lease.wanted = true;
        return left;
    }
    json_object_del (expire->failed, of->workflow);
    return 0.;
}

/* Destroy no file system before all jobs, workflows and file systems are known: a job
 * may use it.
 */
static bool all_known (const struct dws_ctx *ctx)
{
    return sync_done (ctx->sync) && sync_alive (ctx->sync)
        && agent_link (ctx->agent) == DWS_LINK_UP;
}

static void look (struct expire *expire)
{
    struct dws_ctx *ctx = expire->ctx;
    double now = flux_reactor_time ();
    double wake = 0.;
    double again = 0.;
    struct dws_lease *leases = NULL;
    struct lease_of *list = NULL;
    size_t count = 0;

    if (!all_known (ctx))
        return;
    if (!(list = leases_settle (ctx, now, &count))
        || !(leases = calloc (count + 1, sizeof (*leases)))) {
        safe_log_error (ctx->h, "expiry");
        goto done;
    }
    for (size_t i = 0; i < count; i++) {
        double left = leave_alone (expire, &list[i]);

        if (left > 0. && (again == 0. || left < again))
            again = left;
        leases[i] = list[i].lease;
    }
    wake = dws_leases_decide (leases, count, LEASE_NOTICE,
                              EXPIRE_MAX, now);
    if (again > 0. && (wake == 0. || now + again < wake))
        wake = now + again;
    for (size_t i = 0; i < count; i++) {
        list[i].lease.action = leases[i].action;
        carry_out (expire, &list[i]);
    }
    if (wake > now && !expire->soon)
        timer_start (expire->timer, wake - now);
done:
    free (leases);
    free (list);
}

static void timer_cb (flux_reactor_t *r, flux_watcher_t *w, int revents,
                      void *arg)
{
    struct expire *expire = arg;

    expire->soon = false;
    expire->t_look = monotonic_now ();
    look (expire);
}

void expire_look (struct expire *expire)
{
    double after;

    if (expire->soon)
        return;
    expire->soon = true;
    after = expire->t_look + PAUSE - monotonic_now ();
    timer_start (expire->timer, after > 0. ? after : 0.);
}

struct expire *expire_create (struct dws_ctx *ctx)
{
    struct expire *expire;

    if (!(expire = calloc (1, sizeof (*expire))))
        return NULL;
    expire->ctx = ctx;
    expire->busy = json_object ();
    expire->failed = json_object ();
    if (!expire->busy || !expire->failed
        || !(expire->timer = timer_make (ctx->h, timer_cb, expire))
        || !(expire->retry = retry_create (ctx->h, RETRY_MIN, RETRY_MAX,
                                           retry_cb, expire))) {
        expire_destroy (expire);
        return NULL;
    }
    return expire;
}

void expire_destroy (struct expire *expire)
{
    if (expire) {
        ERRNO_SAFE_BLOCK;
        flux_watcher_destroy (expire->timer);
        retry_destroy (expire->retry);
        json_decref (expire->busy);
        json_decref (expire->failed);
        free (expire);
    }
}
