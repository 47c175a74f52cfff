/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The variables that tell a job where its file systems are. DWS sets them, and stops
 * half way when a state is forced ready.
 */

#ifndef LIBDWS_PLACES_H
#define LIBDWS_PLACES_H

#include <jansson.h>

#include "libdws/directive/directive.h"

/* Add to 'env' what NNF would have set for those directives that have no variable of
 * their own, by 'places' (dws_mounts_places()). Fails with ENOMEM.
 */
int dws_places_complete (json_t *env, const struct dws_directives *directives,
                         json_t *places);

#endif /* !LIBDWS_PLACES_H */
