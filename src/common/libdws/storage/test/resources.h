/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * What the tests of resources.c share: resources of a jobspec, with and without
 * storage.
 */

#ifndef LIBDWS_STORAGE_TEST_RESOURCES_H
#define LIBDWS_STORAGE_TEST_RESOURCES_H

#define TASK "{'type': 'slot', 'count': 1, 'label': 'task'," \
             " 'with': [{'type': 'core', 'count': 1}]}"
#define NODES(n) "{'type': 'node', 'count': " #n ", 'with': [" TASK "]}"
#define SSD(n) "{'type': 'ssd', 'count': " #n ", 'exclusive': true}"
#define SLOTS(n, gib) \
    "[{'type': 'slot', 'count': " #n ", 'label': 'rabbit'," \
    " 'with': [" NODES (1) ", " SSD (gib) "]}]"
#define CHASSIS(c, n) \
    "[{'type': 'chassis', 'count': " #c ", 'with': [" NODES (n) "]}]"
#define CHASSIS_SSD(c, n, gib) \
    "[{'type': 'chassis', 'count': " #c ", 'with': [" NODES (n) ", " \
    SSD (gib) "]}]"

#define GIB (INT64_C (1) << 30)

#endif // !LIBDWS_STORAGE_TEST_RESOURCES_H
