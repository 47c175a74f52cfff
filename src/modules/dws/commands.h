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

#endif /* !DWS_COMMANDS_H */
