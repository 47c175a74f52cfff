/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Each operation of libdws is run over and over while the first, the second,
 * the third, ... allocation of memory fails, until it gets through. It must
 * fail with ENOMEM and a text, and (under ASan or valgrind) leave nothing
 * behind.
 *
 * The linker sends the allocations of libdws here (--wrap). Those of jansson
 * come through json_set_alloc_funcs() and get a round of their own: as
 * json_unpack() needs memory too but does not say whether that is why it
 * failed, the errno and even success are left open there.
 */

#include <stdbool.h>

#include "libdws/util/hosts.h"
#include "libdws/facts/servers.h"
#include "libdws/config/config.h"
#include "libdws/directive/command.h"
#include "libdws/directive/directive.h"
#include "libdws/facts/mounts.h"
#include "libdws/facts/workflow.h"
#include "libdws/graph/jgf.h"
#include "libdws/graph/nodemap.h"
#include "libdws/graph/topology.h"
#include "libdws/health/fluxion.h"
#include "libdws/health/health.h"
#include "libdws/storage/allocation.h"
#include "libdws/storage/reserved.h"
#include "libdws/storage/resources.h"
#include "libdws/storage/drives.h"
#include "libdws/storage/location.h"
#include "libdws/tell/persistent.h"
#include "libdws/tell/record.h"
#include "libdws/storage/test/with.h"
#include "libdws/test/util.h"
#include "libdws/util/jsontext.h"
#include "libutil/errno_safe.h"

static bool armed;            // the next of these allocations may fail:
static bool jansson;          // jansson's, not ours
static int countdown;
static bool hit;

void *__real_malloc (size_t size);
void *__real_calloc (size_t n, size_t size);
void *__real_realloc (void *ptr, size_t size);
char *__real_strdup (const char *s);
char *__real_strndup (const char *s, size_t n);

static bool must_fail (bool from_jansson)
{
    if (!armed || from_jansson != jansson || --countdown > 0)
        return false;
    armed = false;
    hit = true;
    errno = ENOMEM;
    return true;
}

void *__wrap_malloc (size_t size)
{
    return must_fail (false) ? NULL : __real_malloc (size);
}

void *__wrap_calloc (size_t n, size_t size)
{
    return must_fail (false) ? NULL : __real_calloc (n, size);
}

void *__wrap_realloc (void *ptr, size_t size)
{
    return must_fail (false) ? NULL : __real_realloc (ptr, size);
}

char *__wrap_strdup (const char *s)
{
    return must_fail (false) ? NULL : __real_strdup (s);
}

char *__wrap_strndup (const char *s, size_t n)
{
    return must_fail (false) ? NULL : __real_strndup (s, n);
}

int __wrap_asprintf (char **result, const char *fmt, ...)
{
    va_list ap;
    int n;

    if (must_fail (false))
        return -1;
    va_start (ap, fmt);
    n = vasprintf (result, fmt, ap);
    va_end (ap);
    return n;
}

static const char *mapping_text =
    "{'computes': {'a1': 'r1', 'a2': 'r1', 'b3': 'r2'},"
    " 'rabbits': {'r1': {'capacity': 107374182400, 'hostlist': 'a[1-2]'},"
    "             'r2': {'capacity': 107374182400, 'hostlist': 'b3'}}}";

static const char *R_text =
    "{'version': 1, 'execution': {'nodelist': ['a[1-2],b3,x9', 'r1'],"
    " 'R_lite': [{'rank': '0-4', 'children': {'core': '0-1'}}],"
    " 'properties': {'p': '0', 'q': '0-1'}},"
    " 'scheduling': {'graph': {'nodes': ["
    "  {'metadata': {'type': 'ssd', 'size': 50,"
    "   'paths': {'containment': '/c/chassis0/ssd1'}}},"
    "  {'metadata': {'type': 'node', 'name': 'a1',"
    "   'paths': {'containment': '/c/chassis0/a1'}}}]}}}";

static const char *breakdowns_text =
    "[{'metadata': {'name': 'w-0'}, 'status': {'ready': true, 'storage': {"
    " 'reference': {'name': 'w-0'}, 'allocationSets': ["
    "  {'allocationStrategy': 'AllocatePerCompute', 'label': 'xfs',"
    "   'minimumCapacity': 1073741824},"
    "  {'allocationStrategy': 'AllocateAcrossServers', 'label': 'ost',"
    "   'minimumCapacity': 10737418240},"
    "  {'allocationStrategy': 'AllocateSingleServer', 'label': 'mgt',"
    "   'minimumCapacity': 1073741824}]}}},"
    " {'metadata': {'name': 'w-1'}, 'status': {'ready': true, 'compute': {"
    "  'constraints': {'location': [{'access': [{'type': 'physical',"
    "   'priority': 'mandatory'}], 'reference': {'name': 'p',"
    "   'fieldPath': 'servers.spec.allocationSets[0]'}}]}}}}]";

static const char *servers_text =
    "[{'metadata': {'name': 'p'}, 'spec': {'allocationSets': ["
    " {'label': 'xfs', 'allocationSize': 7, 'storage': ["
    "  {'name': 'r1', 'allocationCount': 1}]}]}}]";

static const char *storages_text =
    "[{'metadata': {'name': 'r1'}, 'status': {'status': 'Ready',"
    "  'capacity': 107374182400}},"
    " {'metadata': {'name': 'r2'}, 'status': {'status': 'Ready',"
    "  'capacity': 107374182400}}]";

static const char *accesses_text =
    "{'r1': {'status': {'access': {'computes':"
    " [{'name': 'a2'}, {'name': 'a1'}]}}}}";

static const char *graph_text =
    "{'graph': {'nodes': ["
    " {'metadata': {'paths': {'containment': '/c/chassis0'},"
    "   'properties': {'rabbit': 'r1', 'ssdcount': '2'}}},"
    " {'metadata': {'paths': {'containment': '/c/chassis0/a2'},"
    "   'properties': {'badrabbit': ''}}}]}}";

static const char *persistent_text =
    "{'metadata': {'name': 'p', 'namespace': 'default'}, 'spec': {"
    "  'fsType': 'xfs', 'userID': 1, 'consumerReferences': ["
    "   {'name': 'fluxjob-77-0'}, {'name': 'other'}]}}";

static const char *clientmounts_text =
    "[{'metadata': {'name': 'm', 'namespace': 'a1'}, 'spec': {'node': 'a1',"
    "  'mounts': [{}]}, 'status': {'mounts': [{'state': 'unmounted',"
    "  'ready': false}]}}]";

static const char *dw_text =
    "['small\\n#DW copy_in source=/a/$USER/{{id}} destination=$DW_JOB_ab/ # x',"
    " '#DW persistentdw name=cd other=1']";

struct fixture {
    json_t *mapping;
    json_t *R;
    json_t *breakdowns;
    json_t *servers;
    json_t *storages;
    json_t *accesses;
    json_t *dw;
    json_t *presets;
    json_t *resources;
    json_t *nodes;
    json_t *config;
    json_t *graph;
    json_t *status;
    json_t *persistent;
    json_t *clientmounts;
    json_t *workflow;
    struct dws_topology *topo;
};

/* Operations return 0, or -1 with errno set.
 */
typedef int (*operation_f) (struct fixture *f, dws_error_t *e);

static int drop (json_t *o)
{
    if (!o)
        return -1;
    json_decref (o);
    return 0;
}

static int op_topology (struct fixture *f, dws_error_t *e)
{
    struct dws_topology *topo = dws_topology_create (f->mapping, e);

    dws_topology_destroy (topo);
    return topo ? 0 : -1;
}

static int op_directives (struct fixture *f, dws_error_t *e)
{
    struct dws_directives *d = dws_directives_parse (f->dw, f->presets, NULL, e);
    double lifetime;
    json_t *texts;
    int rc;

    if (!d)
        return -1;
    if (dws_directives_fill (d, "ann", "f1", e) < 0) {
        ERRNO_SAFE (dws_directives_destroy (d));
        return -1;
    }
    strcpy (e->text, "encode and read have none");
    texts = dws_directives_encode (d);
    dws_directives_destroy (d);
    if (!texts)
        return -1;
    d = dws_directives_read (texts);
    rc = d ? dws_commands_take_lifetime (d, &lifetime) : -1;
    ERRNO_SAFE (json_decref (texts));
    if (rc == 0)
        rc = drop (dws_commands_copied_out (d));
    dws_directives_destroy (d);
    return rc;
}

static int op_breakdown (struct fixture *f, dws_error_t *e)
{
    return drop (WITH_BREAKDOWNS (f->breakdowns, e,
                                  dws_resources_apply (f->resources, bd, NULL,
                                                       e)));
}

static int op_nodes (struct fixture *f, dws_error_t *e)
{
    json_t *hosts = json_string ("a1,b3,a2");
    int rc = -1;

    if (hosts)
        rc = drop (dws_allocation_nodes (hosts, f->topo, e));
    else
        strcpy (e->text, "fixture");
    json_decref (hosts);
    return rc;
}

/* What is lost is said only by the map.
 */
static int drop_bytes (struct dws_bytes *map, dws_error_t *e)
{
    json_t *o = map->lost ? NULL : dws_bytes_encode (map);
    char *rabbits = o ? dws_bytes_rabbits (map) : NULL;
    int rc = o && rabbits ? 0 : -1;

    if (rc < 0)
        dws_error_nomem (e);
    json_decref (o);
    free (rabbits);
    dws_bytes_clear (map);
    return rc;
}

static int op_taken (struct fixture *f, dws_error_t *e)
{
    struct dws_bytes taken = { 0 };

    dws_drives_taken (json_array_get (f->servers, 0), &taken);
    return drop_bytes (&taken, e);
}

static int op_reserved (struct fixture *f, dws_error_t *e)
{
    struct dws_bytes reserved = { 0 };

    if (drop (dws_reserved_ssds (f->R, e)) < 0)
        return -1;
    if (dws_reserved (f->R, f->topo, &reserved, e) < 0) {
        dws_bytes_clear (&reserved);
        return -1;
    }
    return drop_bytes (&reserved, e);
}

static int op_sets (struct fixture *f, dws_error_t *e)
{
    struct dws_allocation_opts opts = { .storages = f->storages };

    return drop (WITH_BREAKDOWNS (f->breakdowns, e,
                                  dws_allocation_sets (bd, f->nodes, &opts,
                                                       e)));
}

static int op_location (struct fixture *f, dws_error_t *e)
{
    if (drop (WITH_BREAKDOWNS (f->breakdowns, e,
                               dws_location_servers (bd))) < 0)
        return dws_error_nomem (e);
    return drop (WITH_BREAKDOWNS (f->breakdowns, e,
                                  dws_location_constraint (bd, f->servers,
                                                           f->topo, 1, e)));
}

static int sink (void *arg, const char *buf, size_t len)
{
    return 0;
}

static int op_jgf (struct fixture *f, dws_error_t *e)
{
    struct dws_jgf_opts opts = {
        .cluster = "c", .chunks = 2, .exclude = "b3", .validate = 1,
    };
    struct dws_jgf *jgf = dws_jgf_create (f->R, f->topo, &opts, e);
    int rc;

    if (!jgf)
        return -1;
    rc = dws_jgf_write (jgf, sink, NULL, e);
    dws_jgf_destroy (jgf);
    return rc;
}

static int op_config (struct fixture *f, dws_error_t *e)
{
    json_t *notes = json_array ();
    struct dws_config *config = NULL;
    int rc;

    if (notes)
        config = dws_config_create (f->config, notes, e);
    else
        dws_error_nomem (e);
    json_decref (notes);
    if (!config)
        return -1;
    rc = drop (dws_config_agent (config));
    dws_config_destroy (config);
    if (rc < 0 || drop (dws_config_faults (f->config, NULL)) < 0
        || drop (dws_config_describe ()) < 0)
        return dws_error_nomem (e);
    return 0;
}

/* As a caller does it, who lets go of what he has got in any case.
 */
static int op_fluxion (struct fixture *f, dws_error_t *e)
{
    json_t *set = NULL;
    json_t *clear = NULL;
    struct dws_fluxion *fx;
    int rc;

    if (!(fx = dws_fluxion_create (f->graph, true, e)))
        return -1;
    rc = dws_fluxion_properties (fx, "a1,b3", f->topo, &set, &clear, e);
    json_decref (set);
    json_decref (clear);
    if (rc == 0)
        rc = drop (dws_fluxion_ssds (fx, NULL, NULL, f->topo, e));
    dws_fluxion_destroy (fx);
    return rc;
}

static int op_health (struct fixture *f, dws_error_t *e)
{
    struct dws_health_policy policy = { .drain = true, .soft_drain = true };
    struct dws_absence absence = { .since = json_object () };
    struct dws_health health = { 0 };
    struct dws_nodes *nodes;
    int rc;

    if (!absence.since)
        return dws_error_nomem (e);
    if (!(nodes = dws_nodes_create (f->status, e))) {
        json_decref (absence.since);
        return -1;
    }
    rc = dws_health_decide (&health, f->storages, f->topo, nodes, &policy, e);
    dws_health_clear (&health);
    if (rc == 0)
        rc = dws_health_absent (absence.since, nodes, 1.);
    if (rc == 0)
        rc = drop (dws_health_systemstatus (nodes, f->topo, NULL, NULL,
                                            &absence, e));
    if (rc == 0)
        rc = drop (dws_health_constraint (NULL, e));
    if (rc < 0 && !*e->text)
        strcpy (e->text, "absent has none");
    dws_nodes_destroy (nodes);
    json_decref (absence.since);
    return rc;
}

static int drop_text (char *s)
{
    free (s);
    return s ? 0 : -1;
}

static int op_nodemap (struct fixture *f, dws_error_t *e)
{
    struct dws_nodemap_opts opts = {
        .left_out = "b3",
        .storages = f->accesses,
    };

    return drop_text (dws_nodemap ("b3,a[1-2]", f->topo, &opts, e));
}

static int op_mounts (struct fixture *f, dws_error_t *e)
{
    struct dws_job job = { .hosts = "a[1-3]" };
    struct dws_workflow wf = { .mounts = 1 };
    bool shared;

    if (drop_text (dws_mounts_missing (f->clientmounts, &job, &wf, f->topo,
                                       e)) < 0
        || drop_text (dws_mounts_lagging (f->clientmounts, "mounted", e)) < 0
        || drop_text (dws_servers_unready (f->servers, e)) < 0
        || drop_text (dws_servers_allocated (f->servers, e)) < 0
        || drop_text (dws_servers_lagging (f->servers, "a1,b3", f->topo,
                                           &shared, e)) < 0)
        return -1;
    return drop_text (dws_hosts_subtract ("a[1-2]", "a1", e));
}

static int op_persistent (struct fixture *f, dws_error_t *e)
{
    strcpy (e->text, "describe has none");
    return drop (dws_persistent_describe (f->persistent));
}

/* Returns how many allocations there are.
 */
static int sweep (struct fixture *f, const char *name, operation_f op)
{
    for (int n = 1; n < 10000; n++) {
        dws_error_t e = { "" };
        int rc;

        countdown = n;
        hit = false;
        errno = 0;
        armed = true;
        rc = op (f, &e);
        armed = false;
        if (!hit) {
            if (rc < 0)
                fail_msg ("%s: %s", name, e.text);
            return n - 1;
        }
        if (jansson && (rc == 0 || *e.text))
            continue;
        if (rc == 0)
            fail_msg ("%s: allocation %d fails, and nobody cares", name, n);
        if (errno != ENOMEM || !*e.text)
            fail_msg ("%s: allocation %d: errno %d, '%s'",
                      name, n, errno, e.text);
    }
    fail_msg ("%s never gets through", name);
    return -1;
}

static int op_record (struct fixture *f, dws_error_t *e)
{
    if (drop (dws_record_object (f->mapping)) < 0
        || drop (dws_record_movements (f->breakdowns, 10)) < 0)
        return dws_error_nomem (e);
    return 0;
}

/* Not from text to values: jansson's parser does not stand that.
 */
static int op_json (struct fixture *f, dws_error_t *e)
{
    char *text = NULL;
    char *record = NULL;
    int rc = 0;

    if (dws_jsontext_set (&text, f->breakdowns) < 0
        || !(record = dws_record_text ("{}")))
        rc = dws_error (e, errno, "JSON");
    ERRNO_SAFE (free (record));
    ERRNO_SAFE (free (text));
    return rc;
}

static int op_workflow (struct fixture *f, dws_error_t *e)
{
    struct dws_workflow *wf = dws_workflow_decode (f->workflow, "me", e);

    dws_workflow_destroy (wf);
    return wf ? 0 : -1;
}

static int op_hosts (struct fixture *f, dws_error_t *e)
{
    static const char *const lists[] = { "a[1-2]", "b" };
    char *s = dws_hosts_merge (lists, 2, e);

    free (s);
    return s ? 0 : -1;
}

static void *jansson_malloc (size_t size)
{
    return must_fail (true) ? NULL : __real_malloc (size);
}

static void test_sweep (void **state)
{
    static const struct {
        const char *name;
        operation_f op;
    } operations[] = {
        { "topology", op_topology },
        { "directives", op_directives },
        { "breakdown", op_breakdown },
        { "nodes", op_nodes },
        { "reserved", op_reserved },
        { "taken", op_taken },
        { "sets", op_sets },
        { "location", op_location },
        { "jgf", op_jgf },
        { "config", op_config },
        { "record", op_record },
        { "json", op_json },
        { "workflow", op_workflow },
        { "hosts", op_hosts },
        { "fluxion", op_fluxion },
        { "health", op_health },
        { "nodemap", op_nodemap },
        { "mounts", op_mounts },
        { "persistent", op_persistent },
    };
    struct fixture f = { 0 };
    int ours = 0;
    int theirs = 0;

    json_set_alloc_funcs (jansson_malloc, free);
    f.mapping = J (mapping_text);
    f.R = J (R_text);
    f.breakdowns = J (breakdowns_text);
    f.workflow = J ("{'name': 'fluxjob-7', 'uid': 'u', 'state': 'Setup',"
                    " 'directives': ['#DW jobdw name=a'], 'env': {'A': 'b'},"
                    " 'breakdowns': [{'name': 'b'}], 'drivers':"
                    "  [{'watchState': 'Setup', 'error': 'an error'},"
                    "   {'message': 'm'}]}");
    f.servers = J (servers_text);
    f.storages = J (storages_text);
    f.accesses = J (accesses_text);
    f.dw = J (dw_text);
    f.presets = J ("{'small': ['#DW jobdw type=gfs2 capacity=1GB name=ab']}");
    f.resources = J ("[{'type': 'node', 'count': 3}]");
    f.nodes = J ("{'r1': 2, 'r2': 1}");
    f.config = J ("{'mapping': '/m', 'tc_timeout': '5m', 'nonsense': 1,"
                  " 'restrict_persistent': true,"
                  " 'presets': {'a': '#DW jobdw type=xfs capacity=1GB"
                  " name=ab'}}");
    f.graph = J (graph_text);
    f.status = json_pack ("{s:O s:{s:{s:s}} s:s}",
                          "R", f.R,
                          "drain",
                            "1", "reason", DWS_DRAIN_LINK,
                          "offline", "2");
    f.persistent = J (persistent_text);
    f.clientmounts = J (clientmounts_text);
    f.topo = dws_topology_create (f.mapping, NULL);
    assert_non_null (f.topo);
    for (size_t i = 0; i < sizeof (operations) / sizeof (operations[0]); i++) {
        jansson = false;
        ours += sweep (&f, operations[i].name, operations[i].op);
        jansson = true;
        theirs += sweep (&f, operations[i].name, operations[i].op);
    }
    // both kinds do come through here
    assert_true (ours > 50);
    assert_true (theirs > 50);
    dws_topology_destroy (f.topo);
    json_decref (f.workflow);
    json_decref (f.clientmounts);
    json_decref (f.persistent);
    json_decref (f.status);
    json_decref (f.graph);
    json_decref (f.config);
    json_decref (f.nodes);
    json_decref (f.resources);
    json_decref (f.presets);
    json_decref (f.dw);
    json_decref (f.storages);
    json_decref (f.accesses);
    json_decref (f.servers);
    json_decref (f.breakdowns);
    json_decref (f.R);
    json_decref (f.mapping);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_sweep),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
