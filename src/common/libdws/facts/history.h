/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Recalls a job that is gone from its eventlog, which outlives every process and all
 * memory of the job.
 */

#ifndef LIBDWS_HISTORY_H
#define LIBDWS_HISTORY_H

#include "job.h"

/* Note what the eventlog (RFC 18) of a job that is gone says: whose it was,
 * whether it has run, and whether its epilog has ended, was given up, or never
 * was: the plugin was away when the job ended. 'eventlog' is NULL if there is none
 * any more. Only 'owner', the instance owner, can give up an epilog.
 */
void dws_job_recall (struct dws_job *job, const char *eventlog, uint32_t owner);

#endif /* !LIBDWS_HISTORY_H */
