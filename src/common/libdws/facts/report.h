/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * What the agent reports (doc/protocol.md). A workflow is reported thirty times in the
 * life of a job, and most of it is of no interest to anybody here: of Workflow
 * objects, and of Servers objects that have changed, only what is read is parsed. Who
 * reads more of them has to name it in decode.c or report.c.
 */

#ifndef LIBDWS_REPORT_H
#define LIBDWS_REPORT_H

#include <jansson.h>

#include "libdws/facts/workflow.h"
#include "libdws/util/error.h"
#include "libdws/util/jsonscan.h"

/* The labels of Servers objects that are read: what DWS names a workflow and a
 * persistent file system by.
 */
#define DWS_LABEL_WORKFLOW "dataworkflowservices.github.io/workflow.name"
#define DWS_LABEL_PERSISTENT \
    "dataworkflowservices.github.io/persistentstorage.name"

struct dws_report {
    json_t *o;                  // with the parts of objects that are read, and without
                                //  its Workflow object. NULL: all that it tells is
                                //  that a workflow has changed
    struct dws_text workflow;   // its Workflow object, all of it, if it has one
    struct dws_workflow *wf;    // the same, decoded. NULL: it is that of no job. Who
                                //  takes it sets it to NULL
    bool deleted;               // this is its last version
    struct dws_text workflows;  // the array of a snapshot, if it has one
    bool malformed;             // no more than 'o' could be read, which has its type;
                                //  that of a command is a failure
    const char *fault;          // malformed: the field at fault, or ""
};

/* Goes through the reports of one request after the other. It keeps the memory that
 * it needs for that. 'instance' is for dws_workflow_decode().
 */
struct dws_reports;

struct dws_reports *dws_reports_create (const char *instance);
void dws_reports_destroy (struct dws_reports *reports);

/* Begin with a request. The payload is borrowed. Fails with EPROTO if it has no array
 * of reports, or with ENOMEM.
 */
int dws_reports_begin (struct dws_reports *reports, const char *payload,
                       dws_error_t *error);

/* The next report, which is valid until the one after. One that can not be read does
 * not take those after it along. Returns 1 if there was one, 0 after the last one, and
 * -1 with errno: ENOMEM, or EINVAL if it can not even be passed over.
 */
int dws_reports_next (struct dws_reports *reports, struct dws_report **report);

#endif /* !LIBDWS_REPORT_H */
