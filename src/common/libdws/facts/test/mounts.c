/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of mounts.c.
 */

#include "libdws/facts/mounts.h"
#include "libdws/test/util.h"

#define MOUNT(name, node, status) \
    "{'metadata': {'name': 'default-fluxjob-1-0-" name "'}," \
    " 'spec': {'node': '" node "'}" status "}"
#define STATUS(state, ready) \
    ", 'status': {'mounts': [{'state': '" state "', 'ready': " ready "}]}"

static void check_mounts (const char *text, const char *state,
                          const char *want)
{
    json_t *o = J (text);
    char *got = dws_mounts_lagging (o, state, NULL);

    assert_string_equal (got, want);
    free (got);
    json_decref (o);
}

static void test_mounts (void **state)
{
    static const char *const three =
        "[" MOUNT ("computes", "node0", STATUS ("mounted", "true")) ","
        MOUNT ("computes", "node1", STATUS ("mounted", "false")) ","
        MOUNT ("computes", "node2", STATUS ("unmounted", "true")) "]";

    check_mounts ("[]", "mounted", "");
    check_mounts (three, "mounted", "node[1-2]");
    check_mounts (three, "unmounted", "node[0-1]");
    /* what says nothing has not arrived, what is on a rabbit is no node */
    check_mounts ("[" MOUNT ("computes", "node0", "") ","
                  MOUNT ("computes", "node1", ", 'status': {'mounts': []}") ","
                  MOUNT ("servers", "rabbit0", "") ", 5, {}]",
                  "mounted", "node[0-1]");
    /* two file systems on one node */
    check_mounts ("[" MOUNT ("computes", "node0", STATUS ("mounted", "true"))
                  "," MOUNT ("computes", "node0",
                             STATUS ("mounted", "false")) "]",
                  "mounted", "node0");
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_mounts),
    };

    return cmocka_run_group_tests_name ("mounts", tests, NULL, NULL);
}
