/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Applies [rabbit.limits] to jobs that hold no storage yet: before they get a
 * workflow, and again when the workflow shows the padding of NNF.
 */

#ifndef DWS_LIMITS_H
#define DWS_LIMITS_H

#include <stdbool.h>

#include "libdws/util/error.h"
#include "facts/jobs.h"

/* Returns true if limits_check() can answer and the job, unless refused, is admitted.
 * Otherwise a lookup of names is under way or the job waits for others
 * (facts/totals.h); jobs_changed() is called when to ask again.
 */
bool limits_ready (struct job *job);

/* Do the bytes of the job fit its limits at all? Fails with EPERM and a text for its
 * owner.
 */
int limits_check (struct job *job, dws_error_t *error);

/* Log unknown users and groups in the configuration: rules for them apply to no job.
 */
void limits_check_names (struct dws_ctx *ctx);

/* Look up the users and groups of 'limits' in the worker's thread. Then 'done' is
 * called in the reactor with texts about unknown ones, and last, in any case and in any
 * thread, 'destroy'. Takes over 'arg', also on failure, with errno set.
 */
typedef void (*limits_names_f)(struct dws_ctx *ctx, json_t *unknown, void *arg);
int limits_find_names (struct dws_ctx *ctx, json_t *limits, limits_names_f done,
                       void (*destroy)(void *arg), void *arg);

#endif /* !DWS_LIMITS_H */
