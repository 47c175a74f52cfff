/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of space.c.
 */

#include "libdws/facts/report.h"
#include "libdws/test/util.h"
#include "facts/space.h"

#define G "1073741824"
#define G2 "2147483648"

#define SETS(size, rabbit) \
    "[{'label': 'xfs', 'allocationSize': " size ", 'storage':" \
    " [{'name': '" rabbit "', 'allocationCount': 1}]}]"
#define LAYOUT(name, size, rabbit) \
    "{'servers': {'name': '" name "', 'namespace': 'default'}," \
    " 'allocationSets': " SETS (size, rabbit) "}"

#define META(name, labels) \
    "'metadata': {'name': '" name "', 'namespace': 'default'," \
    " 'labels': {" labels "}}"
#define OF_WORKFLOW(name) "'" DWS_LABEL_WORKFLOW "': '" name "'"
#define PERSISTENT(name) "'" DWS_LABEL_PERSISTENT "': '" name "'"
#define SERVERS(name, labels, size, rabbit) \
    "{" META (name, labels) ", 'spec': {'allocationSets': " \
    SETS (size, rabbit) "}}"
#define MADE(name, labels, size, rabbit, made) \
    "{" META (name, labels) ", 'spec': {'allocationSets': " \
    SETS (size, rabbit) "}, 'status': {'ready': true, 'allocationSets':" \
    " [{'storage': {'" rabbit "': {'allocationSize': " made "}}}]}}"

static struct space *make_space (void)
{
    struct space *space = space_create ();

    assert_non_null (space);
    return space;
}

static void claim (struct space *space, struct claim *claim, const char *text)
{
    json_t *layout = J (text);

    assert_int_equal (space_claim (space, claim, layout), 0);
    json_decref (layout);
}

static void learn (struct space *space, const char *text, bool deleted)
{
    json_t *servers = J (text);

    assert_int_equal (space_learn (space, servers, deleted), 0);
    json_decref (servers);
}

static void list (struct space *space, const char *text)
{
    json_t *objects = J (text);

    assert_int_equal (space_list (space, objects, true, true), 0);
    json_decref (objects);
}

static void assert_space (struct space *space, const char *used,
                          const char *outside)
{
    assert_bytes (space_used (space), used);
    assert_bytes (space_outside (space), outside);
}

/* A job with several directives may claim several times, and gives all of it
 * back at once. A claim for the same Servers takes the place of the first.
 */
static void test_claims (void **state)
{
    struct space *space = make_space ();
    struct claim one = { 0 };
    struct claim two = { 0 };

    claim (space, &one, "[]");
    claim (space, &one, "[{}, 5, {'allocationSets': [{}, 'x']}]");
    assert_space (space, "{}", "{}");
    claim (space, &one, "[" LAYOUT ("a", G, "r1") "]");
    claim (space, &one, "[" LAYOUT ("b", "1", "r2") "]");
    claim (space, &two, "[" LAYOUT ("c", G, "r1") "]");
    assert_bytes (&one.bytes, "{'r1': " G ", 'r2': 65536}");
    assert_space (space, "{'r1': " G2 ", 'r2': 65536}", "{}");
    claim (space, &one, "[" LAYOUT ("a", G2, "r2") "]");
    assert_bytes (&one.bytes, "{'r2': 2147549184}");
    assert_space (space, "{'r1': " G ", 'r2': 2147549184}", "{}");
    space_free (space, &one, false);
    assert_null (one.entries);
    assert_int_equal (one.bytes.count, 0);
    space_free (space, &one, true);
    assert_space (space, "{'r1': " G "}", "{}");
    space_free (space, &two, false);
    assert_space (space, "{}", "{}");
    space_destroy (space);
}

/* What is seen counts instead of what was asked for, as soon as it is more than
 * an empty object.
 */
static void test_seen (void **state)
{
    struct space *space = make_space ();
    struct claim one = { 0 };

    claim (space, &one, "[" LAYOUT ("a", "1", "r1") "]");
    learn (space, "{" META ("a", OF_WORKFLOW ("w")) "}", false);
    assert_space (space, "{'r1': 65536}", "{}");
    learn (space, SERVERS ("a", OF_WORKFLOW ("w"), "65537", "r1"), false);
    assert_space (space, "{'r1': 131072}", "{}");
    learn (space, MADE ("a", OF_WORKFLOW ("w"), "65537", "r1", "122880"),
           false);
    assert_space (space, "{'r1': 122880}", "{}");
    assert_bytes (&one.bytes, "{'r1': 122880}");
    // it is given back before the object goes
    learn (space, MADE ("a", OF_WORKFLOW ("w"), "65537", "r1", "0"), false);
    assert_space (space, "{}", "{}");
    learn (space, SERVERS ("a", OF_WORKFLOW ("w"), "65537", "r1"), false);
    learn (space, SERVERS ("a", OF_WORKFLOW ("w"), "65537", "r1"), true);
    assert_space (space, "{}", "{}");
    assert_bytes (&one.bytes, "{}");
    space_free (space, &one, true);
    learn (space, "5", false);
    learn (space, "{}", true);
    space_destroy (space);
}

/* Of a job that was torn down only persistent storage stays, and is nobody's. If
 * it was not, all stays as long as Kubernetes has it.
 */
static void test_ends (void **state)
{
    for (int torn_down = 0; torn_down < 2; torn_down++) {
        struct space *space = make_space ();
        struct claim one = { 0 };

        claim (space, &one, "[" LAYOUT ("w-0", G, "r1") ","
                            LAYOUT ("keep", G, "r2") ","
                            LAYOUT ("w-1", G, "r3") "]");
        learn (space, SERVERS ("w-0", OF_WORKFLOW ("w"), G, "r1"), false);
        learn (space, SERVERS ("keep", PERSISTENT ("keep"), G, "r2"), false);
        assert_bytes (&one.bytes, "{'r1': " G ", 'r2': " G ", 'r3': " G "}");
        space_free (space, &one, torn_down);
        if (torn_down)
            assert_space (space, "{'r2': " G "}", "{'r2': " G "}");
        else
            assert_space (space, "{'r1': " G ", 'r2': " G "}",
                          "{'r1': " G ", 'r2': " G "}");
        learn (space, SERVERS ("w-0", OF_WORKFLOW ("w"), G, "r1"), true);
        assert_space (space, "{'r2': " G "}", "{'r2': " G "}");
        learn (space, SERVERS ("keep", PERSISTENT ("keep"), G, "r2"), true);
        assert_space (space, "{}", "{}");
        space_destroy (space);
    }
}

/* After a restart: objects first, then whose they are.
 */
static struct claim found;

static enum space_owner owner (void *arg, const char *workflow,
                               const char *persistent, struct claim **claim)
{
    if ((workflow && !strcmp (workflow, "mine"))
        || (persistent && !strcmp (persistent, "made"))) {
        *claim = &found;
        return SPACE_OF_JOB;
    }
    return workflow && !strcmp (workflow, "over") ? SPACE_FREE
                                                  : SPACE_OF_NOBODY;
}

static void test_restart (void **state)
{
    static const char objects[] = "["
        SERVERS ("mine-0", OF_WORKFLOW ("mine"), G, "r1") ","
        SERVERS ("over-0", OF_WORKFLOW ("over"), G, "r1") ","
        SERVERS ("made", PERSISTENT ("made"), G, "r2") ","
        SERVERS ("keep", PERSISTENT ("keep"), G, "r2") ","
        SERVERS ("other-0", OF_WORKFLOW ("other"), G, "r3") ","
        SERVERS ("bare", "", G, "r4") ", 7]";
    struct space *space = make_space ();

    list (space, objects);
    assert_false (space_known (space));
    space_settle (space, true, owner, NULL);
    assert_bytes (&found.bytes, "{'r1': " G ", 'r2': " G "}");
    assert_space (space, "{'r1': " G ", 'r2': " G2 ", 'r3': " G ", 'r4': " G "}",
                  "{'r2': " G ", 'r3': " G ", 'r4': " G "}");
    // the same again changes nothing, but for what is gone meanwhile
    list (space, objects);
    space_settle (space, false, owner, NULL);
    assert_space (space, "{'r1': " G ", 'r2': " G2 ", 'r3': " G ", 'r4': " G "}",
                  "{'r2': " G ", 'r3': " G ", 'r4': " G "}");
    space_free (space, &found, true);
    space_settle (space, false, owner, NULL);
    assert_space (space, "{'r2': " G2 ", 'r3': " G ", 'r4': " G "}",
                  "{'r2': " G2 ", 'r3': " G ", 'r4': " G "}");
    list (space, "[" SERVERS ("keep", PERSISTENT ("keep"), G, "r2") "]");
    assert_space (space, "{'r2': " G "}", "{'r2': " G "}");
    list (space, "[]");
    assert_space (space, "{}", "{}");
    space_destroy (space);
}

/* A list in parts, none of which is all.
 */
static void test_list_in_parts (void **state)
{
    json_t *first = J ("[" SERVERS ("a", "", G, "r1") ","
                       SERVERS ("b", "", G, "r2") "]");
    json_t *second = J ("[" SERVERS ("c", "", G, "r3") "]");
    struct space *space = make_space ();

    learn (space, SERVERS ("gone", "", G, "r4"), false);
    assert_int_equal (space_list (space, first, true, false), 0);
    assert_int_equal (space_list (space, second, false, false), 0);
    assert_bytes (space_used (space), "{'r1': " G ", 'r2': " G ", 'r3': " G
                                      ", 'r4': " G "}");
    assert_int_equal (space_list (space, NULL, false, true), 0);
    assert_bytes (space_used (space), "{'r1': " G ", 'r2': " G ", 'r3': " G "}");
    assert_int_equal (space_list (space, second, true, true), 0);
    assert_bytes (space_used (space), "{'r3': " G "}");
    json_decref (first);
    json_decref (second);
    space_destroy (space);
}

#define ANNOTATED(name, labels, text, rest) \
    "{'metadata': {'name': '" name "', 'namespace': 'default', 'labels': {" \
    labels "}, 'annotations': {'flux-framework.org/colocation': '" text "'}}," \
    " 'spec': {'allocationSets': " SETS (G, "r1") "}" rest "}"
#define KEYS "{\\\"xfs\\\":[\\\"k\\\"]}"
#define EXCLUSIVE(name) \
    "{'servers': {'name': '" name "'}, 'allocationSets': " SETS (G, "r1") "," \
    " 'colocation': {'xfs': ['k']}}"
#define GIVEN_BACK \
    ", 'status': {'ready': true, 'allocationSets': [{'storage':" \
    " {'r1': {'allocationSize': 0}}}]}"
#define KEPT(name, job, owner, released) \
    "{'servers': {'namespace': 'default', 'name': '" name "'}, " owner \
    "'jobid': " job ", 'released': " released ", 'rabbits': {'r1': {'k': true}}}"

static void assert_keys_on (struct space *space, const char *rabbits,
                            const char *want)
{
    json_t *r = J (rabbits);
    json_t *keys = space_keys (space, r);

    assert_non_null (keys);
    assert_json (keys, want);
    json_decref (keys);
    json_decref (r);
}

static void assert_keys (struct space *space, const char *want)
{
    assert_keys_on (space, "{'r0': 1, 'r1': 2}", want);
}

/* Since this was last called.
 */
static void assert_freed (struct space *space, const char *want)
{
    json_t *freed = space_freed (space);

    if (want)
        assert_json (freed, want);
    else
        assert_null (freed);
    json_decref (freed);
}

/* What is kept from others is so from when it is laid out until the job has been torn
 * down, or the object is gone.
 */
static void test_keys (void **state)
{
    struct space *space = make_space ();
    struct claim one = { .id = 7 };
    struct claim other = { 0 };

    assert_keys (space, "[]");
    claim (space, &one, "[" EXCLUSIVE ("a") "]");
    assert_keys (space, "[" KEPT ("a", "7", "", "false") "]");
    assert_keys_on (space, "{'r2': 1}", "[]");
    assert_true (space_has_keys (space, &one));
    assert_false (space_has_keys (space, &other));
    // not filled in yet
    learn (space, "{" META ("a", OF_WORKFLOW ("w")) "}", false);
    assert_keys (space, "[" KEPT ("a", "7", "'workflow': 'w', ", "false") "]");
    learn (space, ANNOTATED ("a", OF_WORKFLOW ("w"), KEYS, ""), false);
    // the drives are given back before the rest is
    learn (space, ANNOTATED ("a", OF_WORKFLOW ("w"), KEYS, GIVEN_BACK), false);
    assert_keys (space, "[" KEPT ("a", "7", "'workflow': 'w', ", "false") "]");
    assert_freed (space, NULL);
    // its record goes before the objects do
    space_free (space, &one, false);
    assert_keys (space, "[" KEPT ("a", "0", "'workflow': 'w', ", "true") "]");
    assert_freed (space, NULL);
    learn (space, ANNOTATED ("a", OF_WORKFLOW ("w"), KEYS, ""), true);
    assert_keys (space, "[]");
    assert_freed (space, "{'r1': true}");
    assert_freed (space, NULL);
    space_destroy (space);
}

/* It is found again in the objects, also what is persistent, and that stays.
 */
static void test_keys_again (void **state)
{
    struct space *space = make_space ();
    struct claim one = { 0 };

    list (space, "[" ANNOTATED ("p", PERSISTENT ("p"), KEYS, "") ","
                 SERVERS ("b", OF_WORKFLOW ("w"), G, "r1") "]");
    assert_keys (space, "[" KEPT ("p", "0", "'persistent': 'p', ", "false") "]");
    assert_freed (space, NULL);
    list (space, "[]");
    assert_keys (space, "[]");
    assert_freed (space, "{'r1': true}");
    claim (space, &one, "[" EXCLUSIVE ("a") "," EXCLUSIVE ("p") "]");
    learn (space, ANNOTATED ("a", OF_WORKFLOW ("w"), KEYS, ""), false);
    learn (space, ANNOTATED ("p", PERSISTENT ("p"), KEYS, ""), false);
    space_free (space, &one, true);
    assert_keys (space, "[" KEPT ("p", "0", "'persistent': 'p', ", "true") "]");
    assert_freed (space, "{'r1': true}");
    // somebody has changed it by hand
    learn (space, ANNOTATED ("p", PERSISTENT ("p"), "{}", ""), false);
    assert_keys (space, "[]");
    assert_freed (space, "{'r1': true}");
    space_destroy (space);
}

/* What the scheduler is told of stays until it is let go, also if it has to be
 * told again.
 */
static void test_held (void **state)
{
    struct space *space = make_space ();
    struct claim one = { 0 };

    claim (space, &one, "[" LAYOUT ("a", G, "r1") "]");
    assert_int_equal (space_withhold (space, 77, &one), 0);
    assert_true (one.withheld);
    assert_json (space_withheld (space), "{'77': {'r1': " G "}}");
    space_withhold_failed (&one);
    assert_false (one.withheld);
    assert_json (space_withheld (space), "{'77': {'r1': " G "}}");
    assert_int_equal (space_withhold (space, 77, &one), 0);
    assert_false (space_withhold_outside (space));
    learn (space, SERVERS ("keep", PERSISTENT ("keep"), G, "r2"), false);
    assert_true (space_withhold_outside (space));
    assert_false (space_withhold_outside (space));
    assert_json (space_withheld (space),
                 "{'0': {'r2': " G "}, '77': {'r1': " G "}}");
    assert_true (space_withhold_end (space, 77, &one));
    assert_false (one.withheld);
    assert_false (space_withhold_end (space, 77, &one));
    // also one that the scheduler did not get
    assert_int_equal (space_withhold (space, 77, &one), 0);
    space_withhold_failed (&one);
    assert_true (space_withhold_end (space, 77, &one));
    learn (space, SERVERS ("keep", PERSISTENT ("keep"), G, "r2"), true);
    assert_true (space_withhold_outside (space));
    assert_json (space_withheld (space), "{}");
    space_free (space, &one, true);
    space_destroy (space);
}

static void assert_named (const struct space *space, const char *name,
                          const char *bytes)
{
    struct dws_bytes map = { 0 };

    space_persistent (space, name, &map);
    assert_bytes (&map, bytes);
    dws_bytes_clear (&map);
}

/* Persistent storage of one name may have several Servers, which go in any order.
 */
static void test_named (void **state)
{
    static const char *const objects[] = {
        SERVERS ("a", PERSISTENT ("p"), G, "r0"),
        SERVERS ("b", PERSISTENT ("p"), G, "r1"),
        SERVERS ("c", PERSISTENT ("p"), G, "r2"),
    };
    static const int orders[][3] = {
        { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 }, { 1, 2, 0 }, { 2, 0, 1 },
        { 2, 1, 0 },
    };
    static const char *const left[] = {
        "{'r0': " G "}", "{'r1': " G "}", "{'r2': " G "}",
    };

    for (size_t i = 0; i < sizeof (orders) / sizeof (orders[0]); i++) {
        struct space *space = make_space ();

        assert_named (space, "p", "{}");
        for (int j = 0; j < 3; j++) {
            learn (space, objects[j], false);
            learn (space, objects[j], false);   // once more changes nothing
        }
        learn (space, SERVERS ("d", PERSISTENT ("q"), G, "r0"), false);
        assert_named (space, "p",
                      "{'r0': " G ", 'r1': " G ", 'r2': " G "}");
        learn (space, objects[orders[i][0]], true);
        learn (space, objects[orders[i][1]], true);
        assert_named (space, "p", left[orders[i][2]]);
        learn (space, objects[orders[i][0]], false);
        learn (space, objects[orders[i][2]], true);
        assert_named (space, "p", left[orders[i][0]]);
        learn (space, objects[orders[i][0]], true);
        assert_named (space, "p", "{}");
        assert_named (space, "q", "{'r0': " G "}");
        space_destroy (space);
    }
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_claims),
        cmocka_unit_test (test_seen),
        cmocka_unit_test (test_ends),
        cmocka_unit_test (test_restart),
        cmocka_unit_test (test_list_in_parts),
        cmocka_unit_test (test_keys),
        cmocka_unit_test (test_keys_again),
        cmocka_unit_test (test_held),
        cmocka_unit_test (test_named),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
