/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of ownrabbit.c.
 */

#include "libdws/storage/ownrabbit.h"
#include "libdws/test/util.h"

#define PLAIN "{'type': 'node', 'count': 2, 'with': [{'type': 'slot', " \
    "'count': 1, 'label': 'ssd', 'with': [{'type': 'core', 'count': 1}]}]}"
#define A(type) "{'type': '" type "', 'count': 1}"
#define IN(type) "{'type': 'chassis', 'count': 1, 'with': [" PLAIN ", " \
    "{'type': 'slot', 'with': [" A (type) "]}]}"

/* What a job with, and one without directives is told; NULL: nothing.
 */
static const struct {
    const char *resources;
    const char *with;
    const char *without;
} table[] = {
    { "[" PLAIN "]", NULL, NULL },
    { "[" PLAIN ", " A ("ssd") "]", "resources: ssd: a job with dir",
      "resources: ssd: rabbits and their storage" },
    { "[" IN ("ssd") "]", "resources: ssd:", "resources: ssd:" },
    { "[" A ("rabbit") "]", "resources: rabbit:", "resources: rabbit:" },
    { "[" IN ("storage_node") "]", NULL, "resources: storage_node:" },
    { "[" PLAIN ", " A ("storage_node") "]", NULL,
      "(rabbit.allow_rabbit_resources)" },
    /* what is no jobspec is for others to refuse */
    { "[]", NULL, NULL },
    { "{}", NULL, NULL },
    { "[1, null, {'type': 5, 'with': 'x'}]", NULL, NULL },
};

static void check (size_t i, bool directives, bool allowed, const char *said)
{
    json_t *resources = J (table[i].resources);
    dws_error_t error = { "" };
    int rc;

    errno = 0;
    rc = dws_ownrabbit_check (resources, directives, allowed, &error);
    assert_int_equal (rc, said ? -1 : 0);
    if (said) {
        assert_int_equal (errno, EPERM);
        assert_contains (error.text, said);
    }
    json_decref (resources);
}

static void test_table (void **state)
{
    for (size_t i = 0; i < sizeof (table) / sizeof (table[0]); i++) {
        check (i, true, false, table[i].with);
        check (i, true, true, table[i].with);
        check (i, false, false, table[i].without);
        check (i, false, true, NULL);
    }
    assert_int_equal (dws_ownrabbit_check (NULL, false, false, NULL), 0);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_table),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
