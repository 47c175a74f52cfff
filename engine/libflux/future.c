/* SPDX-License-Identifier: LGPL-3.0-only */
/* future.c - futures: a result to come, or a series of them.
 *
 * The init callback says in which reactor the future is fulfilled: in the
 * one that runs (then), or in one that runs only as long as somebody
 * waits (wait_for, get), with a clone of the handle, so that nothing else
 * happens meanwhile.  flux_future_get_reactor() and _get_flux() return the
 * one of the context in which they are called.
 */

#include "libutil/errno_safe.h"
#include "aux.h"
#include "reactor_private.h"

struct result {
    struct result *next;
    int errnum;                 // 0: value holds
    char *errstr;
    void *value;
    flux_free_f free_fn;
};

struct waiting {                // flux_future_wait_for()
    flux_reactor_t *r;
    flux_t *h;
    flux_watcher_t *timer;
    bool init_called;
    bool running;
    bool timed_out;
};

struct continuing {             // flux_future_then()
    flux_reactor_t *r;
    flux_watcher_t *ready;
    flux_watcher_t *timer;
    double timeout;
    flux_continuation_f cb;
    void *arg;
    bool init_called;
};

struct flux_future {
    int refcount;
    flux_reactor_t *r;
    flux_t *h;
    struct aux_item *aux;
    flux_future_init_f init;
    void *init_arg;
    struct result *result;      // the current one, then those that wait
    struct result *last;
    struct result fatal;        // if errnum is set
    struct waiting *now;
    struct continuing *then;
};

/* Results */

static void result_destroy (struct result *res)
{
    if (res) {
        if (res->value && res->free_fn)
            res->free_fn (res->value);
        free (res->errstr);
        free (res);
    }
}

static struct result *result_error (int errnum, const char *errstr)
{
    struct result *res;

    if (!(res = calloc (1, sizeof (*res))))
        return NULL;
    res->errnum = errnum;
    if (errstr && !(res->errstr = strdup (errstr))) {
        free (res);
        return NULL;
    }
    return res;
}

/* The result for get(): a fatal error hides all others. */
static struct result *current (flux_future_t *f)
{
    return f->fatal.errnum ? &f->fatal : f->result;
}

static void wake (flux_future_t *f)
{
    if (f->now && f->now->running) {
        flux_watcher_stop (f->now->timer);
        flux_reactor_stop (f->now->r);
    }
    if (f->then)
        watcher_feed (f->then->ready);
}

static void add_result (flux_future_t *f, struct result *res)
{
    if (f->result)
        f->last->next = res;
    else
        f->result = res;
    f->last = res;
    wake (f);
}

void flux_future_fatal_error (flux_future_t *f, int errnum, const char *errstr)
{
    if (f) {
        if (!f->fatal.errnum) {
            f->fatal.errnum = errnum ? errnum : EINVAL;
            f->fatal.errstr = errstr ? strdup (errstr) : NULL;
        }
        wake (f);
    }
}

void flux_future_fulfill (flux_future_t *f, void *value, flux_free_f free_fn)
{
    struct result *res;

    if (!f || f->fatal.errnum)
        return;
    if (!(res = calloc (1, sizeof (*res)))) {
        if (value && free_fn)
            free_fn (value);
        flux_future_fatal_error (f, ENOMEM, NULL);
        return;
    }
    res->value = value;
    res->free_fn = free_fn;
    add_result (f, res);
}

void flux_future_fulfill_error (flux_future_t *f, int errnum,
                                const char *errstr)
{
    struct result *res;

    if (!f || f->fatal.errnum)
        return;
    if (!(res = result_error (errnum ? errnum : EINVAL, errstr)))
        flux_future_fatal_error (f, ENOMEM, NULL);
    else
        add_result (f, res);
}

bool flux_future_is_ready (flux_future_t *f)
{
    return f && current (f);
}

bool flux_future_has_error (flux_future_t *f)
{
    return f && current (f) && current (f)->errnum;
}

const char *flux_future_error_string (flux_future_t *f)
{
    if (!flux_future_has_error (f))
        return NULL;
    return current (f)->errstr ? current (f)->errstr
                               : flux_strerror (current (f)->errnum);
}

/* Life time */

flux_future_t *flux_future_create (flux_future_init_f cb, void *arg)
{
    flux_future_t *f;

    if (!(f = calloc (1, sizeof (*f))))
        return NULL;
    f->refcount = 1;
    f->init = cb;
    f->init_arg = arg;
    return f;
}

static void waiting_destroy (struct waiting *now)
{
    if (now) {
        flux_watcher_destroy (now->timer);
        flux_close (now->h);
        flux_reactor_decref (now->r);
        free (now);
    }
}

static void continuing_destroy (struct continuing *then)
{
    if (then) {
        flux_watcher_destroy (then->ready);
        flux_watcher_destroy (then->timer);
        free (then);
    }
}

void flux_future_destroy (flux_future_t *f)
{
    ERRNO_SAFE_BLOCK;

    if (!f || --f->refcount > 0)
        return;
    aux_destroy (&f->aux);
    while (f->result) {
        struct result *res = f->result;
        f->result = res->next;
        result_destroy (res);
    }
    free (f->fatal.errstr);
    waiting_destroy (f->now);
    continuing_destroy (f->then);
    flux_decref (f->h);
    free (f);
}

void flux_future_incref (flux_future_t *f)
{
    if (f)
        f->refcount++;
}

void flux_future_decref (flux_future_t *f)
{
    flux_future_destroy (f);
}

void *flux_future_aux_get (flux_future_t *f, const char *name)
{
    if (f)
        return aux_get (f->aux, name);
    errno = EINVAL;
    return NULL;
}

int flux_future_aux_set (flux_future_t *f, const char *name, void *aux,
                         flux_free_f destroy)
{
    if (!f) {
        errno = EINVAL;
        return -1;
    }
    return aux_set (&f->aux, name, aux, destroy);
}

/* Context */

void flux_future_set_reactor (flux_future_t *f, flux_reactor_t *r)
{
    if (f)
        f->r = r;
}

flux_reactor_t *flux_future_get_reactor (flux_future_t *f)
{
    flux_reactor_t *r = NULL;

    if (f)
        r = f->now && f->now->running ? f->now->r : f->r;
    if (!r)
        errno = EINVAL;
    return r;
}

void flux_future_set_flux (flux_future_t *f, flux_t *h)
{
    if (f) {
        flux_incref (h);
        flux_decref (f->h);
        f->h = h;
        if (h && !f->r)
            f->r = flux_get_reactor (h);
    }
}

flux_t *flux_future_get_flux (flux_future_t *f)
{
    if (!f || !f->h) {
        errno = EINVAL;
        return NULL;
    }
    if (!f->now || !f->now->running)
        return f->h;
    if (!f->now->h && (f->now->h = flux_clone (f->h)))
        flux_set_reactor (f->now->h, f->now->r);
    return f->now->h;
}

/* Wait */

static void timeout_now_cb (flux_reactor_t *r, flux_watcher_t *w,
                            int revents, void *arg)
{
    struct waiting *now = arg;

    now->timed_out = true;
    flux_reactor_stop_error (r);
}

static int waiting_prepare (flux_future_t *f, double timeout)
{
    if (!f->now) {
        if (!(f->now = calloc (1, sizeof (*f->now))))
            return -1;
        if (!(f->now->r = reactor_create_small ())) {
            free (f->now);
            f->now = NULL;
            return -1;
        }
    }
    flux_watcher_destroy (f->now->timer);
    f->now->timer = NULL;
    f->now->timed_out = false;
    if (timeout > 0.) {
        if (!(f->now->timer = flux_timer_watcher_create (f->now->r, timeout, 0.,
                                                         timeout_now_cb,
                                                         f->now)))
            return -1;
        flux_reactor_now_update (f->now->r);
        flux_watcher_start (f->now->timer);
    }
    return 0;
}

int flux_future_wait_for (flux_future_t *f, double timeout)
{
    int rc = 0;

    if (!f) {
        errno = EINVAL;
        return -1;
    }
    if (current (f))
        return 0;
    if (timeout == 0.) {
        errno = ETIMEDOUT;
        return -1;
    }
    if (waiting_prepare (f, timeout) < 0)
        return -1;
    f->now->running = true;
    if (f->init && !f->now->init_called) {
        f->now->init_called = true;
        f->init (f, f->init_arg);
    }
    if (!current (f))
        rc = flux_reactor_run (f->now->r, 0);
    if (f->now->h) {
        ERRNO_SAFE (flux_dispatch_requeue (f->now->h));
    }
    f->now->running = false;
    if (current (f))
        return 0;
    if (f->now->timed_out)
        errno = ETIMEDOUT;
    else if (rc == 0)       // nothing is left that could fulfill it
        errno = EDEADLOCK;
    return -1;
}

int flux_future_get (flux_future_t *f, const void **result)
{
    struct result *res;

    if (flux_future_wait_for (f, -1.) < 0)
        return -1;
    res = current (f);
    if (res->errnum) {
        errno = res->errnum;
        return -1;
    }
    if (result)
        *result = res->value;
    return 0;
}

/* Then */

static void ready_cb (flux_reactor_t *r, flux_watcher_t *w, int revents,
                      void *arg)
{
    flux_future_t *f = arg;

    flux_watcher_stop (f->then->timer);
    f->then->cb (f, f->then->arg);  // may destroy f
}

static void timeout_then_cb (flux_reactor_t *r, flux_watcher_t *w,
                             int revents, void *arg)
{
    flux_future_fulfill_error (arg, ETIMEDOUT, NULL);
}

static int set_then_timeout (flux_future_t *f, double timeout)
{
    struct continuing *then = f->then;

    then->timeout = timeout;
    if (timeout <= 0.) {
        flux_watcher_stop (then->timer);
        return 0;
    }
    if (!then->timer
        && !(then->timer = flux_timer_watcher_create (then->r, timeout, timeout,
                                                      timeout_then_cb, f)))
        return -1;
    flux_timer_watcher_reset (then->timer, timeout, timeout);
    flux_timer_watcher_again (then->timer);
    return 0;
}

int flux_future_then (flux_future_t *f, double timeout,
                      flux_continuation_f cb, void *arg)
{
    if (!f || !f->r || !cb) {
        errno = EINVAL;
        return -1;
    }
    if (!f->then) {
        struct continuing *then = calloc (1, sizeof (*then));
        if (!then)
            return -1;
        then->r = f->r;
        if (!(then->ready = watcher_create_feed (f->r, ready_cb, f))) {
            free (then);
            return -1;
        }
        f->then = then;
    }
    f->then->cb = cb;
    f->then->arg = arg;
    if (set_then_timeout (f, timeout) < 0)
        return -1;
    if (current (f))
        watcher_feed (f->then->ready);
    if (f->init && !f->then->init_called) {
        f->then->init_called = true;
        f->init (f, f->init_arg);
    }
    return 0;
}

void flux_future_reset (flux_future_t *f)
{
    struct result *res;

    if (!f)
        return;
    if ((res = f->result)) {
        f->result = res->next;
        result_destroy (res);
    }
    if (f->then) {
        flux_watcher_stop (f->then->ready);
        set_then_timeout (f, f->then->timeout);
    }
    if (f->result)
        wake (f);
}
