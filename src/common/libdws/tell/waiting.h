/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The reason why a job waits, in words for its owner.
 */

#ifndef LIBDWS_WAITING_H
#define LIBDWS_WAITING_H

#include "libdws/facts/job.h"
#include "libdws/facts/progress.h"
#include "libdws/facts/workflow.h"

/* The way to Kubernetes.
 */
enum dws_link {
    DWS_LINK_UP,
    DWS_LINK_NO_AGENT,          // nobody to speak to Kubernetes
    DWS_LINK_NO_SERVER,         // the API server does not answer
};

#define DWS_WAITING_SIZE 256

/* Write "rabbit: ..." to 'buf', or "" if nothing of ours holds the job.
 * 'wf' is NULL if there is none, 'p' if nothing was read. 'trouble' is what a
 * request that is being repeated got for an answer, or NULL. An error of DWS is
 * told when it has lasted until 'now'. Returns 'buf'.
 */
const char *dws_waiting_text (const struct dws_job *job,
                              const struct dws_workflow *wf,
                              const struct dws_progress *p,
                              enum dws_link link,
                              const char *trouble,
                              double now,
                              char buf[DWS_WAITING_SIZE]);

/* The objects that tell more about the workflow's state: the plural of their kind, or
 * NULL.
 */
const char *dws_waiting_kind (const struct dws_job *job,
                              const struct dws_workflow *wf);

#endif /* !LIBDWS_WAITING_H */
