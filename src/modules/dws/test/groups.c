/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of groups.c, with a name service of one user: ann (1000), in
 * staff (50, primary), crew (60) and 5 (70, a group with a number for a name).
 */

#include <grp.h>
#include <pwd.h>

#include "libdws/test/util.h"
#include "act/groups.h"

static int asked;               // how often for ann

int __wrap_getpwuid_r (uid_t uid, struct passwd *pw, char *buf, size_t size,
                       struct passwd **result)
{
    *result = NULL;
    if (uid == 13)
        return EIO;
    if (uid != 1000)
        return 0;
    if (size < 3000)            // as if the entry were long
        return ERANGE;
    asked++;
    pw->pw_name = "ann";
    pw->pw_gid = 50;
    *result = pw;
    return 0;
}

int __wrap_getgrnam_r (const char *name, struct group *gr, char *buf,
                       size_t size, struct group **result)
{
    static const struct {
        const char *name;
        gid_t gid;
    } groups[] = {
        { "staff", 50 }, { "crew", 60 }, { "5", 70 }, { "wheel", 80 },
    };

    *result = NULL;
    for (size_t i = 0; i < sizeof (groups) / sizeof (groups[0]); i++) {
        if (!strcmp (groups[i].name, name)) {
            gr->gr_gid = groups[i].gid;
            *result = gr;
        }
    }
    return 0;
}

/* More groups than the first guess has room for.
 */
int __wrap_getgrouplist (const char *user, gid_t group, gid_t *list,
                         int *count)
{
    int room = *count;

    assert_string_equal (user, "ann");
    *count = 100;
    if (room < 100)
        return -1;
    for (int i = 0; i < 100; i++)
        list[i] = 5000 + i;
    list[0] = group;
    list[98] = 60;
    list[99] = 70;
    return 100;
}

static const struct {
    uint32_t userid;
    const char *group;
    int errnum;
    gid_t gid;
    const char *text;
} table[] = {
    { 1000, NULL, 0, 50, NULL },
    { 1000, "staff", 0, 50, NULL },
    { 1000, "crew", 0, 60, NULL },
    { 1000, "60", 0, 60, NULL },
    { 1000, "5", 0, 70, NULL },
    { 1000, "wheel", EPERM, 0, "dw_group: ann is not a member of wheel" },
    { 1000, "80", EPERM, 0, "not a member of 80" },
    { 1000, "0", EPERM, 0, "not a member of 0" },
    { 1000, "nobody", ENOENT, 0, "dw_group: nobody: there is no such group" },
    { 1000, "60x", ENOENT, 0, "no such group" },
    { 1000, "-1", ENOENT, 0, "no such group" },
    { 1000, "4294967295", ENOENT, 0, "no such group" },
    { 1000, "99999999999999999999", ENOENT, 0, "no such group" },
    { 1001, NULL, ENOENT, 0, "user 1001: is not known on this system" },
    { 13, "crew", EIO, 0, "user 13: Input/output error" },
};

static void test_table (void **state)
{
    struct groups *groups = groups_create ();

    assert_non_null (groups);
    for (size_t i = 0; i < sizeof (table) / sizeof (table[0]); i++) {
        dws_error_t error = { "" };
        gid_t gid = 0;
        int rc;

        errno = 0;
        rc = groups_find (groups, i * GROUPS_LIFETIME, table[i].userid,
                          table[i].group, &gid, &error);
        if (table[i].errnum == 0) {
            assert_int_equal (rc, 0);
            assert_int_equal (gid, table[i].gid);
        }
        else {
            assert_int_equal (rc, -1);
            assert_int_equal (errno, table[i].errnum);
            assert_contains (error.text, table[i].text);
        }
    }
    groups_destroy (groups);
}

static void find (struct groups *groups, double now, const char *group,
                  gid_t want, int want_asked)
{
    gid_t gid;

    asked = 0;
    assert_int_equal (groups_find (groups, now, 1000, group, &gid, NULL), 0);
    assert_int_equal (gid, want);
    assert_int_equal (asked, want_asked);
}

static void test_lifetime (void **state)
{
    struct groups *groups = groups_create ();
    gid_t gid;

    assert_non_null (groups);
    find (groups, 10., NULL, 50, 1);
    find (groups, 10. + GROUPS_LIFETIME / 2., NULL, 50, 0);
    find (groups, 10. + GROUPS_LIFETIME, NULL, 50, 1);
    // another group, and another user in the same place
    find (groups, 20., "crew", 60, 1);
    find (groups, 20., "crew", 60, 0);
    find (groups, 20., NULL, 50, 1);
    assert_int_equal (groups_find (groups, 20., 1000 + 64, NULL, &gid, NULL),
                      -1);
    find (groups, 20., NULL, 50, 0);
    // a failure is asked for again
    for (int i = 0; i < 2; i++) {
        asked = 0;
        assert_int_equal (groups_find (groups, 20., 1000, "wheel", &gid, NULL),
                          -1);
        assert_int_equal (asked, 1);
    }
    groups_destroy (groups);
    groups_destroy (NULL);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_table),
        cmocka_unit_test (test_lifetime),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
