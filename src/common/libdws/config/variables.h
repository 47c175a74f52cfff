/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Which environment variables that come from Kubernetes a job may get.
 */

#ifndef LIBDWS_VARIABLES_H
#define LIBDWS_VARIABLES_H

#include <stdbool.h>
#include <jansson.h>

/* 'patterns' is an array of shell patterns, [rabbit] environment. Some names
 * may never pass, whatever the patterns: those that change how programs are
 * found or loaded, and that of the secret token.
 */
bool dws_variable_may_pass (json_t *patterns, const char *name);

#endif /* !LIBDWS_VARIABLES_H */
