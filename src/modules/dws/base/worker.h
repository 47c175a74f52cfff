/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * A thread for blocking calls, such as those of the name service. Tasks run one
 * after another; results return to the reactor.
 */

#ifndef DWS_WORKER_H
#define DWS_WORKER_H

#include <flux/core.h>

struct worker;

/* Callbacks for one kind of task. The worker owns the task's memory from
 * worker_submit() on.
 */
struct work {
    /* In the thread: may use nothing but the task. */
    void (*run)(void *task);

    /* In the reactor, after run(). 'arg' is that of worker_submit(). */
    void (*done)(void *task, void *arg);

    /* In either, last of all, also for a task that never ran. */
    void (*destroy)(void *task);
};

struct worker *worker_create (flux_reactor_t *r);

/* Stop calling done(). Does not wait for a running task: the thread destroys the task
 * and ends when run() returns.
 */
void worker_destroy (struct worker *w);

/* Takes over 'task', also if it fails, with errno set.
 */
int worker_submit (struct worker *w, const struct work *work, void *task,
                   void *arg);

#endif /* !DWS_WORKER_H */
