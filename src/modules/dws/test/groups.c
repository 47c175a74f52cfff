/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of groups.c, with a name service of one user: ann (1000), in
 * staff (50, primary), crew (60) and 5 (70, a group with a number for a name).
 */

#include <grp.h>
#include <pwd.h>

#include "libdws/test/util.h"
#include "act/groups.h"
#include "base/timeline.h"
#include "base/worker.h"

static double now;

double monotonic_now (void)
{
    return now;
}

static int asked;               // how often for ann, in the worker's thread

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

struct world {
    flux_reactor_t *reactor;
    struct worker *worker;
    struct groups *groups;
    int found;                  // how often something has become known
};

static void found_cb (uint32_t userid, void *arg)
{
    struct world *world = arg;

    world->found++;
    flux_reactor_stop (world->reactor);
}

static struct world *world_create (void)
{
    struct world *world = calloc (1, sizeof (*world));

    assert_non_null (world);
    world->reactor = flux_reactor_create (0);
    assert_non_null (world->reactor);
    world->worker = worker_create (world->reactor);
    assert_non_null (world->worker);
    world->groups = groups_create (world->worker, found_cb,
                                   world);
    assert_non_null (world->groups);
    return world;
}

static void world_destroy (struct world *world)
{
    worker_destroy (world->worker);
    groups_destroy (world->groups);
    flux_reactor_destroy (world->reactor);
    free (world);
}

/* As the module does: ask, go on when there is an answer.
 */
static int find (struct world *world, uint32_t userid, const char *group,
                 gid_t *gid, dws_error_t *error)
{
    if (!groups_ready (world->groups, userid, group)) {
        assert_int_equal (groups_find (world->groups, userid, group, gid,
                                       error), -1);
        assert_int_equal (errno, EAGAIN);
        assert_true (flux_reactor_run (world->reactor, 0) >= 0);
        assert_true (groups_ready (world->groups, userid, group));
    }
    errno = 0;
    return groups_find (world->groups, userid, group, gid, error);
}

static void test_table (void **state)
{
    struct world *world = world_create ();

    for (size_t i = 0; i < sizeof (table) / sizeof (table[0]); i++) {
        dws_error_t error = { "" };
        gid_t gid = 0;
        int rc = find (world, table[i].userid, table[i].group, &gid, &error);

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
    world_destroy (world);
}

/* An answer is kept, each for its user and group, for a while.
 */
static void test_lifetime (void **state)
{
    struct world *world = world_create ();
    gid_t gid;

    asked = 0;
    now = 0.;
    assert_int_equal (find (world, 1000, NULL, &gid, NULL), 0);
    assert_int_equal (find (world, 1000, "crew", &gid, NULL), 0);
    assert_int_equal (gid, 60);
    assert_int_equal (asked, 2);
    now = GROUPS_LIFETIME / 2.;
    assert_int_equal (find (world, 1000, NULL, &gid, NULL), 0);
    assert_int_equal (gid, 50);
    assert_int_equal (asked, 2);
    assert_int_equal (find (world, 1000, "wheel", &gid, NULL), -1);
    assert_int_equal (find (world, 1000, "wheel", &gid, NULL), -1);
    assert_int_equal (asked, 3);
    now += GROUPS_LIFETIME_FAILED;
    assert_int_equal (find (world, 1000, "wheel", &gid, NULL), -1);
    assert_int_equal (asked, 4);
    now = GROUPS_LIFETIME;
    assert_int_equal (find (world, 1000, NULL, &gid, NULL), 0);
    assert_int_equal (asked, 5);
    world_destroy (world);
    groups_destroy (NULL);
}

/* Who asks while it is being found out has it asked once.
 */
static void test_twice (void **state)
{
    struct world *world = world_create ();

    asked = 0;
    for (int i = 0; i < 3; i++)
        assert_false (groups_ready (world->groups, 1000, NULL));
    assert_true (flux_reactor_run (world->reactor, 0) >= 0);
    assert_true (groups_ready (world->groups, 1000, NULL));
    assert_int_equal (asked, 1);
    assert_int_equal (world->found, 1);
    world_destroy (world);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_table),
        cmocka_unit_test (test_lifetime),
        cmocka_unit_test (test_twice),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
