/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of constraint.c.
 */

#include "libdws/storage/constraint.h"
#include "libdws/test/util.h"

/* r9 has no nodes, and z1 no rabbit.
 */
static const char *mapping_text =
    "{'computes': {'a1': 'r1', 'a2': 'r1', 'a3': 'r1', 'b1': 'r2',"
    "              'b2': 'r2', 'c1': 'r3'},"
    " 'rabbits': {'r1': {'capacity': 1, 'hostlist': 'a[1-3]'},"
    "             'r2': {'capacity': 1, 'hostlist': 'b[1-2]'},"
    "             'r3': {'capacity': 1, 'hostlist': 'c1'},"
    "             'r9': {'capacity': 1, 'hostlist': ''}}}";

static int setup (void **state)
{
    json_t *mapping = J (mapping_text);

    *state = dws_topology_create (mapping, NULL);
    json_decref (mapping);
    return *state ? 0 : -1;
}

static int teardown (void **state)
{
    dws_topology_destroy (*state);
    return 0;
}

static const struct {
    const char *rabbits;
    int nodes;
    int errnum;
    const char *want;           // the constraint, or part of the message
} table[] = {
    { "r1", 3, 0, "{'hostlist': ['a[1-3]']}" },
    { "r[2-3]", 2, 0, "{'hostlist': ['b[1-2],c1']}" },
    { "r3,r1,r3", 4, 0, "{'hostlist': ['a[1-3],c1']}" },
    { "r3,r9", 1, 0, "{'hostlist': ['c1']}" },
    { "r3", INT32_MAX, 0, "{'hostlist': ['c1']}" },
    { "r9", INT32_MAX, ENOSPC, "next to r9 are 0, the job needs 1" },
    { "r3,r3", 2, ENOSPC, "next to r3,r3 are 1, the job needs 2" },
    { "r[1-2]", 6, ENOSPC, "next to r[1-2] are 5, the job needs 6" },
    { "r1,r4", 1, EINVAL, "no rabbit 'r4', there are r[1-3,9]" },
    { "a1", 1, EINVAL, "no rabbit 'a1'" },
    { "", 1, EINVAL, "'' is not a list of rabbits" },
    { "r[", 1, EINVAL, "'r[' is not a list of rabbits" },
};

static void test_constraint (void **state)
{
    for (size_t i = 0; i < sizeof (table) / sizeof (table[0]); i++) {
        dws_error_t e = { "" };
        json_t *o;

        errno = 0;
        o = dws_constraint_make (table[i].rabbits, *state, table[i].nodes, &e);
        if (table[i].errnum) {
            assert_null (o);
            assert_int_equal (errno, table[i].errnum);
            assert_contains (e.text, table[i].want);
        }
        else {
            if (!o)
                fail_msg ("row %zu: %s", i, e.text);
            assert_json (o, table[i].want);
        }
        json_decref (o);
    }
}

static void test_rabbits (void **state)
{
    dws_error_t e = { "" };
    char *s;

    s = dws_constraint_rabbits ("b2,z1,a[1-2],r3", *state, &e);
    assert_string_equal (s, "r[1-3]");
    free (s);
    assert_null (dws_constraint_rabbits ("z1", *state, &e));
    assert_int_equal (errno, ENOENT);
    assert_contains (e.text, "none of its nodes has a rabbit");
    assert_null (dws_constraint_rabbits ("a[", *state, &e));
    assert_int_equal (errno, EINVAL);
}

static void test_join (void **state)
{
    json_t *none = json_null ();
    json_t *some = J ("{'hostlist': ['a[1-3],b1']}");
    json_t *others = J ("{'hostlist': ['a3,b[1-2]']}");
    dws_error_t e = { "" };
    json_t *o;

    assert_ptr_equal (o = dws_constraint_join (none, some, 9, &e), some);
    json_decref (o);
    assert_ptr_equal (o = dws_constraint_join (some, none, 9, &e), some);
    json_decref (o);
    o = dws_constraint_join (none, none, 9, &e);
    assert_true (json_is_null (o));
    o = dws_constraint_join (some, others, 2, &e);
    assert_json (o, "{'hostlist': ['a3,b1']}");
    json_decref (o);
    assert_null (dws_constraint_join (some, others, 3, &e));
    assert_int_equal (errno, ENOSPC);
    assert_contains (e.text, "are 2, it needs 3");
    json_decref (some);
    json_decref (others);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_constraint),
        cmocka_unit_test (test_rabbits),
        cmocka_unit_test (test_join),
    };

    return cmocka_run_group_tests_name ("near", tests, setup, teardown);
}
