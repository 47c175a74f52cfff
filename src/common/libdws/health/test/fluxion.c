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
    json_t *uses;
};

static void setup (struct fixture *f, const char *graph)
{
    json_t *o = J (mapping);

    f->uses = NULL;
    f->topo = dws_topology_create (o, NULL);
    assert_non_null (f->topo);
    json_decref (o);
    o = J (graph);
    f->fx = dws_fluxion_create (o, false, NULL);
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
    json_t *changes = dws_fluxion_ssds (f->fx, o, f->uses, f->topo, NULL);

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

static void use (struct fixture *f, enum dws_ssd_use use, const char *ssds)
{
    json_t *o = J (ssds);

    dws_fluxion_use (f->uses, o, use);
    json_decref (o);
}

/* What others than jobs have goes off, from ssds that no job has: so a job's ssd
 * that comes free is not taken for one that is down.
 */
static void test_outside (void **state)
{
    static const char *const half =
        "{'r0': {'up': true, 'capacity': 1000, 'outside': 500},"
        " 'r1': {'up': true, 'capacity': 2000}}";
    struct fixture f;

    setup (&f, GRAPH (CHASSIS ("0", "r0")));
    f.uses = json_object ();
    use (&f, DWS_SSD_BUSY, "{'/c/chassis0/ssd3': true, '/c/chassis0/ssd1': true,"
                           " '/c/chassis1/ssd0': true}");
    ssds (&f, half, "[" SSD ("0", "1", "up") "," SSD ("0", "3", "up") ","
                    SSD ("0", "0", "down") "," SSD ("0", "2", "down") "]");
    ssds (&f, half, "[]");
    // more than is free: one of the jobs' must go, too
    ssds (&f, "{'r0': {'up': true, 'capacity': 1000, 'outside': 501}}",
          "[" SSD ("0", "3", "down") "]");
    // a job ends, and what it had is down in its place
    ssds (&f, half, "[" SSD ("0", "3", "up") "]");
    json_object_del (f.uses, "/c/chassis0/ssd1");
    ssds (&f, half, "[]");
    ssds (&f, "{'r0': {'up': true, 'capacity': 1000, 'outside': 750}}",
          "[" SSD ("0", "1", "down") "]");
    ssds (&f, "{'r0': {'up': true, 'capacity': 1000, 'outside': 2000}}",
          "[" SSD ("0", "3", "down") "]");
    json_decref (f.uses);
    f.uses = NULL;
    teardown (&f);
}

/* What a job has that leaves is down before it goes, whatever else could be: nobody
 * else can have been given that.
 */
static void test_leaving (void **state)
{
    static const char *const held =
        "{'r0': {'up': true, 'capacity': 1000, 'outside': 400}}";
    static const char *const none = "{'r0': {'up': true, 'capacity': 1000}}";
    struct fixture f;

    setup (&f, GRAPH (CHASSIS ("0", "r0")));
    f.uses = json_object ();
    ssds (&f, none, "[" ALL ("0", "up") "]");
    use (&f, DWS_SSD_LEAVING, "{'/c/chassis0/ssd0': true, '/c/chassis0/ssd1': true}");
    ssds (&f, held, "[" SSD ("0", "0", "down") "," SSD ("0", "1", "down") "]");
    // it is gone
    use (&f, DWS_SSD_KEPT, "{'/c/chassis0/ssd0': true, '/c/chassis0/ssd1': true}");
    ssds (&f, held, "[]");
    // another leaves, with more than its storage takes
    use (&f, DWS_SSD_LEAVING, "{'/c/chassis0/ssd2': true, '/c/chassis0/ssd3': true}");
    ssds (&f, "{'r0': {'up': true, 'capacity': 1000, 'outside': 600}}",
          "[" SSD ("0", "0", "up") "," SSD ("0", "2", "down") ","
              SSD ("0", "3", "down") "]");
    // the first has given its storage back, and others have its ssds
    use (&f, DWS_SSD_KEPT, "{'/c/chassis0/ssd2': true, '/c/chassis0/ssd3': true}");
    use (&f, DWS_SSD_BUSY, "{'/c/chassis0/ssd0': true, '/c/chassis0/ssd1': true}");
    ssds (&f, held, "[" SSD ("0", "1", "up") "]");
    ssds (&f, none, "[" SSD ("0", "2", "up") "," SSD ("0", "3", "up") "]");
    json_decref (f.uses);
    teardown (&f);
    // after a restart, of a job that is gone those are found that it had
    setup (&f, GRAPH (CHASSIS ("0", "r0")));
    f.uses = json_object ();
    use (&f, DWS_SSD_KEPT, "{'/c/chassis0/ssd0': true, '/c/chassis0/ssd1': true}");
    ssds (&f, held, "[" SSD ("0", "2", "up") "," SSD ("0", "3", "up") ","
                        SSD ("0", "0", "down") "," SSD ("0", "1", "down") "]");
    json_decref (f.uses);
    teardown (&f);
}

#define DOWN(type, path) "{'id': '1', 'metadata': {'type': '" type "'," \
    " 'paths': {'containment': '" path "'}}}"

/* The graph may say which are down: only those that differ are told then.
 */
static void test_down (void **state)
{
    json_t *R = J (GRAPH (DOWN ("ssd", "/c/chassis0/ssd1") ","
                          DOWN ("ssd", "/c/chassis0/ssd7") ","
                          DOWN ("ssd", "/c/chassis9/ssd1") ","
                          DOWN ("ssd", "ssd") "," DOWN ("ssd", "/c/chassis0/x") ","
                          DOWN ("node", "/c/chassis0/ssd0") "," CHASSIS ("0", "r0")
                          "," CHASSIS ("1", "r1") "," DOWN ("ssd", "/c/chassis1/ssd3")));
    struct fixture f;

    setup (&f, NULL);
    dws_fluxion_destroy (f.fx);
    f.fx = dws_fluxion_create (R, true, NULL);
    ssds (&f, "{'r0': {'up': true, 'capacity': 500},"
              " 'r1': {'up': true, 'capacity': 2000}}",
          "[" SSD ("0", "3", "down") "," SSD ("1", "3", "up") "]");
    json_decref (R);
    teardown (&f);
}

/* As after a reload of Fluxion on a machine of 696 rabbits, and one of the module.
 */
static void test_many (void **state)
{
    json_t *mapping = J ("{'computes': {}, 'rabbits': {}}");
    json_t *R = J (GRAPH (""));
    json_t *nodes = json_object_get (json_object_get (R, "graph"), "nodes");
    json_t *rabbits = json_object ();
    json_t *changes;
    struct fixture f = { 0 };

    for (int i = 0; i < 696; i++) {
        char name[16];

        snprintf (name, sizeof (name), "r%d", i);
        json_object_set_new (json_object_get (mapping, "rabbits"), name,
                             J ("{'capacity': 36000, 'hostlist': ''}"));
        json_object_set_new (rabbits, name,
                             json_pack ("{s:b s:i}", "up", 1, "capacity",
                                        i == 5 ? 34000 : 36000));
        json_array_append_new (nodes,
            json_pack ("{s:{s:s s:{s:o} s:{s:s s:s}}}", "metadata", "type", "chassis",
                       "paths", "containment", json_sprintf ("/c/chassis%d", i),
                       "properties", "rabbit", name, "ssdcount", "36"));
    }
    f.topo = dws_topology_create (mapping, NULL);
    f.fx = dws_fluxion_create (R, false, NULL);
    assert_true (f.topo && f.fx);
    changes = dws_fluxion_ssds (f.fx, rabbits, NULL, f.topo, NULL);
    assert_int_equal (json_array_size (changes), 696 * 36);
    json_decref (changes);
    dws_fluxion_destroy (f.fx);
    json_array_append_new (nodes, J (DOWN ("ssd", "/c/chassis5/ssd35")));
    f.fx = dws_fluxion_create (R, true, NULL);
    changes = dws_fluxion_ssds (f.fx, rabbits, NULL, f.topo, NULL);
    assert_json (changes, "[" SSD ("5", "34", "down") "]");
    json_decref (changes);
    json_decref (rabbits);
    json_decref (R);
    json_decref (mapping);
    teardown (&f);
}

/* An ssd has whole GiB: 36 of 910 GiB are less than 32 TiB in all, and that much
 * may be lost before one has to go down.
 */
static void test_sizes (void **state)
{
    struct fixture f = { 0 };
    json_t *mapping = J ("{'computes': {}, 'rabbits':"
                         " {'r0': {'capacity': 35184372088832,"
                         "         'hostlist': ''}}}");
    json_t *R = J (GRAPH (VERTEX ("/c/chassis0", "'rabbit': 'r0',"
                                  "'ssdcount': '36'")));
    json_t *changes;

    f.topo = dws_topology_create (mapping, NULL);
    f.fx = dws_fluxion_create (R, false, NULL);
    assert_true (f.topo && f.fx);
    changes = J ("{'r0': {'up': true, 'capacity': 35184372088832}}");
    json_decref (dws_fluxion_ssds (f.fx, changes, NULL, f.topo, NULL));
    json_decref (changes);
    // 36 x 910 GiB
    ssds (&f, "{'r0': {'up': true, 'capacity': 35175782154240}}", "[]");
    ssds (&f, "{'r0': {'up': true, 'capacity': 35175782154239}}",
          "[" SSD ("0", "35", "down") "]");
    json_decref (R);
    json_decref (mapping);
    teardown (&f);
}

/* A rabbit with one ssd has that, or none.
 */
static void test_one (void **state)
{
    static const char *const well = "{'r0': {'up': true, 'capacity': 1000}}";
    struct fixture f;

    setup (&f, GRAPH (VERTEX ("/c/chassis0", "'rabbit': 'r0', 'ssdcount': '1'")));
    ssds (&f, well, "[" SSD ("0", "0", "up") "]");
    ssds (&f, "{'r0': {'up': true, 'capacity': 999}}",
          "[" SSD ("0", "0", "down") "]");
    ssds (&f, well, "[" SSD ("0", "0", "up") "]");
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
        cmocka_unit_test (test_outside),
        cmocka_unit_test (test_leaving),
        cmocka_unit_test (test_down),
        cmocka_unit_test (test_many),
        cmocka_unit_test (test_sizes),
        cmocka_unit_test (test_one),
        cmocka_unit_test (test_others),
    };

    return cmocka_run_group_tests (tests, NULL, NULL);
}
