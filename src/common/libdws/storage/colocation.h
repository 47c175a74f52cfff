/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Exclusive colocation: on a rabbit there is at most one allocation of the sets
 * with one key, whoever has them. The keys are in the DirectiveBreakdowns, which
 * go with their workflow, also where their storage is persistent. So they are
 * written down in the Servers object, by the patch that says which rabbits hold
 * what: an annotation that has JSON, {LABEL: [KEY, ...]}.
 */

#ifndef LIBDWS_COLOCATION_H
#define LIBDWS_COLOCATION_H

#include <stdbool.h>
#include <jansson.h>

#include "libdws/util/error.h"
#include "breakdowns.h"

/* What a Servers object keeps from others: a new map {RABBIT: {KEY: true}}. It does
 * so for as long as the object names rabbits. One without the annotation, which
 * others have written, keeps the key that NNF gives to every management target of
 * Lustre. Malformed parts keep nothing. Fails with ENOMEM.
 */
json_t *dws_colocation_taken (json_t *servers, dws_error_t *error);

/* The keys of all sets of 'breakdowns': a new map {KEY: true}, empty if none is
 * exclusive. Returns NULL with errno ENOMEM.
 */
json_t *dws_colocation_wanted (const struct dws_breakdowns *breakdowns);

/* Who has what a job wants for itself, the first that is found: "exclusive KEY on
 * RABBIT, which HOLDER has" in a string that the caller frees, NULL if nobody has
 * or there is no memory. 'nodes' are the job's rabbits, 'held' is as in allocation.h.
 * With 'lasting' only those count that may have it for ever.
 */
char *dws_colocation_holder (const struct dws_breakdowns *breakdowns,
                             json_t *nodes,
                             json_t *held,
                             bool lasting);

#endif /* !LIBDWS_COLOCATION_H */
