/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The nodes that a job goes on without.
 */

#ifndef DWS_FAILURES_H
#define DWS_FAILURES_H

#include <stdbool.h>

#include "facts/jobs.h"

/* The layout failed because rabbits are down. If the job can go on without their nodes,
 * note these as left out. Returns false if it cannot.
 */
bool failures_leave_out (struct job *job);

#endif /* !DWS_FAILURES_H */
