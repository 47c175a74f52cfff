/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See colocation.h.
 */

#include <stdio.h>
#include <string.h>

#include "libdws/util/jsonmake.h"
#include "libutil/names.h"
#include "colocation.h"
#include "colocation_private.h"

/* NNF's key of the sets that have a management target, of which it can set up one
 * at the address of a rabbit.
 */
#define MGT_KEY "lustre-mgt"

const char *colocation_key (const struct alloc_set *set, size_t i)
{
    json_t *entry = json_array_get (set->colocation, i);
    const char *key;

    if (i == 0 && json_is_object (set->colocation))
        entry = set->colocation;
    if (!entry)
        return NULL;
    key = json_string_value (json_object_get (entry, "key"));
    return key ? key : "";
}

json_t *colocation_encode (const struct breakdown *b)
{
    json_t *map = json_object ();
    const char *key;

    for (size_t i = 0; i < b->nsets; i++) {
        const struct alloc_set *set = &b->sets[i];
        json_t *keys = json_object_get (map, set->label);

        if (!colocation_key (set, 0))
            continue;
        keys = keys ? json_incref (keys) : json_array ();
        for (size_t j = 0; (key = colocation_key (set, j)); j++)
            dws_json_append (&keys, json_string (key));
        dws_json_set (&map, set->label, keys);
    }
    return map;
}

/* What Servers keep
 */

static int add_key (json_t *map, const char *rabbit, const char *key)
{
    json_t *keys = json_object_get (map, rabbit);

    if (!keys) {
        if (json_object_set_new (map, rabbit, json_object ()) < 0)
            return -1;
        keys = json_object_get (map, rabbit);
    }
    return json_object_set_new (keys, key, json_true ());
}

/* The keys of a set: those of the annotation or, without one, those that NNF asks for.
 */
static int add_set (json_t *map, json_t *set, json_t *noted)
{
    const char *label = "";
    json_t *storage = NULL;
    json_t *entry;
    json_t *key;
    size_t i;
    size_t j;

    (void)json_unpack (set, "{s?s s?o}", "label", &label, "storage", &storage);
    json_array_foreach (storage, i, entry) {
        const char *rabbit = NULL;
        json_int_t count = 0;

        (void)json_unpack (entry,
                           "{s?s s?I}",
                           "name", &rabbit,
                           "allocationCount", &count);
        if (!rabbit || count <= 0)
            continue;
        if (!noted
            && (strcmp (label, "mgt") == 0 || strcmp (label, "mgtmdt") == 0)
            && add_key (map, rabbit, MGT_KEY) < 0)
            return -1;
        json_array_foreach (json_object_get (noted, label), j, key) {
            if (json_is_string (key)
                && add_key (map, rabbit, json_string_value (key)) < 0)
                return -1;
        }
    }
    return 0;
}

json_t *dws_colocation_taken (json_t *servers, dws_error_t *error)
{
    json_t *map = json_object ();
    json_t *noted = NULL;
    json_t *sets = NULL;
    json_t *set;
    const char *text = NULL;
    size_t i;

    (void)json_unpack (servers,
                       "{s:{s:{s:s}}}",
                       "metadata",
                         "annotations",
                           DWS_COLOCATION_ANNOTATION, &text);
    (void)json_unpack (servers, "{s:{s:o}}", "spec", "allocationSets", &sets);
    if (text)
        noted = json_loads (text, 0, NULL);
    json_array_foreach (sets, i, set) {
        if (!map || add_set (map, set, noted) < 0) {
            json_decref (map);
            map = NULL;
            break;
        }
    }
    json_decref (noted);
    if (!map)
        dws_error_nomem (error);
    return map;
}

/* Keys that others hold
 */

static void add_wanted (json_t **map, const struct alloc_set *set)
{
    const char *key;

    for (size_t i = 0; (key = colocation_key (set, i)); i++)
        dws_json_set (map, key, json_true ());
}

bool dws_colocation_meet (json_t *a, json_t *b)
{
    const char *rabbit;
    json_t *value;

    json_object_foreach (a, rabbit, value) {
        if (json_object_get (b, rabbit))
            return true;
    }
    return false;
}

json_t *dws_colocation_wanted (const struct dws_breakdowns *breakdowns)
{
    const struct dws_breakdowns *bl = breakdowns_or_none (breakdowns);
    json_t *map = json_object ();

    for (size_t i = 0; i < bl->count; i++) {
        for (size_t j = 0; j < bl->list[i].nsets; j++)
            add_wanted (&map, &bl->list[i].sets[j]);
    }
    return map;
}

static bool is_own (const struct dws_breakdowns *bl, json_t *entry)
{
    const char *name = "";
    const char *namespace = DWS_NAMESPACE;

    (void)json_unpack (entry,
                       "{s:{s:s s?s}}",
                       "servers",
                         "name", &name,
                         "namespace", &namespace);
    return breakdowns_have (bl, name, namespace);
}

/* Does an entry of 'rivals' count? An entry needs a holder to be named to the user.
 */
static bool counts (const struct dws_breakdowns *bl, json_t *entry,
                    bool lasting)
{
    return json_is_string (json_object_get (entry, "holder"))
        && (!lasting || json_is_true (json_object_get (entry, "lasting")))
        && !is_own (bl, entry);
}

int colocation_fill (struct layout *lay,
                     const struct dws_breakdowns *bl,
                     json_t *rivals,
                     bool lasting,
                     dws_error_t *error)
{
    json_t *entry;
    size_t i;

    json_array_foreach (rivals, i, entry) {
        json_t *rabbits = json_object_get (entry, "rabbits");

        if (!counts (bl, entry, lasting))
            continue;
        for (size_t r = 0; r < lay->nrabbits; r++) {
            struct layout_rabbit *rabbit = &lay->rabbits[r];
            json_t *keys = json_object_get (rabbits, rabbit->name);
            const char *key;
            json_t *value;

            if (json_object_size (keys) == 0)
                continue;
            if (!rabbit->keys && !(rabbit->keys = json_object ()))
                return dws_error_nomem (error);
            json_object_foreach (keys, key, value) {
                if (!json_object_get (rabbit->keys, key)
                    && json_object_set (rabbit->keys,
                                        key,
                                        json_object_get (entry,
                                                         "holder")) < 0)
                    return dws_error_nomem (error);
            }
        }
    }
    return 0;
}

/* The text for the first of the wanted keys that an entry has on a rabbit.
 */
static char *name_first (json_t *wanted, json_t *entry, const char *rabbit)
{
    json_t *keys = json_object_get (json_object_get (entry, "rabbits"),
                                    rabbit);
    bool waits = json_is_true (json_object_get (entry, "waits"));
    const char *key;
    json_t *value;
    char *text;

    json_object_foreach (wanted, key, value) {
        if (!json_object_get (keys, key))
            continue;
        if (asprintf (&text,
                      "exclusive '%.40s' on %.60s, which %.100s %s",
                      key,
                      rabbit,
                      json_string_value (json_object_get (entry, "holder")),
                      waits ? "is to get first" : "has") < 0)
            return NULL;
        return text;
    }
    return NULL;
}

char *dws_colocation_holder (const struct dws_breakdowns *breakdowns,
                             json_t *nodes,
                             json_t *rivals,
                             bool lasting)
{
    const struct dws_breakdowns *bl = breakdowns_or_none (breakdowns);
    json_t *wanted = dws_colocation_wanted (breakdowns);
    json_t *entry;
    json_t *value;
    const char *rabbit;
    char *text = NULL;
    size_t i;

    json_array_foreach (rivals, i, entry) {
        if (!counts (bl, entry, lasting))
            continue;
        json_object_foreach (nodes, rabbit, value) {
            if (!text)
                text = name_first (wanted, entry, rabbit);
        }
    }
    json_decref (wanted);
    return text;
}
