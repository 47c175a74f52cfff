/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Puts right what somebody has done by hand: a Computes object that was deleted
 * is made again.
 */

#include <errno.h>
#include <stdlib.h>

#include "libdws/util/hosts.h"
#include "libutil/errno_safe.h"
#include "act/action.h"
#include "act/objects.h"
#include "act/storage.h"
#include "act/trouble.h"
#include "agent/commands.h"
#include "facts/config.h"

enum {
    LOOK,
    MAKE,
};

static int run_mend (struct job *job, const struct dws_action *wanted)
{
    return act_send (job, &action_mend, LOOK,
                     command_create ("get", "computes",
                                     job->wf->computes_namespace,
                                     job->wf->computes));
}

/* Those that were waived are in it as long as their place in it matters to others.
 */
static char *computes_hosts (const struct job *job)
{
    const struct dws_workflow *wf = job->wf;
    dws_error_t error;
    char *left_out;
    char *hosts = NULL;

    if (!wf->waived || wf->excluded)
        return storage_hosts (job);
    if ((left_out = dws_hosts_subtract (wf->failed ? wf->failed : "",
                                        wf->waived, &error)))
        hosts = dws_hosts_subtract (job->facts->hosts, left_out, &error);
    free (left_out);
    return hosts;
}

/* DWS and NNF find out whose it is by its labels.
 */
static json_t *make_computes (struct job *job)
{
    char *hosts = computes_hosts (job);
    json_t *computes = NULL;
    json_t *metadata;

    if (hosts)
        computes = object_computes (hosts, job->ctx->config->topology);
    free (hosts);
    if (!computes)
        return NULL;
    if (!(metadata = object_child (job->wf, job->wf->computes,
                                   job->wf->computes_namespace))
        || json_object_set_new (computes, "metadata", metadata) < 0) {
        json_decref (computes);
        errno = ENOMEM;
        return NULL;
    }
    return computes;
}

static bool ask_to_make (struct job *job)
{
    json_t *computes;

    if (!(computes = make_computes (job)))
        return false;
    return act_send (job, &action_mend, MAKE,
                     command_create_with ("create", "computes",
                                          job->wf->computes_namespace,
                                          job->wf->computes,
                                          "object", computes)) == 0;
}

/* The role that DWS has for workload managers does not allow it: an admin has
 * to. It is looked for again after a while.
 */
static void tell_of_missing (struct job *job, const struct result *result)
{
    dws_error_t text;

    dws_error (&text, 0, "Computes %s/%s was deleted, and nothing is mounted or "
               "unmounted without it: %s", job->wf->computes_namespace,
               job->wf->computes, result->message);
    trouble_log (job, DWS_ACT_MEND, result->status, text.text);
    job_set_trouble (job, text.text);
}

static bool mend_result (struct job *job, const struct result *result)
{
    if (!result->current || !job->wf)
        return true;
    if (result->index == LOOK)
        return result->ok || (result->status == 404 && ask_to_make (job));
    if (result->ok)
        flux_log (job->ctx->h, LOG_NOTICE, "%s: Computes was deleted, and is "
                  "there again", job->wf->name);
    else if (result->status != 409)
        tell_of_missing (job, result);
    return true;
}

static bool mend_done (struct job *job)
{
    job->wf->t_computes = flux_reactor_time ();
    return true;
}

const struct action action_mend = {
    .kind = DWS_ACT_MEND,
    .run = run_mend,
    .result = mend_result,
    .done = mend_done,
};
