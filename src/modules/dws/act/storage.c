/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See storage.h.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libdws/health/health.h"
#include "libdws/storage/allocation.h"
#include "libdws/storage/resources.h"
#include "libdws/storage/colocation.h"
#include "libdws/storage/daemons.h"
#include "libdws/storage/data_first.h"
#include "libdws/storage/labels.h"
#include "libdws/storage/location.h"
#include "libdws/storage/constraint.h"
#include "libdws/util/hosts.h"
#include "libdws/util/jsontext.h"
#include "libutil/errno_safe.h"
#include "act/action.h"
#include "act/data_first.h"
#include "act/objects.h"
#include "act/reservations.h"
#include "act/constraint.h"
#include "act/storage.h"
#include "facts/config.h"
#include "facts/persistent.h"
#include "facts/storages.h"
#include "facts/waitlist.h"
#include "health/suspects.h"
#include "sched/scheduler.h"

void demand_clear (struct demand *demand)
{
    ERRNO_SAFE_BLOCK;
    json_decref (demand->resources);
    json_decref (demand->constraint);
    json_decref (demand->units);
    *demand = (struct demand){ 0 };
}

static bool site_anywhere (const struct job *job)
{
    return job->ctx->config->lustre_placement == DWS_PLACEMENT_ANYWHERE;
}

bool storage_anywhere (const struct job *job)
{
    return site_anywhere (job) || dws_is_data_first (job->facts, job->wf);
}

bool storage_unbound (const struct job *job)
{
    return storage_anywhere (job) && dws_allocation_unbound (job->wf->breakdowns);
}

/* Takes over both.
 */
static json_t *join (json_t *a, json_t *b, int64_t nodes, dws_error_t *error)
{
    json_t *both = b ? dws_constraint_join (a, b, nodes, error) : NULL;

    ERRNO_SAFE (json_decref (a));
    ERRNO_SAFE (json_decref (b));
    return both;
}

/* The constraint to be next to the job's own storage ('staged'), or to the
 * existing storage that it uses.
 */
static json_t *locate_storage (struct job *job, bool staged, int64_t nodes,
                               dws_error_t *error)
{
    const struct dws_topology *topo = job->ctx->config->topology;
    json_t *servers = act_own (job)->servers;
    json_t *goodness;
    json_t *location = NULL;

    if (!staged)
        return dws_location_constraint (job->wf->breakdowns, servers, topo,
                                        nodes, error);
    if ((goodness = data_first_goodness (job, error)))
        location = dws_location_data_first (job->wf->breakdowns, servers, topo,
                                            goodness, nodes, error);
    ERRNO_SAFE (json_decref (goodness));
    return location;
}

/* The constraint to be next to storage, on rabbits with the labels of new storage, and
 * where the user wants the job.
 */
static json_t *locate (struct job *job, bool staged, json_t *resources,
                       dws_error_t *error)
{
    const struct dws_topology *topo = job->ctx->config->topology;
    int64_t nodes = dws_resources_nodes (resources);
    json_t *storages = storages_by_name (job->ctx->storages);
    json_t *labels;
    json_t *location;

    if (!(location = locate_storage (job, staged, nodes, error)))
        return NULL;
    if (!staged) {
        labels = dws_labels_constraint (job->wf->breakdowns, storages, topo,
                                        nodes, site_anywhere (job), error);
        location = join (location, labels, nodes, error);
    }
    if (location)
        location = join (location, constraint_make (job, nodes, error), nodes,
                         error);
    return location;
}

/* The constraint of the job: next to its storage, and not on nodes without a link to
 * their rabbit.
 */
static json_t *make_constraint (struct job *job, bool staged,
                                json_t *resources, dws_error_t *error)
{
    json_t *location = locate (job, staged, resources, error);
    json_t *o;

    if (!location || !job->wf->breakdowns
        || !scheduler_wants_constraint (job->ctx->scheduler))
        return location;
    o = dws_health_constraint (location, error);
    json_decref (location);
    return o;
}

/* Check that unbound storage fits if all rabbits are up and empty.
 */
static int check_anywhere (struct job *job, dws_error_t *error)
{
    const struct rivals none = { 0 };
    json_t *nodes;
    json_t *sets = NULL;

    if (!site_anywhere (job)
        || json_object_size (storages_by_name (job->ctx->storages)) == 0)
        return 0;
    if (!(nodes = json_object ()))
        return dws_error (error, ENOMEM, "out of memory");
    if (dws_allocation_anywhere (nodes, job->ctx->config->topology, NULL,
                                 error) == 0)
        sets = storage_layout (job, nodes, &none, LAYOUT_EVER, error);
    ERRNO_SAFE (json_decref (nodes));
    ERRNO_SAFE (json_decref (sets));
    return sets ? 0 : -1;
}

int storage_demand (struct job *job, bool staged, struct demand *demand,
                    dws_error_t *error)
{
    struct dws_config *config = job->ctx->config;
    struct dws_resources_opts opts = {
        .maximums = config->maximums,
        .rabbit_bytes = storages_largest (job->ctx->storages,
                                          config->topology),
        .anywhere = site_anywhere (job),
        .placed = staged,
        .total_bytes = storages_total (job->ctx->storages, config->topology),
        .directives = job->facts->directives,
    };
    const struct dws_breakdowns *breakdowns = job->wf->breakdowns;
    json_t *resources;
    int rc = 0;

    *demand = (struct demand){ 0 };
    if (!(resources = dws_jsontext_get (job->facts->resources)))
        return dws_error (error, ENOMEM, "out of memory");
    if (!(demand->units = dws_daemons_units (breakdowns, config->daemons,
                                             error))
        || !(demand->resources = dws_resources_apply (resources, breakdowns,
                                                      &opts, error))
        || (breakdowns && !staged && check_anywhere (job, error) < 0)
        || !(demand->constraint = make_constraint (job, staged, resources,
                                                   error))) {
        demand_clear (demand);
        rc = -1;
    }
    ERRNO_SAFE (json_decref (resources));
    return rc;
}

const char *storage_left_out (const struct job *job)
{
    return job->wf->excluded ? job->wf->lagging : job->wf->failed;
}

/* Avoid building a hostlist: with flux-core that costs as much as reading ten
 * reports.
 */
char *storage_hosts (const struct job *job)
{
    const char *left_out = storage_left_out (job);
    dws_error_t error;

    if (!left_out || !*left_out)
        return strdup (job->facts->hosts ? job->facts->hosts : "");
    return dws_hosts_subtract (job->facts->hosts, left_out, &error);
}

int storage_send_computes (struct job *job, const struct action *action, int index)
{
    char *hosts = storage_hosts (job);
    json_t *command;

    if (!hosts)
        return -1;
    command = command_computes (job->wf, hosts, job->ctx->config->topology);
    ERRNO_SAFE (free (hosts));
    return act_send (job, action, index, command);
}

json_t *storage_nodes (struct job *job, dws_error_t *error)
{
    char *names = storage_hosts (job);
    json_t *hosts = names ? json_string (names) : NULL;
    json_t *nodes = NULL;

    if (!hosts)
        dws_error (error, ENOMEM, "out of memory");
    else
        nodes = dws_allocation_nodes (hosts, job->ctx->config->topology,
                                      error);
    if (nodes && storage_anywhere (job)
        && dws_allocation_anywhere (nodes, job->ctx->config->topology,
                                    suspects_names (job->ctx->suspects),
                                    error) < 0) {
        ERRNO_SAFE (json_decref (nodes));
        nodes = NULL;
    }
    ERRNO_SAFE (json_decref (hosts));
    ERRNO_SAFE (free (names));
    return nodes;
}

/* The name for the user of a job, who must not see that of another user's file
 * system.
 */
static json_t *name_persistent (const struct job *job, const char *name)
{
    json_t *o = persistent_find (job->ctx->persistent, name);
    json_int_t owner = -1;

    (void)json_unpack (o, "{s:I}", "userid", &owner);
    if (!persistent_may_know (job, owner))
        return json_string ("another user's persistent storage");
    return json_sprintf ("persistent storage '%s'", name);
}

/* Describe the holder by the job or the name of persistent storage. Storage of a job,
 * or released by one, ends; other storage may stay for ever ("lasting").
 */
static json_t *describe_holder (const struct job *job, json_t *entry)
{
    char label[JOB_LABEL_SIZE];
    const char *workflow = NULL;
    const char *persistent = NULL;
    const char *servers = "";
    struct job *other = NULL;
    json_int_t id = 0;
    int released = 0;
    json_t *name;

    (void)json_unpack (entry, "{s:{s:s} s?I s?s s?s s?b}",
                       "servers", "name", &servers,
                       "jobid", &id,
                       "persistent", &persistent,
                       "workflow", &workflow,
                       "released", &released);
    if (id != 0)
        other = jobs_find (job->ctx->jobs, id);
    else if (workflow) {
        other = jobs_find (job->ctx->jobs, dws_workflow_jobid (workflow));
        if (other && (!other->wf || strcmp (other->wf->name, workflow) != 0))
            other = NULL;
    }
    if (persistent)
        name = name_persistent (job, persistent);
    else if (other)
        name = json_sprintf ("job %s", job_label (other, label));
    else
        name = json_sprintf ("%s %s", workflow ? "workflow" : "Servers",
                             workflow ? workflow : servers);
    return json_pack ("{s:O s:O s:o s:b}",
                      "servers", json_object_get (entry, "servers"),
                      "rabbits", json_object_get (entry, "rabbits"),
                      "holder", name,
                      "lasting", persistent || (!other && !released));
}

static int add_before (struct job *other, json_t *wants, void *arg)
{
    char label[JOB_LABEL_SIZE];

    return json_array_append_new (arg, json_pack ("{s:O s:o s:b}",
                                                  "rabbits", wants,
                                                  "holder",
                                                  json_sprintf ("job %s",
                                                    job_label (other, label)),
                                                  "waits", true));
}

/* Sort the holders by whether their storage may stay for ever.
 */
static int add_holders (json_t *lasting, json_t *ending,
                        const struct job *job, json_t *entries)
{
    json_t *entry;
    size_t index;

    json_array_foreach (entries, index, entry) {
        json_t *o = describe_holder (job, entry);
        bool lasts = json_is_true (json_object_get (o, "lasting"));

        if (json_array_append_new (lasts ? lasting : ending, o) < 0)
            return -1;
    }
    return 0;
}

int storage_rivals (struct job *job, json_t *nodes, bool again,
                    struct rivals *rivals, dws_error_t *error)
{
    json_t *entries = NULL;
    json_t *lasting = NULL;
    int rc = 0;

    *rivals = (struct rivals){ 0 };
    if (!(rivals->wanted = dws_colocation_wanted (job->wf->breakdowns))
        || (json_object_size (rivals->wanted) > 0
            && (!(rivals->list = json_array ())
                || !(lasting = json_array ())
                || !(entries = space_keys (job->ctx->space, nodes))
                || add_holders (lasting, rivals->list, job, entries) < 0
                || (!again && waitlist_before (job->ctx->waitlist, job, nodes,
                                               add_before, rivals->list) < 0)
                || json_array_extend (rivals->list, lasting) < 0)))
        rc = dws_error (error, ENOMEM, "out of memory");
    ERRNO_SAFE (json_decref (lasting));
    ERRNO_SAFE (json_decref (entries));
    return rc;
}

void rivals_clear (struct rivals *rivals)
{
    ERRNO_SAFE_BLOCK;
    json_decref (rivals->wanted);
    json_decref (rivals->list);
    *rivals = (struct rivals){ 0 };
}

char *storage_rival (struct job *job, json_t *nodes,
                     const struct rivals *rivals, bool lasting)
{
    return dws_colocation_holder (job->wf->breakdowns, nodes, rivals->list,
                                  lasting);
}

/* The bytes of rabbits that others hold. For unbound storage the reservations of other
 * jobs count, too: then 'sum' has them. Returns NULL if out of memory.
 */
static const struct dws_bytes *taken (struct job *job, struct dws_bytes *sum)
{
    const struct dws_bytes *used = space_used (job->ctx->space);

    if (!storage_anywhere (job))
        return used;
    dws_bytes_add_map (sum, used, 1);
    reservations_add (job, sum);
    return sum->lost ? NULL : sum;
}

json_t *storage_data_first_nodes (struct job *job, bool ever, dws_error_t *error)
{
    const struct dws_topology *topo = job->ctx->config->topology;
    struct dws_bytes sum = { 0 };
    struct dws_allocation_opts opts = { .ever = ever };
    json_t *resources = dws_jsontext_get (job->facts->resources);
    json_t *goodness = NULL;
    json_t *nodes = NULL;

    opts.storages = storages_known (job->ctx->storages);
    if (!ever)
        opts.used = taken (job, &sum);
    if (!resources || (!ever && !opts.used))
        dws_error (error, ENOMEM, "out of memory");
    else if ((goodness = data_first_goodness (job, error)))
        nodes = dws_first_nodes (job->wf->breakdowns, goodness,
                                 dws_resources_nodes (resources), topo, &opts,
                                 error);
    if (nodes
        && dws_allocation_anywhere (nodes, topo,
                                    suspects_names (job->ctx->suspects),
                                    error) < 0) {
        ERRNO_SAFE (json_decref (nodes));
        nodes = NULL;
    }
    dws_bytes_clear (&sum);
    ERRNO_SAFE (json_decref (goodness));
    ERRNO_SAFE (json_decref (resources));
    return nodes;
}

json_t *storage_layout (struct job *job, json_t *nodes,
                        const struct rivals *rivals, enum layout_state state,
                        dws_error_t *error)
{
    /* No maximums: the job was admitted by those configured at that time. */
    struct dws_resources_opts bopts = {
        .anywhere = storage_anywhere (job),
    };
    struct dws_bytes sum = { 0 };
    struct dws_allocation_opts opts = {
        .anywhere = storage_anywhere (job),
        .ever = state == LAYOUT_EVER,
        .rivals = state <= LAYOUT_LASTING ? rivals->list : NULL,
        .lasting = state == LAYOUT_LASTING,
        .reserved = &job->reserved,
    };
    json_t *resources = dws_jsontext_get (job->facts->resources);
    json_t *sets = NULL;

    opts.storages = storages_known (job->ctx->storages);
    if (state < LAYOUT_EMPTY)
        opts.used = taken (job, &sum);
    if (!resources || (state < LAYOUT_EMPTY && !opts.used))
        dws_error (error, ENOMEM, "out of memory");
    else if ((opts.resources = dws_resources_apply (resources,
                                                    job->wf->breakdowns,
                                                    &bopts, error)))
        sets = dws_allocation_sets (job->wf->breakdowns, nodes, &opts, error);
    dws_bytes_clear (&sum);
    ERRNO_SAFE (json_decref (opts.resources));
    ERRNO_SAFE (json_decref (resources));
    return sets;
}
