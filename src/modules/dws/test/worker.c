/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of worker.c. Tasks wait for the test by a semaphore, so that it can
 * look at what is not done yet.
 */

#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>

#include "libdws/test/util.h"
#include "base/worker.h"

struct task {
    int number;
    sem_t *gate;                // waited for, if it is not NULL
    pthread_t thread;
};

static int destroyed;
static int numbers[8];
static int done;
static int kept;

/* Counts the threads that the module's code is kept loaded for. A program, unlike a
 * module, cannot be opened.
 */
void *dlopen (const char *name, int flags)
{
    kept++;
    return &kept;
}

static void run_task (void *arg)
{
    struct task *task = arg;

    task->thread = pthread_self ();
    if (task->gate)
        sem_wait (task->gate);
}

static void task_done (void *arg, void *reactor)
{
    struct task *task = arg;

    assert_false (pthread_equal (task->thread, pthread_self ()));
    numbers[done++] = task->number;
    if (task->number == 3)
        flux_reactor_stop (reactor);
}

static void destroy_task (void *arg)
{
    free (arg);
    __atomic_add_fetch (&destroyed, 1, __ATOMIC_SEQ_CST);
}

static const struct work work = {
    .run = run_task,
    .done = task_done,
    .destroy = destroy_task,
};

static void submit (struct worker *w, flux_reactor_t *r, int number,
                    sem_t *gate)
{
    struct task *task = calloc (1, sizeof (*task));

    assert_non_null (task);
    task->number = number;
    task->gate = gate;
    assert_int_equal (worker_submit (w, &work, task, r), 0);
}

static void test_order (void **state)
{
    flux_reactor_t *r = flux_reactor_create (0);
    struct worker *w = worker_create (r);
    sem_t gate;

    assert_non_null (w);
    destroyed = done = kept = 0;
    sem_init (&gate, 0, 0);
    submit (w, r, 1, &gate);
    submit (w, r, 2, NULL);
    submit (w, r, 3, NULL);
    /* The reactor goes on while the first one waits. */
    assert_true (flux_reactor_run (r, FLUX_REACTOR_NOWAIT) >= 0);
    assert_int_equal (done, 0);
    sem_post (&gate);
    assert_true (flux_reactor_run (r, 0) >= 0);
    assert_int_equal (done, 3);
    for (int i = 0; i < 3; i++)
        assert_int_equal (numbers[i], i + 1);
    worker_destroy (w);         // which is idle
    assert_int_equal (kept, 0);
    assert_int_equal (destroyed, 3);
    flux_reactor_destroy (r);
    sem_destroy (&gate);
}

static void test_destroy (void **state)
{
    flux_reactor_t *r = flux_reactor_create (0);
    struct worker *w = worker_create (r);
    sem_t gate;

    assert_non_null (w);
    worker_destroy (w);         // which has had no task
    worker_destroy (NULL);
    w = worker_create (r);
    assert_non_null (w);
    destroyed = done = 0;
    sem_init (&gate, 0, 1);
    for (int i = 1; i < 4; i++)
        submit (w, r, i, i == 1 ? &gate : NULL);
    worker_destroy (w);
    /* A thread that is still in its task destroys the rest itself. */
    while (__atomic_load_n (&destroyed, __ATOMIC_SEQ_CST) < 3)
        sched_yield ();
    assert_int_equal (done, 0);
    flux_reactor_destroy (r);
    sem_destroy (&gate);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_order),
        cmocka_unit_test (test_destroy),
    };

    return cmocka_run_group_tests_name ("worker", tests, NULL, NULL);
}
