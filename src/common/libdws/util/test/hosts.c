/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of hosts.c.
 */

#include "libdws/test/util.h"
#include "libdws/util/hosts.h"

static void check_free (char *s, const char *want)
{
    assert_non_null (s);
    assert_string_equal (s, want);
    free (s);
}

static void test_hosts (void **state)
{
    dws_error_t error;

    check_free (dws_hosts_join ("node[1-2]", "node[0,2]", NULL), "node[0-2]");
    check_free (dws_hosts_join (NULL, NULL, NULL), "");
    check_free (dws_hosts_join ("", "node0", NULL), "node0");
    check_free (dws_hosts_subtract ("node[0-3]", "node[1-2]", NULL),
                "node[0,3]");
    check_free (dws_hosts_subtract ("node0", NULL, NULL), "node0");
    check_free (dws_hosts_subtract ("node0", "node0", NULL), "");
    assert_null (dws_hosts_join ("node[", NULL, &error));
    assert_int_equal (errno, EINVAL);
    assert_null (dws_hosts_subtract ("node0", "node[", &error));
    assert_int_equal (errno, EINVAL);
    assert_int_equal (dws_hosts_count ("node[0-3]"), 4);
    assert_int_equal (dws_hosts_count (""), 0);
    assert_int_equal (dws_hosts_count (NULL), 0);
    assert_int_equal (dws_hosts_count ("node["), 0);
}

static void test_walk (void **state)
{
    static const char *const all[] = { "node0", "node1", "x" };
    struct hosts_walk walk;

    assert_int_equal (hosts_walk_begin (&walk, "node[0-1],x"), 0);
    assert_int_equal (walk.count, 3);
    for (int i = 0; i < 3; i++)
        assert_string_equal (hosts_walk_next (&walk), all[i]);
    assert_null (hosts_walk_next (&walk));
    hosts_walk_end (&walk);
    assert_int_equal (hosts_walk_begin (&walk, "node0"), 0);
    assert_string_equal (hosts_walk_next (&walk), "node0");
    assert_null (hosts_walk_next (&walk));
    hosts_walk_end (&walk);
    assert_int_equal (hosts_walk_begin (&walk, ""), 0);
    assert_int_equal (walk.count, 0);
    assert_null (hosts_walk_next (&walk));
    hosts_walk_end (&walk);
    assert_int_equal (hosts_walk_begin (&walk, "node["), -1);
}

static void test_merge (void **state)
{
    static const struct {
        const char *lists;
        const char *merged;
    } tab[] = {
        { "[]", "" },
        { "['']", "" },
        { "['b07']", "b07" },
        { "['', 'b07']", "b07" },
        { "['b2', 'b1']", "b[1-2]" },
        { "['b[1-3]', 'b2', 'a']", "a,b[1-3]" },
        { "['a', 'a']", "a" },
        { "['a', 5]", NULL },
        { "['a[']", NULL },
        { "['a[1', '2]']", NULL },
    };

    for (size_t i = 0; i < sizeof (tab) / sizeof (tab[0]); i++) {
        json_t *lists = J (tab[i].lists);
        char *s = dws_hosts_merge_json (lists, NULL);

        if (tab[i].merged)
            check_free (s, tab[i].merged);
        else {
            assert_null (s);
            assert_int_equal (errno, EINVAL);
        }
        json_decref (lists);
    }
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_hosts),
        cmocka_unit_test (test_walk),
        cmocka_unit_test (test_merge),
    };

    return cmocka_run_group_tests_name ("hosts", tests, NULL, NULL);
}
