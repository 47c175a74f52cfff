/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The parts of the text of a Workflow object that are read, and the record that is made
 * of them.
 */

#ifndef LIBDWS_WORKFLOW_PRIVATE_H
#define LIBDWS_WORKFLOW_PRIVATE_H

#include "libdws/util/jsonpick.h"
#include "workflow.h"

/* All may be missing: dws_workflow_unread. Arrays and objects may be anything.
 */
struct workflow_text {
    struct dws_text name;
    struct dws_text namespace;
    struct dws_text uid;
    struct dws_text version;
    struct dws_text deleted;
    struct dws_text finalizers; // as written
    struct dws_text instance;   // labels
    struct dws_text maker;      // annotations
    struct dws_text failed;
    struct dws_text waived;
    struct dws_text stamp;
    struct dws_text stage_out_failed;
    struct dws_text stage_out_retry;
    struct dws_text data_first;

    struct dws_text desired;    // spec
    struct dws_text directives; // as written
    struct dws_text jobid;
    struct dws_text wlm;
    json_int_t userid;
    bool force_ready;

    struct dws_text state;      // status
    struct dws_text status;
    struct dws_text message;
    struct dws_text desired_change;
    struct dws_text ready_change;
    struct dws_text elapsed;
    struct dws_text computes;
    struct dws_text computes_namespace;
    struct dws_text token;
    struct dws_text token_namespace;
    json_t *drivers;            // those that say something; borrowed
    struct dws_text breakdowns; // as written
    struct dws_text env;        // as written
    bool ready;
};

extern const struct workflow_text workflow_unread;

/* How to read it, as members of an object in a struct that has it at its beginning.
 */
extern const struct dws_member workflow_members[];

/* What dws_workflow_decode() returns for the parts. 'decoded' is that of
 * dws_text_pick().
 */
struct dws_workflow *workflow_create (const struct workflow_text *text,
                                      const char *instance,
                                      json_t **decoded,
                                      dws_error_t *error);

#endif /* !LIBDWS_WORKFLOW_PRIVATE_H */
