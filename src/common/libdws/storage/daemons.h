/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The daemons that a job needs on its compute nodes: what the breakdowns
 * require, as systemd units.
 */

#ifndef LIBDWS_DAEMONS_H
#define LIBDWS_DAEMONS_H

#include <jansson.h>

#include "libdws/util/error.h"
#include "breakdowns.h"

/* 'daemons' is the table [rabbit.daemons], a map of the words that users may
 * put into "requires=" to the unit that serves them, or NULL. Return a new
 * array of units, each once, in the order in which they are required: by NNF's field
 * status.requires, or by the document's, status.requiredDaemons.
 * A word that is not in the table is no daemon of the nodes: DWS has accepted the word,
 * and NNF serves it (copy-offload is a user container).
 * Fails with ENOMEM.
 */
json_t *dws_daemons_units (const struct dws_breakdowns *breakdowns,
                           json_t *daemons,
                           dws_error_t *error);

#endif /* !LIBDWS_DAEMONS_H */
