/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of mounts.c.
 */

#include "libdws/facts/mounts.h"
#include "libdws/test/util.h"

#define MOUNT(name, node, status) \
    "{'metadata': {'name': 'default-fluxjob-1-0-" name "'}," \
    " 'spec': {'node': '" node "'}" status "}"
#define STATUS(state, ready) \
    ", 'status': {'mounts': [{'state': '" state "', 'ready': " ready "}]}"

static void check_mounts (const char *text, const char *state,
                          const char *want)
{
    json_t *o = J (text);
    char *got = dws_mounts_lagging (o, state, NULL);

    assert_string_equal (got, want);
    free (got);
    json_decref (o);
}

static void test_mounts (void **state)
{
    static const char *const three =
        "[" MOUNT ("computes", "node0", STATUS ("mounted", "true")) ","
        MOUNT ("computes", "node1", STATUS ("mounted", "false")) ","
        MOUNT ("computes", "node2", STATUS ("unmounted", "true")) "]";

    check_mounts ("[]", "mounted", "");
    check_mounts (three, "mounted", "node[1-2]");
    check_mounts (three, "unmounted", "node[0-1]");
    /* what says nothing has not arrived, what is on a rabbit is no node */
    check_mounts ("[" MOUNT ("computes", "node0", "") ","
                  MOUNT ("computes", "node1", ", 'status': {'mounts': []}") ","
                  MOUNT ("servers", "rabbit0", "") ", 5, {}]",
                  "mounted", "node[0-1]");
    /* two file systems on one node */
    check_mounts ("[" MOUNT ("computes", "node0", STATUS ("mounted", "true"))
                  "," MOUNT ("computes", "node0",
                             STATUS ("mounted", "false")) "]",
                  "mounted", "node0");
}

/* 'failed' was left out, and is still in R.
 */
static void check_missing (const char *text, size_t mounts, char *failed,
                           const char *want)
{
    json_t *mapping = J ("{'computes': {'node0': 'rabbit0', 'node1': 'rabbit0',"
                         "  'node2': 'rabbit0', 'node3': 'rabbit0'},"
                         " 'rabbits': {'rabbit0': {'capacity': 1,"
                         "  'hostlist': 'node[0-3]'}}}");
    struct dws_topology *topo = dws_topology_create (mapping, NULL);
    struct dws_job job = { .hosts = "rabbit0,login0,node[0-3]" };
    struct dws_workflow wf = { .mounts = mounts, .failed = failed };
    json_t *o = J (text);
    char *got = dws_mounts_missing (o, &job, &wf, topo, NULL);

    assert_non_null (got);
    assert_string_equal (got, want);
    free (got);
    dws_topology_destroy (topo);
    json_decref (mapping);
    json_decref (o);
}

static void test_missing (void **state)
{
    static const char *const three =
        "[" MOUNT ("computes", "node0", STATUS ("mounted", "true")) ","
        MOUNT ("servers", "rabbit0", "") ","
        MOUNT ("computes", "node1", STATUS ("mounted", "false")) ","
        MOUNT ("computes", "node2", STATUS ("mounted", "true")) "]";
    struct dws_job job = { .hosts = NULL };
    struct dws_workflow wf = { .mounts = 1 };
    dws_error_t error;
    json_t *o = J (three);
    char *got;

    /* more computes than allocations: there is no ClientMount at all */
    check_missing ("[]", 1, NULL, "node[0-3]");
    check_missing ("[]", 1, "node3", "node[0-2]");
    check_missing ("[]", 0, NULL, "");
    /* a node far from its storage, one that lags */
    check_missing (three, 1, NULL, "node[1,3]");
    /* of two file systems nobody has the second */
    check_missing (three, 2, NULL, "node[0-3]");
    /* as long as R is not known: those that are seen to lag */
    assert_non_null ((got = dws_mounts_missing (o, &job, &wf, NULL, NULL)));
    assert_string_equal (got, "node1");
    free (got);
    job.hosts = "node[";
    assert_null (dws_mounts_missing (o, &job, &wf, NULL, &error));
    assert_int_equal (errno, EINVAL);
    json_decref (o);
}

#define WANT(index, node, type, desired, more) \
    "{'metadata': {'name': 'default-fluxjob-1-" index "-computes'" more "," \
    " 'spec': {'node': '" node "', 'desiredState': '" desired "'," \
    "  'mounts': [{'type': '" type "'}]}"
#define HEARD ", 'finalizers': ['x']}"
#define DEAF "}"
#define IS(state) STATUS (state, "true") "}"

static void check_unmount (const char *text, enum dws_unmount want)
{
    struct dws_workflow wf = { .waived = "node0,node5" };
    json_t *o = J (text);

    assert_int_equal (dws_mounts_unmount (o, &wf), want);
    json_decref (o);
}

static void test_unmount (void **state)
{
    static const char *const gone = ", 'deletionTimestamp': 'x'}";
    char *text;

    /* all are; the others are not yet; they are */
    check_unmount ("[]", DWS_UNMOUNT_BUSY);
    check_unmount ("[" WANT ("0", "node1", "xfs", "unmounted", HEARD)
                   IS ("mounted") ","
                   WANT ("0", "node0", "xfs", "unmounted", DEAF) "}]",
                   DWS_UNMOUNT_BUSY);
    check_unmount ("[" WANT ("0", "node1", "xfs", "unmounted", HEARD)
                   IS ("unmounted") ","
                   WANT ("0", "node0", "xfs", "unmounted", DEAF) "}]",
                   DWS_UNMOUNT_WAIVED);
    check_unmount ("[" WANT ("0", "node0", "xfs", "unmounted", HEARD)
                   IS ("unmounted") "]", DWS_UNMOUNT_BUSY);
    /* another file system has to wait for its turn */
    check_unmount ("[" WANT ("0", "node0", "xfs", "unmounted", HEARD)
                   IS ("mounted") ","
                   WANT ("1", "node0", "xfs", "mounted", DEAF) "},"
                   WANT ("1", "node1", "gfs2", "mounted", HEARD)
                   IS ("mounted") "]", DWS_UNMOUNT_FIRST);
    check_unmount ("[" WANT ("0", "node0", "xfs", "unmounted", HEARD) "},"
                   WANT ("1", "node1", "gfs2", "mounted", HEARD)
                   IS ("mounted") "]", DWS_UNMOUNT_DEAF);
    check_unmount ("[" WANT ("0", "node0", "xfs", "unmounted", HEARD)
                   ", 'status': {'mounts': [{'state': 'unmounted',"
                   " 'ready': false}], 'error': {}}},"
                   WANT ("1", "node1", "gfs2", "mounted", HEARD)
                   IS ("mounted") "]", DWS_UNMOUNT_DEAF);
    /* which matters to nobody where all have the same */
    check_unmount ("[" WANT ("0", "node0", "xfs", "unmounted", HEARD) "},"
                   WANT ("1", "node1", "lustre", "mounted", HEARD)
                   IS ("mounted") "]", DWS_UNMOUNT_WAIVED);
    /* Teardown deletes what it unmounts */
    assert_true (asprintf (&text, "[" WANT ("0", "node1", "xfs", "mounted", "%s")
                           IS ("mounted") ","
                           WANT ("0", "node0", "xfs", "mounted", "%s")
                           IS ("mounted") "]", gone, gone) > 0);
    check_unmount (text, DWS_UNMOUNT_BUSY);
    free (text);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_mounts),
        cmocka_unit_test (test_unmount),
        cmocka_unit_test (test_missing),
    };

    return cmocka_run_group_tests_name ("mounts", tests, NULL, NULL);
}
