/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of shortage.c.
 */

#include "libdws/tell/shortage.h"
#include "libdws/test/util.h"

#define GIB (INT64_C (1) << 30)
#define SSD "{'type': 'ssd', 'count': 100, 'exclusive': true}"
#define TASK "{'type': 'slot', 'count': 2, 'with': [{'type': 'core', 'count': 3}]}"

/* What resources ask for.
 */
static const struct {
    const char *resources;
    struct dws_need need;       // groups 0: it cannot be told
} needs[] = {
    { "[{'type': 'slot', 'count': 4, 'with': [{'type': 'node', 'count': 1,"
      " 'with': [" TASK "]}, " SSD "]}]", { 4, 1, 100, 6, false } },
    { "[{'type': 'slot', 'count': 4, 'with': [{'type': 'node', 'count': 1,"
      " 'exclusive': true, 'with': [" TASK "]}, " SSD "]}]",
      { 4, 1, 100, 0, false } },
    { "[{'type': 'chassis', 'count': 2, 'with': [{'type': 'node', 'count': 8,"
      " 'with': [" TASK "]}, " SSD "]}]", { 2, 8, 100, 6, true } },
    { "[{'type': 'node', 'count': 3, 'exclusive': true}]", { 3, 1, 0, 0, false } },
    { "[{'type': 'slot', 'count': 3, 'with': [{'type': 'core', 'count': 1}]}]",
      { 0 } },
    { "[{'type': 'node', 'count': {'min': 1, 'max': 4}}]", { 0 } },
    { "[7, {'type': 'node', 'count': 2}]", { 2, 1, 0, 0, false } },
    { "{}", { 0 } },
};

static void test_need (void **state)
{
    for (size_t i = 0; i < sizeof (needs) / sizeof (needs[0]); i++) {
        json_t *resources = J (needs[i].resources);
        const struct dws_need *want = &needs[i].need;
        struct dws_need have = { 0 };

        assert_int_equal (dws_need_read (resources, &have), want->groups > 0);
        assert_int_equal (have.groups, want->groups);
        assert_int_equal (have.nodes, want->nodes);
        assert_int_equal (have.gib, want->gib);
        assert_int_equal (have.cores, want->cores);
        assert_int_equal (have.chassis, want->chassis);
        json_decref (resources);
    }
}

/* What a job waits for.
 */
#define TWO "space: it needs 2 nodes with 100 GiB of the rabbit next to each, and" \
            " there is room for "

static const struct {
    struct dws_need need;
    struct dws_place places[3];
    bool limited;
    const char *text;
} texts[] = {
    { { 3, 1, 100, 0, false },
      { { "r0", "Ready", 1024 * GIB, .free = 1, .busy = 2, .down = 1 } },
      false, "nodes: it needs 3, 1 of 4 are free (2 busy, 1 down or drained)" },
    { { 3, 1, 100, 0, false },
      { { "r0", "Ready", 1024 * GIB, .free = 1, .busy = 1, .down = 2 } },
      true, "nodes to come up: it needs 3, and 2 of 4 that it may have are up" },
    { { 3, 1, 100, 0, false },
      { { "r0", "Ready", 1024 * GIB, .free = 1, .busy = 2, .broken = 2,
          .down = 1 } },
      false, "nodes: it needs 3, 1 of 6 are free (2 busy, 2 without a working"
             " rabbit, 1 down or drained)" },
    { { 3, 1, 100, 0, false },
      { { "r0", "Ready", 1024 * GIB, .free = 2, .broken = 2 } },
      false, "nodes to come up: it needs 3, and 2 of 4 are up and have a working"
             " rabbit" },
    { { 3, 1, 0, 0, false },
      { { "r0", "Offline", 0, .free = 1, .busy = 3 },
        { "", "Ready", 0, .free = 1 } },
      false, "nodes: it needs 3, 2 of 5 are free (3 busy)" },
    { { 3, 1, 0, 0, false },
      { { "r0", "Offline", 0, .free = 2, .busy = 3 },
        { "", "Ready", 0, .free = 1 } },
      false, "its turn: nodes and space are there, but other jobs come first" },
    { { 2, 1, 100, 0, false },
      { { "r0", "Ready", 99 * GIB, .free = 4 },
        { "r1", "Ready", 500 * GIB, .busy = 4 }, { "", "Ready", 0, .free = 4 } },
      false, TWO "0" },
    { { 2, 1, 100, 0, false },
      { { "r0", "Ready", 99 * GIB, .free = 4 },
        { "r1", "Ready", 500 * GIB, .free = 1 }, { "", "Ready", 0, .free = 4 } },
      false, TWO "1" },
    { { 2, 1, 100, 0, false },
      { { "r1", "Ready", 500 * GIB, .free = 2 }, { "", "Ready", 0, .free = 4 } },
      false, "its turn: nodes and space are there, but other jobs come first" },
    { { 2, 1, 100, 0, false },
      { { "r1", "Offline", 500 * GIB, .free = 2 } }, false, TWO "0" },
    { { 1, 1, 100, 0, false },
      { { "r0", "Ready", 99 * GIB, .free = 4 } }, false,
      "space: it needs 1 node with 100 GiB of the rabbit next to it, and there is"
      " room for 0" },
    { { 2, 2, 100, 0, true },
      { { "r0", "Ready", 900 * GIB, .free = 8 },
        { "r1", "Ready", GIB, .free = 2 } }, false,
      "space: it needs 4 nodes with 100 GiB of the rabbit next to each 2, and there"
      " is room for 2" },
};

static void test_text (void **state)
{
    for (size_t i = 0; i < sizeof (texts) / sizeof (texts[0]); i++) {
        struct dws_place list[3];
        struct dws_places places = { list, 0, texts[i].limited };
        char buf[DWS_SHORTAGE_SIZE];

        memcpy (list, texts[i].places, sizeof (list));
        while (places.count < 3 && list[places.count].rabbit)
            places.count++;
        assert_string_equal (dws_shortage_text (&texts[i].need, &places, buf),
                             texts[i].text);
    }
}

/* A pool of nodes with one core each.
 */
static struct dws_pool *make_pool (const char *ranks, const char *hosts,
                                   const char *down)
{
    json_t *status = json_pack ("{s:{s:i s:{s:[{s:s s:{s:s}}] s:[s]}}"
                                " s:{s:i s:{s:[] s:[s]}}}",
                                "all", "version", 1, "execution", "R_lite",
                                "rank", ranks, "children", "core", "0",
                                "nodelist", hosts,
                                "down", "version", 1, "execution", "R_lite",
                                "nodelist", down);
    struct dws_pool *pool = dws_pool_create (status, NULL);

    assert_non_null (pool);
    json_decref (status);
    return pool;
}

/* Nodes without a working rabbit are up, and not for a job with storage.
 */
static void test_broken (void **state)
{
    json_t *rabbits = J ("[{'name': 'r0', 'state': 'Ready', 'free': 1,"
                         " 'nodes': 'a[0-2]'}]");
    struct dws_pool *pool = make_pool ("0-3", "a[0-3]", "a3");
    dws_error_t error;
    struct dws_places *places;

    places = dws_places_create (pool, NULL, rabbits, "a[1-3],b", 0, &error);
    assert_non_null (places);
    assert_int_equal (places->list[0].free, 1);
    assert_int_equal (places->list[0].broken, 2);
    assert_int_equal (places->list[1].down, 1);
    dws_places_destroy (places);
    places = dws_places_create (pool, NULL, rabbits, NULL, 0, &error);
    assert_non_null (places);
    assert_int_equal (places->list[0].free, 3);
    dws_places_destroy (places);
    assert_null (dws_places_create (pool, NULL, rabbits, "a[", 0, &error));
    assert_string_equal (error.text, "malformed list of nodes without a rabbit");
    dws_pool_destroy (pool);
    json_decref (rabbits);
}

static void test_bad_rabbits (void **state)
{
    json_t *rabbits = J ("[{'name': 'r0', 'state': 'Ready', 'free': 1,"
                         " 'nodes': 'a['}]");
    struct dws_pool *pool = make_pool ("0", "a0", "");
    dws_error_t error;

    assert_null (dws_places_create (pool, NULL, rabbits, NULL, 0, &error));
    assert_string_equal (error.text, "malformed list of rabbits");
    dws_pool_destroy (pool);
    json_decref (rabbits);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_need),
        cmocka_unit_test (test_text),
        cmocka_unit_test (test_broken),
        cmocka_unit_test (test_bad_rabbits),
    };

    return cmocka_run_group_tests (tests, NULL, NULL);
}
