/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * How many bytes of rabbits jobs can get, by their Storage objects and the mapping.
 */

#ifndef LIBDWS_USABLE_H
#define LIBDWS_USABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <jansson.h>

#include "libdws/graph/topology.h"
#include "libdws/storage/drives.h"

/* The bytes of a rabbit that jobs can have in all, by its Storage object: fewer
 * than the mapping says if it has lost drives, or the mapping counts what no
 * pool can use (libdws/storage/drives.h). The mapping may say less, to keep
 * some of the rabbit for other purposes. 'storage' may be NULL.
 */
int64_t dws_health_capacity (json_t *storage, int64_t mapped);

/* The same of drives that have been read.
 */
int64_t dws_health_capacity_of (const struct dws_drives *drives, int64_t mapped);

/* The most of these that any rabbit of the mapping has. 'storages' is an object
 * by name.
 */
int64_t dws_health_largest (json_t *storages, const struct dws_topology *topo);

/* The sum over all rabbits of the mapping, in the same way; INT64_MAX on overflow.
 */
int64_t dws_health_total (json_t *storages, const struct dws_topology *topo);

#endif /* !LIBDWS_USABLE_H */
