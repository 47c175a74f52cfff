/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The workflows that were made to destroy persistent file systems that have expired.
 * They belong to no job, and are all that there is to know about what is under way.
 */

#ifndef DWS_SWEEPS_H
#define DWS_SWEEPS_H

#include <stdbool.h>
#include <stddef.h>
#include <jansson.h>

#include "libdws/decide/leases.h"
#include "base/ctx.h"

struct sweeps;

struct sweeps *sweeps_create (struct dws_ctx *ctx);
void sweeps_destroy (struct sweeps *sweeps);

/* The name of that for the file system with this uid.
 */
const char *sweeps_name (const char *uid, char buf[DWS_NAME_SIZE]);

/* Note what the agent reports of a workflow. Returns false if it is of another kind, or none at all.
 */
bool sweeps_learn (struct sweeps *sweeps, json_t *o, bool deleted);

/* All workflows are about to be listed; they have been. One that is not among them, or
 * that a watch has as deleted, may have lost its label: it is in doubt until it was read
 * by its name.
 */
void sweeps_unsee (struct sweeps *sweeps);
void sweeps_doubt_unseen (struct sweeps *sweeps);

/* Versions of before say nothing about those that will be told of.
 */
void sweeps_agent_lost (struct sweeps *sweeps);

/* One is being deleted; it does not exist.
 */
void sweeps_deleting (struct sweeps *sweeps, const char *name);
void sweeps_forget (struct sweeps *sweeps, const char *name);

/* Fill in what there is to know of a workflow of that name.
 */
void sweeps_read (const struct sweeps *sweeps, const char *name,
                  struct dws_lease *lease);

/* What DWS says of it; "" for nothing.
 */
const char *sweeps_message (const struct sweeps *sweeps, const char *name);

/* Call visit for each, with the name of its file system.
 */
typedef void (*sweeps_f)(const char *name, const char *fs, void *arg);

void sweeps_each (const struct sweeps *sweeps, sweeps_f visit, void *arg);

size_t sweeps_count (const struct sweeps *sweeps);

/* So many have done their work since the module was loaded.
 */
int sweeps_destroyed (const struct sweeps *sweeps);

#endif /* !DWS_SWEEPS_H */
