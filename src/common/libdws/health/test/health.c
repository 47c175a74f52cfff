/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of health.c.
 */

#include <math.h>

#include "libdws/health/health.h"
#include "libdws/health/usable.h"
#include "libdws/test/util.h"

/* Two rabbits with two nodes each, node4 has none. node0 and node2 are in
 * queue batch, node1 in debug.
 */
static const char *const mapping =
    "{'computes': {'node0': 'r0', 'node1': 'r0', 'node2': 'r1',"
    "              'node3': 'r1'},"
    " 'rabbits': {'r0': {'capacity': 1000, 'hostlist': 'node[0-1]'},"
    "             'r1': {'capacity': 2000, 'hostlist': 'node[2-3]'}}}";
#define R \
    "'R': {'version': 1, 'execution': {'R_lite': [{'rank': '0-4'," \
    " 'children': {'core': '0'}}], 'nodelist': ['node[0-4]']," \
    " 'properties': {'batch': '0,2', 'debug': '1', 'gpu': '2'}}}"
#define STORAGE(name, status, capacity, computes) \
    "{'metadata': {'name': '" name "'}, 'status': {'status': '" status "'," \
    " 'capacity': " capacity ", 'access': {'computes': [" computes "]}}}"
#define LINK(name, status) "{'name': '" name "', 'status': '" status "'}"
#define WELL_1 STORAGE ("r1", "Ready", "2000", LINK ("node2", "Ready") "," \
                        LINK ("node3", "Ready"))
#define DRAINED(ranks, reason) \
    "'drain': {'" ranks "': {'timestamp': 1.0, 'reason': '" reason "'}}"

static struct dws_topology *topology (void)
{
    json_t *o = J (mapping);
    struct dws_topology *topo = dws_topology_create (o, NULL);

    assert_non_null (topo);
    json_decref (o);
    return topo;
}

static struct dws_nodes *nodes_from (const char *more)
{
    char text[1024];
    json_t *o;
    struct dws_nodes *nodes;
    dws_error_t error;

    snprintf (text, sizeof (text), "{" R "%s%s}", *more ? ", " : "", more);
    o = J (text);
    if (!(nodes = dws_nodes_create (o, &error)))
        fail_msg ("%s", error.text);
    json_decref (o);
    return nodes;
}

static void test_count (void **state)
{
    struct dws_nodes *nodes = nodes_from ("");
    size_t all = dws_nodes_all (nodes);

    assert_int_equal (dws_nodes_up (nodes), all);
    dws_nodes_destroy (nodes);
    nodes = nodes_from ("'offline': '0', 'drain': {'1': {'reason': 'x'}}");
    assert_int_equal (dws_nodes_up (nodes), all - 2);
    assert_int_equal (dws_nodes_all (nodes), all);
    dws_nodes_destroy (nodes);
    nodes = nodes_from ("'offline': '0', 'exclude': '0-1'");
    assert_int_equal (dws_nodes_up (nodes), all - 2);
    assert_int_equal (dws_nodes_all (nodes), all - 2);
    dws_nodes_destroy (nodes);
}

static void decide (struct dws_health *health, const char *storages,
                    const char *flux, bool drain, bool soft,
                    const char *queues)
{
    struct dws_topology *topo = topology ();
    struct dws_nodes *nodes = nodes_from (flux);
    json_t *o = J (storages);
    struct dws_bytes outside = BYTES ("{'r1': 7, 'other': 8}");
    struct dws_health_policy policy = {
        .drain = drain, .soft_drain = soft, .queues = J (queues),
        .outside = &outside,
    };
    dws_error_t error;

    if (dws_health_decide (health, o, topo, nodes, &policy, &error) < 0)
        fail_msg ("%s", error.text);
    json_decref (policy.queues);
    dws_bytes_clear (&outside);
    json_decref (o);
    dws_nodes_destroy (nodes);
    dws_topology_destroy (topo);
}

struct row {
    const char *storages;
    const char *flux;
    bool drain;
    bool soft;
    const char *queues;
    const char *bad;
    const char *to_drain;
    const char *to_undrain;
};

#define LOST_1 "[" STORAGE ("r0", "Ready", "1000", LINK ("node0", "Ready") \
                            "," LINK ("node1", "Offline")) "," WELL_1 "]"
#define ALL_LOST "[" STORAGE ("r0", "Ready", "1000", \
                              LINK ("node0", "Failed") "," \
                              LINK ("node1", "Offline")) "," \
                 STORAGE ("r1", "Ready", "2000", \
                          LINK ("node2", "NotPresent") "," \
                          LINK ("node3", "Ready")) "]"
#define DOWN_0 "[" STORAGE ("r0", "Offline", "1000", \
                            LINK ("node1", "Offline")) "," WELL_1 "]"
#define WELL "[" STORAGE ("r0", "Ready", "1000", LINK ("node0", "Ready") "," \
                          LINK ("node1", "Ready")) "," WELL_1 "]"
#define OURS DRAINED ("1", DWS_DRAIN_LINK)

static const struct row rows[] = {
    /* nothing is known of any rabbit */
    { "[]", "", true, true, NULL, "", "", "" },
    { WELL, "", true, true, NULL, "", "", "" },
    /* a lost link: as the two keys say */
    { LOST_1, "", true, true, NULL, "node1", "node1", "" },
    { LOST_1, "", true, false, NULL, "", "node1", "" },
    { LOST_1, "", false, true, NULL, "node1", "", "" },
    { LOST_1, "", false, false, NULL, "", "", "" },
    /* not twice, and what an admin drained is the admin's */
    { LOST_1, OURS, true, true, NULL, "node1", "", "" },
    { LOST_1, DRAINED ("1", "broken"), true, true, NULL, "node1", "", "" },
    /* in some queues only: their properties, all of them, or none at all */
    { ALL_LOST, "", true, true, "[['batch']]", "node[0-2]", "node[0,2]", "" },
    { ALL_LOST, "", true, true, "[['batch', 'gpu']]", "node[0-2]", "node2",
      "" },
    { ALL_LOST, "", true, true, "[['gpu'], ['debug']]", "node[0-2]",
      "node[1-2]", "" },
    { ALL_LOST, "", true, true, "[[]]", "node[0-2]", "node[0-2]", "" },
    { ALL_LOST, "", true, true, "[]", "node[0-2]", "", "" },
    /* what is excluded can not be drained */
    { LOST_1, "'exclude': '1'", true, true, NULL, "", "", "" },
    /* a rabbit that is down, or was never seen: its links do not count */
    { DOWN_0, "", true, true, NULL, "node[0-1]", "", "" },
    { DOWN_0, "", true, false, NULL, "node[0-1]", "", "" },
    { DOWN_0, OURS, true, true, NULL, "node[0-1]", "", "" },
    { "[" WELL_1 "]", "", true, true, NULL, "node[0-1]", "", "" },
    { "[{'metadata': {'name': 'r0'}}," WELL_1 "]", "", true, true, NULL,
      "node[0-1]", "", "" },
    /* one of another machine, and what is no Storage */
    { "[" WELL_1 ", 5, {}, " STORAGE ("r9", "Ready", "1", "") "]", "", true,
      true, NULL, "node[0-1]", "", "" },
    /* mended: ours are undrained, no others */
    { WELL, OURS, true, true, NULL, "", "", "node1" },
    { WELL, DRAINED ("1", "broken"), true, true, NULL, "", "", "" },
    { WELL, DRAINED ("1", DWS_DRAIN_UNMOUNT " x"), true, true, NULL, "", "",
      "" },
    { WELL, DRAINED ("4", DWS_DRAIN_LINK), true, true, NULL, "", "", "" },
    /* not to be drained any more */
    { LOST_1, OURS, false, true, NULL, "node1", "", "node1" },
    { LOST_1, OURS, true, true, "[['batch']]", "node1", "", "node1" },
    { DOWN_0, OURS, false, true, NULL, "node[0-1]", "", "node1" },
};

static void test_decide (void **state)
{
    for (size_t i = 0; i < sizeof (rows) / sizeof (rows[0]); i++) {
        struct dws_health health = { 0 };
        const struct row *row = &rows[i];

        decide (&health, row->storages, row->flux, row->drain, row->soft,
                row->queues);
        if (strcmp (health.bad, row->bad)
            || strcmp (health.drain, row->to_drain)
            || strcmp (health.undrain, row->to_undrain))
            fail_msg ("row %zu: bad '%s' drain '%s' undrain '%s'", i,
                      health.bad, health.drain, health.undrain);
        dws_health_clear (&health);
    }
}

static void test_rabbits (void **state)
{
    struct dws_health health = { 0 };

    decide (&health, "[]", "", true, true, NULL);
    assert_json (health.rabbits, "{'r0': {'up': true, 'capacity': 1000},"
                                 " 'r1': {'up': true, 'capacity': 2000,"
                                 "        'outside': 7}}");
    /* smaller than mapped; larger, as the rest serves another purpose */
    decide (&health, "[" STORAGE ("r0", "Ready", "400", "") ","
            STORAGE ("r1", "Degraded", "9000", "") "]", "", true, true, NULL);
    assert_json (health.rabbits, "{'r0': {'up': true, 'capacity': 400},"
                                 " 'r1': {'up': false, 'capacity': 2000,"
                                 "        'outside': 7}}");
    dws_health_clear (&health);
}

#define DRIVE(status) "{'status': '" status "', 'capacity': 8292}"
#define READY3 DRIVE ("Ready") "," DRIVE ("Ready") "," DRIVE ("Ready")
#define READY14 READY3 "," READY3 "," READY3 "," READY3 "," DRIVE ("Ready") \
    "," DRIVE ("Ready")
#define DRIVES(capacity, list) \
    "{'status': {'capacity': " capacity ", 'devices': [" list "]}}"

/* Drives tell the size, not the number that says what was free.
 */
static void test_capacity (void **state)
{
    static const struct {
        const char *storage;
        int64_t mapped;
        int64_t capacity;
    } table[] = {
        { NULL, 1000, 1000 },
        { "{}", 1000, 1000 },
        { "{'status': {'capacity': 0}}", 1000, 1000 },
        { DRIVES ("1", READY14 "," READY3 "," DRIVE ("Ready")), 999999,
          16 * 8192 },
        { DRIVES ("1", READY14 "," READY3 "," DRIVE ("Ready")), 1000, 1000 },
        { DRIVES ("999999", READY14 "," DRIVE ("Failed")), 999999,
          14 * 8192 },
        { DRIVES ("999999", READY3), 999999, 0 },
    };

    for (size_t i = 0; i < sizeof (table) / sizeof (table[0]); i++) {
        json_t *storage = J (table[i].storage);

        assert_int_equal (dws_health_capacity (storage, table[i].mapped),
                          table[i].capacity);
        json_decref (storage);
    }
}

/* Fluxion refuses a job for which the property leaves too few nodes, so only
 * those have it which nothing else keeps from rabbit jobs.
 */
static void test_unlinked (void **state)
{
    struct dws_health health = { 0 };

    decide (&health, LOST_1, "", true, true, NULL);
    assert_string_equal (health.unlinked, "");
    decide (&health, LOST_1, OURS, true, true, NULL);
    assert_string_equal (health.unlinked, "");
    decide (&health, LOST_1, "", true, true, NULL);
    assert_string_equal (health.unlinked, "node1");
    decide (&health, LOST_1, DRAINED ("1", "disk"), true, true, NULL);
    assert_string_equal (health.unlinked, "");
    decide (&health, LOST_1, "", false, true, NULL);
    assert_string_equal (health.unlinked, "node1");
    decide (&health, LOST_1, "", false, false, NULL);
    assert_string_equal (health.unlinked, "");
    decide (&health, DOWN_0, "", false, true, NULL);
    assert_string_equal (health.unlinked, "");
    dws_health_clear (&health);
}

/* An admin who undrains a node whose link is still down means it: the node is
 * not drained again.
 */
static void test_pardon (void **state)
{
    struct dws_health health = { 0 };

    decide (&health, LOST_1, "", true, true, NULL);
    assert_string_equal (health.drain, "node1");
    decide (&health, LOST_1, OURS, true, true, NULL);
    assert_json (health.ours, "{'node1': true}");
    for (int i = 0; i < 2; i++) {
        decide (&health, LOST_1, "", true, true, NULL);
        assert_string_equal (health.drain, "");
        assert_string_equal (health.bad, "node1");
        assert_json (health.pardoned, "{'node1': true}");
        decide (&health, DOWN_0, "", true, true, NULL);
        assert_string_equal (health.drain, "");
    }
    /* the next time that it fails is another matter */
    decide (&health, WELL, "", true, true, NULL);
    assert_json (health.pardoned, "{}");
    decide (&health, LOST_1, "", true, true, NULL);
    assert_string_equal (health.drain, "node1");
    /* when we undrain, that is no pardon */
    decide (&health, LOST_1, OURS, true, true, NULL);
    decide (&health, LOST_1, OURS, false, true, NULL);
    assert_string_equal (health.undrain, "node1");
    decide (&health, LOST_1, "", true, true, NULL);
    assert_string_equal (health.drain, "node1");
    dws_health_clear (&health);
}

static void test_constraint (void **state)
{
    static const char *const healthy =
        "{'not': [{'properties': ['badrabbit']}]}";
    json_t *location = J ("{'hostlist': 'node0'}");
    json_t *null = json_null ();
    json_t *o;

    assert_json (o = dws_health_constraint (NULL, NULL), healthy);
    json_decref (o);
    assert_json (o = dws_health_constraint (null, NULL), healthy);
    json_decref (o);
    assert_json (o = dws_health_constraint (location, NULL),
                 "{'and': [{'hostlist': 'node0'},"
                 " {'not': [{'properties': ['badrabbit']}]}]}");
    json_decref (o);
    json_decref (location);
}

static void check_status (const char *flux, const char *known,
                          const char *stuck, const char *want)
{
    struct dws_topology *topo = topology ();
    struct dws_nodes *nodes = nodes_from (flux);
    json_t *is = J (known);
    json_t *set = J (stuck);
    struct dws_absence absence = { .since = json_object (), .now = 1. };
    json_t *changes;

    assert_int_equal (dws_health_absent (absence.since, nodes, 1.), 0);
    changes = dws_health_systemstatus (nodes, topo, is, set, &absence, NULL);
    assert_json (changes, want);
    assert_true (isinf (absence.due));
    json_decref (changes);
    json_decref (absence.since);
    json_decref (set);
    json_decref (is);
    dws_nodes_destroy (nodes);
    dws_topology_destroy (topo);
}

static void test_systemstatus (void **state)
{
    check_status ("", NULL, NULL, "{}");
    check_status ("'offline': '1,4'", NULL, NULL, "{'node1': 'Disabled'}");
    check_status ("'offline': '1'", "{'node1': 'Disabled'}", NULL, "{}");
    check_status ("", "{'node1': 'Disabled', 'node2': 'Enabled',"
                      " 'other': 'Disabled'}", NULL,
                  "{'node1': 'Enabled'}");
    check_status (DRAINED ("2-3", DWS_DRAIN_UNMOUNT " in PostRun"), NULL,
                  NULL, "{'node2': 'Disabled', 'node3': 'Disabled'}");
    /* drained for another reason, and then found to be stuck */
    check_status (DRAINED ("2-3", "disk"), "{'node2': 'Enabled'}",
                  "{'node2': true, 'node0': true}", "{'node2': 'Disabled'}");
    /* of some it is not known yet */
    check_status (DRAINED ("0,2", "disk"),
                  "{'node0': 'Disabled', 'node1': 'Disabled'}",
                  "{'node0': null, 'node1': null, 'node2': null}",
                  "{'node1': 'Enabled'}");
}

/* 'offline' at the time 'now', after what 'absence' has seen.
 */
static void check_absent (struct dws_absence *absence, double now,
                          const char *offline, const char *known,
                          const char *want, double due)
{
    struct dws_topology *topo = topology ();
    struct dws_nodes *nodes = nodes_from (offline);
    json_t *is = J (known);
    json_t *changes;

    absence->now = now;
    assert_int_equal (dws_health_absent (absence->since, nodes, now), 0);
    changes = dws_health_systemstatus (nodes, topo, is, NULL, absence, NULL);
    assert_json (changes, want);
    assert_true (absence->due == due);
    json_decref (changes);
    json_decref (is);
    dws_nodes_destroy (nodes);
    dws_topology_destroy (topo);
}

static void test_offline_grace (void **state)
{
    struct dws_absence a = { .since = json_object (), .grace = 60. };

    check_absent (&a, 100., "'offline': '0-1'", "{'node0': 'Disabled'}",
                  "{}", 160.);
    check_absent (&a, 130., "'offline': '0-2'", "{'node0': 'Disabled'}",
                  "{}", 160.);
    /* a break begins it anew, and ends what an earlier life has left */
    check_absent (&a, 159., "'offline': '2'", "{'node0': 'Disabled'}",
                  "{'node0': 'Enabled'}", 190.);
    check_absent (&a, 160., "'offline': '0-2'", "{}", "{}", 190.);
    check_absent (&a, 190., "'offline': '0-2'", "{}",
                  "{'node2': 'Disabled'}", 220.);
    a.grace = -1.;
    check_absent (&a, 1E9, "'offline': '0-2'", "{'node2': 'Disabled'}", "{}",
                  INFINITY);
    json_decref (a.since);
}

static void test_unstick (void **state)
{
    struct dws_nodes *nodes = nodes_from (DRAINED ("2", "disk"));
    json_t *stuck = J ("{'node1': true, 'node2': true}");

    dws_health_unstick (stuck, nodes);
    assert_json (stuck, "{'node2': true}");
    json_decref (stuck);
    dws_nodes_destroy (nodes);
}

static void test_bad_nodes (void **state)
{
    static const struct {
        const char *status;
        int errnum;
        const char *text;
    } table[] = {
        { "{}", EPROTO, "malformed" },
        { "{" R ", 'offline': 5}", EPROTO, "malformed" },
        { "{" R ", 'offline': 'x'}", EPROTO, "'x' is no idset" },
        { "{" R ", 'exclude': '-'}", EPROTO, "'-' is no idset" },
        { "{" R ", 'drain': {'a': {}}}", EPROTO, "'a' is no idset" },
        { "{'R': {}}", EINVAL, "" },
    };

    for (size_t i = 0; i < sizeof (table) / sizeof (table[0]); i++) {
        json_t *o = J (table[i].status);
        dws_error_t error = { "" };

        errno = 0;
        assert_null (dws_nodes_create (o, &error));
        assert_int_equal (errno, table[i].errnum);
        assert_contains (error.text, table[i].text);
        json_decref (o);
    }
    dws_nodes_destroy (NULL);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_count),
        cmocka_unit_test (test_decide),
        cmocka_unit_test (test_rabbits),
        cmocka_unit_test (test_capacity),
        cmocka_unit_test (test_unlinked),
        cmocka_unit_test (test_pardon),
        cmocka_unit_test (test_constraint),
        cmocka_unit_test (test_systemstatus),
        cmocka_unit_test (test_offline_grace),
        cmocka_unit_test (test_unstick),
        cmocka_unit_test (test_bad_nodes),
    };

    return cmocka_run_group_tests (tests, NULL, NULL);
}
