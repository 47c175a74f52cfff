/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Stamps note in a workflow since when it has been in TransientCondition,
 * because Kubernetes has no date for that and tc_timeout must continue across
 * restarts of this module. Conditions shorter than a second get no stamp.
 * dws_workflow_inherit() reads the stamp.
 */

#ifndef DWS_TRANSIENT_H
#define DWS_TRANSIENT_H

#include "facts/jobs.h"

struct transients *transients_create (struct dws_ctx *ctx);
void transients_destroy (struct transients *transients);

/* A job's workflow has changed.
 */
void transients_see_job (struct transients *transients, struct job *job);

#endif /* !DWS_TRANSIENT_H */
