/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See touch.h. The result of a touch only shows the state of the API server: touches
 * pause for a server that is slow or refuses them.
 */

#include <stdio.h>

#include "libdws/util/jsonmake.h"
#include "libutil/names.h"
#include "act/action.h"
#include "act/touch.h"
#include "agent/agent.h"
#include "agent/commands.h"
#include "base/timeline.h"

/* Bounds for all jobs together.
 */
#define TOUCHES_PER_SECOND 20.
#define TOUCHES_UNDER_WAY 4
#define TOUCHES_PAUSE 10.

/* With more jobs than this in PreRun and PostRun at one time NNF is overloaded, and
 * touches bring no gain (bench/nnf).
 */
#define TOUCHES_JOBS 4

struct pace *touches_create (void)
{
    return pace_create (TOUCHES_PER_SECOND, TOUCHES_UNDER_WAY, TOUCHES_PAUSE);
}

/* A Computes object that is gone or was just changed by another client does not count
 * as a refusal of the server.
 */
static void touched_cb (struct dws_ctx *ctx, struct job *job,
                        const struct command *cmd, json_t *report)
{
    int ok = 0;
    int status = 0;

    (void)json_unpack (report, "{s?b s?i}", "ok", &ok, "status", &status);
    pace_end (ctx->touches, !ok && status != 404 && status != 409,
              timeline_now (ctx->timeline));
}

/* The value must be new, or NNF would see no change.
 */
static json_t *make_command (struct job *job)
{
    struct timeline *timeline = job->ctx->timeline;
    const struct dws_workflow *wf = job->wf;
    char value[64];
    json_t *command;

    snprintf (value, sizeof (value), "%s %.3f", dws_state_name (wf->state),
              timeline_wall (timeline, timeline_now (timeline)));
    command = command_create_with ("patch", "computes",
                                   wf->computes_namespace, wf->computes,
                                   "patch",
                                   json_pack ("{s:{s:{s:s}}}",
                                              "metadata",
                                                "annotations",
                                                  DWS_TOUCH_ANNOTATION, value));
    dws_json_set (&command, "once", json_true ());
    return command;
}

static int run_touch (struct job *job, const struct dws_action *wanted)
{
    struct dws_ctx *ctx = job->ctx;
    double now = timeline_now (ctx->timeline);

    job->wf->t_touched = now;
    if (jobs_tally (ctx->jobs)->mounting <= TOUCHES_JOBS
        && agent_link (ctx->agent) == DWS_LINK_UP
        && pace_begin (ctx->touches, now)
        && agent_query (ctx->agent, job, touched_cb, make_command (job)) < 0)
        pace_end (ctx->touches, false, now);
    return 0;
}

const struct action action_touch = {
    .kind = DWS_ACT_TOUCH,
    .run = run_touch,
};
