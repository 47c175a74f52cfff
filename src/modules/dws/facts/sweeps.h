/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Sweeps: the workflows that destroy expired persistent file systems. Sweeps belong to
 * no job. Destruction has no other record, so a restart resumes from them.
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

/* The name of the sweep for the file system with this uid.
 */
const char *sweeps_name (const char *uid, char buf[DWS_NAME_SIZE]);

/* Note a Workflow object from the agent. Returns false if it is not a sweep.
 */
bool sweeps_learn (struct sweeps *sweeps, json_t *o, bool deleted);

/* Begin and end a list of all workflows. A sweep missing from the list, or reported as
 * deleted by a watch, may only have lost its label: doubt it until it was read by its
 * name.
 */
void sweeps_unsee (struct sweeps *sweeps);
void sweeps_doubt_unseen (struct sweeps *sweeps);

/* Versions noted so far cannot be compared with those from the next agent.
 */
void sweeps_agent_lost (struct sweeps *sweeps);

/* Note that a sweep is being deleted, or does not exist.
 */
void sweeps_deleting (struct sweeps *sweeps, const char *name);
void sweeps_forget (struct sweeps *sweeps, const char *name);

/* Fill in what there is to know of a workflow of that name.
 */
void sweeps_read (const struct sweeps *sweeps, const char *name,
                  struct dws_lease *lease);

/* The message of DWS in the sweep's status; "" for none.
 */
const char *sweeps_message (const struct sweeps *sweeps, const char *name);

/* Call visit for each, with the name of its file system.
 */
typedef void (*sweeps_f)(const char *name, const char *fs, void *arg);

void sweeps_each (const struct sweeps *sweeps, sweeps_f visit, void *arg);

size_t sweeps_count (const struct sweeps *sweeps);

/* The number of file systems destroyed since the module was loaded.
 */
int sweeps_destroyed (const struct sweeps *sweeps);

#endif /* !DWS_SWEEPS_H */
