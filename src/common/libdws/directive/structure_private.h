/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Internal: the checks on all the directives of a job together.
 */

#ifndef LIBDWS_STRUCTURE_PRIVATE_H
#define LIBDWS_STRUCTURE_PRIVATE_H

#include "directive.h"
#include "grammar_private.h"

/* Check how 'count' directives fit together, each of which is in order by
 * itself. Fails with EINVAL, and 'where' filled in.
 */
int structure_check (const struct dws_directive *dirs,
                     size_t count,
                     struct dws_directive_where *where,
                     dws_error_t *error);

#endif /* !LIBDWS_STRUCTURE_PRIVATE_H */
