/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Stamps note in a workflow since when it has been in TransientCondition,
 * because Kubernetes has no date for that and tc_timeout must continue across
 * restarts of this module. Conditions shorter than a second get no stamp.
 * dws_workflow_inherit() reads the stamp.
 */

#ifndef DWS_STAMP_H
#define DWS_STAMP_H

#include "facts/jobs.h"

struct stamps *stamps_create (struct dws_ctx *ctx);
void stamps_destroy (struct stamps *stamps);

/* A job's workflow has changed.
 */
void stamps_see_job (struct stamps *stamps, struct job *job);

#endif /* !DWS_STAMP_H */
