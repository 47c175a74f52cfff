/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Which environment variables that come from Kubernetes a job may get.
 */

#ifndef LIBDWS_VARIABLES_H
#define LIBDWS_VARIABLES_H

#include <stdbool.h>
#include <jansson.h>

/* 'patterns' is an array of shell patterns, [rabbit] environment: a name passes
 * if one of them has it. The secret token's never does, it is had by a request.
 */
bool dws_variable_may_pass (json_t *patterns, const char *name);

#endif /* !LIBDWS_VARIABLES_H */
