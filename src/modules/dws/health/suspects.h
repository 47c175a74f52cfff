/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Rabbits whose controller does not answer. Kubernetes calls such a rabbit
 * Ready: only the workflows that wait for it in vain tell. Jobs are sent there all the
 * same, since it may have been started again; storage that may lie anywhere is made
 * elsewhere. Each of these ends
 * the suspicion: storage that is made there after all, a new status of the
 * rabbit, which its controller writes, and an hour without news, so that one job
 * may try: a controller that has been started again writes no status if nothing
 * has changed. A restart of this module forgets those that no workflow waits for
 * any more.
 */

#ifndef DWS_SUSPECTS_H
#define DWS_SUSPECTS_H

#include <stdbool.h>
#include <jansson.h>

#include "facts/jobs.h"

struct suspects *suspects_create (struct dws_ctx *ctx);
void suspects_destroy (struct suspects *suspects);

/* A job's workflow, or Storage objects, have changed.
 */
void suspects_see_job (struct suspects *suspects, const struct job *job);
void suspects_see_storages (struct suspects *suspects);

/* Why a rabbit is suspect, NULL: it is not.
 */
const char *suspects_reason (const struct suspects *suspects,
                             const char *rabbit);

/* All of them, as keys: borrowed.
 */
json_t *suspects_names (const struct suspects *suspects);

#endif /* !DWS_SUSPECTS_H */
