/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The part of the executor (actions.h) that deals with nodes and rabbits that
 * do not do what they should: find them, go on without them, keep other jobs
 * away from them; and that keeps a record of what went on.
 */

#ifndef DWS_FAILURES_H
#define DWS_FAILURES_H

#include <jansson.h>

#include "libdws/reconcile.h"
#include "jobs.h"

/* Send what the action needs. Returns 0, or -1 with errno set if it should be
 * tried again; ENOSYS if it is not an action of this part.
 */
int failures_run (struct job *job, const struct dws_action *action);

/* Take in the objects that were listed by command 'index' of an action of
 * 'kind'. 'objects' is
 * NULL if they could not be.
 */
void failures_listed (struct job *job, enum dws_action_kind kind, int index,
                      json_t *objects);

#endif /* !DWS_FAILURES_H */
