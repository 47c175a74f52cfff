/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The note of a job exception, in one form: what failed, where, whose fault
 * that is as far as one can tell, and what to do.
 */

#ifndef LIBDWS_EXPLAIN_H
#define LIBDWS_EXPLAIN_H

#include "libdws/facts/workflow.h"

/* Details of a failure. NULL or "": unknown.
 */
struct dws_details {
    const char *hosts;          // nodes or rabbits that did not get ready
    const char *movement;       // the data movement's own message
};

/* Write "TEXT[ (MORE)] [fault: WHO; ADVICE]" to 'buf', where WHO is user, site, storage
 * or "not known", cleaned (libdws/util/clean.h). Storage is not described: Flux
 * shows the notes of a job's exceptions to every user. 'wf' and 'details' may be
 * NULL. Returns 'buf'.
 */
#define DWS_EXPLAIN_SIZE 1536
const char *dws_explain (const struct dws_workflow *wf,
                         const struct dws_details *details,
                         const char *text,
                         char buf[DWS_EXPLAIN_SIZE]);

/* The objects that tell more about a failure in the workflow's state: the plural of
 * their kind, or NULL.
 */
const char *dws_explain_kind (const struct dws_workflow *wf);

#endif /* !LIBDWS_EXPLAIN_H */
