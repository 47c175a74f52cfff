/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The name of a job's user, for presets with $USER. The name service may be slow, so
 * the dws service asks it (dws.user) and does not learn of the job before the answer.
 * Then the plugin writes the job's directives with the name into its jobspec, so that
 * everybody sees the same text. If any part restarts before that, nothing has happened
 * yet, and the plugin requests the name again.
 */

#ifndef DWS_JOBTAP_USER_H
#define DWS_JOBTAP_USER_H

#include "job.h"

/* Request the name of a nameless job's user, then go on with dws.create. Replaces the
 * job's last request. Returns 0, or -1 with errno set.
 */
int jobtap_user_request (struct jobtap_job *job);

/* The dws service has started, or may have: request each name for which no request is
 * under way.
 */
void jobtap_user_request_all (struct jobtap *ctx);

#endif /* !DWS_JOBTAP_USER_H */
