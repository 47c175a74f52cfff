/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of daemons.c.
 */

#include "libdws/storage/daemons.h"
#include "libdws/storage/test/with.h"
#include "libdws/test/util.h"

#define NEEDS(words) \
    "{'metadata': {'name': 'w-0'}, 'status': {'ready': true," \
    " 'requires': [" words "]}}"

/* As the document writes them, and as both do.
 */
#define DAEMONS(words) \
    "{'metadata': {'name': 'w-0'}, 'status': {'ready': true," \
    " 'requiredDaemons': [" words "]}}"
#define BOTH(requires, daemons) \
    "{'metadata': {'name': 'w-0'}, 'status': {'ready': true," \
    " 'requires': " requires ", 'requiredDaemons': " daemons "}}"

static const char *config =
    "{'copy-offload': 'nnf-dm.service', 'scr': 'scr.service',"
    " 'other-copy': 'nnf-dm.service'}";

static const struct {
    const char *breakdowns;
    const char *daemons;
    int errnum;
    const char *want;         // the units, or part of the message
} table[] = {
    { "[]", NULL, 0, "[]" },
    { "[{'status': {'ready': true}}]", NULL, 0, "[]" },
    { "[" NEEDS ("") "]", NULL, 0, "[]" },
    { "[" NEEDS ("'user-container-auth'") "]", NULL, 0, "[]" },
    { "[" NEEDS ("'copy-offload', 'user-container-auth'") "]", "", 0,
      "['nnf-dm.service']" },
    { "[" NEEDS ("'scr'") ", " NEEDS ("'copy-offload', 'scr'") "]", "", 0,
      "['scr.service', 'nnf-dm.service']" },
    // two words for one unit
    { "[" NEEDS ("'copy-offload', 'other-copy'") "]", "", 0,
      "['nnf-dm.service']" },
    // what is not in the table is not ours to start
    { "[" NEEDS ("'magic', 'scr'") "]", "", 0, "['scr.service']" },
    { "[" NEEDS ("'copy-offload'") "]", NULL, 0, "[]" },
    { "[" NEEDS ("5") "]", "", EINVAL, "not a string" },
    { "[" DAEMONS ("'copy-offload', 'magic'") "]", "", 0, "['nnf-dm.service']" },
    { "[" DAEMONS ("'scr'") ", " NEEDS ("'copy-offload'") "]", "", 0,
      "['scr.service', 'nnf-dm.service']" },
    { "[" DAEMONS ("5") "]", "", EINVAL,
      "status.requiredDaemons holds something that is not a string" },
    { "[" BOTH ("['scr', 'copy-offload']", "['copy-offload', 'scr', 'scr']") "]",
      "", 0, "['scr.service', 'nnf-dm.service']" },
    { "[" BOTH ("null", "['scr']") "]", "", 0, "['scr.service']" },
    { "[" BOTH ("['scr']", "null") "]", "", 0, "['scr.service']" },
    { "[" BOTH ("[]", "[]") "]", "", 0, "[]" },
    { "[" BOTH ("['scr', 'magic']", "['scr']") "]", "", EINVAL,
      "w-0: 'magic' is in status.requires, and not in status.requiredDaemons" },
    { "[" BOTH ("['scr']", "['magic', 'scr']") "]", "", EINVAL,
      "w-0: 'magic' is in status.requiredDaemons, and not in status.requires" },
    { "[" BOTH ("[]", "['scr']") "]", "", EINVAL, "'scr' is in" },
    { "[" BOTH ("'scr'", "['scr']") "]", "", EINVAL,
      "w-0: status.requires is not a list" },
    { "[" BOTH ("['scr']", "{}") "]", "", EINVAL,
      "w-0: status.requiredDaemons is not a list" },
    { "[{'metadata': {'name': 'w-0'}}]", "", EAGAIN, "not ready" },
};

static void test_table (void **state)
{
    for (size_t i = 0; i < sizeof (table) / sizeof (table[0]); i++) {
        json_t *breakdowns = J (table[i].breakdowns);
        json_t *daemons = J (table[i].daemons ? config : NULL);
        dws_error_t e = { "" };
        json_t *o;

        errno = 0;
        o = WITH_BREAKDOWNS (breakdowns, &e,
                             dws_daemons_units (bd, daemons, &e));
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
        json_decref (daemons);
        json_decref (breakdowns);
    }
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_table),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
