/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of idmap.c: whatever is put in and taken out, it is the same as a plain
 * array has.
 */

#include "libdws/test/util.h"
#include "libutil/idmap.h"

#define IDS 1000

static int values[IDS];
static bool present[IDS];
static int destroyed;

static void destroy (void *value)
{
    destroyed++;
}

static size_t count_present (void)
{
    size_t count = 0;

    for (int i = 1; i < IDS; i++)
        count += present[i];
    return count;
}

static void check_next (const struct idmap *map)
{
    uint64_t id = 0;
    int *value;

    for (int i = 1; i < IDS; i++) {
        if (!present[i])
            continue;
        value = idmap_next (map, id);
        assert_ptr_equal (value, &values[i]);
        id = i;
    }
    assert_null (idmap_next (map, id));
    assert_null (idmap_next (map, UINT64_MAX));
}

static void check_each (uint64_t id, void *value, void *arg)
{
    uint64_t *last = arg;

    assert_true (id > *last && present[id]);
    assert_ptr_equal (value, &values[id]);
    *last = id;
}

static void check (struct idmap *map)
{
    uint64_t last = 0;

    assert_int_equal (idmap_count (map), count_present ());
    for (int i = 1; i < IDS; i++)
        assert_ptr_equal (idmap_find (map, i), present[i] ? &values[i] : NULL);
    check_next (map);
    idmap_each (map, check_each, &last);
}

static void change (struct idmap *map, int i, bool wanted)
{
    int rc;

    if (wanted) {
        errno = 0;
        rc = idmap_insert (map, i, &values[i]);
        assert_int_equal (rc, present[i] ? -1 : 0);
        assert_int_equal (errno, present[i] ? EEXIST : 0);
    }
    else if (i % 2)
        idmap_delete (map, i);
    else
        assert_ptr_equal (idmap_take (map, i), present[i] ? &values[i] : NULL);
    present[i] = wanted;
}

static void test_idmap (void **state)
{
    struct idmap *map = idmap_create (destroy);

    assert_non_null (map);
    check (map);
    for (int i = 1; i < IDS; i++)
        change (map, i, true);
    check (map);
    srand (1);
    for (int round = 0; round < 50; round++) {
        for (int n = 0; n < 100; n++)
            change (map, 1 + rand () % (IDS - 1), rand () % 5 > round % 5);
        check (map);
    }
    destroyed = 0;
    idmap_clear (map);
    assert_int_equal (destroyed, count_present ());
    memset (present, 0, sizeof (present));
    check (map);
    change (map, 5, true);
    check (map);
    idmap_destroy (map);
    idmap_destroy (NULL);
}

static void delete_it (uint64_t id, void *value, void *arg)
{
    change (arg, id, false);
}

/* A callback takes out what it is called for.
 */
static void test_deleted_meanwhile (void **state)
{
    struct idmap *map = idmap_create (NULL);

    memset (present, 0, sizeof (present));
    assert_non_null (map);
    for (int i = IDS - 1; i > 0; i--)
        change (map, i, true);
    check (map);
    idmap_each (map, delete_it, map);
    check (map);
    idmap_destroy (map);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_idmap),
        cmocka_unit_test (test_deleted_meanwhile),
    };

    return cmocka_run_group_tests_name ("idmap", tests, NULL, NULL);
}
