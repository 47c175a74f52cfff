/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See breakdowns.h. Kubernetes objects grow keys over time, so that unknown
 * ones are passed over, but what is decided on is checked for type and range.
 */

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/errno_safe.h"
#include "libdws/util/bounds.h"
#include "libdws/util/jsonmake.h"
#include "allocset_private.h"

static const struct {
    const char *name;
    enum alloc_strategy strategy;
} strategies[] = {
    { "AllocatePerCompute", ALLOC_PER_COMPUTE },
    { "AllocatePerServer", ALLOC_PER_SERVER },
    { "AllocateAcrossServers", ALLOC_ACROSS },
    { "AllocateSingleServer", ALLOC_SINGLE },
};

static void clear_breakdown (struct breakdown *b)
{
    for (size_t i = 0; i < b->nsets; i++) {
        free ((char *)b->sets[i].label);
        json_decref (b->sets[i].labels);
        json_decref (b->sets[i].colocation);
    }
    for (size_t i = 0; i < b->nlocations; i++) {
        free (b->locations[i].name);
        free (b->locations[i].namespace);
    }
    free (b->sets);
    free (b->locations);
    free (b->name);
    free (b->servers);
    free (b->servers_namespace);
    json_decref (b->requires);
}

void dws_breakdowns_destroy (struct dws_breakdowns *breakdowns)
{
    if (breakdowns) {
        ERRNO_SAFE_BLOCK;
        for (size_t i = 0; i < breakdowns->count; i++)
            clear_breakdown (&breakdowns->list[i]);
        free (breakdowns->list);
        free (breakdowns);
    }
}

static int decode_strategy (struct alloc_set *set, const char *name)
{
    size_t n = sizeof (strategies) / sizeof (strategies[0]);

    for (size_t i = 0; i < n; i++) {
        if (strcmp (strategies[i].name, name) == 0) {
            set->strategy = strategies[i].strategy;
            return 0;
        }
    }
    return -1;
}

static int __attribute__ ((format (printf, 4, 5)))
fail_set (const struct alloc_set *set, const char *where, dws_error_t *error,
          const char *fmt, ...)
{
    char text[128];
    va_list ap;

    va_start (ap, fmt);
    vsnprintf (text, sizeof (text), fmt, ap);
    va_end (ap);
    return dws_error (error, EINVAL, "%s, set %s: %s", where, set->label, text);
}

static int check_colocation (const struct alloc_set *set, const char *where,
                             json_t *entry, dws_error_t *error)
{
    const char *type;
    const char *key = "";

    if (json_unpack (entry, "{s:s s?s}", "type", &type, "key", &key) < 0
        || strcmp (type, "exclusive") != 0)
        return fail_set (set, where, error, "the only colocation type that is"
                         " known is 'exclusive'");
    return 0;
}

static int check_colocations (const struct alloc_set *set, const char *where,
                              dws_error_t *error)
{
    json_t *entry;
    size_t i;

    if (!set->colocation || json_is_object (set->colocation))
        return set->colocation
               ? check_colocation (set, where, set->colocation, error) : 0;
    if (!json_is_array (set->colocation))
        return fail_set (set, where, error, "constraints.colocation is neither a"
                         " list nor an object");
    json_array_foreach (set->colocation, i, entry) {
        if (check_colocation (set, where, entry, error) < 0)
            return -1;
    }
    return 0;
}

static int decode_constraints (struct alloc_set *set,
                               const char *where,
                               json_t *constraints,
                               dws_error_t *error)
{
    json_int_t scale = 0;
    json_int_t count = 0;
    json_t *scale_value = json_object_get (constraints, "scale");
    json_t *count_value = json_object_get (constraints, "count");
    json_t *labels = NULL;
    json_t *colocation = NULL;
    json_t *entry;
    size_t i;

    if (!constraints || json_is_null (constraints))
        return 0;
    if (json_unpack (constraints,
                     "{s?I s?I s?o s?o}",
                     "scale", &scale,
                     "count", &count,
                     "labels", &labels,
                     "colocation", &colocation) < 0)
        return fail_set (set, where, error, "malformed constraints");
    set->labels = json_incref (labels);
    set->colocation = json_incref (colocation);
    if (scale_value && (scale < 1 || scale > 10))
        return fail_set (set, where, error, "scale %lld is not within 1 to 10",
                         (long long)scale);
    if (count_value && count < 1)
        return fail_set (set, where, error, "count %lld is less than 1",
                         (long long)count);
    if (set->labels && !json_is_array (set->labels))
        return fail_set (set, where, error, "constraints.labels is not a list");
    json_array_foreach (set->labels, i, entry) {
        if (!json_is_string (entry))
            return fail_set (set, where, error, "constraints.labels holds"
                             " something that is not a string");
    }
    if (check_colocations (set, where, error) < 0)
        return -1;
    if (count > DWS_MAX_ALLOCATIONS)
        return fail_set (set, where, error, "count %lld is more than %d",
                         (long long)count, DWS_MAX_ALLOCATIONS);
    set->scale = scale;
    set->count = count;
    return 0;
}

static int decode_set (struct alloc_set *set,
                       const char *where,
                       json_t *value,
                       dws_error_t *error)
{
    const char *strategy;
    const char *label;
    json_int_t minimum;
    json_t *constraints = NULL;

    if (json_unpack (value,
                     "{s:s s:s s:I s?o}",
                     "allocationStrategy", &strategy,
                     "label", &label,
                     "minimumCapacity", &minimum,
                     "constraints", &constraints) < 0)
        return dws_error (error,
                          EINVAL,
                          "%s: an allocation set must have"
                          " allocationStrategy, label and minimumCapacity",
                          where);
    if (!(set->label = strdup (label)))
        return dws_error_nomem (error);
    if (decode_strategy (set, strategy) < 0)
        return fail_set (set, where, error, "unknown allocationStrategy '%.60s'",
                         strategy);
    if (minimum < 1 || minimum > INT64_MAX / 2)
        return fail_set (set, where, error, "minimumCapacity %lld is out of range",
                         (long long)minimum);
    set->minimum = minimum;
    return decode_constraints (set, where, constraints, error);
}

static int decode_storage (struct breakdown *b,
                           json_t *storage,
                           dws_error_t *error)
{
    const char *servers;
    const char *namespace = "default";
    json_t *sets;
    json_t *value;
    size_t i;

    if (json_unpack (storage,
                     "{s:o s:{s:s s?s}}",
                     "allocationSets", &sets,
                     "reference",
                       "name", &servers,
                       "namespace", &namespace) < 0
        || !json_is_array (sets))
        return dws_error (error,
                          EINVAL,
                          "%s: status.storage must have allocationSets and"
                          " a reference to Servers",
                          b->name);
    if (!(b->servers = strdup (servers))
        || !(b->servers_namespace = strdup (namespace))
        || !(b->sets = calloc (json_array_size (sets) + 1, sizeof (*b->sets))))
        return dws_error_nomem (error);
    json_array_foreach (sets, i, value) {
        b->nsets++;
        if (decode_set (&b->sets[i], b->name, value, error) < 0)
            return -1;
    }
    return 0;
}

/* Replace a JSON null by NULL. Fails if there is anything but words.
 */
static int check_words (json_t **words, const char *field, const char *where,
                        dws_error_t *error)
{
    json_t *entry;
    size_t i;

    if (json_is_null (*words))
        *words = NULL;
    if (*words && !json_is_array (*words))
        return dws_error (error, EINVAL, "%s: status.%s is not a list", where,
                          field);
    json_array_foreach (*words, i, entry) {
        if (!json_is_string (entry))
            return dws_error (error, EINVAL, "%s: status.%s holds something"
                              " that is not a string", where, field);
    }
    return 0;
}

/* Compares by a set, as nothing bounds the lists.
 */
static int check_in_both (json_t *words, const char *field, json_t *others,
                          const char *other_field, const char *where,
                          dws_error_t *error)
{
    json_t *set = json_object ();
    json_t *entry;
    size_t i;
    int rc = 0;

    json_array_foreach (others, i, entry)
        dws_json_set (&set, json_string_value (entry), json_incref (entry));
    if (!set)
        return dws_error_nomem (error);
    json_array_foreach (words, i, entry) {
        const char *word = json_string_value (entry);

        if (!json_object_get (set, word)) {
            rc = dws_error (error,
                            EINVAL,
                            "%s: '%.60s' is in status.%s, and not in"
                            " status.%s",
                            where,
                            word,
                            field,
                            other_field);
            break;
        }
    }
    ERRNO_SAFE (json_decref (set));
    return rc;
}

/* Daemons have two names: a breakdown that uses both has the same in both.
 */
static int decode_daemons (struct breakdown *b, json_t *requires,
                           json_t *daemons, dws_error_t *error)
{
    static const char nnf[] = "requires";
    static const char document[] = "requiredDaemons";

    if (check_words (&requires, nnf, b->name, error) < 0
        || check_words (&daemons, document, b->name, error) < 0)
        return -1;
    b->requires = json_incref (requires ? requires : daemons);
    if (!daemons)
        return 0;
    if (check_in_both (b->requires, nnf, daemons, document, b->name,
                       error) < 0
        || check_in_both (daemons, document, b->requires, nnf, b->name,
                          error) < 0)
        return -1;
    return 0;
}

/* Locations
 */

/* Is there one of 'access' that is both physical and mandatory?
 */
static bool is_strict (json_t *access)
{
    size_t i;
    json_t *entry;

    json_array_foreach (access, i, entry) {
        const char *type = "";
        const char *priority = "";

        (void)json_unpack (entry,
                           "{s:s s:s}",
                           "type", &type,
                           "priority", &priority);
        if (strcmp (type, "physical") == 0
            && strcmp (priority, "mandatory") == 0)
            return true;
    }
    return false;
}

/* Only a location that restricts the nodes is kept.
 */
static int decode_location (struct breakdown *b, json_t *value,
                            dws_error_t *error)
{
    struct location *loc = &b->locations[b->nlocations];
    const char *name;
    const char *namespace = "default";
    const char *path;
    json_t *access;
    char tail;

    if (json_unpack (value,
                     "{s:o s:{s:s s:s s?s}}",
                     "access", &access,
                     "reference",
                       "name", &name,
                       "fieldPath", &path,
                       "namespace", &namespace) < 0
        || sscanf (path,
                   "servers.spec.allocationSets[%u%c",
                   &loc->set,
                   &tail) != 2
        || tail != ']')
        return dws_error (error,
                          EINVAL,
                          "%s: malformed location constraint",
                          b->name);
    if (!is_strict (access))
        return 0;
    b->nlocations++;
    if (!(loc->name = strdup (name)) || !(loc->namespace = strdup (namespace)))
        return dws_error_nomem (error);
    return 0;
}

static int decode_locations (struct breakdown *b, json_t *locations,
                             dws_error_t *error)
{
    json_t *value;
    size_t i;

    if (!(b->locations = calloc (json_array_size (locations) + 1,
                                 sizeof (*b->locations))))
        return dws_error_nomem (error);
    json_array_foreach (locations, i, value) {
        if (decode_location (b, value, error) < 0)
            return -1;
    }
    return 0;
}

static int decode_breakdown (struct breakdown *b,
                             json_t *value,
                             dws_error_t *error)
{
    const char *kind = "DirectiveBreakdown";
    const char *name = kind;
    json_t *status = NULL;
    json_t *requires = NULL;
    json_t *daemons = NULL;
    json_t *storage = NULL;
    json_t *locations = NULL;
    int ready = 0;

    if (json_unpack (value,
                     "{s?s s?{s?s} s?o}",
                     "kind", &kind,
                     "metadata",
                       "name", &name,
                     "status", &status) < 0)
        return dws_error (error, EINVAL, "malformed DirectiveBreakdown");
    if (!(b->name = strdup (name)))
        return dws_error_nomem (error);
    if (strcmp (kind, "DirectiveBreakdown") != 0)
        return dws_error (error,
                          EINVAL,
                          "%s is of kind '%.60s', not DirectiveBreakdown",
                          b->name,
                          kind);
    // a new object has no status yet
    if (status
        && json_unpack (status,
                        "{s?b s?o s?o s?o s?{s?{s?o}}}",
                        "ready", &ready,
                        "storage", &storage,
                        "requires", &requires,
                        "requiredDaemons", &daemons,
                        "compute",
                          "constraints",
                            "location", &locations) < 0)
        return dws_error (error, EINVAL, "%s: malformed status", b->name);
    if (!ready)
        return dws_error (error, EAGAIN, "%s is not ready yet", b->name);
    if (decode_daemons (b, requires, daemons, error) < 0
        || decode_locations (b, locations, error) < 0)
        return -1;
    if (storage && !json_is_null (storage))
        return decode_storage (b, storage, error);
    return 0;
}

struct dws_breakdowns *dws_breakdowns_create (json_t *objects,
                                              dws_error_t *error)
{
    struct dws_breakdowns *breakdowns;
    json_t *value;
    size_t i;

    if (objects && !json_is_array (objects) && !json_is_null (objects)) {
        dws_error (error, EINVAL, "breakdowns must be a list");
        return NULL;
    }
    if (!(breakdowns = calloc (1, sizeof (*breakdowns)))
        || !(breakdowns->list = calloc (json_array_size (objects) + 1,
                                        sizeof (*breakdowns->list)))) {
        dws_error_nomem (error);
        goto error;
    }
    json_array_foreach (objects, i, value) {
        breakdowns->count++;
        if (decode_breakdown (&breakdowns->list[i], value, error) < 0)
            goto error;
    }
    return breakdowns;
error:
    dws_breakdowns_destroy (breakdowns);
    return NULL;
}

bool breakdowns_have (const struct dws_breakdowns *bl, const char *name,
                      const char *namespace)
{
    for (size_t i = 0; i < bl->count; i++) {
        const struct breakdown *b = &bl->list[i];

        if (b->servers
            && strcmp (b->servers, name) == 0
            && strcmp (b->servers_namespace, namespace) == 0)
            return true;
    }
    return false;
}

const struct dws_breakdowns *breakdowns_or_none (
    const struct dws_breakdowns *breakdowns)
{
    static const struct dws_breakdowns none = { 0 };

    return breakdowns ? breakdowns : &none;
}
