/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See allocation.h.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <flux/hostlist.h>

#include "libdws/util/bounds.h"
#include "libdws/util/hosts.h"
#include "libdws/util/jsonmake.h"
#include "libdws/util/lists.h"
#include "libutil/errno_safe.h"
#include "libutil/names.h"
#include "allocation.h"
#include "allocset_private.h"
#include "colocation_private.h"
#include "drives.h"
#include "layout_private.h"
#include "place_private.h"

/* Count the hosts of one list. 'seen' has those of the lists before.
 */
static int count_nodes (json_t *result, json_t *seen, const char *hosts,
                        const struct dws_topology *topo, int *count,
                        dws_error_t *error)
{
    struct hosts_walk walk;
    const char *host;
    int rc = 0;

    if (!hosts || hosts_walk_begin (&walk, hosts) < 0)
        return dws_error (error,
                          EINVAL,
                          "R: '%.60s' %s",
                          hosts ? hosts : "nodelist",
                          dws_hostlist_fault (hosts ? errno : EINVAL));
    if (walk.count > DWS_MAX_HOSTS - *count)
        rc = dws_error (error, EINVAL, "R: more than %d hosts", DWS_MAX_HOSTS);
    *count += walk.count;
    while (rc == 0 && (host = hosts_walk_next (&walk))) {
        const char *rabbit = dws_topology_rabbit (topo, host);
        json_int_t n;

        if (!rabbit || json_object_get (seen, host))
            continue;
        n = json_integer_value (json_object_get (result, rabbit));
        if (json_object_set_new (seen, host, json_true ()) < 0
            || json_object_set_new (result,
                                    rabbit,
                                    json_integer (n + 1)) < 0)
            rc = dws_error_nomem (error);
    }
    hosts_walk_end (&walk);
    return rc;
}

static int count_all (json_t *result, json_t *seen, json_t *R,
                      const struct dws_topology *topo, dws_error_t *error)
{
    json_t *nodelist;
    json_t *value;
    size_t i;
    int count = 0;

    if (json_is_string (R))
        return count_nodes (result, seen, json_string_value (R), topo, &count,
                            error);
    nodelist = json_object_get (json_object_get (R, "execution"),
                                "nodelist");
    if (!json_is_array (nodelist))
        return dws_error (error, EINVAL, "R has no execution.nodelist");
    json_array_foreach (nodelist, i, value) {
        if (count_nodes (result, seen, json_string_value (value), topo, &count,
                         error) < 0)
            return -1;
    }
    return 0;
}

json_t *dws_allocation_nodes (json_t *R,
                              const struct dws_topology *topo,
                              dws_error_t *error)
{
    json_t *result = json_object ();
    json_t *seen = json_object ();
    int rc = result && seen ? count_all (result, seen, R, topo, error)
                            : dws_error_nomem (error);

    ERRNO_SAFE (json_decref (seen));
    if (rc < 0) {
        ERRNO_SAFE (json_decref (result));
        return NULL;
    }
    return result;
}

int dws_allocation_anywhere (json_t *nodes_per_rabbit,
                             const struct dws_topology *topo,
                             json_t *without,
                             dws_error_t *error)
{
    for (size_t i = 0; i < dws_topology_count (topo); i++) {
        const char *name = dws_topology_name (topo, i);

        if (!json_object_get (nodes_per_rabbit, name)
            && !json_object_get (without, name)
            && json_object_set_new (nodes_per_rabbit, name,
                                    json_integer (0)) < 0)
            return dws_error_nomem (error);
    }
    return 0;
}

char *dws_allocation_rabbits (json_t *nodes_per_rabbit,
                              const struct dws_bytes *bytes,
                              dws_error_t *error)
{
    const char **names = calloc (json_object_size (nodes_per_rabbit) + 1,
                                 sizeof (names[0]));
    size_t count = 0;
    const char *name;
    json_t *value;
    char *s = NULL;

    json_object_foreach (nodes_per_rabbit, name, value) {
        if (names
            && (json_integer_value (value) > 0 || dws_bytes_get (bytes, name) > 0))
            names[count++] = name;
    }
    if (!names || !(s = dws_hosts_merge (names, count, NULL)))
        dws_error (error, ENOMEM, "could not encode the list of rabbits");
    ERRNO_SAFE (free (names));
    return s;
}

json_t *layout_storages (json_t *storages, dws_error_t *error)
{
    json_t *by_name;
    json_t *value;
    size_t i;

    if (json_is_object (storages))
        return json_incref (storages);
    if (!(by_name = json_object ())) {
        dws_error_nomem (error);
        return NULL;
    }
    json_array_foreach (storages, i, value) {
        const char *name = NULL;

        if (json_unpack (value, "{s:{s:s}}", "metadata", "name", &name) < 0) {
            dws_error (error, EINVAL, "a Storage object has no name");
            goto error;
        }
        if (!json_object_get (by_name, name)
            && json_object_set (by_name, name, value) < 0) {
            dws_error_nomem (error);
            goto error;
        }
    }
    return by_name;
error:
    ERRNO_SAFE (json_decref (by_name));
    return NULL;
}

/* Judge a rabbit by its Storage object. A rabbit that was never booted has no status.
 */
static void judge_rabbit (struct layout_rabbit *r,
                          const struct dws_allocation_opts *opts,
                          json_t *storages)
{
    json_t *storage = json_object_get (storages, r->name);
    const char *status = "";
    const char *state = "Enabled";
    struct dws_drives drives;

    if (!storage) {
        r->fault = "has no Storage object";
        return;
    }
    (void)json_unpack (storage, "{s:{s:s}}", "spec", "state", &state);
    (void)json_unpack (storage, "{s:{s:s}}", "status", "status", &status);
    dws_drives_read (json_object_get (storage, "status"), &drives);
    r->labels = json_object_get (json_object_get (storage, "metadata"),
                                 "labels");
    if (opts->ever)
        r->fault = NULL;
    else if (strcmp (state, "Disabled") == 0)
        r->fault = "is Disabled";
    else if (strcmp (status, "Ready") != 0)
        r->fault = "is not Ready";
    r->width = drives.width;
    r->room = dws_drives_room (&drives, opts->ever ? 0
                                        : dws_bytes_get (opts->used, r->name));
    r->known = true;
}

char *dws_allocation_down (const char *hosts,
                           json_t *storages,
                           const struct dws_topology *topo,
                           dws_error_t *error)
{
    struct dws_allocation_opts opts = { 0 };
    struct hostlist *all = dws_hostlist_decode (hosts);
    struct hostlist *down = NULL;
    json_t *by_name = NULL;
    const char *host;
    char *result = NULL;

    if (!all)
        dws_error (error, EINVAL, "malformed hostlist '%.60s'", hosts);
    else if ((by_name = layout_storages (storages, error))) {
        if (!(down = hostlist_create ()))
            goto nomem;
        for (host = hostlist_first (all); host; host = hostlist_next (all)) {
            struct layout_rabbit r = {
                .name = dws_topology_rabbit (topo, host),
            };

            if (r.name)
                judge_rabbit (&r, &opts, by_name);
            if (r.fault && dws_hostlist_append (down, host) < 0)
                goto nomem;
        }
        if (!(result = hostlist_encode (down)))
            goto nomem;
    }
done:
    ERRNO_SAFE (json_decref (by_name));
    hostlist_destroy (down);
    hostlist_destroy (all);
    return result;
nomem:
    dws_error_nomem (error);
    goto done;
}

/* Bytes that the scheduler has set aside on a rabbit with so many nodes of
 * the job, from the first {node, ssd} in the scheduled resources.
 */
static int64_t get_reserved (json_t *resources, int64_t nodes)
{
    size_t i;
    size_t j;
    json_t *top;
    json_t *value;

    json_array_foreach (resources, i, top) {
        json_int_t per_group = 0;
        json_int_t gib = 0;
        int64_t total;

        json_array_foreach (json_object_get (top, "with"), j, value) {
            const char *type = "";
            json_int_t count = 0;

            (void)json_unpack (value,
                               "{s:s s:I}",
                               "type", &type,
                               "count", &count);
            if (strcmp (type, "node") == 0)
                per_group = count;
            else if (strcmp (type, "ssd") == 0)
                gib = count;
        }
        if (per_group > 0 && gib > 0) {
            total = div_up (nodes, per_group);
            if (__builtin_mul_overflow (total, gib, &total)
                || __builtin_mul_overflow (total, GIB, &total))
                return LAYOUT_UNLIMITED;
            return total;
        }
    }
    return LAYOUT_UNLIMITED;
}

static int fill_rabbits (struct layout *lay,
                         json_t *nodes_per_rabbit,
                         const struct dws_allocation_opts *opts,
                         dws_error_t *error)
{
    const char *name;
    json_t *value;
    size_t n = 0;
    int least = opts->anywhere ? 0 : 1;
    json_t *storages = NULL;
    int rc = -1;

    if (opts->storages && !(storages = layout_storages (opts->storages, error)))
        return -1;
    json_object_foreach (nodes_per_rabbit, name, value) {
        struct layout_rabbit *r = &lay->rabbits[n++];

        r->name = name;
        r->nodes = json_integer_value (value);
        if (!json_is_integer (value) || r->nodes < least
            || r->nodes > DWS_MAX_NODES_PER_RABBIT) {
            dws_error (error,
                       EINVAL,
                       "rabbit %s: the number of nodes is not an integer"
                       " from %d to %d",
                       name,
                       least,
                       DWS_MAX_NODES_PER_RABBIT);
            goto done;
        }
        r->room = LAYOUT_UNLIMITED;
        if (storages)
            judge_rabbit (r, opts, storages);
        if (opts->reserved && opts->reserved->count > 0)
            r->reserved = dws_bytes_get (opts->reserved, name);
        else
            r->reserved = get_reserved (opts->resources, r->nodes);
    }
    rc = 0;
done:
    ERRNO_SAFE (json_decref (storages));
    return rc;
}

static json_t *encode_set (const struct layout *lay,
                           const struct layout_place *p)
{
    json_t *storage = json_array ();

    for (size_t r = 0; r < lay->nrabbits; r++) {
        if (p->counts[r] > 0)
            dws_json_append (&storage,
                             json_pack ("{s:s s:I}",
                                        "name", lay->rabbits[r].name,
                                        "allocationCount",
                                        (json_int_t)p->counts[r]));
    }
    return json_pack ("{s:s s:I s:o}",
                      "label", p->set->label,
                      "allocationSize", (json_int_t)p->size,
                      "storage", storage);
}

static json_t *encode_breakdown (const struct layout *lay,
                                 const struct breakdown *b)
{
    json_t *sets = json_array ();
    json_t *keys = colocation_encode (b);
    json_t *entry = json_pack ("{s:{s:s s:s}}",
                               "servers",
                                 "name", b->servers,
                                 "namespace", b->servers_namespace);

    for (size_t i = 0; i < lay->nplaces; i++) {
        if (lay->places[i].breakdown == b)
            dws_json_append (&sets, encode_set (lay, &lay->places[i]));
    }
    dws_json_set (&entry, "allocationSets", sets);
    if (!keys || json_object_size (keys) > 0)
        dws_json_set (&entry, "colocation", json_incref (keys));
    json_decref (keys);
    return entry;
}

static json_t *encode_all (const struct layout *lay,
                           const struct dws_breakdowns *bl)
{
    json_t *result = json_array ();

    for (size_t i = 0; i < bl->count; i++) {
        if (bl->list[i].servers)
            dws_json_append (&result, encode_breakdown (lay, &bl->list[i]));
    }
    return result;
}

bool dws_allocation_unbound (const struct dws_breakdowns *breakdowns)
{
    const struct dws_breakdowns *bl = breakdowns_or_none (breakdowns);
    bool unbound = false;

    for (size_t i = 0; i < bl->count; i++) {
        for (size_t j = 0; j < bl->list[i].nsets; j++)
            unbound |= alloc_set_unbound (&bl->list[i].sets[j]);
    }
    return unbound;
}

json_t *dws_allocation_sets (const struct dws_breakdowns *breakdowns,
                             json_t *nodes_per_rabbit,
                             const struct dws_allocation_opts *opts,
                             dws_error_t *error)
{
    static const struct dws_allocation_opts defaults = { 0 };
    const struct dws_breakdowns *bl = breakdowns_or_none (breakdowns);
    struct layout *lay = NULL;
    json_t *result = NULL;

    if (!opts)
        opts = &defaults;
    if (opts->min_gib < 0 || opts->min_gib > INT32_MAX) {
        dws_error (error, EINVAL, "the smallest allocation is out of range");
        goto done;
    }
    if (!(lay = layout_create (bl, opts->bound, json_object_size (nodes_per_rabbit)))) {
        dws_error_nomem (error);
        goto done;
    }
    lay->min_bytes = opts->min_gib * GIB;
    lay->anywhere = opts->anywhere;
    if (bl->count > 0 && lay->nrabbits == 0 && !opts->anywhere) {
        dws_error (error, EINVAL, "the job has no node with a rabbit");
        goto done;
    }
    if (fill_rabbits (lay, nodes_per_rabbit, opts, error) < 0
        || colocation_fill (lay, bl, opts->rivals, opts->lasting, error) < 0
        || place_all (lay, error) < 0)
        goto done;
    if (!(result = encode_all (lay, bl)))
        dws_error_nomem (error);
done:
    layout_destroy (lay);
    return result;
}

json_t *dws_allocation_patch (json_t *entry)
{
    json_t *sets = json_object_get (entry, "allocationSets");
    json_t *keys = json_object_get (entry, "colocation");
    json_t *patch;
    char *text;

    if (!json_is_array (sets)) {
        errno = EINVAL;
        return NULL;
    }
    patch = json_pack ("{s:{s:O}}", "spec", "allocationSets", sets);
    if (keys) {
        text = json_dumps (keys, JSON_COMPACT | JSON_SORT_KEYS);
        dws_json_set (&patch, "metadata",
                      json_pack ("{s:{s:s}}", "annotations",
                                 DWS_COLOCATION_ANNOTATION, text));
        free (text);
    }
    return patch;
}
