/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Rejects jobs with faulty directives at submission, as far as their jobspec shows the
 * fault.
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

/* Serve job-manager.dws.validate, which judges a jobspec that is not submitted yet, for
 * --dw-check.
 */
int jobtap_validate_register (struct jobtap *ctx);

#endif /* !DWS_JOBTAP_VALIDATE_H */
