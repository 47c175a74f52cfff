/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The environment variables from Kubernetes that a job may get.
 */

#ifndef LIBDWS_VARIABLES_H
#define LIBDWS_VARIABLES_H

#include <stdbool.h>

/* Only names that begin with DW_ or NNF_ pass: no other may change how a job finds or
 * loads programs. The variables of the secret token are excluded: a request returns it.
 */
bool dws_variable_may_pass (const char *name);

#endif /* !LIBDWS_VARIABLES_H */
