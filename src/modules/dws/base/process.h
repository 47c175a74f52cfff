/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * A command of the site, with a text as its standard input. Nobody waits for it: it
 * runs beside the reactor, as the instance owner, and has so long and no longer.
 */

#ifndef DWS_PROCESS_H
#define DWS_PROCESS_H

#include <jansson.h>
#include <flux/core.h>

struct process;

/* How it has ended: its status as wait(2) has it, or -1 for one that could not be
 * started or did not end.
 */
typedef void (*process_f)(int status, void *arg);

/* Run 'argv', an array of texts. What it writes is logged, as 'name', and so is why it
 * could not be started. After 'limit' seconds (below 0: never) it is killed, with all
 * that it has started. 'cb' is called when it is over, from the reactor and never from
 * here; the caller destroys it then, or before. Returns NULL with errno.
 */
struct process *process_create (flux_t *h, const char *name, json_t *argv,
                                const char *input, double limit,
                                process_f cb, void *arg);

/* Kills it, if it runs.
 */
void process_destroy (struct process *process);

#endif /* !DWS_PROCESS_H */
