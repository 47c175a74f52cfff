/* SPDX-License-Identifier: LGPL-3.0-only */
/* info.c - what the shell knows about its job: jobspec, R, which node runs
 * which tasks.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "shell.h"

struct slots {
    int count;
    bool per_node;      // count is that of one node
};

/* Find the slot in the resources, below any others.
 */
static int find_slot (json_t *resources, struct slots *slots)
{
    size_t index;
    json_t *entry;

    json_array_foreach (resources, index, entry) {
        const char *type;
        json_t *with = NULL;

        if (json_unpack (entry, "{s:s s?o}", "type", &type, "with", &with) < 0)
            return -1;
        if (streq (type, "slot")) {
            slots->count = json_integer_value (json_object_get (entry,
                                                                "count"));
            return slots->count > 0 ? 0 : -1;
        }
        if (streq (type, "node"))
            slots->per_node = true;
        if (with && find_slot (with, slots) == 0)
            return 0;
    }
    return -1;
}

static bool node_exclusive (json_t *resources)
{
    json_t *o = json_array_get (resources, 0);

    while (o) {
        const char *type = json_string_value (json_object_get (o, "type"));
        if (type && streq (type, "node"))
            return json_is_true (json_object_get (o, "exclusive"));
        o = json_array_get (json_object_get (o, "with"), 0);
    }
    return false;
}

static int count_ids (const char *s)
{
    struct idset *ids = s[0] ? idset_decode (s) : NULL;
    int n = ids ? idset_count (ids) : 0;

    idset_destroy (ids);
    return n;
}

static int cmp_node (const void *a, const void *b)
{
    const struct node *x = a;
    const struct node *y = b;

    return x->broker_rank < y->broker_rank ? -1
           : x->broker_rank > y->broker_rank;
}

/* Add the nodes of one entry of R_lite, which are alike.
 */
static int add_nodes (flux_shell_t *shell, json_t *entry)
{
    const char *ranks;
    const char *cores = "";
    const char *gpus = "";
    struct idset *ids;
    unsigned int rank;
    struct node *nodes;
    int rc = -1;

    if (json_unpack (entry,
                     "{s:s s:{s?s s?s}}",
                     "rank", &ranks,
                     "children",
                       "core", &cores,
                       "gpu", &gpus) < 0
        || !(ids = idset_decode (ranks)))
        return -1;
    if (!(nodes = realloc (shell->nodes,
                           (shell->size + idset_count (ids))
                           * sizeof (*nodes))))
        goto done;
    shell->nodes = nodes;
    for (rank = idset_first (ids);
         rank != IDSET_INVALID_ID;
         rank = idset_next (ids, rank)) {
        nodes[shell->size++] = (struct node) {
            .broker_rank = rank,
            .cores = cores,
            .gpus = gpus,
            .ncores = count_ids (cores),
            .ngpus = count_ids (gpus),
        };
    }
    rc = 0;
done:
    idset_destroy (ids);
    return rc;
}

/* The names in R are those of the ranks in ascending order, whatever the
 * order of the entries of R_lite.
 */
static int parse_R (flux_shell_t *shell)
{
    json_t *lite;
    json_t *nodelist;
    json_t *entry;
    size_t index;

    if (!(shell->hosts = hostlist_create ())
        || json_unpack (shell->R,
                        "{s:{s:o s:o}}",
                        "execution",
                          "R_lite", &lite,
                          "nodelist", &nodelist) < 0)
        return -1;
    json_array_foreach (nodelist, index, entry) {
        const char *s = json_string_value (entry);
        if (!s || hostlist_append (shell->hosts, s) < 0)
            return -1;
    }
    json_array_foreach (lite, index, entry) {
        if (add_nodes (shell, entry) < 0)
            return -1;
    }
    if (shell->size == 0 || hostlist_count (shell->hosts) != shell->size)
        return -1;
    qsort (shell->nodes, shell->size, sizeof (shell->nodes[0]), cmp_node);
    for (int i = 0; i < shell->size; i++) {
        // what nth returns is overwritten by the next
        if (!(shell->nodes[i].host = strdup (hostlist_nth (shell->hosts, i))))
            return -1;
    }
    return 0;
}

static int cmp_cores (const void *a, const void *b)
{
    const struct node *x = *(struct node * const *)a;
    const struct node *y = *(struct node * const *)b;

    if (x->ncores != y->ncores)
        return x->ncores > y->ncores ? -1 : 1;
    return cmp_node (x, y);
}

/* Deal out tasks to the nodes in turn, those with most cores first, as long
 * as a node has cores for one more; when none has, all count as free again.
 */
static int distribute (flux_shell_t *shell, int ntasks, int cores_per_task)
{
    struct node **order = calloc (shell->size, sizeof (*order));
    int room = 0;

    if (!order)
        return -1;
    for (int i = 0; i < shell->size; i++) {
        order[i] = &shell->nodes[i];
        if (order[i]->ncores < cores_per_task)
            cores_per_task = order[i]->ncores;
    }
    qsort (order, shell->size, sizeof (order[0]), cmp_cores);
    while (ntasks > 0) {
        int before = ntasks;
        room += cores_per_task;
        for (int i = 0; i < shell->size && ntasks > 0; i++) {
            if (order[i]->ncores >= room) {
                order[i]->ntasks++;
                ntasks--;
            }
        }
        if (ntasks == before)
            room = 0;
    }
    free (order);
    return 0;
}

/* The option per-resource: so many tasks on each node, or each core.
 */
static int distribute_per_resource (flux_shell_t *shell, json_t *conf)
{
    const char *type;
    int count = 1;

    if (json_unpack (conf, "{s:s s?i}", "type", &type, "count", &count) < 0
        || count < 1
        || (!streq (type, "node") && !streq (type, "core")))
        return -1;
    for (int i = 0; i < shell->size; i++) {
        struct node *node = &shell->nodes[i];
        node->ntasks = streq (type, "node") ? count : count * node->ncores;
    }
    return 0;
}

/* Count the slots, spread the tasks, and note the result for plugins.
 */
static int plan_tasks (flux_shell_t *shell)
{
    json_t *resources;
    json_t *count;
    json_t *per_resource;
    struct slots slots = { 0 };
    int cores = 0;
    int gpus = 0;
    int ntasks;

    if (json_unpack (shell->jobspec,
                     "{s:o s:[{s:o s:o}]}",
                     "resources", &resources,
                     "tasks",
                       "command", &shell->command,
                       "count", &count) < 0
        || !json_is_array (shell->command)
        || json_array_size (shell->command) == 0
        || find_slot (resources, &slots) < 0)
        return -1;
    if (slots.per_node)
        slots.count *= shell->size;
    for (int i = 0; i < shell->size; i++) {
        cores += shell->nodes[i].ncores;
        gpus += shell->nodes[i].ngpus;
    }
    if (json_unpack (count, "{s:i}", "total", &ntasks) < 0)
        ntasks = slots.count;
    if (!(shell->jobspec_info
          = json_pack ("{s:i s:i s:i s:i s:i s:i s:i s:b}",
                       "version", 1,
                       "ntasks", ntasks,
                       "nslots", slots.count,
                       "cores_per_slot", cores / slots.count,
                       "gpus_per_slot", gpus / slots.count,
                       "nnodes", slots.per_node ? shell->size : -1,
                       "slots_per_node",
                         slots.per_node ? slots.count / shell->size : -1,
                       "node_exclusive", node_exclusive (resources))))
        return -1;
    if ((per_resource = json_object_get (shell->options, "per-resource"))) {
        if (distribute_per_resource (shell, per_resource) < 0)
            return -1;
    }
    else if (distribute (shell, ntasks, cores / slots.count) < 0)
        return -1;
    for (int i = 0; i < shell->size; i++) {
        shell->nodes[i].first_task = shell->ntasks;
        shell->ntasks += shell->nodes[i].ntasks;
    }
    return 0;
}

/* The RFC 34 map of block distribution: runs of nodes with as many tasks.
 */
static json_t *encode_taskmap (flux_shell_t *shell)
{
    json_t *map = json_array ();

    for (int i = 0, n; map && i < shell->size; i += n) {
        int ntasks = shell->nodes[i].ntasks;
        for (n = 1; i + n < shell->size; n++) {
            if (shell->nodes[i + n].ntasks != ntasks)
                break;
        }
        if (json_array_append_new (map,
                                   json_pack ("[i,i,i,i]",
                                              i, n, ntasks, 1)) < 0)
            break;
    }
    return map;
}

/* An object within 'parent', made if it is not there.
 */
static json_t *subobject (json_t *parent, const char *path)
{
    json_t *o = jp_get (parent, path);

    if (!o && (o = json_object ())) {
        (void)jp_set (parent, path, o);
        json_decref (o);
        o = jp_get (parent, path);
    }
    return o;
}

/* The jobspec as it was submitted: the copy in the KVS is without the
 * environment.
 */
static json_t *decode_J (const char *J)
{
    char *text = flux_unwrap_string (J, false, NULL, NULL);
    json_t *o = text ? json_loads (text, 0, NULL) : NULL;

    free (text);
    return o;
}

int shell_info_init (flux_shell_t *shell, unsigned int broker_rank)
{
    const char *J;
    const char *R;

    if (flux_rpc_get_unpack (shell->lookup,
                             "{s:s s:s}",
                             "J", &J,
                             "R", &R) < 0) {
        shell_log_error ("error fetching J and R: %s",
                         flux_future_error_string (shell->lookup));
        return -1;
    }
    errno = EPROTO;
    if (!(shell->jobspec = decode_J (J))
        || !(shell->R = json_loads (R, 0, NULL))
        || parse_R (shell) < 0)
        return shell_log_errno ("error parsing R");
    if (!(shell->options = subobject (shell->jobspec,
                                      "attributes.system.shell.options"))
        || !(shell->env = subobject (shell->jobspec,
                                     "attributes.system.environment"))
        || plan_tasks (shell) < 0)
        return shell_log_errno ("error parsing jobspec");
    shell->cwd = json_string_value (jp_get (shell->jobspec,
                                            "attributes.system.cwd"));
    shell->verbose = json_integer_value (json_object_get (shell->options,
                                                          "verbose"));
    for (shell->rank = 0; shell->rank < shell->size; shell->rank++) {
        if (shell->nodes[shell->rank].broker_rank == broker_rank)
            break;
    }
    if (shell->rank == shell->size)
        return shell_log_errn (EINVAL, "rank %u is not in R", broker_rank);
    if (!(shell->info = json_pack ("{s:I s:i s:i s:i s:i s:s s:{s:b}"
                                   " s:O s:O}",
                                   "jobid", shell->id,
                                   "instance_owner", (int)shell->owner,
                                   "rank", shell->rank,
                                   "size", shell->size,
                                   "ntasks", shell->ntasks,
                                   "service", shell->service,
                                   "options",
                                     "verbose", shell->verbose,
                                   "jobspec", shell->jobspec,
                                   "R", shell->R)))
        return shell_log_errno ("shell info");
    return flux_shell_add_event_context (shell,
                                         "shell.init",
                                         0,
                                         "{s:s s:i s:i}",
                                         "service", shell->service,
                                         "leader-rank",
                                           (int)shell->nodes[0].broker_rank,
                                         "size", shell->size)
           || flux_shell_add_event_context (shell,
                                            "shell.start",
                                            0,
                                            "{s:{s:i s:o}}",
                                            "taskmap",
                                              "version", 1,
                                              "map", encode_taskmap (shell))
           ? -1 : 0;
}

void shell_info_fini (flux_shell_t *shell)
{
    for (int i = 0; i < shell->size; i++) {
        json_decref (shell->nodes[i].info);
        free (shell->nodes[i].host);
    }
    free (shell->nodes);
    hostlist_destroy (shell->hosts);
    json_decref (shell->info);
    json_decref (shell->jobspec_info);
    json_decref (shell->event_context);
    json_decref (shell->jobspec);
    json_decref (shell->R);
    flux_future_destroy (shell->lookup);
}

// vi: ts=4 sw=4 expandtab
