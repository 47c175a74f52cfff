/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See growth.h.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libdws/storage/allocation.h"
#include "libdws/storage/growth.h"
#include "libdws/util/jsontext.h"
#include "libutil/errno_safe.h"
#include "act/action.h"
#include "act/growth.h"
#include "act/limits.h"
#include "facts/config.h"
#include "sched/holds.h"
#include "sched/scheduler.h"

bool growth_wanted (const struct job *job)
{
    return job->facts->ranges != NULL;
}

void growth_forget (struct job *job)
{
    ERRNO_SAFE_BLOCK;
    json_decref (job->wish);
    job->wish = NULL;
    json_decref (job->given);
    job->given = NULL;
    job->growth = GROWTH_NONE;
}

/* Limits
 */

/* The ranges with upper bounds that the limits leave. Fails with EAGAIN while these are
 * not known.
 */
static json_t *ranges_allowed (struct job *job)
{
    json_t *ranges = dws_jsontext_get (job->facts->ranges);
    json_t *directives = dws_jsontext_get (job->facts->directives);
    json_t *resources = dws_jsontext_get (job->facts->resources);
    struct dws_asked most;
    json_t *result = NULL;

    if (!ranges || !directives || !resources)
        errno = ENOMEM;
    else if (!limits_leave (job, &most))
        errno = EAGAIN;
    else
        result = dws_growth_within (ranges, resources, directives, &most,
                                    job->ctx->config->maximums);
    ERRNO_SAFE (json_decref (resources));
    ERRNO_SAFE (json_decref (directives));
    ERRNO_SAFE (json_decref (ranges));
    return result;
}

/* Steps
 */

/* Is there more of it on any rabbit than the scheduler has given?
 */
static bool is_beyond (const struct job *job, json_t *bytes)
{
    const char *rabbit;
    json_t *value;

    json_object_foreach (bytes, rabbit, value) {
        if (json_integer_value (value)
            > json_integer_value (json_object_get (job->reserved, rabbit)))
            return true;
    }
    return false;
}

/* No scheduler has promised anything of rabbits to anybody, or no more.
 */
static bool is_unscheduled (const struct job *job)
{
    return !scheduler_name (job->ctx->scheduler)
        && json_object_size (job->reserved) == 0;
}

/* A scheduler that does not answer this may have given away anything.
 */
static void told_cb (const struct call *call, flux_future_t *f)
{
    struct job *job = act_job (call);
    json_t *given;

    if (!job)
        return;
    if (flux_rpc_get_unpack (f, "{s:o}", "given", &given) < 0)
        job->growth = GROWTH_ALONE;
    else if (job->wish) {
        job->growth = GROWTH_TOLD;
        json_decref (job->given);
        job->given = json_incref (given);
    }
    act_end (job, call, f, "hold", true);
}

/* Deciding
 */

/* Returns 1, or -1 with errno set.
 */
static int settle (struct job *job, json_t **sets, json_t *grown)
{
    growth_forget (job);
    if (!grown)
        return -1;
    json_decref (*sets);
    *sets = grown;
    return 1;
}

/* No more than the scheduler has given it.
 */
static int keep_within (struct job *job, struct growth_view *view,
                        json_t *nodes, const struct rivals *rivals,
                        json_t **sets)
{
    if (!(view->most = job->reserved))
        return settle (job, sets, json_incref (*sets));
    return settle (job, sets, storage_grow (job, nodes, rivals, view));
}

static int begin (struct job *job, const struct action *action,
                  struct growth_view *view, json_t *nodes,
                  const struct rivals *rivals, json_t **sets)
{
    json_t *grown = storage_grow (job, nodes, rivals, view);
    json_t *bytes = grown ? dws_allocation_bytes (grown) : NULL;

    if (!bytes || !is_beyond (job, bytes) || is_unscheduled (job)) {
        ERRNO_SAFE (json_decref (bytes));
        if (!bytes) {
            ERRNO_SAFE (json_decref (grown));
            grown = NULL;
        }
        return settle (job, sets, grown);
    }
    json_decref (grown);
    growth_forget (job);
    job->wish = bytes;
    if (holds_listens (job->ctx))
        return act_call (job, action, holds_wish (job), told_cb);
    return keep_within (job, view, nodes, rivals, sets);
}

int growth_decide (struct job *job, const struct action *action,
                   json_t *nodes, const struct rivals *rivals, json_t **sets)
{
    struct growth_view view = { .ranges = ranges_allowed (job) };
    int rc = 0;

    if (!view.ranges)
        return -1;
    switch (job->growth) {
        case GROWTH_NONE:
            rc = begin (job, action, &view, nodes, rivals, sets);
            break;
        case GROWTH_TOLD:
            view.most = job->wish;
            view.given = job->given;
            rc = settle (job, sets, storage_grow (job, nodes, rivals, &view));
            break;
        case GROWTH_ALONE:
            rc = keep_within (job, &view, nodes, rivals, sets);
            break;
    }
    ERRNO_SAFE (json_decref (view.ranges));
    return rc;
}

/* What it has come to
 */

static int set_variable (json_t *variables, const char *name, json_int_t bytes)
{
    char key[160];
    json_t *value = json_sprintf ("%" JSON_INTEGER_FORMAT, bytes);

    snprintf (key, sizeof (key), "DW_CAPACITY_%s", name);
    for (char *s = key; *s; s++) {
        if (*s == '-')
            *s = '_';
    }
    return json_object_set_new (variables, key, value);
}

int growth_variables (struct job *job, json_t *variables)
{
    json_t *given;
    const char *name;
    json_t *value;
    int rc = 0;

    if (!growth_wanted (job))
        return 0;
    if (!space_known (job->ctx->space)) {
        errno = EAGAIN;
        return -1;
    }
    if (!(given = job_growth_given (job)))
        return -1;
    json_object_foreach (given, name, value) {
        json_int_t bytes = json_integer_value (json_object_get (value,
                                                                "bytes"));

        if (bytes > 0 && set_variable (variables, name, bytes) < 0) {
            errno = ENOMEM;
            rc = -1;
        }
    }
    json_decref (given);
    return rc;
}
