/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See shortage.h.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libdws/util/clean.h"
#include "libdws/util/hosts.h"
#include "libutil/errno_safe.h"
#include "shortage.h"

#define GIB (INT64_C (1) << 30)

static const char *type_of (json_t *vertex)
{
    const char *type = json_string_value (json_object_get (vertex, "type"));

    return type ? type : "";
}

/* For a count that is a range (RFC 14) one is enough.
 */
static int64_t count_of (json_t *vertex)
{
    json_t *count = json_object_get (vertex, "count");
    int64_t n = json_integer_value (count);

    return n > 0 ? n : 1;
}

/* Cores below a vertex.
 */
static int64_t cores_below (json_t *with)
{
    int64_t total = 0;
    json_t *vertex;
    size_t index;

    json_array_foreach (with, index, vertex) {
        int64_t each = 1;

        if (strcmp (type_of (vertex), "core") != 0)
            each = cores_below (json_object_get (vertex, "with"));
        total += count_of (vertex) * each;
    }
    return total;
}

/* The node among the children of a vertex; '*gib' is the storage next to the node.
 */
static json_t *look_inside (json_t *with, int64_t *gib)
{
    json_t *node = NULL;
    json_t *vertex;
    size_t index;

    *gib = 0;
    json_array_foreach (with, index, vertex) {
        if (!strcmp (type_of (vertex), "ssd"))
            *gib += json_integer_value (json_object_get (vertex, "count"));
        else if (!node && !strcmp (type_of (vertex), "node"))
            node = vertex;
    }
    return node;
}

bool dws_need_read (json_t *resources, struct dws_need *need)
{
    json_t *top;
    size_t index;

    json_array_foreach (resources, index, top) {
        bool bare = !strcmp (type_of (top), "node");
        json_t *node;
        int64_t gib;

        node = look_inside (json_object_get (top, "with"), &gib);
        if (bare)
            node = top;
        if (!json_is_integer (json_object_get (node, "count")))
            continue;
        *need = (struct dws_need){
            .groups = count_of (top),
            .nodes = bare ? 1 : count_of (node),
            .gib = bare ? 0 : gib,
            .chassis = !bare && !strcmp (type_of (top), "chassis"),
        };
        if (!json_is_true (json_object_get (node, "exclusive")))
            need->cores = cores_below (json_object_get (node, "with"));
        return true;
    }
    return false;
}

/* Places
 */

void dws_places_destroy (struct dws_places *places)
{
    if (places) {
        ERRNO_SAFE_BLOCK;
        free (places->list);
        free (places);
    }
}

/* Map each of the hosts to 'value'.
 */
static int note_hosts (json_t *by_host, const char *hosts, size_t value)
{
    struct hosts_walk walk;
    const char *host;
    int rc = 0;

    if (!*hosts)
        return 0;
    if (hosts_walk_begin (&walk, hosts) < 0)
        return -1;
    while (rc == 0 && (host = hosts_walk_next (&walk)))
        rc = json_object_set_new (by_host, host, json_integer (value));
    hosts_walk_end (&walk);
    return rc;
}

/* Make a place for each rabbit, and a last one for nodes without a rabbit.
 */
static struct dws_places *make_places (json_t *rabbits, json_t *by_host,
                                       dws_error_t *error)
{
    size_t count = json_array_size (rabbits);
    struct dws_places *places;
    json_t *rabbit;
    size_t index;

    if (!(places = calloc (1, sizeof (*places)))
        || !(places->list = calloc (count + 1, sizeof (*places->list)))) {
        dws_error_nomem (error);
        goto error;
    }
    places->count = count + 1;
    places->list[count] = (struct dws_place){ .rabbit = "", .state = "Ready" };
    json_array_foreach (rabbits, index, rabbit) {
        struct dws_place *place = &places->list[index];
        json_int_t space;
        const char *hosts = "";

        if (json_unpack (rabbit, "{s:s s:s s:I s?s}",
                         "name", &place->rabbit,
                         "state", &place->state,
                         "free", &space,
                         "nodes", &hosts) < 0
            || note_hosts (by_host, hosts, index) < 0) {
            dws_error (error, EINVAL, "malformed list of rabbits");
            goto error;
        }
        place->space = space;
    }
    return places;
error:
    dws_places_destroy (places);
    return NULL;
}

static void count_host (struct dws_place *place, const struct dws_pool *pool,
                        const char *host, enum dws_goodness good,
                        bool bad, int64_t cores)
{
    int64_t all = 0;
    int64_t left = dws_pool_cores (pool, host, &all);

    if (good == DWS_POOL_DOWN)
        place->down++;
    else if (bad)
        place->broken++;
    else if (left > 0 && left >= (cores > 0 ? cores : all))
        place->free++;
    else
        place->busy++;
}

struct dws_places *dws_places_create (const struct dws_pool *pool,
                                      json_t *constraint,
                                      json_t *rabbits,
                                      const char *bad,
                                      int64_t cores,
                                      dws_error_t *error)
{
    json_t *by_host = json_object ();
    json_t *broken = json_object ();
    json_t *all = dws_pool_nodes (pool, NULL, NULL, error);
    json_t *allowed = all ? dws_pool_nodes (pool, constraint, NULL, error)
                          : NULL;
    struct dws_places *places = NULL;
    const char *host;
    json_t *value;

    if (all && !allowed && errno == EINVAL)
        allowed = json_incref (all);
    if (!by_host || !broken || !allowed)
        goto done;
    if (bad && note_hosts (broken, bad, 1) < 0) {
        dws_error (error, EINVAL, "malformed list of nodes without a rabbit");
        goto done;
    }
    if (!(places = make_places (rabbits, by_host, error)))
        goto done;
    places->limited = json_object_size (allowed) < json_object_size (all);
    json_object_foreach (allowed, host, value) {
        json_t *index = json_object_get (by_host, host);
        size_t i = index ? (size_t)json_integer_value (index)
                         : places->count - 1;

        count_host (&places->list[i], pool, host, json_integer_value (value),
                    json_object_get (broken, host) != NULL, cores);
    }
done:
    ERRNO_SAFE (json_decref (by_host));
    ERRNO_SAFE (json_decref (broken));
    ERRNO_SAFE (json_decref (all));
    ERRNO_SAFE (json_decref (allowed));
    return places;
}

/* Text
 */

static int64_t least (int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The number of groups of nodes, each with so much storage, that fit there now.
 */
static int64_t groups_at (const struct dws_place *place,
                          const struct dws_need *need, int64_t gib)
{
    int64_t fit = place->free / need->nodes;

    if (gib > 0) {
        bool usable = *place->rabbit && !strcmp (place->state, "Ready");

        fit = least (fit, usable ? place->space / GIB / gib : 0);
    }
    return need->chassis ? least (fit, 1) : fit;
}

static int64_t groups (const struct dws_places *places,
                       const struct dws_need *need, int64_t gib)
{
    int64_t total = 0;

    for (size_t i = 0; i < places->count; i++)
        total += groups_at (&places->list[i], need, gib);
    return total;
}

/* '*before' separates the counts.
 */
static void add_count (struct dws_text *t, int64_t count, const char *what,
                       const char **before)
{
    if (count > 0) {
        dws_say (t, "%s%" PRId64 " %s", *before, count, what);
        *before = ", ";
    }
}

static void add_nodes (const struct dws_places *places, int64_t total,
                       char buf[DWS_SHORTAGE_SIZE])
{
    struct dws_text t = { .buf = buf, .size = DWS_SHORTAGE_SIZE };
    const char *limited = places->limited ? " that it may have" : "";
    const char *before = " (";
    struct dws_place sum = { 0 };
    int64_t good;
    int64_t all;

    for (size_t i = 0; i < places->count; i++) {
        sum.free += places->list[i].free;
        sum.busy += places->list[i].busy;
        sum.broken += places->list[i].broken;
        sum.down += places->list[i].down;
    }
    good = sum.free + sum.busy;
    all = good + sum.broken + sum.down;
    if (good < total) {
        dws_say (&t, "nodes to come up: it needs %" PRId64 ", and %" PRId64
                 " of %" PRId64 "%s are up%s", total, good, all, limited,
                 sum.broken > 0 ? " and have a working rabbit" : "");
        return;
    }
    dws_say (&t, "nodes: it needs %" PRId64 ", %" PRId64 " of %" PRId64 "%s are"
             " free", total, sum.free, all, limited);
    add_count (&t, sum.busy, "busy", &before);
    add_count (&t, sum.broken, "without a working rabbit", &before);
    add_count (&t, sum.down, "down or drained", &before);
    if (all > sum.free)
        dws_say (&t, ")");
}

const char *dws_shortage_text (const struct dws_need *need,
                               const struct dws_places *places,
                               char buf[DWS_SHORTAGE_SIZE])
{
    int64_t total = need->groups * need->nodes;
    int64_t fit = groups (places, need, need->gib) * need->nodes;
    char each[40];

    if (groups (places, need, 0) < need->groups)
        add_nodes (places, total, buf);
    else if (fit < total) {
        snprintf (each, sizeof (each), need->nodes > 1 ? "each %" PRId64
                                       : total > 1 ? "each" : "it",
                  need->nodes);
        snprintf (buf, DWS_SHORTAGE_SIZE, "space: it needs %" PRId64 " node%s"
                  " with %" PRId64 " GiB of the rabbit next to %s, and there is"
                  " room for %" PRId64, total, total == 1 ? "" : "s",
                  need->gib, each, fit);
    }
    else
        snprintf (buf, DWS_SHORTAGE_SIZE, "its turn: nodes and space are there,"
                  " but other jobs come first");
    return buf;
}
