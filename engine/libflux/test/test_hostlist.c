/* SPDX-License-Identifier: LGPL-3.0-only */
/* test_hostlist.c - hostlists: text (RFC 29), cursor, find, delete, sort. */

#include <flux/hostlist.h>

#include "test.h"

/* All hosts of a list, separated by blanks. */
static void assert_hosts (struct hostlist *hl, const char *want)
{
    char buf[512] = "";

    for (const char *s = hostlist_first (hl); s; s = hostlist_next (hl)) {
        if (*buf)
            strcat (buf, " ");
        strcat (buf, s);
    }
    assert_string_equal (buf, want);
}

static void assert_encodes (struct hostlist *hl, const char *want)
{
    char *s = hostlist_encode (hl);

    assert_non_null (s);
    assert_string_equal (s, want);
    free (s);
}

static void test_text (void **state)
{
    static const struct {
        const char *in;
        const char *out;
        const char *hosts;
    } cases[] = {
        { "", "", "" },
        { "foox,fooy,fooz", "foox,fooy,fooz", "foox fooy fooz" },
        { "[1-3,5-6]", "[1-3,5-6]", "1 2 3 5 6" },
        { "foo[1-5]", "foo[1-5]", "foo1 foo2 foo3 foo4 foo5" },
        { "foo[0-2]-eth2", "foo0-eth2,foo1-eth2,foo2-eth2",
          "foo0-eth2 foo1-eth2 foo2-eth2" },
        { "foo1,foo1,foo1", "foo[1,1,1]", "foo1 foo1 foo1" },
        { "[00-02]", "[00-02]", "00 01 02" },
        { "[00-2]", "[00-02]", "00 01 02" },
        { "foo[1,1,2,1]", "foo[1,1-2,1]", "foo1 foo1 foo2 foo1" },
        { "foo[005,4,11-13]", "foo[005,4,11-13]",
          "foo005 foo4 foo11 foo12 foo13" },
        { "foo08,foo09,foo10", "foo[08-10]", "foo08 foo09 foo10" },
        { "foo8,foo9,foo10,foo011", "foo[8-10,011]",
          "foo8 foo9 foo10 foo011" },
        { "f9,f010", "f[9,010]", "f9 f010" },
        { "a b\tc,,d,", "a,b,c,d", "a b c d" },
        { "login,node[1-2],login", "login,node[1-2],login",
          "login node1 node2 login" },
    };
    static const char *const bad[] = {
        "foo[1-", "foo]", "foo[]", "foo[a]", "foo[3-1]", "foo[1-2-3]",
        "foo[-1]", "foo[1,]", "foo[[1]]", "a,[1-2", "foo[1-2000000]",
    };

    for (size_t i = 0; i < sizeof (cases) / sizeof (cases[0]); i++) {
        struct hostlist *hl = hostlist_decode (cases[i].in);
        assert_non_null (hl);
        assert_encodes (hl, cases[i].out);
        assert_hosts (hl, cases[i].hosts);
        hostlist_destroy (hl);
    }
    for (size_t i = 0; i < sizeof (bad) / sizeof (bad[0]); i++)
        assert_null (hostlist_decode (bad[i]));
    assert_errno (hostlist_decode (NULL) == NULL, EINVAL);
    assert_errno (hostlist_encode (NULL) == NULL, EINVAL);
}

static void test_cursor (void **state)
{
    struct hostlist *hl = hostlist_decode ("a[1-2],b,c[3-5]");

    assert_int_equal (hostlist_count (hl), 6);
    assert_string_equal (hostlist_current (hl), "a1");
    assert_string_equal (hostlist_nth (hl, 5), "c5");
    assert_null (hostlist_next (hl));
    assert_null (hostlist_current (hl));
    assert_null (hostlist_next (hl));
    assert_string_equal (hostlist_nth (hl, 2), "b");
    assert_string_equal (hostlist_next (hl), "c3");
    assert_errno (hostlist_nth (hl, 6) == NULL, ENOENT);
    assert_errno (hostlist_nth (hl, -1) == NULL, EINVAL);

    // what is removed under the cursor, the one behind it follows
    assert_string_equal (hostlist_nth (hl, 4), "c4");
    assert_int_equal (hostlist_delete (hl, "c4"), 1);
    assert_null (hostlist_current (hl));
    assert_string_equal (hostlist_next (hl), "c5");
    assert_encodes (hl, "a[1-2],b,c[3,5]");
    assert_string_equal (hostlist_first (hl), "a1");
    assert_int_equal (hostlist_delete (hl, "a1"), 1);
    assert_string_equal (hostlist_next (hl), "a2");
    assert_int_equal (hostlist_count (hl), 4);
    hostlist_destroy (hl);

    assert_non_null (hl = hostlist_create ());
    assert_null (hostlist_first (hl));
    assert_null (hostlist_next (hl));
    assert_null (hostlist_current (hl));
    hostlist_destroy (hl);
    assert_int_equal (hostlist_count (NULL), 0);
    assert_errno (hostlist_first (NULL) == NULL, EINVAL);
}

static void test_find (void **state)
{
    struct hostlist *hl = hostlist_decode ("foo[1-3],bar,foo1[0-9],x[08-10]");
    struct hostlist_hostname *hn;

    assert_int_equal (hostlist_find (hl, "foo3"), 2);
    assert_string_equal (hostlist_current (hl), "foo3");
    assert_int_equal (hostlist_find (hl, "bar"), 3);
    assert_int_equal (hostlist_find (hl, "foo15"), 9);
    assert_int_equal (hostlist_find (hl, "x09"), 15);
    assert_errno (hostlist_find (hl, "x9") < 0, ENOENT);
    assert_errno (hostlist_find (hl, "foo") < 0, ENOENT);
    assert_errno (hostlist_find (hl, "foo01") < 0, ENOENT);
    assert_errno (hostlist_find (hl, "foo4") < 0, ENOENT);
    assert_errno (hostlist_find (hl, "foo[1]") < 0, EINVAL);
    assert_errno (hostlist_find (hl, NULL) < 0, EINVAL);
    assert_non_null (hn = hostlist_hostname_create ("foo2"));
    assert_int_equal (hostlist_find_hostname (hl, hn), 1);
    hostlist_hostname_destroy (hn);
    assert_errno (hostlist_hostname_create ("a,b") == NULL, EINVAL);
    hostlist_destroy (hl);
}

static void test_change (void **state)
{
    struct hostlist *hl = hostlist_decode ("foo[1-3]");
    struct hostlist *cpy;

    assert_int_equal (hostlist_append (hl, "foo[4-5],bar"), 3);
    assert_encodes (hl, "foo[1-5],bar");
    assert_int_equal (hostlist_append (hl, NULL), 0);
    assert_int_equal (hostlist_append (hl, "x["), -1);
    assert_non_null (cpy = hostlist_copy (hl));
    assert_int_equal (hostlist_delete (hl, "foo[2,4],nosuch"), 2);
    assert_encodes (hl, "foo[1,3,5],bar");
    assert_int_equal (hostlist_append_list (hl, cpy), 6);
    assert_encodes (hl, "foo[1,3,5],bar,foo[1-5],bar");
    assert_int_equal (hostlist_count (hl), 10);
    hostlist_sort (hl);
    assert_encodes (hl, "bar,bar,foo[1,1-3,3-5,5]");
    hostlist_uniq (hl);
    assert_encodes (hl, "bar,foo[1-5]");
    assert_int_equal (hostlist_count (hl), 6);
    hostlist_destroy (hl);
    hostlist_destroy (cpy);
    assert_errno (hostlist_append_list (NULL, NULL) < 0, EINVAL);
    assert_errno (hostlist_delete (NULL, "a") < 0, EINVAL);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_text),
        cmocka_unit_test (test_cursor),
        cmocka_unit_test (test_find),
        cmocka_unit_test (test_change),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
