/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The Storage objects: what Kubernetes says of rabbits.
 */

#ifndef DWS_STORAGES_H
#define DWS_STORAGES_H

#include <stdbool.h>
#include <stdint.h>
#include <jansson.h>

struct dws_topology;

struct storages;

struct storages *storages_create (void);
void storages_destroy (struct storages *storages);

/* Take in all Storage objects, or a change of one. Fails with ENOMEM.
 */
int storages_list (struct storages *storages, json_t *objects);
int storages_learn (struct storages *storages, json_t *object, bool deleted);

/* The objects by name: borrowed. The second is NULL if none are known.
 */
json_t *storages_by_name (const struct storages *storages);
json_t *storages_known (const struct storages *storages);

/* The objects as a new array, NULL if none are known.
 */
json_t *storages_array (const struct storages *storages);

/* dws_health_largest() and dws_health_total() of the objects and a mapping, which is
 * the same in every call until storages_remap(). As every job asks, it is counted only
 * when something has changed.
 */
int64_t storages_largest (struct storages *storages,
                          const struct dws_topology *topo);
int64_t storages_total (struct storages *storages,
                        const struct dws_topology *topo);
void storages_remap (struct storages *storages);

#endif /* !DWS_STORAGES_H */
