/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The name of a job's user, for presets with $USER. The name service may take its
 * time, so the dws service asks it (dws.user). Until there is an answer the job is
 * not known to that service; then its directives are written into its jobspec with
 * the name in them, and everybody sees the same text. If any part starts again before
 * that, nothing has happened yet, and the name is asked for anew.
 */

#ifndef DWS_JOBTAP_USER_H
#define DWS_JOBTAP_USER_H

#include "job.h"

/* Ask for the name of a nameless job's user, and go on with dws.create then. In the
 * place of the job's last request. Returns 0, or -1 with errno set.
 */
int jobtap_user_request (struct jobtap_job *job);

/* The dws service has started, or may have: ask for all that nothing is on its way
 * for.
 */
void jobtap_user_request_all (struct jobtap *ctx);

#endif /* !DWS_JOBTAP_USER_H */
