/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The nodes that a job goes on without.
 */

#ifndef DWS_FAILURES_H
#define DWS_FAILURES_H

#include <stdbool.h>

#include "facts/jobs.h"

/* Storage cannot be laid out because rabbits are down. If the job can do without
 * their nodes, note that these are to be left out. Returns false if it cannot.
 */
bool failures_leave_out (struct job *job);

#endif /* !DWS_FAILURES_H */
