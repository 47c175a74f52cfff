/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of jgf.c and rset.c.
 */

#include "libdws/graph/jgf.h"
#include <stdbool.h>

#include "libdws/test/util.h"

/* Two rabbits: r1 is in R itself, with the computes a1 and a2; r2 has a3,
 * of which R knows nothing. x4 has no rabbit.
 */
static const char *mapping_text =
    "{'computes': {'a1': 'r1', 'a2': 'r1', 'a3': 'r2'},"
    " 'rabbits': {'r1': {'capacity': 10737418240, 'hostlist': 'a[1-2]'},"
    "             'r2': {'capacity': 7516192768, 'hostlist': 'a3'}}}";

#define R_TEXT \
    "{'version': 1, 'execution': {" \
    " 'R_lite': [{'rank': '0-1', 'children': {'core': '0-1', 'gpu': '3'}}," \
    "            {'rank': '3,5', 'children': {'core': '7'}}]," \
    " 'nodelist': ['a[1-2]', 'r1,x4']," \
    " 'properties': {'p': '0,5', 'q\\\"r': '0'}}}"

#define V(id, meta) "{'id': '" id "', 'metadata': {" meta "}}"
#define PATH(p) "'paths': {'containment': '" p "'}"
#define E(a, b) "{'source': '" a "', 'target': '" b "'}"

/* Chunks of 10 / 2 = 5 GiB and 7 / 2 = 3.5, that is 3 GiB.
 */
static const char *want_text =
    "{'graph': {'directed': false, 'nodes': ["
    V ("0", "'type': 'cluster', 'name': 'c', " PATH ("/c")) ", "
    V ("1", "'type': 'chassis', 'id': 0, 'properties': {'rabbit': 'r1',"
       " 'ssdcount': '2'}, " PATH ("/c/chassis0")) ", "
    V ("2", "'type': 'ssd', 'unit': 'GiB', 'size': 5, 'status': 1, "
       PATH ("/c/chassis0/ssd0")) ", "
    V ("3", "'type': 'ssd', 'unit': 'GiB', 'size': 5, 'status': 1, "
       PATH ("/c/chassis0/ssd1")) ", "
    V ("4", "'type': 'node', 'name': 'a1', 'rank': 0, 'properties': {"
       " 'p': '', 'q\\\"r': ''}, " PATH ("/c/chassis0/a1")) ", "
    V ("5", "'type': 'core', 'id': 0, 'rank': 0, "
       PATH ("/c/chassis0/a1/core0")) ", "
    V ("6", "'type': 'core', 'id': 1, 'rank': 0, "
       PATH ("/c/chassis0/a1/core1")) ", "
    V ("7", "'type': 'gpu', 'id': 3, 'rank': 0, "
       PATH ("/c/chassis0/a1/gpu3")) ", "
    V ("8", "'type': 'node', 'name': 'a2', 'rank': 1, "
       PATH ("/c/chassis0/a2")) ", "
    V ("9", "'type': 'core', 'id': 0, 'rank': 1, "
       PATH ("/c/chassis0/a2/core0")) ", "
    V ("10", "'type': 'core', 'id': 1, 'rank': 1, "
       PATH ("/c/chassis0/a2/core1")) ", "
    V ("11", "'type': 'gpu', 'id': 3, 'rank': 1, "
       PATH ("/c/chassis0/a2/gpu3")) ", "
    V ("12", "'type': 'storage_node', 'name': 'r1', 'rank': 3,"
       " 'exclusive': true, " PATH ("/c/chassis0/r1")) ", "
    V ("13", "'type': 'core', 'id': 7, 'rank': 3, "
       PATH ("/c/chassis0/r1/core7")) ", "
    V ("14", "'type': 'chassis', 'id': 1, 'properties': {'rabbit': 'r2',"
       " 'ssdcount': '2'}, " PATH ("/c/chassis1")) ", "
    V ("15", "'type': 'ssd', 'unit': 'GiB', 'size': 3, 'status': 1, "
       PATH ("/c/chassis1/ssd0")) ", "
    V ("16", "'type': 'ssd', 'unit': 'GiB', 'size': 3, 'status': 1, "
       PATH ("/c/chassis1/ssd1")) ", "
    V ("17", "'type': 'rabbit', " PATH ("/c/chassis1/rabbit")) ", "
    V ("18", "'type': 'node', 'name': 'x4', 'rank': 5, 'properties': {"
       " 'p': ''}, " PATH ("/c/x4")) ", "
    V ("19", "'type': 'core', 'id': 7, 'rank': 5, " PATH ("/c/x4/core7"))
    "], 'edges': ["
    E ("0", "1") ", " E ("1", "2") ", " E ("1", "3") ", " E ("1", "4") ", "
    E ("4", "5") ", " E ("4", "6") ", " E ("4", "7") ", " E ("1", "8") ", "
    E ("8", "9") ", " E ("8", "10") ", " E ("8", "11") ", " E ("1", "12")
    ", " E ("12", "13") ", " E ("0", "14") ", " E ("14", "15") ", "
    E ("14", "16") ", " E ("14", "17") ", " E ("0", "18") ", "
    E ("18", "19") "]}}";

struct sink {
    char *buf;
    size_t len;
    size_t calls;
    int errnum;
};

static int take (void *arg, const char *buf, size_t len)
{
    struct sink *s = arg;

    s->calls++;
    if (s->errnum) {
        errno = s->errnum;
        return -1;
    }
    s->buf = realloc (s->buf, s->len + len + 1);
    assert_non_null (s->buf);
    memcpy (s->buf + s->len, buf, len);
    s->len += len;
    s->buf[s->len] = '\0';
    return 0;
}

static struct dws_topology *make_topology (void)
{
    json_t *o = J (mapping_text);
    struct dws_topology *topo = dws_topology_create (o, NULL);

    assert_non_null (topo);
    json_decref (o);
    return topo;
}

static json_t *make_graph (const char *R_json, const struct dws_jgf_opts *opts)
{
    struct dws_topology *topo = make_topology ();
    json_t *R = J (R_json);
    dws_error_t e = { "" };
    struct dws_jgf *jgf = dws_jgf_create (R, topo, opts, &e);
    struct sink sink = { 0 };
    json_t *o;

    if (!jgf)
        fail_msg ("%s", e.text);
    json_decref (R);
    assert_int_equal (dws_jgf_write (jgf, take, &sink, &e), 0);
    o = json_loads (sink.buf, 0, NULL);
    assert_non_null (o);
    assert_int_equal (json_array_size (json_object_get (
        json_object_get (o, "graph"), "nodes")), dws_jgf_count (jgf));
    free (sink.buf);
    dws_jgf_destroy (jgf);
    dws_topology_destroy (topo);
    return o;
}

static void test_graph (void **state)
{
    struct dws_jgf_opts opts = { .cluster = "c", .chunks = 2 };
    json_t *o = make_graph (R_TEXT, &opts);

    assert_json (o, want_text);
    json_decref (o);
}

static bool has_host (json_t *graph, const char *name)
{
    json_t *nodes = json_object_get (json_object_get (graph, "graph"),
                                     "nodes");
    size_t i;
    json_t *v;

    json_array_foreach (nodes, i, v) {
        const char *s = "";

        (void)json_unpack (v, "{s:{s:s}}", "metadata", "name", &s);
        if (strcmp (s, name) == 0)
            return true;
    }
    return false;
}

/* resource.exclude counts hosts, not ranks, or names them.
 */
static void test_exclude (void **state)
{
    static const struct {
        const char *exclude;
        bool has[4];      // a1, a2, r1, x4
    } table[] = {
        { NULL, { true, true, true, true } },
        { "", { true, true, true, true } },
        { "0", { false, true, true, true } },
        { "2-9", { true, true, false, false } },
        { "a[2-3],zz", { true, false, true, true } },
        { "x4,r1", { true, true, false, false } },
    };

    for (size_t i = 0; i < sizeof (table) / sizeof (table[0]); i++) {
        struct dws_jgf_opts opts = {
            .cluster = "c", .chunks = 1, .exclude = table[i].exclude,
        };
        json_t *o = make_graph (R_TEXT, &opts);

        assert_int_equal (has_host (o, "a1"), table[i].has[0]);
        assert_int_equal (has_host (o, "a2"), table[i].has[1]);
        assert_int_equal (has_host (o, "r1"), table[i].has[2]);
        assert_int_equal (has_host (o, "x4"), table[i].has[3]);
        json_decref (o);
    }
}

/* Ranks of one entry lie between those of another. RFC 20 has hosts in the order of
 * ranks.
 */
static void test_order (void **state)
{
    struct dws_jgf_opts opts = { .cluster = "c", .chunks = 1 };
    json_t *o = make_graph ("{'execution': {'R_lite': ["
                            "{'rank': '0,2', 'children': {'core': '0'}},"
                            "{'rank': '1', 'children': {'core': '7'}}],"
                            "'nodelist': ['a[1-3]']}}", &opts);
    json_t *vertices = json_object_get (json_object_get (o, "graph"), "nodes");
    json_t *vertex;
    size_t i;
    int seen = 0;

    json_array_foreach (vertices, i, vertex) {
        const char *type;
        const char *name = "";
        const char *path;
        int rank = -1;
        int id = -1;

        assert_int_equal (json_unpack (vertex, "{s:{s:s s?s s?i s?i s:{s:s}}}",
                                       "metadata",
                                         "type", &type,
                                         "name", &name,
                                         "rank", &rank,
                                         "id", &id,
                                         "paths",
                                           "containment", &path), 0);
        if (!strcmp (type, "node")) {
            assert_int_equal (rank, name[1] - '1');
            seen++;
        }
        else if (!strcmp (type, "core") && id == 7) {
            assert_non_null (strstr (path, "/a2/"));
            seen++;
        }
    }
    assert_int_equal (seen, 4);
    json_decref (o);
}

static void test_bad (void **state)
{
    static const struct {
        const char *R;
        struct dws_jgf_opts opts;
        const char *text;
    } table[] = {
        { "{}", { .cluster = "c", .chunks = 1 }, "R must be of version 1" },
        { "{'version': 2, 'execution': {'R_lite': [], 'nodelist': []}}",
          { .cluster = "c", .chunks = 1 }, "version 1" },
        { "{'execution': {'R_lite': [], 'nodelist': ['a[']}}",
          { .cluster = "c", .chunks = 1 }, "nodelist[0]" },
        { "{'execution': {'R_lite': [{}], 'nodelist': []}}",
          { .cluster = "c", .chunks = 1 }, "R_lite[0]" },
        { "{'execution': {'R_lite': [{'rank': 'x', 'children': {}}],"
          " 'nodelist': ['a']}}", { .cluster = "c", .chunks = 1 }, "rank" },
        { "{'execution': {'R_lite': [{'rank': '0',"
          " 'children': {'core': 'x'}}], 'nodelist': ['a']}}",
          { .cluster = "c", .chunks = 1 }, "children.core" },
        { "{'execution': {'R_lite': [{'rank': '0-2', 'children': {}}],"
          " 'nodelist': ['a']}}", { .cluster = "c", .chunks = 1 },
          "more ranks than the 1" },
        { "{'execution': {'R_lite': [{'rank': '0', 'children': {}}],"
          " 'nodelist': ['a[1-3]']}}", { .cluster = "c", .chunks = 1 },
          "3 hosts, but there are 1 ranks" },
        { "{'execution': {'R_lite': [{'rank': '0', 'children': {}}],"
          " 'nodelist': ['a'], 'properties': {'p': 'x'}}}",
          { .cluster = "c", .chunks = 1 }, "properties.p" },
        { "{'execution': {'R_lite': [{'rank': '0-2', 'children': {}}],"
          " 'nodelist': ['a1', 'b', 'a1']}}", { .cluster = "c", .chunks = 1 },
          "ranks 0 and 2 for host a1" },
        { "{'execution': {'R_lite': [{'rank': '0-2', 'children': {}}],"
          " 'nodelist': ['r1', 'b', 'r1']}}", { .cluster = "c", .chunks = 1 },
          "ranks 0 and 2 for host r1" },
        { R_TEXT, { .cluster = "c", .chunks = 0 }, "0 chunks" },
        { R_TEXT, { .cluster = "", .chunks = 1 }, "cluster needs a name" },
        { R_TEXT, { .cluster = NULL, .chunks = 1 }, "cluster needs" },
        { R_TEXT, { .cluster = "a/b", .chunks = 1 }, "cluster needs" },
        { R_TEXT, { .cluster = "c", .chunks = 1, .exclude = "a[" },
          "resource.exclude 'a['" },
        { R_TEXT, { .cluster = "c", .chunks = 1, .validate = 1 },
          "not in R: a3" },
    };
    struct dws_topology *topo = make_topology ();

    for (size_t i = 0; i < sizeof (table) / sizeof (table[0]); i++) {
        json_t *R = J (table[i].R);
        dws_error_t e = { "" };

        errno = 0;
        assert_null (dws_jgf_create (R, topo, &table[i].opts, &e));
        assert_int_equal (errno, EINVAL);
        assert_contains (e.text, table[i].text);
        json_decref (R);
    }
    dws_topology_destroy (topo);
    dws_jgf_destroy (NULL);
}

/* Output larger than the buffer comes in several pieces and is still whole;
 * a sink that fails is not called again.
 */
static void test_large (void **state)
{
    struct dws_topology *topo = make_topology ();
    json_t *R = J (R_TEXT);
    struct dws_jgf_opts opts = { .cluster = "cluster", .chunks = 20000 };
    struct dws_jgf *jgf = dws_jgf_create (R, topo, &opts, NULL);
    struct sink sink = { 0 };
    dws_error_t e = { "" };
    json_t *o;

    assert_non_null (jgf);
    // the 19 of test_graph() with 2 ssds a rabbit
    assert_int_equal (dws_jgf_count (jgf), 20 + 2 * (20000 - 2));
    assert_int_equal (dws_jgf_write (jgf, take, &sink, NULL), 0);
    assert_true (sink.calls > 10);
    o = json_loads (sink.buf, 0, NULL);
    assert_non_null (o);
    json_decref (o);
    free (sink.buf);

    sink = (struct sink){ .errnum = ENOSPC };
    errno = 0;
    assert_int_equal (dws_jgf_write (jgf, take, &sink, &e), -1);
    assert_int_equal (errno, ENOSPC);
    assert_int_equal (sink.calls, 1);
    assert_contains (e.text, "could not write");
    dws_jgf_destroy (jgf);
    json_decref (R);
    dws_topology_destroy (topo);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_graph),
        cmocka_unit_test (test_exclude),
        cmocka_unit_test (test_order),
        cmocka_unit_test (test_bad),
        cmocka_unit_test (test_large),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
