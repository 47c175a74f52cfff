/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Since when a workflow has been in TransientCondition is written down in the
 * workflow, as Kubernetes has no date for it: the clock of tc_timeout goes on
 * after a restart of this module. One that lasts less than a second is not
 * worth it. dws_workflow_inherit() reads it.
 */

#ifndef DWS_STAMP_H
#define DWS_STAMP_H

#include "facts/jobs.h"

struct stamps *stamps_create (struct dws_ctx *ctx);
void stamps_destroy (struct stamps *stamps);

/* A job's workflow has changed.
 */
void stamps_see_job (struct stamps *stamps, struct job *job);

/* What was sent may not have been carried out.
 */
void stamps_agent_lost (struct stamps *stamps);

#endif /* !DWS_STAMP_H */
