/* SPDX-License-Identifier: LGPL-3.0-only */
/* info.c - the job as the shell needs it: jobspec, R, and the node of each
 * task.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <flux/hostlist.h>
#include <flux/idset.h>

#include "shell.h"

/* The number of slots, of each node if a node holds them; -1 without any. */
static int find_slots (json_t *resources, bool *per_node)
{
    size_t index;
    json_t *entry;

    json_array_foreach (resources, index, entry) {
        const char *type = json_string_value (json_object_get (entry, "type"));
        int count;

        if (!type)
            return -1;
        if (streq (type, "slot")) {
            count = json_integer_value (json_object_get (entry, "count"));
            return count > 0 ? count : -1;
        }
        if (streq (type, "node"))
            *per_node = true;
        count = find_slots (json_object_get (entry, "with"), per_node);
        if (count > 0)
            return count;
    }
    return -1;
}

static int compare_rank (const void *a, const void *b)
{
    const struct node *x = a;
    const struct node *y = b;

    return (x->broker_rank > y->broker_rank) - (x->broker_rank < y->broker_rank);
}

/* Add the nodes of one entry of R_lite, which are alike. */
static int add_nodes (flux_shell_t *shell, json_t *entry)
{
    const char *ranks;
    const char *cores = "";
    struct idset *ids = NULL;
    struct idset *core_ids = NULL;
    struct node *nodes;
    unsigned int id;
    int rc = -1;

    if (json_unpack (entry, "{s:s s:{s?s}}", "rank", &ranks,
                     "children", "core", &cores) == 0
        && (ids = idset_decode (ranks))
        && (core_ids = idset_decode (cores))
        && (nodes = realloc (shell->nodes, (shell->size + idset_count (ids))
                                           * sizeof (*nodes)))) {
        shell->nodes = nodes;
        for (id = idset_first (ids); id != IDSET_INVALID_ID;
             id = idset_next (ids, id))
            nodes[shell->size++] = (struct node) {
                .broker_rank = id,
                .ncores = idset_count (core_ids) ?: 1,
            };
        rc = 0;
    }
    idset_destroy (ids);
    idset_destroy (core_ids);
    return rc;
}

/* nodelist has the hosts of the ranks in ascending order, whatever the order
 * of the entries of R_lite.
 */
static int parse_R (flux_shell_t *shell)
{
    struct hostlist *hosts = hostlist_create ();
    json_t *lite, *nodelist, *entry;
    size_t index;
    int i = 0;
    int rc = -1;

    if (!hosts
        || json_unpack (shell->R, "{s:{s:o s:o}}", "execution",
                        "R_lite", &lite, "nodelist", &nodelist) < 0)
        goto done;
    json_array_foreach (nodelist, index, entry) {
        if (hostlist_append (hosts, json_string_value (entry)) < 0)
            goto done;
    }
    json_array_foreach (lite, index, entry) {
        if (add_nodes (shell, entry) < 0)
            goto done;
    }
    if (shell->size == 0 || hostlist_count (hosts) != shell->size)
        goto done;
    qsort (shell->nodes, shell->size, sizeof (shell->nodes[0]), compare_rank);
    for (const char *s = hostlist_first (hosts); s; s = hostlist_next (hosts)) {
        if (!(shell->nodes[i++].host = strdup (s)))
            goto done;
    }
    rc = 0;
done:
    hostlist_destroy (hosts);
    return rc;
}

/* Give each node in turn a task, the nodes with most cores first, as long as
 * a node has cores for one more.  When all nodes are full, start anew.
 */
static void distribute (flux_shell_t *shell, int ntasks, int per_task)
{
    int most = 0;

    for (int i = 0; i < shell->size; i++) {
        int ncores = shell->nodes[i].ncores;
        if (ncores > most)
            most = ncores;
        if (ncores < per_task)
            per_task = ncores;
    }
    if (per_task < 1)
        per_task = 1;
    while (ntasks > 0) {
        for (int room = per_task; room <= most; room += per_task) {
            for (int cores = most; cores >= room; cores--) {
                for (int i = 0; i < shell->size && ntasks > 0; i++) {
                    if (shell->nodes[i].ncores == cores) {
                        shell->nodes[i].ntasks++;
                        ntasks--;
                    }
                }
            }
        }
    }
}

/* Count the slots, and spread the tasks.  With the option per-resource each
 * node, or each core, gets so many.
 */
static int plan_tasks (flux_shell_t *shell)
{
    json_t *resources, *count, *per_resource;
    const char *type;
    bool per_node = false;
    int cores = 0;
    int n = 1;
    int slots, ntasks;

    if (json_unpack (shell->jobspec, "{s:o s:[{s:o s:o}]}",
                     "resources", &resources,
                     "tasks", "command", &shell->command, "count", &count) < 0
        || json_array_size (shell->command) == 0
        || (slots = find_slots (resources, &per_node)) < 0)
        return -1;
    if (per_node)
        slots *= shell->size;
    for (int i = 0; i < shell->size; i++)
        cores += shell->nodes[i].ncores;
    if (json_unpack (count, "{s:i}", "total", &ntasks) < 0)
        ntasks = slots;
    if ((per_resource = json_object_get (shell->options, "per-resource"))) {
        if (json_unpack (per_resource, "{s:s s?i}", "type", &type,
                         "count", &n) < 0
            || n < 1 || (!streq (type, "node") && !streq (type, "core")))
            return -1;
        for (int i = 0; i < shell->size; i++)
            shell->nodes[i].ntasks = streq (type, "node")
                                     ? n : n * shell->nodes[i].ncores;
    }
    else
        distribute (shell, ntasks, cores / slots);
    for (int i = 0; i < shell->size; i++) {
        shell->nodes[i].first_task = shell->ntasks;
        shell->ntasks += shell->nodes[i].ntasks;
    }
    return 0;
}

/* Tasks come in blocks: the map is a list of runs of nodes with as many. */
json_t *shell_taskmap (flux_shell_t *shell)
{
    json_t *map = json_array ();

    for (int i = 0, n; map && i < shell->size; i += n) {
        int ntasks = shell->nodes[i].ntasks;
        for (n = 1; i + n < shell->size; n++) {
            if (shell->nodes[i + n].ntasks != ntasks)
                break;
        }
        json_array_append_new (map, json_pack ("[i,i,i,i]", i, n, ntasks, 1));
    }
    return json_pack ("{s:{s:i s:o}}", "taskmap", "version", 1, "map", map);
}

/* The object at 'path' of the jobspec, made if the jobspec has none. */
static json_t *subobject (json_t *jobspec, const char *path)
{
    json_t *o = json_object ();

    if (!jp_get (jobspec, path))
        (void)jp_set (jobspec, path, o);
    json_decref (o);
    return jp_get (jobspec, path);
}

/* J is the jobspec as submitted: the copy in the KVS has no environment. */
int shell_info_init (flux_shell_t *shell, flux_future_t *f,
                     unsigned int broker_rank)
{
    const char *J, *R;
    char *text;

    if (flux_rpc_get_unpack (f, "{s:s s:s}", "J", &J, "R", &R) < 0)
        return shell_log_errno ("job-info.lookup");
    errno = EPROTO;
    if ((text = flux_unwrap_string (J, false, NULL, NULL)))
        shell->jobspec = json_loads (text, 0, NULL);
    free (text);
    if (!shell->jobspec
        || !(shell->R = json_loads (R, 0, NULL))
        || parse_R (shell) < 0)
        return shell_log_errno ("cannot parse R");
    if (!(shell->options = subobject (shell->jobspec,
                                      "attributes.system.shell.options"))
        || !(shell->env = subobject (shell->jobspec,
                                     "attributes.system.environment"))
        || plan_tasks (shell) < 0)
        return shell_log_errno ("cannot parse the jobspec");
    while (shell->rank < shell->size
           && shell->nodes[shell->rank].broker_rank != broker_rank)
        shell->rank++;
    if (shell->rank == shell->size)
        return shell_log_errn (EINVAL, "rank %u is not in R", broker_rank);
    shell->info = json_pack ("{s:I s:i s:i s:i s:s s:O s:O}",
                             "jobid", shell->id,
                             "rank", shell->rank,
                             "size", shell->size,
                             "ntasks", shell->ntasks,
                             "service", shell->service,
                             "jobspec", shell->jobspec,
                             "R", shell->R);
    return shell->info ? 0 : -1;
}

void shell_info_fini (flux_shell_t *shell)
{
    for (int i = 0; i < shell->size; i++)
        free (shell->nodes[i].host);
    free (shell->nodes);
    json_decref (shell->info);
    json_decref (shell->jobspec);
    json_decref (shell->R);
}
