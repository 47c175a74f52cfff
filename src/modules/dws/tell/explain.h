/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Reads details of a failure before it is reported to the job's owner.
 */

#ifndef DWS_MODULE_EXPLAIN_H
#define DWS_MODULE_EXPLAIN_H

#include "libdws/tell/explain.h"
#include "facts/jobs.h"

/* Returns true if all facts about the failure that can be read are known.
 * Otherwise a query is under way, and jobs_changed() is called with its answer
 * or after a timeout.
 */
bool explain_ready (struct job *job);

/* Make the note of an exception from 'text'.
 */
const char *explain_text (struct job *job, const char *text,
                          char buf[DWS_EXPLAIN_SIZE]);

#endif /* !DWS_MODULE_EXPLAIN_H */
