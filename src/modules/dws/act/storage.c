/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See storage.h.
 */

#include <errno.h>

#include "libdws/health/health.h"
#include "libdws/storage/allocation.h"
#include "libdws/storage/breakdown.h"
#include "libdws/storage/daemons.h"
#include "libdws/storage/location.h"
#include "libdws/storage/reserved.h"
#include "libdws/util/jsontext.h"
#include "libutil/errno_safe.h"
#include "act/storage.h"
#include "facts/config.h"
#include "facts/storages.h"

/* Smallest allocation on a rabbit, in GiB: rabbits refuse less for Lustre.
 */
#define MIN_GIB 4

void demand_clear (struct demand *demand)
{
    ERRNO_SAFE_BLOCK;
    json_decref (demand->resources);
    json_decref (demand->constraint);
    json_decref (demand->units);
    *demand = (struct demand){ 0 };
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

/* Where the job may run: next to storage that exists already, and only on nodes
 * that have a rabbit.
 */
static json_t *make_constraint (struct job *job, json_t *breakdowns,
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
        .min_gib = MIN_GIB,
        .maximums = config->maximums,
    };
    json_t *breakdowns;
    json_t *resources = NULL;
    int rc = 0;

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
        || !(demand->constraint = make_constraint (job, breakdowns, error))) {
        demand_clear (demand);
        rc = -1;
    }
    ERRNO_SAFE (json_decref (breakdowns));
    ERRNO_SAFE (json_decref (resources));
    return rc;
}

json_t *storage_layout (struct job *job, json_t **nodes, dws_error_t *error)
{
    /* No maximums: the job was let in by those of the configuration then. */
    struct dws_breakdown_opts bopts = { .min_gib = MIN_GIB };
    struct dws_allocation_opts opts = {
        .min_gib = MIN_GIB,
        .used = space_used (job->ctx->space),
        .reserved = job->reserved,
    };
    json_t *breakdowns = dws_jsontext_get (job->wf->breakdowns);
    json_t *resources = dws_jsontext_get (job->facts->resources);
    json_t *hosts = json_string (job->facts->hosts);
    json_t *sets = NULL;

    *nodes = NULL;
    opts.storages = storages_array (job->ctx->storages);
    if (!breakdowns || !resources || !hosts)
        dws_error (error, ENOMEM, "out of memory");
    else if ((opts.resources = dws_breakdown_apply (resources, breakdowns,
                                                    &bopts, error))
        && (*nodes = dws_allocation_nodes (hosts, job->ctx->config->topology,
                                           error)))
        sets = dws_allocation_sets (breakdowns, *nodes, &opts, error);
    ERRNO_SAFE (json_decref (opts.resources));
    ERRNO_SAFE (json_decref (opts.storages));
    ERRNO_SAFE (json_decref (hosts));
    ERRNO_SAFE (json_decref (resources));
    ERRNO_SAFE (json_decref (breakdowns));
    return sets;
}

void storage_learn_R (struct job *job, json_t *R)
{
    dws_error_t error;

    json_decref (job->reserved);
    if (!(job->reserved = dws_reserved (R,
                                                   job->ctx->config->topology,
                                                   &error))) {
        char label[JOB_LABEL_SIZE];

        flux_log (job->ctx->h, LOG_ERR, "%s: R: %s", job_label (job, label),
                  error.text);
    }
}
