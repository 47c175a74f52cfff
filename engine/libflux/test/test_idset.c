/* SPDX-License-Identifier: LGPL-3.0-only */
/* test_idset.c - idsets: text (RFC 22), members, algebra, allocation. */

#include <flux/idset.h>

#include "test.h"

#define BOTH (IDSET_FLAG_BRACKETS | IDSET_FLAG_RANGE)

static void test_text (void **state)
{
    static const struct {
        const char *in;
        const char *out;        // NULL: refused
        size_t count;
    } cases[] = {
        { "", "", 0 }, { "[]", "", 0 }, { "0", "0", 1 }, { "[5]", "5", 1 },
        { "1,2,3", "[1-3]", 3 }, { "[0-3,7,9-10]", "[0-3,7,9-10]", 7 },
        { "2000-2001", "[2000-2001]", 2 }, { "1,,2", "[1-2]", 2 },
        { "x", NULL, 0 }, { "1-", NULL, 0 }, { "-1", NULL, 0 },
        { "2-1", NULL, 0 }, { "1-1", NULL, 0 }, { "01", NULL, 0 },
        { "1,1", NULL, 0 }, { "2,1", NULL, 0 }, { "[1", NULL, 0 },
        { "1]", NULL, 0 }, { "[[1]]", NULL, 0 }, { "1 ", NULL, 0 },
        { "+1", NULL, 0 }, { "[0,2", NULL, 0 }, { "0-3,2-5", NULL, 0 },
    };

    for (size_t i = 0; i < sizeof (cases) / sizeof (cases[0]); i++) {
        struct idset *idset = idset_decode (cases[i].in);
        char *s;

        if (!cases[i].out) {
            assert_null (idset);
            continue;
        }
        assert_non_null (idset);
        assert_int_equal (idset_count (idset), cases[i].count);
        assert_non_null (s = idset_encode (idset, BOTH));
        assert_string_equal (s, cases[i].out);
        free (s);
        idset_destroy (idset);
    }
}

static void test_encode (void **state)
{
    struct idset *idset = idset_decode ("1-3,5");
    idset_error_t error;
    char *s;

    assert_non_null (s = idset_encode (idset, 0));
    assert_string_equal (s, "1,2,3,5");
    free (s);
    assert_non_null (s = idset_encode (idset, IDSET_FLAG_BRACKETS));
    assert_string_equal (s, "[1,2,3,5]");
    free (s);
    assert_non_null (s = idset_encode (idset, IDSET_FLAG_RANGE));
    assert_string_equal (s, "1-3,5");
    free (s);
    assert_errno (idset_encode (idset, IDSET_FLAG_AUTOGROW) == NULL, EINVAL);
    assert_errno (idset_encode (NULL, 0) == NULL, EINVAL);
    assert_int_equal (idset_decode_add (idset, "8,9", -1, NULL), 0);
    assert_int_equal (idset_decode_add (idset, "11-12junk", 5, NULL), 0);
    assert_errno (idset_decode_add (idset, "x", -1, &error) < 0, EINVAL);
    assert_string_not_equal (error.text, "");
    assert_non_null (s = idset_encode (idset, IDSET_FLAG_RANGE));
    assert_string_equal (s, "1-3,5,8-9,11-12");
    free (s);
    idset_destroy (idset);
}

static void test_members (void **state)
{
    struct idset *idset = idset_create (100, 0);

    assert_errno (idset_create (1, IDSET_FLAG_BRACKETS) == NULL, EINVAL);
    assert_int_equal (idset_first (idset), IDSET_INVALID_ID);
    assert_int_equal (idset_last (idset), IDSET_INVALID_ID);
    assert_errno (idset_set (idset, 100) < 0, EINVAL);
    assert_int_equal (idset_clear (idset, 100), 0);
    assert_errno (idset_set (idset, IDSET_INVALID_ID) < 0, EINVAL);
    assert_int_equal (idset_range_set (idset, 99, 60), 0);
    assert_int_equal (idset_set (idset, 3), 0);
    assert_int_equal (idset_set (idset, 3), 0);
    assert_int_equal (idset_count (idset), 41);
    assert_int_equal (idset_first (idset), 3);
    assert_int_equal (idset_next (idset, 3), 60);
    assert_int_equal (idset_next (idset, 99), IDSET_INVALID_ID);
    assert_int_equal (idset_last (idset), 99);
    assert_true (idset_test (idset, 64));
    assert_false (idset_test (idset, 4));
    assert_false (idset_test (idset, 100000));
    assert_int_equal (idset_range_clear (idset, 61, 98), 0);
    assert_int_equal (idset_count (idset), 3);
    idset_destroy (idset);

    assert_non_null (idset = idset_create (10, IDSET_FLAG_AUTOGROW));
    assert_int_equal (idset_set (idset, 35), 0);
    assert_errno (idset_set (idset, 0x80000000u) < 0, ERANGE);
    idset_destroy (idset);
    assert_int_equal (idset_count (NULL), 0);
}

static void test_algebra (void **state)
{
    struct idset *a = idset_decode ("1-5");
    struct idset *b = idset_decode ("4-6,2000");
    struct idset *c;

    assert_non_null (c = idset_union (a, b));
    assert_int_equal (idset_count (c), 7);
    assert_false (idset_equal (c, a));
    assert_int_equal (idset_subtract (c, b), 0);
    assert_int_equal (idset_count (c), 3);
    idset_destroy (c);
    assert_non_null (c = idset_difference (a, b));
    assert_int_equal (idset_last (c), 3);
    idset_destroy (c);
    assert_non_null (c = idset_intersect (a, b));
    assert_int_equal (idset_count (c), 2);
    assert_int_equal (idset_first (c), 4);
    idset_destroy (c);
    assert_non_null (c = idset_copy (a));
    assert_true (idset_equal (a, c));
    assert_int_equal (idset_clear_all (c), 0);
    assert_int_equal (idset_add (c, a), 0);
    assert_true (idset_equal (a, c));
    assert_int_equal (idset_add (c, NULL), 0);
    assert_errno (idset_union (NULL, a) == NULL, EINVAL);
    assert_errno (idset_intersect (a, NULL) == NULL, EINVAL);
    assert_false (idset_equal (a, NULL));
    idset_destroy (a);
    idset_destroy (b);
    idset_destroy (c);
}

static void test_alloc (void **state)
{
    struct idset *idset = idset_create (3, IDSET_FLAG_INITFULL);
    unsigned int id;

    for (unsigned int want = 0; want < 3; want++) {
        assert_int_equal (idset_alloc (idset, &id), 0);
        assert_int_equal (id, want);
    }
    assert_int_equal (idset_alloc (idset, &id), -1);
    idset_free (idset, 1);
    assert_int_equal (idset_alloc (idset, &id), 0);
    assert_int_equal (id, 1);
    idset_destroy (idset);

    assert_non_null (idset = idset_create (2, IDSET_FLAG_INITFULL
                                              | IDSET_FLAG_AUTOGROW));
    for (unsigned int want = 0; want < 9; want++) {
        assert_int_equal (idset_alloc (idset, &id), 0);
        assert_int_equal (id, want);
    }
    idset_destroy (idset);

    assert_non_null (idset = idset_create (3, IDSET_FLAG_INITFULL
                                              | IDSET_FLAG_ALLOC_RR));
    assert_int_equal (idset_alloc (idset, &id), 0);
    idset_free (idset, id);
    assert_int_equal (idset_alloc (idset, &id), 0);
    assert_int_equal (id, 1);
    idset_destroy (idset);

    assert_non_null (idset = idset_create (3, 0));
    assert_errno (idset_alloc (idset, &id) < 0, EINVAL);
    idset_destroy (idset);
}

/* In any order of allocating and freeing the lowest free one is given out. */
static void test_alloc_lowest (void **state)
{
    struct idset *idset = idset_create (0, IDSET_FLAG_INITFULL
                                           | IDSET_FLAG_AUTOGROW);
    bool taken[3000] = { false };
    unsigned int id;

    assert_non_null (idset);
    srand (1);
    for (int i = 0; i < 20000; i++) {
        unsigned int lowest = 0;
        if (rand () % 3 == 0) {
            id = rand () % 3000;
            idset_free (idset, id);
            taken[id] = false;
        }
        while (lowest < 3000 && taken[lowest])
            lowest++;
        if (lowest == 3000)
            break;
        assert_int_equal (idset_alloc (idset, &id), 0);
        assert_int_equal (id, lowest);
        taken[id] = true;
    }
    idset_destroy (idset);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_text),
        cmocka_unit_test (test_encode),
        cmocka_unit_test (test_members),
        cmocka_unit_test (test_algebra),
        cmocka_unit_test (test_alloc),
        cmocka_unit_test (test_alloc_lowest),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
