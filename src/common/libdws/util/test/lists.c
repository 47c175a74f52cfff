/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of lists.c.
 */

#include "libdws/test/util.h"
#include "libdws/util/bounds.h"
#include "libdws/util/lists.h"

static void test_hostlist (void **state)
{
    static const struct {
        const char *text;
        int count;          // or -1
        int errnum;
    } tab[] = {
        { "", 0, 0 },
        { "a", 1, 0 },
        { "a,b c\td", 4, 0 },
        { "a[0-9,11]", 11, 0 },
        { "a[0-9]-eth0,b", 11, 0 },
        { "a[0-65535]", DWS_MAX_HOSTS, 0 },
        { "a[0-65536]", -1, E2BIG },
        { "a[0-65535],b", -1, E2BIG },
        { "a[0-40000]x,b[0-40000]x", -1, E2BIG },
        { "a[0-9999999]", -1, E2BIG },
        { "a[0-99999999999999999999]", -1, E2BIG },
        { "a[0-999999]b", -1, E2BIG },
        { "a[", -1, EINVAL },
        { "a]", -1, EINVAL },
        { "a[3-1]", -1, EINVAL },
        { "a[]", -1, EINVAL },
        { "a[-]", -1, EINVAL },
        { NULL, -1, EINVAL },
    };
    struct hostlist *all = hostlist_create ();

    assert_non_null (all);
    for (size_t i = 0; i < sizeof (tab) / sizeof (tab[0]); i++) {
        struct hostlist *hl = dws_hostlist_decode (tab[i].text);

        if (tab[i].count >= 0) {
            assert_non_null (hl);
            assert_int_equal (hostlist_count (hl), tab[i].count);
            assert_int_equal (dws_hostlist_named (tab[i].text), tab[i].count);
            assert_int_equal (dws_hostlist_append (all, tab[i].text),
                              tab[i].count);
        }
        else {
            assert_null (hl);
            assert_int_equal (errno, tab[i].errnum);
            assert_int_equal (dws_hostlist_append (all, tab[i].text), -1);
            assert_int_equal (errno, tab[i].errnum);
        }
        hostlist_destroy (hl);
    }
    hostlist_destroy (all);
    assert_string_equal (dws_hostlist_fault (E2BIG),
                         "names more than 65536 hosts");
    assert_string_equal (dws_hostlist_fault (EINVAL), "is not a hostlist");
}

/* Flux' list does not give back a name of 5,000 bytes.
 */
static void test_long_name (void **state)
{
    char name[DWS_MAX_HOST_NAME + 2];
    struct hostlist *hl;

    memset (name, 'a', sizeof (name));
    name[DWS_MAX_HOST_NAME + 1] = '\0';
    assert_null (dws_hostlist_decode (name));
    assert_int_equal (errno, EINVAL);
    name[DWS_MAX_HOST_NAME] = '\0';
    hl = dws_hostlist_decode (name);
    assert_non_null (hl);
    assert_string_equal (hostlist_first (hl), name);
    hostlist_destroy (hl);
}

static void test_idset (void **state)
{
    static const struct {
        const char *text;
        unsigned int below;
        const char *ids;    // or NULL: EINVAL
    } tab[] = {
        { "", 10, "" },
        { "[]", 10, "" },
        { "3", 10, "3" },
        { "0-3,5,7-9", 10, "0-3,5,7-9" },
        { "[0-3,5,7-9]", 8, "0-3,5,7" },
        { "10", 10, "" },
        { "5", 0, "" },
        { "0-9999999", 4, "0-3" },
        { "2,4294967295-4294967296", 4, "2" },
        { "0-99999999999999999999", 4, "0-3" },
        { "3-3", 10, NULL },
        { "3-1", 10, NULL },
        { "3,2", 10, NULL },
        { "3,3", 10, NULL },
        { "03", 10, NULL },
        { "3-", 10, NULL },
        { "-3", 10, NULL },
        { "a", 10, NULL },
        { "3a", 10, NULL },
        { "1 2", 10, NULL },
        { "[1", 10, NULL },
        { "[[1]]", 10, NULL },
        { NULL, 10, NULL },
    };

    for (size_t i = 0; i < sizeof (tab) / sizeof (tab[0]); i++) {
        struct idset *ids = dws_idset_decode (tab[i].text, tab[i].below);
        char *s;

        if (!tab[i].ids) {
            assert_null (ids);
            assert_int_equal (errno, EINVAL);
            continue;
        }
        assert_non_null (ids);
        s = idset_encode (ids, IDSET_FLAG_RANGE);
        assert_string_equal (s, tab[i].ids);
        free (s);
        idset_destroy (ids);
    }
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_hostlist),
        cmocka_unit_test (test_long_name),
        cmocka_unit_test (test_idset),
    };

    return cmocka_run_group_tests (tests, NULL, NULL);
}
