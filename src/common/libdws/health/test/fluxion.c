/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of fluxion.c.
 */

#include "libdws/health/fluxion.h"
#include "libdws/test/util.h"

static const char *const mapping =
    "{'computes': {'node0': 'r0', 'node1': 'r0', 'node2': 'r1'},"
    " 'rabbits': {'r0': {'capacity': 1000, 'hostlist': 'node[0-1]'},"
    "             'r1': {'capacity': 2000, 'hostlist': 'node2'}}}";

#define VERTEX(path, properties) \
    "{'id': '1', 'metadata': {'type': 'x', 'paths': {'containment': '" path \
    "'}, 'properties': {" properties "}}}"
#define CHASSIS(n, rabbit) \
    VERTEX ("/c/chassis" n, "'rabbit': '" rabbit "', 'ssdcount': '4'")
#define GRAPH(vertices) "{'graph': {'nodes': [" vertices "], 'edges': []}}"
#define BOTH CHASSIS ("0", "r0") "," CHASSIS ("1", "r1")

struct fixture {
    struct dws_topology *topo;
    struct dws_fluxion *fx;
};

static void setup (struct fixture *f, const char *graph)
{
    json_t *o = J (mapping);

    f->topo = dws_topology_create (o, NULL);
    assert_non_null (f->topo);
    json_decref (o);
    o = J (graph);
    f->fx = dws_fluxion_create (o, NULL);
    assert_non_null (f->fx);
    json_decref (o);
}

static void teardown (struct fixture *f)
{
    dws_fluxion_destroy (f->fx);
    dws_topology_destroy (f->topo);
}

static void properties (struct fixture *f, const char *bad,
                        const char *want_set, const char *want_clear)
{
    json_t *set;
    json_t *clear;

    assert_int_equal (dws_fluxion_properties (f->fx, bad, f->topo, &set,
                                              &clear, NULL), 0);
    assert_json (set, want_set);
    assert_json (clear, want_clear);
    json_decref (set);
    json_decref (clear);
}

static void test_properties (void **state)
{
    struct fixture f;

    setup (&f, GRAPH (BOTH "," VERTEX ("/c/chassis1/node2",
                                       "'badrabbit': 'bad'")
                      "," VERTEX ("/c/node9", "'badrabbit': 'old'")
                      ", {}, 7"));
    assert_int_equal (dws_fluxion_count (f.fx), 2);
    /* what an earlier life has left goes, what is there stays */
    properties (&f, "node[1-2]", "['/c/chassis0/node1']", "['/c/node9']");
    properties (&f, "node[1-2]", "[]", "[]");
    /* neither is in the graph */
    properties (&f, "node[1-2,7],other", "[]", "[]");
    properties (&f, "", "[]", "['/c/chassis0/node1', '/c/chassis1/node2']");
    teardown (&f);
}

static void ssds (struct fixture *f, const char *rabbits, const char *want)
{
    json_t *o = J (rabbits);
    json_t *changes = dws_fluxion_ssds (f->fx, o, f->topo, NULL);

    assert_json (changes, want);
    json_decref (changes);
    json_decref (o);
}

#define SSD(c, n, status) "['/c/chassis" c "/ssd" n "', '" status "']"
#define ALL(c, status) SSD (c, "0", status) "," SSD (c, "1", status) "," \
    SSD (c, "2", status) "," SSD (c, "3", status)

static void test_ssds (void **state)
{
    static const char *const well =
        "{'r0': {'up': true, 'capacity': 1000},"
        " 'r1': {'up': true, 'capacity': 2000}}";
    struct fixture f;

    setup (&f, GRAPH (BOTH));
    /* nothing is known of them at first */
    ssds (&f, "{'r0': {'up': true, 'capacity': 1000},"
              " 'r1': {'up': false, 'capacity': 2000}}",
          "[" ALL ("0", "up") "," ALL ("1", "down") "]");
    ssds (&f, well, "[" ALL ("1", "up") "]");
    ssds (&f, well, "[]");
    /* a drive is lost: so many ssds as there is room for */
    ssds (&f, "{'r0': {'up': true, 'capacity': 700},"
              " 'r1': {'up': true, 'capacity': 2000}}",
          "[" SSD ("0", "2", "down") "," SSD ("0", "3", "down") "]");
    ssds (&f, well, "[" SSD ("0", "2", "up") "," SSD ("0", "3", "up") "]");
    teardown (&f);
}

/* A graph without rabbits, or with others.
 */
static void test_others (void **state)
{
    struct fixture f;

    setup (&f, NULL);
    assert_int_equal (dws_fluxion_count (f.fx), 0);
    properties (&f, "node0", "[]", "[]");
    ssds (&f, "{}", "[]");
    teardown (&f);
    setup (&f, GRAPH (CHASSIS ("5", "other") ","
                      VERTEX ("/c/chassis6", "'rabbit': 'r0'")));
    assert_int_equal (dws_fluxion_count (f.fx), 1);
    properties (&f, "node0", "[]", "[]");
    ssds (&f, "{'other': {'up': true, 'capacity': 5}}", "[]");
    teardown (&f);
    dws_fluxion_destroy (NULL);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_properties),
        cmocka_unit_test (test_ssds),
        cmocka_unit_test (test_others),
    };

    return cmocka_run_group_tests (tests, NULL, NULL);
}
