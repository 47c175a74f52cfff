/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Runs a command of the site with a text as its standard input. The command runs as the
 * instance owner, does not block the reactor, and is killed when it exceeds its time
 * limit.
 */

#ifndef DWS_PROCESS_H
#define DWS_PROCESS_H

#include <jansson.h>
#include <flux/core.h>

struct process;

/* Called when the command is over. 'status' is that of wait(2), or -1 if the command
 * could not be started or did not end.
 */
typedef void (*process_f)(int status, void *arg);

/* Run 'argv', an array of texts. Its output is logged under 'name', as are errors on
 * start. After 'limit' seconds (below 0: never) the command is killed with its process
 * group. 'cb' is called from the reactor, never from here, when the command is over;
 * the caller destroys the process then, or before. Returns NULL with errno.
 */
struct process *process_create (flux_t *h, const char *name, json_t *argv,
                                const char *input, double limit,
                                process_f cb, void *arg);

/* Kills the command if it still runs.
 */
void process_destroy (struct process *process);

#endif /* !DWS_PROCESS_H */
