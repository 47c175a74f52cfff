/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Suspects: rabbits whose controller does not answer, though Kubernetes reports them
 * Ready. Only workflows that wait there in vain show it. Jobs on the rabbit's nodes
 * still use it, since the controller may have restarted; unbound storage is made
 * elsewhere. The suspicion ends when storage is made there after all, when the
 * controller writes a new status, or after an hour, so that one job may try: a
 * restarted controller writes no status if nothing has changed. A restart of this
 * module forgets suspects for which no workflow waits any more.
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

/* The names of all suspects, as keys: borrowed.
 */
json_t *suspects_names (const struct suspects *suspects);

#endif /* !DWS_SUSPECTS_H */
