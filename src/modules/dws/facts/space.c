/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See space.h. The bytes of each Servers object are in 'used', and in addition
 * either in the claim of the job that has it or in 'outside'.
 */

#include <errno.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libdws/facts/report.h"
#include "libdws/storage/allocation.h"
#include "libdws/storage/colocation.h"
#include "libdws/storage/drives.h"
#include "libutil/errno_safe.h"
#include "facts/space_private.h"

struct space *space_create (void)
{
    struct space *space;

    if (!(space = calloc (1, sizeof (*space))))
        return NULL;
    if (!(space->held = json_object ())) {
        space_destroy (space);
        errno = ENOMEM;
        return NULL;
    }
    return space;
}

static int compare_keys (const void *a, const void *b)
{
    return strcmp (((const struct holding *)a)->key,
                   ((const struct holding *)b)->key);
}

static int compare_names (const void *a, const void *b)
{
    return strcmp (((const struct holding *)a)->persistent,
                   ((const struct holding *)b)->persistent);
}

static void holding_destroy (struct holding *holding)
{
    if (holding) {
        dws_bytes_clear (&holding->bytes);
        json_decref (holding->keys);
        free (holding->key);
        free (holding->workflow);
        free (holding->persistent);
        free (holding);
    }
}

/* The first holding of a name, or NULL.
 */
static struct holding *find_named (const struct space *space, const char *name)
{
    struct holding sought = { .persistent = (char *)name };
    struct holding **found = tfind (&sought, &space->named, compare_names);

    return found ? *found : NULL;
}

/* Call this when the holding has got its name 'persistent'.
 */
static int join_namesakes (struct space *space, struct holding *holding)
{
    struct holding **first = tsearch (holding, &space->named, compare_names);

    if (!first) {
        errno = ENOMEM;
        return -1;
    }
    if (*first != holding) {
        holding->namesake = (*first)->namesake;
        (*first)->namesake = holding;
    }
    return 0;
}

/* The next holding takes the place of the first in the tree, as their names are equal.
 */
static void leave_namesakes (struct space *space, struct holding *holding)
{
    struct holding **first;
    struct holding *h;

    if (!holding->persistent
        || !(first = tfind (holding, &space->named, compare_names)))
        return;
    h = *first;
    if (h == holding && holding->namesake)
        *first = holding->namesake;
    else if (h == holding)
        tdelete (holding, &space->named, compare_names);
    while (h && h != holding && h->namesake != holding)
        h = h->namesake;
    if (h && h != holding)
        h->namesake = holding->namesake;
}

void space_destroy (struct space *space)
{
    if (space) {
        ERRNO_SAFE_BLOCK;
        while (space->list) {
            struct holding *holding = space->list;

            space->list = holding->next;
            tdelete (holding, &space->tree, compare_keys);
            leave_namesakes (space, holding);
            holding_destroy (holding);
        }
        dws_bytes_clear (&space->used);
        dws_bytes_clear (&space->outside);
        json_decref (space->held);
        json_decref (space->freed);
        free (space);
    }
}

const struct dws_bytes *space_used (const struct space *space)
{
    return &space->used;
}

const struct dws_bytes *space_outside (const struct space *space)
{
    return &space->outside;
}

bool space_known (const struct space *space)
{
    return space->known;
}

void space_set_known (struct space *space)
{
    space->known = true;
}

/* Sums
 */

static void forget_rabbits (struct claim *claim)
{
    free (claim->rabbits);
    claim->rabbits = NULL;
}

const char *space_rabbits (struct claim *claim)
{
    if (!claim->rabbits)
        claim->rabbits = dws_bytes_rabbits (&claim->bytes);
    return claim->rabbits;
}

/* Count a holding, or (sign -1) count it no more.
 */
static void count_holding (struct space *space, struct holding *holding,
                           int sign)
{
    struct claim *claim = holding->claim;

    dws_bytes_add_map (&space->used, &holding->bytes, sign);
    dws_bytes_add_map (claim ? &claim->bytes : &space->outside, &holding->bytes,
                       sign);
    if (claim)
        forget_rabbits (claim);
}

static void leave_group (struct holding *holding)
{
    if (!holding->group)
        return;
    if (holding->group_next)
        holding->group_next->group_prev = holding->group_prev;
    if (holding->group_prev)
        holding->group_prev->group_next = holding->group_next;
    else
        *holding->group = holding->group_next;
    holding->group = NULL;
}

/* Call this when 'claim', 'released' or 'settled' has changed.
 */
static void regroup (struct space *space, struct holding *holding)
{
    leave_group (holding);
    if (holding->claim)
        holding->group = &holding->claim->holdings;
    else if (holding->released || holding->settled)
        holding->group = &space->others;
    else
        holding->group = &space->unsettled;
    holding->group_prev = NULL;
    if ((holding->group_next = *holding->group))
        holding->group_next->group_prev = holding;
    *holding->group = holding;
}

static void give_to (struct space *space, struct holding *holding,
                     struct claim *claim)
{
    if (holding->claim == claim)
        return;
    count_holding (space, holding, -1);
    holding->claim = claim;
    count_holding (space, holding, 1);
    regroup (space, holding);
}

/* Holdings
 */

static struct holding *find_holding (struct space *space, const char *key)
{
    struct holding sought = { .key = (char *)key };
    struct holding **found = tfind (&sought, &space->tree, compare_keys);

    return found ? *found : NULL;
}

static struct holding *add_holding (struct space *space, const char *key)
{
    struct holding *holding;

    if (!(holding = calloc (1, sizeof (*holding)))
        || !(holding->key = strdup (key))
        || !(holding->keys = json_object ())
        || !tsearch (holding, &space->tree, compare_keys)) {
        holding_destroy (holding);
        errno = ENOMEM;
        return NULL;
    }
    if ((holding->next = space->list))
        holding->next->prev = holding;
    space->list = holding;
    regroup (space, holding);
    return holding;
}

/* If memory runs out, waiting jobs are not woken before the next change.
 */
static void note_freed (struct space *space, const struct holding *holding)
{
    const char *rabbit;
    json_t *keys;

    if (json_object_size (holding->keys) == 0
        || (!space->freed && !(space->freed = json_object ())))
        return;
    json_object_foreach (holding->keys, rabbit, keys)
        (void)json_object_set_new (space->freed, rabbit, json_true ());
}

static void remove_holding (struct space *space, struct holding *holding)
{
    note_freed (space, holding);
    count_holding (space, holding, -1);
    if (holding->next)
        holding->next->prev = holding->prev;
    if (holding->prev)
        holding->prev->next = holding->next;
    else
        space->list = holding->next;
    leave_group (holding);
    leave_namesakes (space, holding);
    tdelete (holding, &space->tree, compare_keys);
    holding_destroy (holding);
}

/* Note the bytes and keys of a Servers object, or of a patch for one.
 */
static int set_taken (struct space *space, struct holding *holding,
                      json_t *servers)
{
    struct dws_bytes bytes = { 0 };
    json_t *keys = dws_colocation_taken (servers, NULL);

    dws_drives_taken (servers, &bytes);
    if (bytes.lost || !keys) {
        dws_bytes_clear (&bytes);
        json_decref (keys);
        errno = ENOMEM;
        return -1;
    }
    if (!json_equal (keys, holding->keys))
        note_freed (space, holding);
    count_holding (space, holding, -1);
    dws_bytes_clear (&holding->bytes);
    json_decref (holding->keys);
    holding->bytes = bytes;
    holding->keys = keys;
    count_holding (space, holding, 1);
    return 0;
}

static const char *make_key (char *buf, size_t size, const char *namespace,
                             const char *name)
{
    snprintf (buf, size, "%s/%s", namespace, name);
    return buf;
}

#define KEY_SIZE 520

static int claim_entry (struct space *space, struct claim *claim,
                        json_t *entry)
{
    char key[KEY_SIZE];
    const char *name;
    const char *namespace = SPACE_NAMESPACE;
    struct holding *holding;
    json_t *patch;
    int rc;

    if (json_unpack (entry, "{s:{s:s s?s}}",
                     "servers", "name", &name, "namespace", &namespace) < 0)
        return 0;
    if (!(patch = dws_allocation_patch (entry)))
        return errno == EINVAL ? 0 : -1;
    make_key (key, sizeof (key), namespace, name);
    if (!(holding = find_holding (space, key))
        && !(holding = add_holding (space, key))) {
        ERRNO_SAFE (json_decref (patch));
        return -1;
    }
    holding->released = false;
    give_to (space, holding, claim);
    rc = set_taken (space, holding, patch);
    ERRNO_SAFE (json_decref (patch));
    return rc;
}

int space_claim (struct space *space, struct claim *claim, json_t *layout)
{
    json_t *entry;
    size_t index;

    json_array_foreach (layout, index, entry) {
        if (claim_entry (space, claim, entry) < 0)
            return -1;
    }
    return 0;
}

void space_free (struct space *space, struct claim *claim, bool torn_down)
{
    struct holding *holding;
    struct holding *next;

    for (holding = claim->holdings; holding; holding = next) {
        next = holding->group_next;
        if (holding->seen && (holding->persistent || !torn_down)) {
            holding->released = true;
            give_to (space, holding, NULL);
        }
        else
            remove_holding (space, holding);
    }
    dws_bytes_clear (&claim->bytes);
    forget_rabbits (claim);
}

void space_persistent (const struct space *space, const char *name,
                       struct dws_bytes *bytes)
{
    for (struct holding *h = find_named (space, name); h; h = h->namesake)
        dws_bytes_add_map (bytes, &h->bytes, 1);
}

void space_persistent_outside (const struct space *space,
                               struct dws_bytes *by_name)
{
    for (struct holding *h = space->list; h; h = h->next) {
        if (h->persistent && !h->claim)
            dws_bytes_add (by_name, h->persistent,
                           dws_bytes_sum (&h->bytes, INT64_MAX));
    }
}

static int copy_label (json_t *labels, const char *label, char **copy)
{
    const char *s = json_string_value (json_object_get (labels, label));

    if (!s || *copy)
        return 0;
    return (*copy = strdup (s)) ? 0 : -1;
}

/* Does the object have its allocation sets yet?
 */
static bool is_filled (json_t *servers)
{
    json_t *sets = NULL;

    (void)json_unpack (servers, "{s:{s:o}}", "spec", "allocationSets", &sets);
    return json_array_size (sets) > 0;
}

int space_learn (struct space *space, json_t *servers, bool deleted)
{
    char key[KEY_SIZE];
    const char *name;
    const char *namespace = SPACE_NAMESPACE;
    struct holding *holding;
    json_t *labels = NULL;
    bool named;

    if (json_unpack (servers, "{s:{s:s s?s s?o}}",
                     "metadata", "name", &name, "namespace", &namespace,
                       "labels", &labels) < 0)
        return 0;
    make_key (key, sizeof (key), namespace, name);
    holding = find_holding (space, key);
    if (deleted) {
        if (holding)
            remove_holding (space, holding);
        return 0;
    }
    if (!holding && !(holding = add_holding (space, key)))
        return -1;
    holding->seen = true;
    holding->listed = true;
    named = holding->persistent != NULL;
    if (copy_label (labels, DWS_LABEL_WORKFLOW, &holding->workflow) < 0
        || copy_label (labels, DWS_LABEL_PERSISTENT,
                       &holding->persistent) < 0
        || (!named && holding->persistent
            && join_namesakes (space, holding) < 0))
        return -1;
    /* Count the layout of the claim until the object has its allocation sets. */
    if (!is_filled (servers) && holding->claim)
        return 0;
    return set_taken (space, holding, servers);
}

int space_list (struct space *space, json_t *objects, bool first, bool last)
{
    struct holding *holding;
    struct holding *next;
    json_t *servers;
    size_t index;
    int rc = 0;

    for (holding = first ? space->list : NULL; holding; holding = holding->next)
        holding->listed = false;
    json_array_foreach (objects, index, servers) {
        if (space_learn (space, servers, false) < 0)
            rc = -1;
    }
    for (holding = last ? space->list : NULL; holding; holding = next) {
        next = holding->next;
        if (holding->seen && !holding->listed)
            remove_holding (space, holding);
    }
    return rc;
}

void space_settle (struct space *space, bool again, space_owner_f owner,
                   void *arg)
{
    struct holding *holding;
    struct holding *next;

    for (holding = again ? space->list : space->unsettled; holding;
         holding = next) {
        struct claim *claim = NULL;

        next = again ? holding->next : holding->group_next;
        if (holding->claim || holding->released)
            continue;
        switch (owner (arg, holding->workflow, holding->persistent, &claim)) {
            case SPACE_OF_JOB:
                give_to (space, holding, claim);
                break;
            case SPACE_GIVEN_BACK:
                remove_holding (space, holding);
                break;
            case SPACE_OF_NOBODY:
                holding->settled = true;
                regroup (space, holding);
                break;
        }
    }
}

/* What is exclusive
 */

/* The key of a holding is "namespace/name".
 */
static json_t *describe_keys (const struct holding *holding)
{
    const char *slash = strchr (holding->key, '/');

    return json_pack ("{s:{s:s# s:s} s:I s:s* s:s* s:b s:O}",
                      "servers",
                        "namespace", holding->key, (int)(slash - holding->key),
                        "name", slash + 1,
                      "jobid", holding->claim
                               ? (json_int_t)holding->claim->id : 0,
                      "workflow", holding->workflow,
                      "persistent", holding->persistent,
                      "released", holding->released,
                      "rabbits", holding->keys);
}

json_t *space_keys (const struct space *space, json_t *rabbits)
{
    json_t *array = json_array ();

    for (struct holding *h = space->list; array && h; h = h->next) {
        if (dws_colocation_meet (h->keys, rabbits)
            && json_array_append_new (array, describe_keys (h)) < 0) {
            json_decref (array);
            array = NULL;
        }
    }
    if (!array)
        errno = ENOMEM;
    return array;
}

bool space_has_keys (const struct space *space, const struct claim *claim)
{
    for (struct holding *h = claim->holdings; h; h = h->group_next) {
        if (json_object_size (h->keys) > 0)
            return true;
    }
    return false;
}

json_t *space_freed (struct space *space)
{
    json_t *freed = space->freed;

    space->freed = NULL;
    return freed;
}
