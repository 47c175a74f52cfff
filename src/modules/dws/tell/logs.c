/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See logs.h. The module keeps no position in a log: a client that follows one requests
 * the lines of the last seconds again and drops duplicates by their times.
 */

#include <errno.h>

#include "libdws/util/jsonmake.h"
#include "agent/agent.h"
#include "agent/commands.h"
#include "base/requests.h"
#include "facts/jobs.h"
#include "tell/describe.h"
#include "tell/logs.h"

/* The last bytes of each log that are read.
 */
#define LOG_BYTES 65536

/* Upper bound on jobs of one user whose logs are read at one time. The API server reads
 * logs from the rabbits, any of which may hang, and most workers of the agent must stay
 * free for workflows.
 */
#define REQUESTS_MOST 4

/* The agent serializes commands with the same name. With the workflow's name there is
 * one read at a time for each job, and the record at the job's end, which has no name,
 * does not wait for it.
 */
static json_t *command_read (const struct dws_workflow *wf, int since)
{
    json_t *o = command_logs (wf, LOG_BYTES);

    dws_json_set (&o, "name", json_string (wf->name));
    dws_json_set (&o, "since", json_integer (since));
    return o;
}

/* A job of another user gets the same error as one that does not exist.
 */
static int request_logs (struct dws_ctx *ctx, const flux_msg_t *msg,
                         dws_error_t *error)
{
    struct asker asker;
    struct job *job;
    json_int_t id;
    int since = 0;

    if (flux_request_unpack (msg, NULL, "{s:I s?i}",
                             "jobid", &id, "since", &since) < 0
        || asker_of (msg, &asker) < 0)
        return -1;
    if (!(job = jobs_find (ctx->jobs, id)) || !is_visible (job, &asker))
        return dws_error (error, ENOENT, "you have no such active rabbit job");
    if (!job->wf)
        return dws_error (error, EAGAIN, "its workflow is still to be made");
    if (!job->wf->containers)
        return dws_error (error, EINVAL, "the job has no containers: no directive "
                          "of it is a #DW container");
    return agent_forward (ctx->agent, msg, command_read (job->wf, since),
                          REQUESTS_MOST, error);
}

void logs_cb (flux_t *h, flux_msg_handler_t *mh,
              const flux_msg_t *msg, void *arg)
{
    dws_error_t error = { "" };

    if (request_logs (arg, msg, &error) < 0)
        requests_refuse (h, msg, errno, error.text);
}
