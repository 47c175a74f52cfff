/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See allocset.h. Kubernetes objects grow keys over time, so that unknown
 * ones are passed over, but what is decided on is checked for type and range.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/errno_safe.h"
#include "libdws/util/bounds.h"
#include "allocset_private.h"
#include "drives.h"

static const struct {
    const char *name;
    enum alloc_strategy strategy;
} strategies[] = {
    { "AllocatePerCompute", ALLOC_PER_COMPUTE },
    { "AllocatePerServer", ALLOC_PER_SERVER },
    { "AllocateAcrossServers", ALLOC_ACROSS },
    { "AllocateSingleServer", ALLOC_SINGLE },
};

bool alloc_set_roams (const struct alloc_set *set)
{
    return set->strategy == ALLOC_ACROSS || set->strategy == ALLOC_SINGLE;
}

int64_t div_up (int64_t a, int64_t b)
{
    return a / b + (a % b > 0);
}

static int64_t least_of (const struct alloc_set *set, int64_t least)
{
    int64_t made = dws_drives_least (set->label);

    return made > least ? made : least;
}

int64_t alloc_set_size (const struct alloc_set *set, int64_t count,
                        int64_t least)
{
    int64_t size = div_up (set->minimum, count);

    least = least_of (set, least);
    return size > least ? size : least;
}

int64_t alloc_set_most (const struct alloc_set *set, int64_t least)
{
    least = least_of (set, least);
    if (least <= 0)
        return INT64_MAX;
    return set->minimum > least ? set->minimum / least : 1;
}

int64_t bytes_to_gib (int64_t bytes)
{
    return div_up (bytes, GIB);
}

void breakdown_list_destroy (struct breakdown_list *bl)
{
    if (bl) {
        ERRNO_SAFE_BLOCK;
        for (size_t i = 0; i < bl->count; i++)
            free (bl->list[i].sets);
        free (bl->list);
        free (bl);
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

static int check_colocation (const struct alloc_set *set, const char *where,
                             json_t *entry, dws_error_t *error)
{
    const char *type;
    const char *key = "";

    if (json_unpack (entry, "{s:s s?s}", "type", &type, "key", &key) < 0
        || strcmp (type, "exclusive") != 0)
        return dws_error (error,
                          EINVAL,
                          "%s, set %s: the only colocation type that is"
                          " known is 'exclusive'",
                          where,
                          set->label);
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
        return dws_error (error,
                          EINVAL,
                          "%s, set %s: constraints.colocation is neither a list"
                          " nor an object",
                          where,
                          set->label);
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
    json_t *entry;
    size_t i;

    if (!constraints || json_is_null (constraints))
        return 0;
    if (json_unpack (constraints,
                     "{s?I s?I s?o s?o}",
                     "scale", &scale,
                     "count", &count,
                     "labels", &set->labels,
                     "colocation", &set->colocation) < 0)
        return dws_error (error,
                          EINVAL,
                          "%s, set %s: malformed constraints",
                          where,
                          set->label);
    if (scale_value && (scale < 1 || scale > 10))
        return dws_error (error,
                          EINVAL,
                          "%s, set %s: scale %lld is not within 1 to 10",
                          where,
                          set->label,
                          (long long)scale);
    if (count_value && count < 1)
        return dws_error (error,
                          EINVAL,
                          "%s, set %s: count %lld is less than 1",
                          where,
                          set->label,
                          (long long)count);
    if (set->labels && !json_is_array (set->labels))
        return dws_error (error,
                          EINVAL,
                          "%s, set %s: constraints.labels is not a list",
                          where,
                          set->label);
    json_array_foreach (set->labels, i, entry) {
        if (!json_is_string (entry))
            return dws_error (error,
                              EINVAL,
                              "%s, set %s: constraints.labels holds"
                              " something that is not a string",
                              where,
                              set->label);
    }
    if (check_colocations (set, where, error) < 0)
        return -1;
    if (count > DWS_MAX_ALLOCATIONS)
        return dws_error (error,
                          EINVAL,
                          "%s, set %s: count %lld is more than %d",
                          where,
                          set->label,
                          (long long)count,
                          DWS_MAX_ALLOCATIONS);
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
    json_int_t minimum;
    json_t *constraints = NULL;

    if (json_unpack (value,
                     "{s:s s:s s:I s?o}",
                     "allocationStrategy", &strategy,
                     "label", &set->label,
                     "minimumCapacity", &minimum,
                     "constraints", &constraints) < 0)
        return dws_error (error,
                          EINVAL,
                          "%s: an allocation set must have"
                          " allocationStrategy, label and minimumCapacity",
                          where);
    if (decode_strategy (set, strategy) < 0)
        return dws_error (error,
                          EINVAL,
                          "%s, set %s: unknown allocationStrategy '%.60s'",
                          where,
                          set->label,
                          strategy);
    if (minimum < 1 || minimum > INT64_MAX / 2)
        return dws_error (error,
                          EINVAL,
                          "%s, set %s: minimumCapacity %lld is out of range",
                          where,
                          set->label,
                          (long long)minimum);
    set->minimum = minimum;
    return decode_constraints (set, where, constraints, error);
}

static int decode_storage (struct breakdown *b,
                           json_t *storage,
                           dws_error_t *error)
{
    json_t *sets;
    json_t *value;
    size_t i;

    b->servers_namespace = "default";
    if (json_unpack (storage,
                     "{s:o s:{s:s s?s}}",
                     "allocationSets", &sets,
                     "reference",
                       "name", &b->servers,
                       "namespace", &b->servers_namespace) < 0
        || !json_is_array (sets))
        return dws_error (error,
                          EINVAL,
                          "%s: status.storage must have allocationSets and"
                          " a reference to Servers",
                          b->name);
    if (!(b->sets = calloc (json_array_size (sets) + 1, sizeof (*b->sets))))
        return dws_error_nomem (error);
    json_array_foreach (sets, i, value) {
        if (decode_set (&b->sets[b->nsets], b->name, value, error) < 0)
            return -1;
        b->nsets++;
    }
    return 0;
}

/* NULL instead of null. Fails if there is anything but words.
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

/* By a set, as nothing bounds the lists.
 */
static int check_in_both (json_t *words, const char *field, json_t *others,
                          const char *other_field, const char *where,
                          dws_error_t *error)
{
    json_t *set = json_object ();
    json_t *entry;
    size_t i;
    int rc = 0;

    if (!set)
        return dws_error_nomem (error);
    json_array_foreach (others, i, entry) {
        if (json_object_set (set, json_string_value (entry), entry) < 0) {
            json_decref (set);
            return dws_error_nomem (error);
        }
    }
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
static int decode_daemons (struct breakdown *b, json_t *daemons,
                           dws_error_t *error)
{
    static const char nnf[] = "requires";
    static const char document[] = "requiredDaemons";

    if (check_words (&b->requires, nnf, b->name, error) < 0
        || check_words (&daemons, document, b->name, error) < 0)
        return -1;
    if (!b->requires)
        b->requires = daemons;
    if (!daemons)
        return 0;
    if (check_in_both (b->requires, nnf, daemons, document, b->name,
                       error) < 0
        || check_in_both (daemons, document, b->requires, nnf, b->name,
                          error) < 0)
        return -1;
    return 0;
}

static int decode_breakdown (struct breakdown *b,
                             json_t *value,
                             dws_error_t *error)
{
    const char *kind = "DirectiveBreakdown";
    json_t *status = NULL;
    json_t *daemons = NULL;
    json_t *storage = NULL;
    int ready = 0;

    b->name = "DirectiveBreakdown";
    if (json_unpack (value,
                     "{s?s s?{s?s} s?o}",
                     "kind", &kind,
                     "metadata",
                       "name", &b->name,
                     "status", &status) < 0)
        return dws_error (error, EINVAL, "malformed DirectiveBreakdown");
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
                        "requires", &b->requires,
                        "requiredDaemons", &daemons,
                        "compute",
                          "constraints",
                            "location", &b->locations) < 0)
        return dws_error (error, EINVAL, "%s: malformed status", b->name);
    if (!ready)
        return dws_error (error, EAGAIN, "%s is not ready yet", b->name);
    if (decode_daemons (b, daemons, error) < 0)
        return -1;
    if (storage && !json_is_null (storage))
        return decode_storage (b, storage, error);
    return 0;
}

struct breakdown_list *breakdown_list_create (json_t *breakdowns,
                                              dws_error_t *error)
{
    struct breakdown_list *bl;
    json_t *value;
    size_t i;

    if (breakdowns && !json_is_array (breakdowns)
        && !json_is_null (breakdowns)) {
        dws_error (error, EINVAL, "breakdowns must be a list");
        return NULL;
    }
    if (!(bl = calloc (1, sizeof (*bl)))
        || !(bl->list = calloc (json_array_size (breakdowns) + 1,
                                sizeof (*bl->list)))) {
        dws_error_nomem (error);
        goto error;
    }
    json_array_foreach (breakdowns, i, value) {
        bl->count++;
        if (decode_breakdown (&bl->list[i], value, error) < 0)
            goto error;
    }
    return bl;
error:
    breakdown_list_destroy (bl);
    return NULL;
}
