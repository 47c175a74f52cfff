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
    if (!(space->withheld = json_object ())) {
        space_destroy (space);
        errno = ENOMEM;
        return NULL;
    }
    return space;
}

static int compare_keys (const void *a, const void *b)
{
    return strcmp (((const struct space_entry *)a)->key,
                   ((const struct space_entry *)b)->key);
}

static int compare_names (const void *a, const void *b)
{
    return strcmp (((const struct space_entry *)a)->persistent,
                   ((const struct space_entry *)b)->persistent);
}

static void entry_destroy (struct space_entry *entry)
{
    if (entry) {
        dws_bytes_clear (&entry->bytes);
        json_decref (entry->keys);
        free (entry->key);
        free (entry->workflow);
        free (entry->persistent);
        free (entry);
    }
}

/* The first entry of a name, or NULL.
 */
static struct space_entry *find_named (const struct space *space, const char *name)
{
    struct space_entry sought = { .persistent = (char *)name };
    struct space_entry **found = tfind (&sought, &space->named, compare_names);

    return found ? *found : NULL;
}

/* Call this when the entry has got its name 'persistent'.
 */
static int join_namesakes (struct space *space, struct space_entry *entry)
{
    struct space_entry **first = tsearch (entry, &space->named, compare_names);

    if (!first) {
        errno = ENOMEM;
        return -1;
    }
    if (*first != entry) {
        entry->namesake = (*first)->namesake;
        (*first)->namesake = entry;
    }
    return 0;
}

/* The next entry takes the place of the first in the tree, as their names are equal.
 */
static void leave_namesakes (struct space *space, struct space_entry *entry)
{
    struct space_entry **first;
    struct space_entry *h;

    if (!entry->persistent
        || !(first = tfind (entry, &space->named, compare_names)))
        return;
    h = *first;
    if (h == entry && entry->namesake)
        *first = entry->namesake;
    else if (h == entry)
        tdelete (entry, &space->named, compare_names);
    while (h && h != entry && h->namesake != entry)
        h = h->namesake;
    if (h && h != entry)
        h->namesake = entry->namesake;
}

void space_destroy (struct space *space)
{
    if (space) {
        ERRNO_SAFE_BLOCK;
        while (space->list) {
            struct space_entry *entry = space->list;

            space->list = entry->next;
            tdelete (entry, &space->tree, compare_keys);
            leave_namesakes (space, entry);
            entry_destroy (entry);
        }
        dws_bytes_clear (&space->used);
        dws_bytes_clear (&space->outside);
        json_decref (space->withheld);
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

/* Count an entry, or (sign -1) count it no more.
 */
static void count_entry (struct space *space, struct space_entry *entry,
                         int sign)
{
    struct claim *claim = entry->claim;

    dws_bytes_add_map (&space->used, &entry->bytes, sign);
    dws_bytes_add_map (claim ? &claim->bytes : &space->outside, &entry->bytes,
                       sign);
    if (claim)
        forget_rabbits (claim);
}

static void leave_group (struct space_entry *entry)
{
    if (!entry->group)
        return;
    if (entry->group_next)
        entry->group_next->group_prev = entry->group_prev;
    if (entry->group_prev)
        entry->group_prev->group_next = entry->group_next;
    else
        *entry->group = entry->group_next;
    entry->group = NULL;
}

/* Call this when 'claim', 'released' or 'settled' has changed.
 */
static void regroup (struct space *space, struct space_entry *entry)
{
    leave_group (entry);
    if (entry->claim)
        entry->group = &entry->claim->entries;
    else if (entry->released || entry->settled)
        entry->group = &space->others;
    else
        entry->group = &space->unsettled;
    entry->group_prev = NULL;
    if ((entry->group_next = *entry->group))
        entry->group_next->group_prev = entry;
    *entry->group = entry;
}

static void give_to (struct space *space, struct space_entry *entry,
                     struct claim *claim)
{
    if (entry->claim == claim)
        return;
    count_entry (space, entry, -1);
    entry->claim = claim;
    count_entry (space, entry, 1);
    regroup (space, entry);
}

/* Entries
 */

static struct space_entry *find_entry (struct space *space, const char *key)
{
    struct space_entry sought = { .key = (char *)key };
    struct space_entry **found = tfind (&sought, &space->tree, compare_keys);

    return found ? *found : NULL;
}

static struct space_entry *add_entry (struct space *space, const char *key)
{
    struct space_entry *entry;

    if (!(entry = calloc (1, sizeof (*entry)))
        || !(entry->key = strdup (key))
        || !(entry->keys = json_object ())
        || !tsearch (entry, &space->tree, compare_keys)) {
        entry_destroy (entry);
        errno = ENOMEM;
        return NULL;
    }
    if ((entry->next = space->list))
        entry->next->prev = entry;
    space->list = entry;
    regroup (space, entry);
    return entry;
}

/* If memory runs out, waiting jobs are not woken before the next change.
 */
static void note_freed (struct space *space, const struct space_entry *entry)
{
    const char *rabbit;
    json_t *keys;

    if (json_object_size (entry->keys) == 0
        || (!space->freed && !(space->freed = json_object ())))
        return;
    json_object_foreach (entry->keys, rabbit, keys)
        (void)json_object_set_new (space->freed, rabbit, json_true ());
}

static void remove_entry (struct space *space, struct space_entry *entry)
{
    note_freed (space, entry);
    count_entry (space, entry, -1);
    if (entry->next)
        entry->next->prev = entry->prev;
    if (entry->prev)
        entry->prev->next = entry->next;
    else
        space->list = entry->next;
    leave_group (entry);
    leave_namesakes (space, entry);
    tdelete (entry, &space->tree, compare_keys);
    entry_destroy (entry);
}

/* Note the bytes and keys of a Servers object, or of a patch for one.
 */
static int set_taken (struct space *space, struct space_entry *entry,
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
    if (!json_equal (keys, entry->keys))
        note_freed (space, entry);
    count_entry (space, entry, -1);
    dws_bytes_clear (&entry->bytes);
    json_decref (entry->keys);
    entry->bytes = bytes;
    entry->keys = keys;
    count_entry (space, entry, 1);
    return 0;
}

static const char *make_key (char *buf, size_t size, const char *namespace,
                             const char *name)
{
    snprintf (buf, size, "%s/%s", namespace, name);
    return buf;
}

#define KEY_SIZE 520

static int claim_layout (struct space *space, struct claim *claim,
                        json_t *servers)
{
    char key[KEY_SIZE];
    const char *name;
    const char *namespace = SPACE_NAMESPACE;
    struct space_entry *entry;
    json_t *patch;
    int rc;

    if (json_unpack (servers, "{s:{s:s s?s}}",
                     "servers", "name", &name, "namespace", &namespace) < 0)
        return 0;
    if (!(patch = dws_allocation_patch (servers)))
        return errno == EINVAL ? 0 : -1;
    make_key (key, sizeof (key), namespace, name);
    if (!(entry = find_entry (space, key))
        && !(entry = add_entry (space, key))) {
        ERRNO_SAFE (json_decref (patch));
        return -1;
    }
    entry->released = false;
    give_to (space, entry, claim);
    rc = set_taken (space, entry, patch);
    ERRNO_SAFE (json_decref (patch));
    return rc;
}

int space_claim (struct space *space, struct claim *claim, json_t *layout)
{
    json_t *servers;
    size_t index;

    json_array_foreach (layout, index, servers) {
        if (claim_layout (space, claim, servers) < 0)
            return -1;
    }
    return 0;
}

void space_free (struct space *space, struct claim *claim, bool torn_down)
{
    struct space_entry *entry;
    struct space_entry *next;

    for (entry = claim->entries; entry; entry = next) {
        next = entry->group_next;
        if (entry->seen && (entry->persistent || !torn_down)) {
            entry->released = true;
            give_to (space, entry, NULL);
        }
        else
            remove_entry (space, entry);
    }
    dws_bytes_clear (&claim->bytes);
    forget_rabbits (claim);
}

void space_persistent (const struct space *space, const char *name,
                       struct dws_bytes *bytes)
{
    for (struct space_entry *h = find_named (space, name); h; h = h->namesake)
        dws_bytes_add_map (bytes, &h->bytes, 1);
}

void space_persistent_outside (const struct space *space,
                               struct dws_bytes *by_name)
{
    for (struct space_entry *h = space->list; h; h = h->next) {
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
    struct space_entry *entry;
    json_t *labels = NULL;
    bool named;

    if (json_unpack (servers, "{s:{s:s s?s s?o}}",
                     "metadata", "name", &name, "namespace", &namespace,
                       "labels", &labels) < 0)
        return 0;
    make_key (key, sizeof (key), namespace, name);
    entry = find_entry (space, key);
    if (deleted) {
        if (entry)
            remove_entry (space, entry);
        return 0;
    }
    if (!entry && !(entry = add_entry (space, key)))
        return -1;
    entry->seen = true;
    entry->listed = true;
    named = entry->persistent != NULL;
    if (copy_label (labels, DWS_LABEL_WORKFLOW, &entry->workflow) < 0
        || copy_label (labels, DWS_LABEL_PERSISTENT,
                       &entry->persistent) < 0
        || (!named && entry->persistent
            && join_namesakes (space, entry) < 0))
        return -1;
    /* Count the layout of the claim until the object has its allocation sets. */
    if (!is_filled (servers) && entry->claim)
        return 0;
    return set_taken (space, entry, servers);
}

int space_list (struct space *space, json_t *objects, bool first, bool last)
{
    struct space_entry *entry;
    struct space_entry *next;
    json_t *servers;
    size_t index;
    int rc = 0;

    for (entry = first ? space->list : NULL; entry; entry = entry->next)
        entry->listed = false;
    json_array_foreach (objects, index, servers) {
        if (space_learn (space, servers, false) < 0)
            rc = -1;
    }
    for (entry = last ? space->list : NULL; entry; entry = next) {
        next = entry->next;
        if (entry->seen && !entry->listed)
            remove_entry (space, entry);
    }
    return rc;
}

void space_settle (struct space *space, bool again, space_owner_f owner,
                   void *arg)
{
    struct space_entry *entry;
    struct space_entry *next;

    for (entry = again ? space->list : space->unsettled; entry;
         entry = next) {
        struct claim *claim = NULL;

        next = again ? entry->next : entry->group_next;
        if (entry->claim || entry->released)
            continue;
        switch (owner (arg, entry->workflow, entry->persistent, &claim)) {
            case SPACE_OF_JOB:
                give_to (space, entry, claim);
                break;
            case SPACE_FREE:
                remove_entry (space, entry);
                break;
            case SPACE_OF_NOBODY:
                entry->settled = true;
                regroup (space, entry);
                break;
        }
    }
}

/* What is exclusive
 */

/* The key of an entry is "namespace/name".
 */
static json_t *describe_keys (const struct space_entry *entry)
{
    const char *slash = strchr (entry->key, '/');

    return json_pack ("{s:{s:s# s:s} s:I s:s* s:s* s:b s:O}",
                      "servers",
                        "namespace", entry->key, (int)(slash - entry->key),
                        "name", slash + 1,
                      "jobid", entry->claim
                               ? (json_int_t)entry->claim->id : 0,
                      "workflow", entry->workflow,
                      "persistent", entry->persistent,
                      "released", entry->released,
                      "rabbits", entry->keys);
}

json_t *space_keys (const struct space *space, json_t *rabbits)
{
    json_t *array = json_array ();

    for (struct space_entry *h = space->list; array && h; h = h->next) {
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
    for (struct space_entry *h = claim->entries; h; h = h->group_next) {
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
