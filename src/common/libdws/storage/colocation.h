/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Exclusive colocation: a rabbit holds at most one allocation of the sets with one
 * key, whoever owns them. The keys are in the DirectiveBreakdowns, which are deleted
 * with their workflow even where the storage is persistent. The patch that places the
 * allocations therefore writes the keys into the Servers object, too: an annotation
 * with JSON, {LABEL: [KEY, ...]}.
 */

#ifndef LIBDWS_COLOCATION_H
#define LIBDWS_COLOCATION_H

#include <stdbool.h>
#include <jansson.h>

#include "libdws/util/error.h"
#include "breakdowns.h"

/* Keys that a Servers object reserves: a new map {RABBIT: {KEY: true}}, for as long as
 * the object names rabbits. An object without the annotation, which others have
 * written, reserves the key that NNF gives to every management target of Lustre.
 * Malformed parts reserve nothing. Fails with ENOMEM.
 */
json_t *dws_colocation_taken (json_t *servers, dws_error_t *error);

/* Do two such maps, or other objects whose keys are rabbits, have a rabbit in common?
 */
bool dws_colocation_meet (json_t *a, json_t *b);

/* The keys of all sets of 'breakdowns': a new map {KEY: true}, empty if none is
 * exclusive. Returns NULL with errno ENOMEM.
 */
json_t *dws_colocation_wanted (const struct dws_breakdowns *breakdowns);

/* The first holder of a key that a job wants for itself: "exclusive KEY on RABBIT,
 * which HOLDER has" in a string that the caller frees, NULL if there is none or no
 * memory. 'nodes' are the job's rabbits, 'rivals' is as in allocation.h. With 'lasting'
 * only holders count that may keep the key for ever.
 */
char *dws_colocation_holder (const struct dws_breakdowns *breakdowns,
                             json_t *nodes,
                             json_t *rivals,
                             bool lasting);

#endif /* !LIBDWS_COLOCATION_H */
