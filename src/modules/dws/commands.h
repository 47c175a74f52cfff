/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The half of the executor (actions.h) that speaks to Kubernetes.
 */

#ifndef DWS_COMMANDS_H
#define DWS_COMMANDS_H

#include "libdws/reconcile.h"
#include "jobs.h"

/* Smallest allocation on a rabbit, in GiB: rabbits refuse less for Lustre.
 */
#define DWS_MIN_GIB 4

/* Send what the action needs. Returns 0, or -1 with errno set if it should be
 * tried again.
 */
int command_run (struct job *job, const struct dws_action *action);

/* Read the workflow, to store it in the KVS. 'bit' is of DWS_SAVED; it is taken
 * out of job->facts->saved again if that comes to nothing.
 */
int command_read_workflow (struct job *job, uint32_t bit);

#endif /* !DWS_COMMANDS_H */
