/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * DirectiveBreakdown objects, decoded once: what NNF makes of a job's directives. The
 * other files of this folder say what follows from it.
 */

#ifndef LIBDWS_BREAKDOWNS_H
#define LIBDWS_BREAKDOWNS_H

#include <jansson.h>

#include "libdws/util/error.h"

/* Functions that read it take NULL for a job without breakdowns.
 */
struct dws_breakdowns;

/* Decode an array of DirectiveBreakdown objects; NULL or JSON null: none. Arrays of
 * labels, keys and daemons are referenced, everything else is copied. Fails with EINVAL
 * (malformed; text for the user), EAGAIN (one is not ready yet) or ENOMEM.
 */
struct dws_breakdowns *dws_breakdowns_create (json_t *objects,
                                              dws_error_t *error);
void dws_breakdowns_destroy (struct dws_breakdowns *breakdowns);

#endif /* !LIBDWS_BREAKDOWNS_H */
