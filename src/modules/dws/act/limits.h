/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * [rabbit.limits] for jobs that hold nothing on rabbits yet: before they get a
 * workflow, and when that has told what NNF adds to what they ask for.
 */

#ifndef DWS_LIMITS_H
#define DWS_LIMITS_H

#include <stdbool.h>

#include "libdws/util/error.h"
#include "facts/jobs.h"

/* Returns true if limits_check() has something to say, and the job, if it is not
 * refused, has been let in. Otherwise names are being looked up, or the job waits for
 * others (facts/totals.h); jobs_changed() is called when it is to be asked again.
 */
bool limits_ready (struct job *job);

/* May the job ever take what it takes? Fails with EPERM and a text for its owner.
 */
int limits_check (struct job *job, dws_error_t *error);

/* Log users and groups of the configuration that there are none of: no rule with them
 * fits anybody.
 */
void limits_check_names (struct dws_ctx *ctx);

/* Have the users and groups of 'limits' looked up in the worker's thread. Then 'done'
 * is called in the reactor with texts for those that there are none of, and at last,
 * in any case and any thread, 'destroy'. Takes over 'arg', also if it fails, with errno
 * set.
 */
typedef void (*limits_names_f)(struct dws_ctx *ctx, json_t *unknown, void *arg);
int limits_find_names (struct dws_ctx *ctx, json_t *limits, limits_names_f done,
                       void (*destroy)(void *arg), void *arg);

#endif /* !DWS_LIMITS_H */
