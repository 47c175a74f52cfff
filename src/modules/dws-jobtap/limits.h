/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * [rabbit.limits] when a job is submitted or updated. What depends on the names of
 * users and groups is left to the dws service, as looking them up may take a while;
 * so is a bank that another plugin may add.
 */

#ifndef DWS_JOBTAP_LIMITS_H
#define DWS_JOBTAP_LIMITS_H

#include "libdws/directive/directive.h"
#include "job.h"

/* 'job' is the record of a job that is updated, or NULL. Such a job is looked at
 * anew only if it is to have another bank or queue. Fails with EPERM and a text for
 * the user, or with ENOMEM.
 */
int jobtap_limits_validate (struct jobtap *ctx,
                            flux_plugin_arg_t *args,
                            struct jobtap_job *job,
                            const struct dws_directives *dirs,
                            dws_error_t *error);

/* Does a directive want its persistent file system for longer than the site allows?
 * Fails with EPERM and a text for the user.
 */
int jobtap_limits_lifetime (const struct jobtap *ctx,
                            const struct dws_directives *dirs,
                            dws_error_t *error);

#endif /* !DWS_JOBTAP_LIMITS_H */
