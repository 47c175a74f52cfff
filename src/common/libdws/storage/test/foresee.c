/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of breakdown.c for what directives alone say, before there is a
 * workflow.
 */

#include "libdws/storage/breakdown.h"
#include "libdws/storage/test/resources.h"
#include "libdws/test/util.h"

/* What the directives alone say: NNF adds to that, and takes nothing away.
 */
static void test_foresee (void **state)
{
    static const struct {
        const char *resources;
        const char *directives;
        int64_t bytes;
        const char *text;     // NULL: not known to be too much
    } cases[] = {
        { "[" NODES (2) "]", "['#DW jobdw type=xfs capacity=10GiB name=aa']",
          10 * GIB, NULL },
        { "[" NODES (2) "]", "['#DW jobdw type=xfs capacity=10GiB name=aa']",
          0, NULL },
        { "[" NODES (2) "]", "['#DW jobdw type=raw capacity=10GiB name=aa']",
          10 * GIB - 1,
          "10 GiB of rabbit storage are needed for each node; no rabbit has"
          " more than 9 GiB (0.008789 TiB)" },
        { "[" NODES (1) "]",
          "['#DW create_persistent type=gfs2 capacity=34TiB name=aa']",
          INT64_C (35184372088832),
          "34816 GiB of rabbit storage are needed for each node; no rabbit"
          " has more than 32768 GiB (32 TiB)" },
        { "[" NODES (2) "]",
          "['#DW jobdw type=xfs capacity=10GiB name=aa',"
          " '#DW jobdw name=bb capacity=10GiB type=gfs2']",
          19 * GIB, "20 GiB" },
        /* the nodes of a chassis share its rabbit */
        { CHASSIS (2, 8), "['#DW jobdw type=xfs capacity=10GiB name=aa']",
          79 * GIB, "80 GiB of rabbit storage are needed for each 8 nodes" },
        { CHASSIS (2, 8), "['#DW jobdw type=xfs capacity=10GiB name=aa']",
          80 * GIB, NULL },
        /* Lustre is shared by the rabbits of the job */
        { "[" NODES (4) "]",
          "['#DW jobdw type=lustre capacity=100GiB name=aa']",
          25 * GIB, NULL },
        { "[" NODES (4) "]",
          "['#DW jobdw type=lustre capacity=100GiB name=aa']",
          24 * GIB, "25 GiB" },
        /* nothing is known of these */
        { "[" NODES (1) "]", "['#DW persistentdw name=aa']", 1, NULL },
        { "[" NODES (1) "]", "['#DW destroy_persistent name=aa']", 1, NULL },
        { "[" NODES (1) "]", "['#DW create_persistent type=lustre name=aa']",
          1, NULL },
        { "[" NODES (1) "]", "['#DW complete capacity=10GiB type=xfs']",
          1, NULL },
        { "[" NODES (1) "]", "['#DW jobdw type=zfs capacity=10GiB name=aa']",
          1, NULL },
        { "[" NODES (1) "]", "[17]", 1, NULL },
        /* resources that are wrong are judged later */
        { "[]", "['#DW jobdw type=xfs capacity=10GiB name=aa']", 1, NULL },
        /* what they have of storage already gives way */
        { SLOTS (1, 99), "['#DW jobdw type=xfs capacity=10GiB name=aa']",
          10 * GIB, NULL },
        { "[" NODES (1) "]",
          "['#DW jobdw type=xfs capacity=9223372036854775807KB name=aa']",
          GIB, NULL },
        /* more than can be counted */
        { CHASSIS (1, 2147483647),
          "['#DW jobdw type=xfs capacity=8388607TiB name=aa']",
          GIB, "more storage is asked for than can be counted" },
        { "[" NODES (1) "]",
          "['#DW jobdw type=xfs capacity=8388607TiB name=aa',"
          " '#DW jobdw type=xfs capacity=8388607TiB name=bb']",
          GIB, "more storage is asked for than can be counted" },
    };

    for (size_t i = 0; i < sizeof (cases) / sizeof (cases[0]); i++) {
        json_t *resources = J (cases[i].resources);
        json_t *directives = J (cases[i].directives);
        struct dws_breakdown_opts opts = { .rabbit_bytes = cases[i].bytes };
        dws_error_t e = { "" };
        int rc;

        errno = 0;
        rc = dws_breakdown_foresee (resources, directives, &opts, &e);
        if (cases[i].text) {
            assert_int_equal (rc, -1);
            assert_int_equal (errno, EINVAL);
            assert_contains (e.text, cases[i].text);
        }
        else if (rc < 0)
            fail_msg ("row %zu: %s", i, e.text);
        json_decref (directives);
        json_decref (resources);
    }
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_foresee),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
