/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Which environment variables that come from Kubernetes a job may get.
 */

#ifndef LIBDWS_VARIABLES_H
#define LIBDWS_VARIABLES_H

#include <stdbool.h>

/* Those whose names begin with DW_ or NNF_: no other may change how a job finds or
 * loads programs. Nor the secret token's, which is had by a request.
 */
bool dws_variable_may_pass (const char *name);

#endif /* !LIBDWS_VARIABLES_H */
