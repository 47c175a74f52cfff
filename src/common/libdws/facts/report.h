/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Reports of the agent (doc/protocol.md).
 */

#ifndef LIBDWS_REPORT_H
#define LIBDWS_REPORT_H

#include <stdbool.h>
#include <jansson.h>

#include "libdws/facts/workflow.h"
#include "libdws/util/error.h"

/* The labels of Servers objects that are read: DWS puts the names of the workflow and
 * of the persistent file system there.
 */
#define DWS_LABEL_WORKFLOW "dataworkflowservices.github.io/workflow.name"
#define DWS_LABEL_PERSISTENT \
    "dataworkflowservices.github.io/persistentstorage.name"

struct dws_report {
    json_t *o;                  // it, or of a result that cannot be read a failure
    const char *type;           // never NULL
    json_t *workflow;           // its workflow, if it has one, or NULL
    struct dws_workflow *wf;    // the same, decoded. NULL: it is that of no job. Who
                                //  takes it sets it to NULL
    bool deleted;               // this is its last version
    bool malformed;             // a field is missing, or of another type
    dws_error_t fault;          // malformed: the field at fault
};

/* Read a report. 'o' is borrowed until dws_report_clear(). 'instance' is for
 * dws_workflow_decode(). Fails with ENOMEM, and leaves nothing to clear then.
 */
int dws_report_read (struct dws_report *report, json_t *o, const char *instance);
void dws_report_clear (struct dws_report *report);

/* The whole Workflow as JSON, for the record of its job: NULL where the agent has not
 * sent it. 'workflow' may be NULL.
 */
const char *dws_report_text (json_t *workflow);

#endif /* !LIBDWS_REPORT_H */
