/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Repairs manual changes: creates a deleted Computes object again, and writes a
 * changed one again.
 */

#include <stdlib.h>

#include "libdws/util/hosts.h"
#include "libdws/util/jsonmake.h"
#include "libutil/safelog.h"
#include "act/action.h"
#include "act/objects.h"
#include "act/storage.h"
#include "act/errorlog.h"
#include "agent/commands.h"
#include "base/timeline.h"
#include "facts/config.h"

enum {
    LOOK,
    MAKE,
    WRITE,
};

static int run_repair (struct job *job, const struct dws_action *wanted)
{
    return act_send (job, &action_repair, LOOK,
                     command_create ("get", "computes",
                                     job->wf->computes_namespace,
                                     job->wf->computes));
}

/* The hosts that Computes should list. Waived hosts stay listed until they are
 * excluded, because the places of other hosts depend on theirs.
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

/* DWS and NNF find the owner by the labels.
 */
static json_t *make_computes (struct job *job)
{
    char *hosts = computes_hosts (job);
    json_t *computes = NULL;

    if (hosts)
        computes = object_computes (hosts, job->ctx->config->topology);
    free (hosts);
    dws_json_set (&computes, "metadata",
                  object_child (job->wf, job->wf->computes,
                                job->wf->computes_namespace));
    return computes;
}

static bool ask_to_make (struct job *job)
{
    json_t *computes;

    if (!(computes = make_computes (job)))
        return false;
    return act_send (job, &action_repair, MAKE,
                     command_create_with ("create", "computes",
                                          job->wf->computes_namespace,
                                          job->wf->computes,
                                          "object", computes)) == 0;
}

static json_t *names_of (json_t *computes)
{
    json_t *names = json_object ();
    json_t *entry;
    size_t index;

    json_array_foreach (json_object_get (computes, "data"), index, entry) {
        const char *name = json_string_value (json_object_get (entry, "name"));

        if (name)
            (void)json_object_set_new (names, name, json_true ());
    }
    return names;
}

/* Returns 1 if Computes lists exactly 'hosts', 0 if not, or -1.
 */
static int is_as_written (const struct job *job, json_t *computes,
                          const char *hosts)
{
    json_t *wanted = object_computes (hosts, job->ctx->config->topology);
    json_t *want = names_of (wanted);
    json_t *got = names_of (computes);
    int rc = -1;

    if (wanted && want && got)
        rc = json_equal (want, got);
    json_decref (wanted);
    json_decref (want);
    json_decref (got);
    return rc;
}

/* Write Computes again if somebody has changed it: NNF mounts and unmounts on the nodes
 * listed there, which may be another job's, or lack some of the job's. Skip a workflow
 * of flux-coral2 after Setup, as the nodes that flux-coral2 excluded are unknown.
 */
static bool ask_to_write (struct job *job, json_t *computes)
{
    char *hosts;
    int same;
    bool ok;

    if (!job->wf->computes_written && job->wf->state != DWS_STATE_SETUP)
        return true;
    hosts = computes_hosts (job);
    same = hosts ? is_as_written (job, computes, hosts) : -1;
    ok = same > 0;
    if (same == 0)
        ok = act_send (job, &action_repair, WRITE,
                       command_computes (job->wf, hosts,
                                         job->ctx->config->topology)) == 0;
    free (hosts);
    return ok;
}

/* Only an admin can create a deleted Computes: the role of DWS for workload managers
 * does not permit it. The action retries later. In Setup nothing is mounted yet, so
 * replace the whole workflow.
 */
static void tell_of_missing (struct job *job, const struct result *result)
{
    dws_error_t text;

    if (job->facts->phase == DWS_PHASE_PROLOG
        && job->wf->desired == DWS_STATE_SETUP) {
        safe_log (job->ctx->h, LOG_NOTICE, "%s: Computes was deleted, and the "
                  "workflow is made anew", job->wf->name);
        job->wf->spoilt = true;
        return;
    }
    dws_error (&text, 0, "Computes %s/%s was deleted, and nothing is mounted or "
               "unmounted without it: %s", job->wf->computes_namespace,
               job->wf->computes, result->message);
    errorlog_add (job, DWS_ACT_REPAIR, result->status, text.text);
    job_set_retry_reason (job, text.text);
}

static bool repair_result (struct job *job, const struct result *result)
{
    if (!result->current || !job->wf)
        return true;
    if (result->index == LOOK)
        return result->ok ? ask_to_write (job, result->object)
                          : result->status == 404 && ask_to_make (job);
    if (result->index == WRITE && result->ok)
        safe_log (job->ctx->h, LOG_NOTICE, "%s: Computes was changed, and is "
                  "as it was", job->wf->name);
    else if (result->index == WRITE)
        return result->status == 404;   // retried later
    else if (result->ok)
        safe_log (job->ctx->h, LOG_NOTICE, "%s: Computes was deleted, and is "
                  "there again", job->wf->name);
    else if (result->status != 409)
        tell_of_missing (job, result);
    return true;
}

static bool repair_done (struct job *job)
{
    job->wf->t_computes = timeline_now (job->ctx->timeline);
    return true;
}

const struct action action_repair = {
    .kind = DWS_ACT_REPAIR,
    .run = run_repair,
    .result = repair_result,
    .done = repair_done,
};
