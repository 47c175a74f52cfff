/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See job.h. Other parts of this project make the input: it is decoded
 * strictly.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/errno_safe.h"
#include "libdws/directive/command.h"
#include "libdws/util/fields.h"
#include "libdws/util/hosts.h"
#include "libdws/util/jsontext.h"
#include "job.h"

static const char *phase_names[] = {
    [DWS_PHASE_DEPEND] = "depend",
    [DWS_PHASE_PENDING] = "pending",
    [DWS_PHASE_PROLOG] = "prolog",
    [DWS_PHASE_RUNNING] = "running",
    [DWS_PHASE_EPILOG] = "epilog",
    [DWS_PHASE_GONE] = "gone",
};

#define PHASE_COUNT (sizeof (phase_names) / sizeof (phase_names[0]))

const char *dws_phase_name (enum dws_phase phase)
{
    return (size_t)phase < PHASE_COUNT ? phase_names[phase] : "";
}

static int phase_parse (const char *s)
{
    for (size_t i = 0; i < PHASE_COUNT; i++) {
        if (!strcmp (phase_names[i], s))
            return i;
    }
    return -1;
}

void dws_job_destroy (struct dws_job *job)
{
    if (job) {
        ERRNO_SAFE_BLOCK;
        dws_directives_destroy (job->directives);
        free (job->group);
        free (job->bank);
        free (job->queue);
        free (job->rabbits);
        free (job->near);
        free (job->constraints);
        free (job->resources);
        free (job->hosts);
        free (job->refusal);
        free (job->awaits);
        free (job);
    }
}

/* A plugin that cannot get data first, as an older one, sends no value.
 */
static enum dws_first first_decode (json_t *value)
{
    if (!value || json_is_false (value))
        return DWS_FIRST_NO;
    return json_is_true (value) ? DWS_FIRST_YES : DWS_FIRST_UNSAID;
}

/* Fields that a request has in common with an entry of the list of jobs.
 */
#define COMMON_FIELDS \
    DWS_REQUIRED ("userid", USERID), \
    DWS_REQUIRED ("resources", ARRAY), \
    DWS_REQUIRED ("failure_tolerance", COUNT), \
    DWS_OPTIONAL ("group", STRING), \
    DWS_OPTIONAL ("bank", STRING), \
    DWS_OPTIONAL ("queue", STRING), \
    DWS_OPTIONAL ("rabbits", STRING), \
    DWS_OPTIONAL ("near", STRING), \
    DWS_OPTIONAL ("first", BOOL, .nullable = true), \
    DWS_OPTIONAL ("constraints", OBJECT), \
    DWS_OPTIONAL ("waits", BOOL)

static const struct dws_field request_fields[] = {
    DWS_REQUIRED ("jobid", ID),
    DWS_REQUIRED ("dw_directives", STRINGS),
    COMMON_FIELDS,
    { 0 },
};

/* The release before this one sends no t_prolog.
 */
static const struct dws_field listed_fields[] = {
    DWS_REQUIRED ("id", ID),
    DWS_REQUIRED ("dw", STRINGS),
    DWS_REQUIRED ("phase", STRING),
    COMMON_FIELDS,
    DWS_REQUIRED ("run_started", BOOL),
    DWS_REQUIRED ("exception", BOOL),
    DWS_REQUIRED ("abandoned", BOOL),
    DWS_REQUIRED ("teardown", BOOL),
    DWS_OPTIONAL ("t_prolog", NUMBER),
    DWS_REQUIRED ("t_epilog", NUMBER),
    { 0 },
};

/* Decode fields that were checked. 'key_id' and 'key_dw' are the keys of id and dw, which
 * differ between the two messages.
 */
static struct dws_job *decode_checked (json_t *o, const char *key_id,
                                       const char *key_dw,
                                       enum dws_phase phase,
                                       dws_error_t *error)
{
    struct dws_job *job = NULL;
    json_int_t id = 0;
    json_int_t userid = 0;
    json_t *directives = NULL;
    json_t *resources = NULL;
    int tolerance = 0;
    const char *group = NULL;
    const char *bank = NULL;
    const char *queue = NULL;
    const char *rabbits = NULL;
    const char *near = NULL;
    json_t *first = NULL;
    json_t *constraints = NULL;
    int waits = 0;

    (void)json_unpack (o, "{s:I s:I s:o s:o s:i s?s s?s s?s s?s s?s s?o s?o s?b}",
                       key_id, &id,
                       "userid", &userid,
                       key_dw, &directives,
                       "resources", &resources,
                       "failure_tolerance", &tolerance,
                       "group", &group,
                       "bank", &bank,
                       "queue", &queue,
                       "rabbits", &rabbits,
                       "near", &near,
                       "first", &first,
                       "constraints", &constraints,
                       "waits", &waits);
    if (!(job = calloc (1, sizeof (*job)))
        || !(job->directives = dws_directives_read (directives))
        || dws_commands_take_lifetime (job->directives, &job->lifetime) < 0
        || (group && !(job->group = strdup (group)))
        || (bank && !(job->bank = strdup (bank)))
        || (queue && !(job->queue = strdup (queue)))
        || (rabbits && !(job->rabbits = strdup (rabbits)))
        || (near && !(job->near = strdup (near)))
        || dws_jsontext_set (&job->constraints, constraints) < 0
        || dws_jsontext_set (&job->resources, resources) < 0) {
        dws_job_destroy (job);
        dws_error (error, ENOMEM, "out of memory");
        return NULL;
    }
    job->id = id;
    job->userid = userid;
    job->phase = phase;
    job->commands = dws_commands (job->directives);
    job->directives_hash = dws_commands_hash (job->directives);
    job->failure_tolerance = tolerance;
    job->data_first = first_decode (first);
    job->waits = waits;
    return job;
}

struct dws_job *dws_job_decode_request (json_t *o, dws_error_t *error)
{
    if (dws_fields_check (o, request_fields, error) < 0)
        return NULL;
    return decode_checked (o, "jobid", "dw_directives", DWS_PHASE_DEPEND, error);
}

struct dws_job *dws_job_decode (json_t *o, dws_error_t *error)
{
    struct dws_job *job;
    const char *phase = "";
    int run_started = 0;
    int exception = 0;
    int abandoned = 0;
    int teardown = 0;
    double t_prolog = 0.;
    double t_epilog = 0.;
    int index;

    if (dws_fields_check (o, listed_fields, error) < 0)
        return NULL;
    (void)json_unpack (o, "{s:s s:b s:b s:b s:b s?F s:F}",
                       "phase", &phase,
                       "run_started", &run_started,
                       "exception", &exception,
                       "abandoned", &abandoned,
                       "teardown", &teardown,
                       "t_prolog", &t_prolog,
                       "t_epilog", &t_epilog);
    if ((index = phase_parse (phase)) < 0) {
        dws_error (error, EPROTO, "phase: unknown phase '%s'", phase);
        return NULL;
    }
    if (!(job = decode_checked (o, "id", "dw", index, error)))
        return NULL;
    job->run_started = run_started;
    job->exception = exception;
    job->abandoned = abandoned;
    job->teardown = teardown;
    job->t_prolog = t_prolog;
    job->t_epilog = t_epilog;
    return job;
}

bool dws_job_advance (struct dws_job *job, enum dws_phase phase)
{
    if (phase <= job->phase)
        return false;
    job->phase = phase;
    return true;
}

static void take_over (char **text, char **fresh)
{
    free (*text);
    *text = *fresh;
    *fresh = NULL;
}

void dws_job_update (struct dws_job *job, struct dws_job *fresh)
{
    dws_directives_destroy (job->directives);
    job->directives = fresh->directives;
    fresh->directives = NULL;
    take_over (&job->resources, &fresh->resources);
    take_over (&job->group, &fresh->group);
    take_over (&job->bank, &fresh->bank);
    take_over (&job->queue, &fresh->queue);
    take_over (&job->rabbits, &fresh->rabbits);
    take_over (&job->near, &fresh->near);
    take_over (&job->constraints, &fresh->constraints);
    if (job->data_first != DWS_FIRST_NO)
        job->data_first = fresh->data_first;
    job->waits = fresh->waits;
    job->userid = fresh->userid;
    job->lifetime = fresh->lifetime;
    job->commands = fresh->commands;
    job->directives_hash = fresh->directives_hash;
    job->failure_tolerance = fresh->failure_tolerance;
    dws_job_advance (job, fresh->phase);
    job->run_started |= fresh->run_started;
    job->exception |= fresh->exception;
    job->abandoned |= fresh->abandoned;
    job->teardown |= fresh->teardown;
    if (job->t_prolog <= 0.)
        job->t_prolog = fresh->t_prolog;
    if (job->t_epilog <= 0.)
        job->t_epilog = fresh->t_epilog;
}

int dws_job_set_R (struct dws_job *job, json_t *R, dws_error_t *error)
{
    json_t *nodelist;
    char *hosts;

    if (json_unpack (R, "{s:{s:o}}", "execution", "nodelist", &nodelist) < 0
        || !json_is_array (nodelist))
        return dws_error (error, EINVAL, "R has no execution.nodelist");
    /* A host may appear once per slot. */
    if (!(hosts = dws_hosts_merge_json (nodelist, error))) {
        if (errno == EINVAL)
            dws_error (error, EINVAL, "R has a malformed nodelist");
        return -1;
    }
    free (job->hosts);
    job->hosts = hosts;
    return 0;
}
