/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See list.h. Visits only the requested entries, since the module handles no other
 * message meanwhile.
 */

#include <stdlib.h>
#include <string.h>

#include "libdws/health/usable.h"
#include "libdws/storage/bytes.h"
#include "libdws/storage/drives.h"
#include "libdws/util/jsonmake.h"
#include "libutil/names.h"
#include "facts/config.h"
#include "facts/jobs.h"
#include "facts/storages.h"
#include "health/health.h"
#include "health/suspects.h"
#include "tell/list.h"

/* Jobs
 */

static struct job *next_visible (struct dws_ctx *ctx, const struct asker *asker,
                                 uint64_t after)
{
    struct job *job = jobs_next (ctx->jobs, after);

    while (job && !is_visible (job, asker))
        job = jobs_next (ctx->jobs, job->facts->id);
    return job;
}

json_t *list_jobs (struct dws_ctx *ctx, const struct asker *asker,
                   uint64_t after, int max)
{
    json_t *o = json_object ();
    json_t *jobs = json_array ();
    struct job *job = NULL;

    while (max-- > 0 && (job = next_visible (ctx, asker, after))) {
        dws_json_append (&jobs, describe_job (job));
        after = job->facts->id;
    }
    dws_json_set (&o, "jobs", jobs);
    if (job && next_visible (ctx, asker, after))
        dws_json_set (&o, "next", json_integer (after));
    return o;
}

/* Rabbits
 */

/* The state of a rabbit in its Storage object, which owns the strings.
 */
struct storage {
    const char *status;         // "Unknown" if it says nothing
    const char *message;
    const char *reason;         // why it was disabled
    const char *since;          // when, and by whom
    const char *by;
    json_t *computes;           // array of {name, status}, or NULL
    struct dws_drives drives;
    bool disabled;
};

static const char *text_of (json_t *object, const char *key, const char *other)
{
    const char *s = json_string_value (json_object_get (object, key));

    return s ? s : other;
}

static void read_storage (json_t *object, struct storage *storage)
{
    json_t *status = json_object_get (object, "status");
    json_t *annotations = json_object_get (json_object_get (object, "metadata"),
                                           "annotations");
    const char *state = text_of (json_object_get (object, "spec"), "state", "");

    *storage = (struct storage){
        .status = text_of (status, "status", "Unknown"),
        .message = text_of (status, "message", ""),
        .reason = "", .since = "", .by = "",
        .computes = json_object_get (json_object_get (status, "access"),
                                     "computes"),
        .disabled = !strcmp (state, "Disabled"),
    };
    dws_drives_read (status, &storage->drives);
    if (storage->disabled) {
        storage->status = "Disabled";
        (void)json_unpack (annotations, "{s?s s?s s?s}",
                           "disable_reason", &storage->reason,
                           "disable_date", &storage->since,
                           DWS_DISABLED_BY_ANNOTATION, &storage->by);
    }
}

/* Show a suspect rabbit as such, though Kubernetes reports it Ready.
 */
static void find_storage (struct dws_ctx *ctx, const char *name,
                          json_t *object, struct storage *storage)
{
    const char *reason = suspects_reason (ctx->suspects, name);

    read_storage (object, storage);
    if (reason && !strcmp (storage->status, "Ready")) {
        storage->status = "Suspect";
        storage->reason = reason;
    }
}

/* Bytes of a rabbit: the capacity for jobs, the claims of our jobs, and storage of no
 * job: persistent storage and that of other clients.
 */
struct room {
    json_int_t capacity;
    json_int_t used;
    json_int_t foreign;
};

static void read_room (struct dws_ctx *ctx, int index, const char *name,
                       const struct storage *storage, struct room *room)
{
    int64_t mapped = dws_topology_capacity (ctx->config->topology, index);

    room->capacity = dws_health_capacity_of (&storage->drives, mapped);
    room->foreign = dws_bytes_get (space_outside (ctx->space), name);
    room->used = dws_bytes_get (space_used (ctx->space), name) - room->foreign;
}

static json_int_t room_free (const struct room *room)
{
    json_int_t taken = room->used + room->foreign;

    return room->capacity > taken ? room->capacity - taken : 0;
}

/* {"Ready": N, ...}, and the hosts whose link is in another state.
 */
static void add_links (json_t **o, json_t *computes)
{
    json_t *links = json_object ();
    json_t *broken = json_object ();
    json_t *entry;
    size_t index;

    json_array_foreach (computes, index, entry) {
        const char *name = "";
        const char *status = "Unknown";
        json_int_t n;

        (void)json_unpack (entry, "{s?s s?s}", "name", &name,
                           "status", &status);
        n = json_integer_value (json_object_get (links, status));
        dws_json_set (&links, status, json_integer (n + 1));
        if (strcmp (status, "Ready") != 0)
            dws_json_set (&broken, name, json_string (status));
    }
    dws_json_set (o, "links", links);
    dws_json_set (o, "broken", broken);
}

/* [USABLE, ALL], of a rabbit that lists its drives, and how worn the worst is.
 */
static void add_drives (json_t **o, const struct dws_drives *drives)
{
    int all = drives->found > DWS_DRIVES_OF_RABBIT ? drives->found
                                                   : DWS_DRIVES_OF_RABBIT;

    if (drives->found == 0)
        return;
    if (drives->wear >= 0)
        dws_json_set (o, "wear", json_integer (drives->wear));
    dws_json_set (o, "drives", json_pack ("[ii]", drives->ready, all));
}

/* Count the jobs with a claim, by rabbit.
 */
static void count_allocations (struct job *job, void *arg)
{
    const struct dws_bytes *bytes = &job->claim.bytes;

    for (size_t i = 0; i < bytes->count; i++)
        dws_bytes_add (arg, bytes->list[i].rabbit, 1);
}

static json_t *encode_rabbit (struct dws_ctx *ctx, const struct asker *asker,
                              int index, const struct dws_bytes *counts)
{
    const char *name = dws_topology_name (ctx->config->topology, index);
    const char *hosts = dws_topology_hostlist (ctx->config->topology, index);
    json_t *object = json_object_get (storages_by_name (ctx->storages), name);
    struct storage storage;
    struct room room;
    json_t *more;
    json_t *o;

    find_storage (ctx, name, object, &storage);
    read_room (ctx, index, name, &storage, &room);
    o = json_pack ("{s:s s:s s:I s:I s:s}",
                   "name", name,
                   "state", storage.status,
                   "capacity", room.capacity,
                   "free", room_free (&room),
                   "nodes", hosts ? hosts : "");
    if (!o || !asker->owner)
        return o;
    more = json_pack ("{s:I s:I s:s s:s s:s s:s s:I}",
                      "used", room.used,
                      "foreign", room.foreign,
                      "message", storage.message,
                      "reason", storage.reason,
                      "since", storage.since,
                      "by", storage.by,
                      "allocations", (json_int_t)dws_bytes_get (counts, name));
    add_drives (&more, &storage.drives);
    add_links (&more, storage.computes);
    if (json_object_update (o, more) < 0) {
        json_decref (o);
        o = NULL;
    }
    json_decref (more);
    return o;
}

json_t *list_rabbits (struct dws_ctx *ctx, const struct asker *asker)
{
    size_t count = dws_topology_count (ctx->config->topology);
    struct dws_bytes counts = { 0 };
    json_t *o = json_pack ("{s:s}", DWS_BAD_PROPERTY, health_bad (ctx->health));
    json_t *rabbits = json_array ();

    jobs_each (ctx->jobs, count_allocations, &counts);
    for (size_t i = 0; i < count; i++)
        dws_json_append (&rabbits, encode_rabbit (ctx, asker, i, &counts));
    dws_json_set (&o, "rabbits", rabbits);
    dws_bytes_clear (&counts);
    return o;
}

json_t *list_totals (struct dws_ctx *ctx)
{
    size_t count = dws_topology_count (ctx->config->topology);
    json_t *storages = storages_by_name (ctx->storages);
    struct room sum = { 0 };
    json_t *states;

    if (!(states = json_object ()))
        return NULL;
    for (size_t i = 0; i < count; i++) {
        const char *name = dws_topology_name (ctx->config->topology, i);
        json_t *object = json_object_get (storages, name);
        struct storage storage;
        struct room room;
        json_int_t n;

        find_storage (ctx, name, object, &storage);
        read_room (ctx, i, name, &storage, &room);
        sum.capacity += room.capacity;
        sum.used += room.used;
        sum.foreign += room.foreign;
        n = json_integer_value (json_object_get (states, storage.status));
        (void)json_object_set_new (states, storage.status,
                                   json_integer (n + 1));
    }
    return json_pack ("{s:I s:I s:I s:I s:o}",
                      "count", (json_int_t)count,
                      "capacity", sum.capacity,
                      "used", sum.used,
                      "foreign", sum.foreign,
                      "states", states);
}
