/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * [rabbit.limits] when a job is submitted or updated. Rules with names of users and
 * groups are left to the dws service, as looking them up may take a while; so are rules
 * for banks while another plugin may still add the job's bank.
 */

#ifndef DWS_JOBTAP_LIMITS_H
#define DWS_JOBTAP_LIMITS_H

#include "libdws/directive/directive.h"
#include "job.h"

/* Check the job against the limits. 'job' is the record of a job that is updated, or
 * NULL at submission. An update is checked only if it sets another bank or queue. Fails
 * with EPERM and a text for the user, or with ENOMEM.
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
