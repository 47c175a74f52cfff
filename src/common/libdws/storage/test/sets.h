/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * What the tests of allocation share: how allocation sets and Storages are
 * written, and how what comes out is read.
 */

#ifndef LIBDWS_STORAGE_TEST_SETS_H
#define LIBDWS_STORAGE_TEST_SETS_H

#include "libdws/test/util.h"

#define RABBIT "'dataworkflowservices.github.io/storage=Rabbit'"

#define SET(strategy, label, gib, constraints) \
    "{'allocationStrategy': 'Allocate" strategy "', 'label': '" label "'," \
    " 'minimumCapacity': " gib ", 'constraints': {" constraints "}}"

#define BREAKDOWN(name, sets) \
    BREAKDOWN_OF (name, "'name': '" name "', 'namespace': 'default'", sets)
#define BREAKDOWN_OF(name, reference, sets) \
    "{'kind': 'DirectiveBreakdown', 'metadata': {'name': '" name "'}," \
    " 'status': {'ready': true, 'storage': {'lifetime': 'job'," \
    " 'reference': {'kind': 'Servers', " reference "}," \
    " 'allocationSets': [" sets "]}}}"

#define EXCLUSIVE(key) "'colocation': [{'type': 'exclusive', 'key': '" key "'}]"

/* Sizes are written in bytes: the numbers below are GiB << 30. */
#define G1 "1073741824"
#define G5 "5368709120"
#define G10 "10737418240"
#define G12 "12884901888"
#define G20 "21474836480"
#define G25 "26843545600"
#define G40 "42949672960"
#define G50 "53687091200"
#define G100 "107374182400"
#define G240 "257698037760"

#define STORAGE_(name, gib_bytes, status, labels) \
    "{'metadata': {'name': '" name "', 'labels': {" labels "}}," \
    " 'spec': {'state': 'Enabled'}, 'status': {'capacity': " gib_bytes "," \
    " 'status': '" status "'}}"
#define IS_RABBIT "'dataworkflowservices.github.io/storage': 'Rabbit'"
#define STORAGE(name, bytes) STORAGE_ (name, bytes, "Ready", IS_RABBIT)

/* One set as it must come out: "LABEL SIZE RABBIT:COUNT ...".
 */
static inline char *describe (json_t *servers)
{
    static char buf[2048];
    size_t i, j, k;
    json_t *entry, *set, *s;

    buf[0] = '\0';
    json_array_foreach (servers, i, entry) {
        json_array_foreach (json_object_get (entry, "allocationSets"),
                            j,
                            set) {
            const char *label;
            json_int_t size;
            json_t *storage;
            size_t n = strlen (buf);

            assert_int_equal (json_unpack (set,
                                           "{s:s s:I s:o !}",
                                           "label", &label,
                                           "allocationSize", &size,
                                           "storage", &storage), 0);
            assert_true (json_array_size (storage) > 0);
            snprintf (buf + n, sizeof (buf) - n, "%s%s %lld", n ? "; " : "",
                      label, (long long)size);
            json_array_foreach (storage, k, s) {
                const char *name;
                json_int_t count;

                n = strlen (buf);
                assert_int_equal (json_unpack (s,
                                               "{s:s s:I !}",
                                               "name", &name,
                                               "allocationCount",
                                               &count), 0);
                snprintf (buf + n, sizeof (buf) - n, " %s:%lld", name,
                          (long long)count);
            }
        }
    }
    return buf;
}

#endif // !LIBDWS_STORAGE_TEST_SETS_H
