/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Which jobs with directives are refused when they are submitted, as far as their
 * jobspec tells.
 */

#ifndef DWS_JOBTAP_VALIDATE_H
#define DWS_JOBTAP_VALIDATE_H

#include "job.h"

/* The callback of job.validate.
 */
int jobtap_validate_cb (flux_plugin_t *p,
                        const char *topic,
                        flux_plugin_arg_t *args,
                        void *arg);

/* Serve job-manager.dws.validate, which says the same of a jobspec that nobody has
 * submitted yet, for --dw-check.
 */
int jobtap_validate_register (struct jobtap *ctx);

#endif /* !DWS_JOBTAP_VALIDATE_H */
