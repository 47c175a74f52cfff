/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Finding out more about a failure before the job's owner is told of it.
 */

#ifndef DWS_MODULE_EXPLAIN_H
#define DWS_MODULE_EXPLAIN_H

#include "libdws/explain.h"
#include "jobs.h"

struct explanation;

void explanation_destroy (struct explanation *explanation);

/* Returns true if all that can be found out is known. Otherwise it has been
 * asked for, and jobs_changed() is called when there is an answer, or when
 * waiting for one is not worth it any more.
 */
bool explain_ready (struct job *job);

/* Make the note of an exception from 'text'.
 */
const char *explain_text (struct job *job, const char *text,
                          char buf[DWS_EXPLAIN_SIZE]);

#endif /* !DWS_MODULE_EXPLAIN_H */
