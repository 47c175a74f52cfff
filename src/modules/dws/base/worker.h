/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * A thread for calls that block, as those of the name service do. Tasks run one
 * after another; their results come back in the reactor.
 */

#ifndef DWS_WORKER_H
#define DWS_WORKER_H

#include <flux/core.h>

struct worker;

/* What becomes of one kind of task, which is memory that the worker owns from
 * worker_submit() on.
 */
struct work {
    /* In the thread: may use nothing but the task. */
    void (*run)(void *task);

    /* In the reactor, when that has returned. 'arg' is that of
     * worker_submit(). */
    void (*done)(void *task, void *arg);

    /* In either, last of all, also of a task that was never run. */
    void (*destroy)(void *task);
};

struct worker *worker_create (flux_reactor_t *r);

/* No done() is called from now on. A task that runs is not waited for: the thread
 * ends, and destroys it, when run() returns.
 */
void worker_destroy (struct worker *w);

/* Takes over 'task', also if it fails, with errno set.
 */
int worker_submit (struct worker *w, const struct work *work, void *task,
                   void *arg);

#endif /* !DWS_WORKER_H */
