/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Jobspec version 1 (RFC 25): made from a command, changed by dotted path,
 * checked.
 */
#include <jansson.h>

#include "libutil/errno_safe.h"
#include "errprintf.h"
#include "../modules/job-common/jobutil.h"

struct flux_jobspec1 {
    json_t *obj;
};

static int fail (flux_jobspec1_error_t *error, const char *fmt, ...)
    __attribute__ ((format (printf, 2, 3)));

static int fail (flux_jobspec1_error_t *error, const char *fmt, ...)
{
    va_list ap;

    if (error) {
        va_start (ap, fmt);
        vsnprintf (error->text, sizeof (error->text), fmt, ap);
        va_end (ap);
    }
    errno = EINVAL;
    return -1;
}

static int check_slot (json_t *slot, flux_jobspec1_error_t *error)
{
    json_error_t e;
    const char *type;
    const char *label;
    json_t *with;
    int count;
    int exclusive;
    size_t index;
    json_t *child;

    if (json_unpack_ex (slot, &e, 0, "{s:s s:i s:o s:s s?b !}",
                        "type", &type,
                        "count", &count,
                        "with", &with,
                        "label", &label,
                        "exclusive", &exclusive) < 0)
        return fail (error, "slot vertex: %s", e.text);
    if (!streq (type, "slot"))
        return fail (error, "node must contain a slot");
    if (count < 1)
        return fail (error, "slot count must be >= 1");
    if (!json_is_array (with)
        || json_array_size (with) < 1 || json_array_size (with) > 2)
        return fail (error, "a slot is with one or two resources");
    json_array_foreach (with, index, child) {
        if (json_unpack_ex (child, &e, 0, "{s:s s:i !}",
                            "type", &type,
                            "count", &count) < 0)
            return fail (error, "slot with: %s", e.text);
        if (!streq (type, "core") && !streq (type, "gpu"))
            return fail (error, "a slot is with core and gpu only");
        if (count < (streq (type, "core") ? 1 : 0))
            return fail (error, "slot %s count must be >= 1", type);
    }
    return 0;
}

static int check_resources (json_t *res, flux_jobspec1_error_t *error)
{
    json_error_t e;
    json_t *vertex;
    json_t *slot;
    const char *type;
    const char *unit;
    int count;
    int exclusive;

    if (json_unpack_ex (res, &e, 0, "[o!]", &vertex) < 0
        || json_unpack_ex (vertex, &e, 0, "{s:s}", "type", &type) < 0)
        return fail (error, "resources section: %s", e.text);
    if (streq (type, "slot"))
        return check_slot (vertex, error);
    if (!streq (type, "node"))
        return fail (error, "unknown resource vertex type %s", type);
    if (json_unpack_ex (vertex, &e, 0, "{s:s s:i s:[o!] s?s s?b !}",
                        "type", &type,
                        "count", &count,
                        "with", &slot,
                        "unit", &unit,
                        "exclusive", &exclusive) < 0)
        return fail (error, "node vertex: %s", e.text);
    if (count < 1)
        return fail (error, "node count must be >= 1");
    return check_slot (slot, error);
}

static int check_tasks (json_t *tasks, flux_jobspec1_error_t *error)
{
    json_error_t e;
    json_t *command;
    const char *slot;
    json_t *count;
    int n;
    size_t index;
    json_t *arg;

    if (json_unpack_ex (tasks, &e, 0, "[{s:o s:s s:o !}!]",
                        "command", &command,
                        "slot", &slot,
                        "count", &count) < 0)
        return fail (error, "tasks section: %s", e.text);
    if (!json_is_array (command) || json_array_size (command) < 1)
        return fail (error, "the command of a task is an array, and "
                     "not empty");
    json_array_foreach (command, index, arg) {
        if (!json_is_string (arg))
            return fail (error, "a word of the command is no string");
    }
    if (json_object_size (count) != 1
        || (json_unpack (count, "{s:i}", "per_slot", &n) < 0
            && json_unpack (count, "{s:i}", "total", &n) < 0))
        return fail (error, "tasks count must be one of per_slot, total");
    if (n < 1)
        return fail (error, "tasks count must be >= 1");
    return 0;
}

static int check_system (json_t *system, flux_jobspec1_error_t *error)
{
    static const char *objects[] = { "environment", "constraints", "shell",
                                     NULL };
    json_t *val;
    size_t index;
    json_t *dep;
    const char *s;

    if (!(val = json_object_get (system, "duration")))
        return fail (error, "no attributes.system.duration");
    if (!json_is_number (val) || json_number_value (val) < 0.)
        return fail (error, "attributes.system.duration is no number of "
                     "seconds");
    for (const char **key = objects; *key; key++) {
        if ((val = json_object_get (system, *key)) && !json_is_object (val))
            return fail (error, "attributes.system.%s is no object",
                         *key);
    }
    if ((val = jp_get (system, "shell.options")) && !json_is_object (val))
        return fail (error, "attributes.system.shell.options is no "
                     "object");
    if ((val = json_object_get (system, "dependencies"))
        && !json_is_array (val))
        return fail (error, "attributes.system.dependencies is no array");
    json_array_foreach (val, index, dep) {
        if (json_unpack (dep, "{s:s s:s}", "scheme", &s, "value", &s) < 0)
            return fail (error, "a dependency is an object with scheme and "
                         "value");
    }
    return 0;
}

int flux_jobspec1_attr_check (flux_jobspec1_t *jobspec,
                              flux_jobspec1_error_t *error)
{
    json_t *attrs;
    const char *key;
    json_t *val;

    if (!jobspec)
        return fail (error, "no jobspec");
    if (!json_is_object ((attrs = json_object_get (jobspec->obj,
                                                   "attributes"))))
        return fail (error, "attributes must be an object");
    json_object_foreach (attrs, key, val) {
        if (!streq (key, "user") && !streq (key, "system"))
            return fail (error, "unknown attributes section %s", key);
        if (json_object_size (val) == 0)
            return fail (error, "if present, attributes.%s must contain "
                         "values", key);
    }
    if (!(val = json_object_get (attrs, "system")))
        return fail (error, "attributes.system is required");
    return check_system (val, error);
}

int flux_jobspec1_check (flux_jobspec1_t *jobspec,
                         flux_jobspec1_error_t *error)
{
    json_error_t e;
    json_t *resources;
    json_t *tasks;
    json_t *attributes;
    int version;

    if (!jobspec)
        return fail (error, "no jobspec");
    if (json_unpack_ex (jobspec->obj, &e, 0, "{s:o s:o s:o s:i !}",
                        "resources", &resources,
                        "tasks", &tasks,
                        "attributes", &attributes,
                        "version", &version) < 0)
        return fail (error, "jobspec object: %s", e.text);
    if (version != 1)
        return fail (error, "not of version 1");
    if (check_resources (resources, error) < 0
        || check_tasks (tasks, error) < 0)
        return -1;
    return flux_jobspec1_attr_check (jobspec, error);
}

/* Takes over 'obj'. */
static flux_jobspec1_t *jobspec1_new (json_t *obj)
{
    flux_jobspec1_t *jobspec = calloc (1, sizeof (*jobspec));

    if (!jobspec)
        json_decref (obj);
    else
        jobspec->obj = obj;
    return jobspec;
}

flux_jobspec1_t *flux_jobspec1_decode (const char *s,
                                       flux_jobspec1_error_t *error)
{
    json_error_t e;
    json_t *obj;

    if (!s) {
        fail (error, "Invalid argument");
        return NULL;
    }
    if (!(obj = json_loads (s, 0, &e))) {
        fail (error, "%s", e.text);
        return NULL;
    }
    return jobspec1_new (obj);
}

void flux_jobspec1_destroy (flux_jobspec1_t *jobspec)
{
    if (jobspec) {
        ERRNO_SAFE_BLOCK;

        json_decref (jobspec->obj);
        free (jobspec);
    }
}
