/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Does a job match a constraint?  The same walk checks the constraint when
 * there is no job.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <flux/hostlist.h>
#include <flux/idset.h>

#include "job-list.h"

typedef int (*match_f) (struct job *job, const char *op, json_t *val,
                        flux_error_t *error);

static json_t *attr (struct job *job, const char *key)
{
    return job ? json_object_get (job->attrs, key) : NULL;
}

static int match_userid (struct job *job, const char *op, json_t *val,
                         flux_error_t *error)
{
    if (!json_is_integer (val))
        return set_error (error, "userid: want a number");
    return (uint32_t)json_integer_value (val) == FLUX_USERID_UNKNOWN
        || json_equal (val, attr (job, "userid"));
}

static int match_string (struct job *job, const char *op, json_t *val,
                         flux_error_t *error)
{
    if (!json_is_string (val))
        return set_error (error, "%s: want a string", op);
    return json_equal (val, attr (job, op));
}

static int match_states (struct job *job, const char *op, json_t *val,
                         flux_error_t *error)
{
    flux_job_state_t state;

    if (json_is_string (val)) {
        if (flux_job_strtostate (json_string_value (val), &state) < 0)
            return set_error (error, "there is no state %s",
                              json_string_value (val));
    }
    else if (json_is_integer (val))
        state = json_integer_value (val);
    else
        return set_error (error, "states: want a name or a number");
    return job && (job->state & state) != 0;
}

static int match_results (struct job *job, const char *op, json_t *val,
                          flux_error_t *error)
{
    flux_job_result_t result;

    if (json_is_string (val)) {
        if (flux_job_strtoresult (json_string_value (val), &result) < 0)
            return set_error (error, "there is no result %s",
                              json_string_value (val));
    }
    else if (json_is_integer (val))
        result = json_integer_value (val);
    else
        return set_error (error, "results: want a name or a number");
    return (json_integer_value (attr (job, "result")) & result) != 0;
}

static int match_time (struct job *job, const char *op, json_t *val,
                       flux_error_t *error)
{
    const char *s = json_string_value (val);
    bool eq;
    bool less;
    double limit;
    char *end;
    json_t *t = attr (job, op);

    if (!s)
        return set_error (error, "%s: want a string", op);
    if (*s != '<' && *s != '>')
        return set_error (error, "%s: want a time after >, >=, < or <=", op);
    less = *s++ == '<';
    eq = *s == '=';
    s += eq;
    limit = strtod (s, &end);
    if (end == s || *end != '\0')
        return set_error (error, "Invalid timestamp value specified");
    if (limit < 0.)
        return set_error (error, "timestamp value must be >= 0.0");
    if (!t)
        return 0;
    if (eq && json_number_value (t) == limit)
        return 1;
    return less ? json_number_value (t) < limit
                : json_number_value (t) > limit;
}

static const struct {
    const char *op;
    match_f match;
} ops[] = {
    { "userid", match_userid },
    { "name", match_string },
    { "queue", match_string },
    { "states", match_states },
    { "results", match_results },
    { "t_submit", match_time },
    { "t_depend", match_time },
    { "t_priority", match_time },
    { "t_sched", match_time },
    { "t_run", match_time },
    { "t_cleanup", match_time },
    { "t_inactive", match_time },
};

/* Any of the values will do; of none, none. */
static int match_values (struct job *job, match_f match, const char *op,
                         json_t *values, flux_error_t *error)
{
    int rc = 0;
    size_t index;
    json_t *val;

    json_array_foreach (values, index, val) {
        int n = match (job, op, val, error);

        if (n < 0)
            return -1;
        rc = rc || n;
    }
    return rc;
}

static int match_logic (struct job *job, const char *op, json_t *values,
                        flux_error_t *error)
{
    bool all = true;
    bool any = false;
    size_t index;
    json_t *val;

    json_array_foreach (values, index, val) {
        int n = job_match (job, val, error);

        if (n < 0)
            return -1;
        all = all && n;
        any = any || n;
    }
    if (streq (op, "or"))
        return any || json_array_size (values) == 0;
    return streq (op, "and") ? all : !all;
}

int job_match (struct job *job, json_t *constraint, flux_error_t *error)
{
    const char *op;
    json_t *values;

    if (!constraint)
        return 1;
    if (!json_is_object (constraint))
        return set_error (error, "no JSON object");
    if (json_object_size (constraint) > 1)
        return set_error (error, "more than one operator");
    json_object_foreach (constraint, op, values) {
        if (!json_is_array (values))
            return set_error (error, "%s: want an array", op);
        if (streq (op, "and") || streq (op, "or") || streq (op, "not"))
            return match_logic (job, op, values, error);
        for (size_t i = 0; i < sizeof (ops) / sizeof (ops[0]); i++) {
            if (streq (op, ops[i].op))
                return match_values (job, ops[i].match, op, values, error);
        }
        return set_error (error, "unknown constraint operator: %s", op);
    }
    return 1; // empty
}
