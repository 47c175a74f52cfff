/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See data_first.h.
 */

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "libdws/directive/command.h"
#include "libdws/storage/resources.h"
#include "libdws/storage/data_first.h"
#include "libdws/storage/location.h"
#include "libdws/util/jsontext.h"
#include "libutil/errno_safe.h"
#include "act/action.h"
#include "act/data_first.h"
#include "act/constraint.h"
#include "facts/config.h"
#include "sched/pool.h"

static bool is_possible (const struct job *job)
{
    json_t *resources = dws_jsontext_get (job->facts->resources);
    bool ok = !dws_first_fault (job->facts->commands, resources);

    json_decref (resources);
    return ok;
}

bool first_wanted (const struct job *job)
{
    const struct dws_job *facts = job->facts;
    enum dws_data_first site = job->ctx->config->data_first;

    if (facts->phase != DWS_PHASE_DEPEND || facts->data_first == DWS_FIRST_NO
        || site == DWS_DATA_FIRST_NEVER
        || (facts->data_first == DWS_FIRST_UNSAID && site != DWS_DATA_FIRST_ALWAYS))
        return false;
    return (facts->data_first == DWS_FIRST_YES
            || (facts->commands & DWS_COMMAND_COPY_IN))
        && is_possible (job);
}

int first_check (const struct job *job, dws_error_t *error)
{
    if (job->facts->data_first == DWS_FIRST_YES
        && job->ctx->config->data_first == DWS_DATA_FIRST_NEVER)
        return dws_error (error, EINVAL, "dw_data_first: here jobs get their"
                          " nodes before their data (rabbit.data_first)");
    return 0;
}

bool data_first_ready (struct job *job)
{
    return job->facts->phase != DWS_PHASE_DEPEND
        || !dws_is_data_first (job->facts, job->wf)
        || pool_get (job->ctx->pool, job) != NULL;
}

json_t *data_first_goodness (struct job *job, dws_error_t *error)
{
    const struct dws_pool *pool = pool_last (job->ctx->pool);
    json_t *resources = dws_jsontext_get (job->facts->resources);
    json_t *constraints = NULL;
    json_t *near = NULL;
    json_t *goodness = NULL;

    if (!pool || !resources
        || (job->facts->constraints
            && !(constraints = dws_jsontext_get (job->facts->constraints))))
        dws_error (error, ENOMEM, "out of memory");
    else if ((near = constraint_make (job, dws_resources_nodes (resources),
                                      error)))
        goodness = dws_pool_nodes (pool, constraints, near, error);
    ERRNO_SAFE (json_decref (near));
    ERRNO_SAFE (json_decref (constraints));
    ERRNO_SAFE (json_decref (resources));
    return goodness;
}

bool data_first_in_reach (struct job *job)
{
    const struct dws_pool *pool = pool_last (job->ctx->pool);
    json_t *resources = dws_jsontext_get (job->facts->resources);
    json_t *constraints = job->facts->constraints
                          ? dws_jsontext_get (job->facts->constraints) : NULL;
    int64_t wanted = dws_resources_nodes (resources);
    dws_error_t error;
    json_t *goodness = data_first_goodness (job, &error);
    json_t *location = NULL;
    json_t *nodes = NULL;
    bool reached;

    if (goodness)
        location = dws_location_data_first (job->wf->breakdowns,
                                            act_own (job)->servers,
                                            job->ctx->config->topology, goodness,
                                            wanted, &error);
    if (location)
        nodes = dws_pool_nodes (pool, constraints, location, &error);
    reached = !nodes || (int64_t)json_object_size (nodes) >= wanted;
    json_decref (nodes);
    json_decref (location);
    json_decref (goodness);
    json_decref (constraints);
    json_decref (resources);
    return reached;
}
