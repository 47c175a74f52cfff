/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See waiting.h.
 */

#include <stdio.h>
#include <string.h>

#include "libdws/decide/reconcile.h"
#include "libdws/directive/command.h"
#include "libdws/util/clean.h"
#include "waiting.h"

static bool asks (const struct dws_job *job, unsigned int commands)
{
    return (job->commands & commands) != 0;
}

static bool is_current (const struct dws_progress *p,
                        const struct dws_workflow *wf)
{
    return p && p->state == wf->state;
}

static void add_mounts (struct dws_text *t, const struct dws_job *job,
                        const struct dws_workflow *wf,
                        const struct dws_progress *p)
{
    bool mounting = wf->state == DWS_STATE_PRERUN;

    if (is_current (p, wf) && p->hosts > 0 && p->hosts_done < p->hosts)
        dws_say (t, "%s %zu/%zu nodes", mounting ? "mounting" : "unmounting",
                 p->hosts_done, p->hosts);
    else if (asks (job, DWS_COMMAND_CONTAINER)
             && ((is_current (p, wf) && p->hosts_done == p->hosts)
                 || !asks (job, DWS_COMMAND_JOBDW | DWS_COMMAND_PERSISTENTDW)))
        dws_say (t, "%s containers", mounting ? "starting" : "stopping");
    else
        dws_say (t, "%s", mounting ? "mounting" : "unmounting");
}

static void add_rate (struct dws_text *t, double rate)
{
    static const char *const units[] = { "B", "kB", "MB", "GB", "TB", "PB" };
    size_t i = 0;

    while (rate >= 999.5 && i + 1 < sizeof (units) / sizeof (units[0])) {
        rate /= 1000.;
        i++;
    }
    dws_say (t, ", %.3g %s/s", rate, units[i]);
}

static void add_left (struct dws_text *t, double seconds)
{
    if (seconds < 59.5)
        dws_say (t, ", %.0fs left", seconds);
    else if (seconds < 3570.)
        dws_say (t, ", %.0fm left", seconds / 60.);
    else
        dws_say (t, ", %.1fh left", seconds / 3600.);
}

static void add_movements (struct dws_text *t, const struct dws_workflow *wf,
                           const struct dws_progress *p)
{
    dws_say (t, "staging %s", wf->state == DWS_STATE_DATAIN ? "in" : "out");
    if (!is_current (p, wf) || p->movements == 0)
        return;
    dws_say (t, " %d%%", (int)p->percent);
    if (p->rate > 0.)
        add_rate (t, p->rate);
    if (p->left > 0.)
        add_left (t, p->left);
    else if (p->files > 0.)
        dws_say (t, ", %.0f file%s", p->files, p->files == 1. ? "" : "s");
    if (p->movements > 1)
        dws_say (t, ", %zu/%zu copies", p->movements_done, p->movements);
    if (*p->failure)
        dws_say (t, ", one failed");
}

/* A job that is to have its data before it has nodes.
 */
static void add_first (struct dws_text *t, const struct dws_job *job,
                       const struct dws_workflow *wf)
{
    if (!wf->breakdowns)
        dws_say (t, "checking the directives");
    else if (job->awaits)
        dws_say (t, "waiting for %s", job->awaits);
    else if (job->waits)
        dws_say (t, "waiting for its other dependencies, or to be released");
    else
        dws_say (t, "choosing rabbits");
}

static void add_state (struct dws_text *t, const struct dws_job *job,
                       const struct dws_workflow *wf,
                       const struct dws_progress *p, double now)
{
    switch (wf->state) {
        case DWS_STATE_NONE:
        case DWS_STATE_PROPOSAL:
            if (job->phase == DWS_PHASE_DEPEND && dws_is_data_first (job, wf))
                add_first (t, job, wf);
            else if (job->awaits)
                dws_say (t, "waiting for %s", job->awaits);
            else if (job->phase != DWS_PHASE_PROLOG)
                dws_say (t, "checking the directives");
            else
                dws_say (t, "assigning storage");
            break;
        case DWS_STATE_SETUP:
            dws_say (t, "%s", asks (job, DWS_COMMAND_CREATE_PERSISTENT)
                              ? "creating a persistent file system"
                              : asks (job, DWS_COMMAND_JOBDW)
                              ? "creating file systems"
                              : "preparing storage");
            if (is_current (p, wf) && *p->behind)
                dws_say (t, ", not ready: %s", p->behind);
            break;
        case DWS_STATE_DATAIN:
        case DWS_STATE_DATAOUT:
            if (job->phase == DWS_PHASE_PENDING)
                dws_say (t, "waiting for nodes next to its data");
            else
                add_movements (t, wf, p);
            break;
        case DWS_STATE_PRERUN:
        case DWS_STATE_POSTRUN:
            add_mounts (t, job, wf, p);
            break;
        case DWS_STATE_TEARDOWN:
            dws_say (t, "%s", asks (job, DWS_COMMAND_DESTROY_PERSISTENT)
                              ? "destroying a persistent file system"
                              : "removing file systems");
            break;
    }
    if (*wf->message && wf->status != DWS_STATUS_ERROR
        && dws_workflow_troubled (wf, now))
        dws_say (t, ": %s", wf->message);
}

static bool is_held (const struct dws_job *job, const struct dws_workflow *wf)
{
    return job->phase == DWS_PHASE_DEPEND || job->phase == DWS_PHASE_PROLOG
        || (job->phase == DWS_PHASE_PENDING && dws_is_data_first (job, wf)
            && wf->desired >= DWS_STATE_DATAIN)
        || (job->phase == DWS_PHASE_EPILOG && !job->abandoned);
}

const char *dws_waiting_text (const struct dws_job *job,
                              const struct dws_workflow *wf,
                              const struct dws_progress *p,
                              enum dws_link link,
                              const char *trouble,
                              double now,
                              char buf[DWS_WAITING_SIZE])
{
    struct dws_text t = { .buf = buf, .size = DWS_WAITING_SIZE };

    buf[0] = '\0';
    if (!is_held (job, wf))
        return buf;
    dws_say (&t, "rabbit: ");
    if (link == DWS_LINK_NO_AGENT)
        dws_say (&t, "waiting for the rabbit agent flux-coral2-dws");
    else if (link == DWS_LINK_NO_SERVER)
        dws_say (&t, "waiting for the Kubernetes API server");
    else if (!wf && job->phase == DWS_PHASE_DEPEND && job->awaits)
        dws_say (&t, "waiting for %s", job->awaits);
    else if (!wf)
        dws_say (&t, "%s", job->phase == DWS_PHASE_EPILOG ? "cleaning up"
                                                          : "creating a workflow");
    else
        add_state (&t, job, wf, p, now);
    if (link == DWS_LINK_UP && trouble)
        dws_say (&t, ", Kubernetes has trouble: %s", trouble);
    return buf;
}

const char *dws_waiting_kind (const struct dws_job *job,
                              const struct dws_workflow *wf)
{
    if (!wf || wf->ready || wf->state != wf->desired || !is_held (job, wf))
        return NULL;
    switch (wf->state) {
        case DWS_STATE_SETUP:
            return "servers";
        case DWS_STATE_DATAIN:
            return asks (job, DWS_COMMAND_COPY_IN) ? "nnfdatamovements" : NULL;
        case DWS_STATE_DATAOUT:
            return asks (job, DWS_COMMAND_COPY_OUT) ? "nnfdatamovements" : NULL;
        case DWS_STATE_PRERUN:
        case DWS_STATE_POSTRUN:
            return "clientmounts";
        default:
            return NULL;
    }
}
