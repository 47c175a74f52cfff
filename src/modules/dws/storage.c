/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See storage.h.
 */

#include <errno.h>

#include "libdws/allocation.h"
#include "libdws/breakdown.h"
#include "libdws/daemons.h"
#include "libdws/health.h"
#include "libdws/jsontext.h"
#include "libdws/location.h"
#include "agent.h"
#include "commands.h"
#include "config.h"
#include "storage.h"

void demand_clear (struct demand *demand)
{
    int saved_errno = errno;

    json_decref (demand->resources);
    json_decref (demand->constraint);
    json_decref (demand->units);
    *demand = (struct demand){ 0 };
    errno = saved_errno;
}

/* The breakdowns of a job, none of which may have storage.
 */
static json_t *all_breakdowns (struct job *job)
{
    json_t *list;

    if (job->wf->breakdowns)
        return dws_jsontext_get (job->wf->breakdowns);
    if (!(list = json_array ()))
        errno = ENOMEM;
    return list;
}

/* Where the job may run: next to storage that is there already, and not where
 * it would find no rabbit.
 */
static json_t *constraint (struct job *job, json_t *breakdowns,
                           dws_error_t *error)
{
    json_t *location;
    json_t *o;

    location = dws_location_constraint (breakdowns, job->servers,
                                        job->ctx->config->topology,
                                        job->ctx->config->network_types,
                                        error);
    if (!location || json_array_size (breakdowns) == 0)
        return location;
    o = dws_health_constraint (location, error);
    json_decref (location);
    return o;
}

int storage_demand (struct job *job, struct demand *demand,
                    dws_error_t *error)
{
    struct dws_config *config = job->ctx->config;
    struct dws_breakdown_opts opts = {
        .min_gib = DWS_MIN_GIB,
        .maximums = config->maximums,
    };
    json_t *breakdowns;
    json_t *resources = NULL;
    int saved_errno;

    *demand = (struct demand){ 0 };
    if (!(breakdowns = all_breakdowns (job))
        || !(resources = dws_jsontext_get (job->facts->resources))) {
        json_decref (breakdowns);
        return dws_error (error, ENOMEM, "out of memory");
    }
    if (!(demand->units = dws_daemons_units (breakdowns, config->daemons,
                                             error))
        || !(demand->resources = dws_breakdown_apply (resources, breakdowns,
                                                      &opts, error))
        || !(demand->constraint = constraint (job, breakdowns, error))) {
        demand_clear (demand);
        saved_errno = errno;
        json_decref (breakdowns);
        json_decref (resources);
        errno = saved_errno;
        return -1;
    }
    json_decref (breakdowns);
    json_decref (resources);
    return 0;
}

json_t *storage_layout (struct job *job, json_t **nodes, dws_error_t *error)
{
    /* The limits were those of the day on which the job was let in. */
    struct dws_breakdown_opts bopts = { .min_gib = DWS_MIN_GIB };
    struct dws_allocation_opts opts = {
        .min_gib = DWS_MIN_GIB,
        .used = job->ctx->used,
        .reserved = job->reserved,
    };
    json_t *breakdowns = dws_jsontext_get (job->wf->breakdowns);
    json_t *resources = dws_jsontext_get (job->facts->resources);
    json_t *hosts = json_string (job->facts->hosts);
    json_t *sets = NULL;
    int saved_errno;

    *nodes = NULL;
    opts.storages = agent_storages (job->ctx->agent);
    if (!breakdowns || !resources || !hosts)
        dws_error (error, ENOMEM, "out of memory");
    else if ((opts.resources = dws_breakdown_apply (resources, breakdowns,
                                                    &bopts, error))
        && (*nodes = dws_allocation_nodes (hosts, job->ctx->config->topology,
                                           error)))
        sets = dws_allocation_sets (breakdowns, *nodes, &opts, error);
    saved_errno = errno;
    json_decref (opts.resources);
    json_decref (opts.storages);
    json_decref (hosts);
    json_decref (resources);
    json_decref (breakdowns);
    errno = saved_errno;
    return sets;
}

void storage_learn_R (struct job *job, json_t *R)
{
    dws_error_t error;

    json_decref (job->reserved);
    if (!(job->reserved = dws_allocation_reserved (R,
                                                   job->ctx->config->topology,
                                                   &error))) {
        char label[JOB_LABEL_SIZE];

        flux_log (job->ctx->h, LOG_ERR, "%s: R: %s", job_label (job, label),
                  error.text);
    }
}
