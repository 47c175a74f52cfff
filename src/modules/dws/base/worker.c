/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See worker.h. Both threads use struct shared; the last one to leave frees it.
 */

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "libutil/errno_safe.h"
#include "base/worker.h"

struct item {
    const struct work *work;
    void *task;
    void *arg;
    struct item *next;
};

struct queue {
    struct item *head;
    struct item **tail;
};

struct shared {
    pthread_mutex_t lock;
    pthread_cond_t wanted;
    struct queue todo;
    struct queue done;
    int fd;                     // an eventfd: 'done' is not empty
    bool stopped;
    bool running;               // a task is
    bool left;                  // by the reactor: the thread frees this
};

struct worker {
    struct shared *shared;
    pthread_t thread;
    bool started;
    flux_watcher_t *watcher;
};

static void queue_push (struct queue *queue, struct item *item)
{
    item->next = NULL;
    *queue->tail = item;
    queue->tail = &item->next;
}

static struct item *queue_pop (struct queue *queue)
{
    struct item *item = queue->head;

    if (item && !(queue->head = item->next))
        queue->tail = &queue->head;
    return item;
}

static void item_destroy (struct item *item)
{
    item->work->destroy (item->task);
    free (item);
}

static void shared_destroy (struct shared *s)
{
    struct item *item;

    if (s) {
        ERRNO_SAFE_BLOCK;
        while ((item = queue_pop (&s->todo)) || (item = queue_pop (&s->done)))
            item_destroy (item);
        if (s->fd >= 0)
            close (s->fd);
        pthread_cond_destroy (&s->wanted);
        pthread_mutex_destroy (&s->lock);
        free (s);
    }
}

static struct shared *shared_create (void)
{
    struct shared *s;

    if (!(s = calloc (1, sizeof (*s))))
        return NULL;
    pthread_mutex_init (&s->lock, NULL);
    pthread_cond_init (&s->wanted, NULL);
    s->todo.tail = &s->todo.head;
    s->done.tail = &s->done.head;
    if ((s->fd = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0) {
        shared_destroy (s);
        return NULL;
    }
    return s;
}

/* The thread
 */

/* Run a task. The caller holds the lock, which is released during the task.
 */
static void run_item (struct shared *s, struct item *item)
{
    uint64_t one = 1;

    s->running = true;
    pthread_mutex_unlock (&s->lock);
    item->work->run (item->task);
    pthread_mutex_lock (&s->lock);
    s->running = false;
    queue_push (&s->done, item);
    /* A write can only fail if the counter is full, and the reactor is then
     * woken anyway. */
    if (write (s->fd, &one, sizeof (one)) < 0)
        return;
}

static void *worker_main (void *arg)
{
    struct shared *s = arg;
    bool left;

    pthread_mutex_lock (&s->lock);
    while (!s->stopped) {
        struct item *item = queue_pop (&s->todo);

        if (item)
            run_item (s, item);
        else
            pthread_cond_wait (&s->wanted, &s->lock);
    }
    left = s->left;
    pthread_mutex_unlock (&s->lock);
    if (left)
        shared_destroy (s);
    return NULL;
}

/* Block signals in the thread: the broker's own threads handle them.
 */
static int start_thread (struct worker *w)
{
    sigset_t all;
    sigset_t before;
    int rc;

    sigfillset (&all);
    pthread_sigmask (SIG_SETMASK, &all, &before);
    rc = pthread_create (&w->thread, NULL, worker_main, w->shared);
    pthread_sigmask (SIG_SETMASK, &before, NULL);
    if (rc != 0) {
        errno = rc;
        return -1;
    }
    w->started = true;
    return 0;
}

/* The reactor
 */

static void worker_done_cb (flux_reactor_t *r, flux_watcher_t *watcher,
                            int revents, void *arg)
{
    struct worker *w = arg;
    struct shared *s = w->shared;
    struct queue done = { .tail = &done.head };
    struct item *item;
    uint64_t count;

    pthread_mutex_lock (&s->lock);
    if (read (s->fd, &count, sizeof (count)) == sizeof (count)) {
        while ((item = queue_pop (&s->done)))
            queue_push (&done, item);
    }
    pthread_mutex_unlock (&s->lock);
    while ((item = queue_pop (&done))) {
        item->work->done (item->task, item->arg);
        item_destroy (item);
    }
}

int worker_submit (struct worker *w, const struct work *work, void *task,
                   void *arg)
{
    struct item *item;

    if (!(item = calloc (1, sizeof (*item)))
        || (!w->started && start_thread (w) < 0)) {
        ERRNO_SAFE (free (item));
        ERRNO_SAFE (work->destroy (task));
        return -1;
    }
    item->work = work;
    item->task = task;
    item->arg = arg;
    pthread_mutex_lock (&w->shared->lock);
    queue_push (&w->shared->todo, item);
    pthread_cond_signal (&w->shared->wanted);
    pthread_mutex_unlock (&w->shared->lock);
    return 0;
}

struct worker *worker_create (flux_reactor_t *r)
{
    struct worker *w;

    if (!(w = calloc (1, sizeof (*w))))
        return NULL;
    if (!(w->shared = shared_create ())
        || !(w->watcher = flux_fd_watcher_create (r, w->shared->fd, FLUX_POLLIN,
                                                  worker_done_cb, w))) {
        worker_destroy (w);
        return NULL;
    }
    flux_watcher_start (w->watcher);
    return w;
}

/* Keep the module's code mapped for a thread that outlives it.
 */
static bool keep_loaded (void)
{
    Dl_info info;

    return dladdr (&worker_main, &info) != 0
        && dlopen (info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

static void stop_thread (struct worker *w)
{
    struct shared *s = w->shared;

    pthread_mutex_lock (&s->lock);
    s->stopped = true;
    s->left = s->running && keep_loaded ();
    if (s->left)
        w->shared = NULL;
    pthread_cond_signal (&s->wanted);
    pthread_mutex_unlock (&s->lock);
    if (w->shared)
        pthread_join (w->thread, NULL);
    else
        pthread_detach (w->thread);
}

void worker_destroy (struct worker *w)
{
    if (w) {
        ERRNO_SAFE_BLOCK;
        flux_watcher_destroy (w->watcher);
        if (w->started)
            stop_thread (w);
        shared_destroy (w->shared);
        free (w);
    }
}
