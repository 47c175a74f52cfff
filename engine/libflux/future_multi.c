/* SPDX-License-Identifier: LGPL-3.0-only */
/* future_multi.c - futures of futures: wait for all, one after the other.  The
 * children always run as continuations in the context (then or now) of the
 * future that is made of them.
 */

#include <flux/core.h>

#include "libutil/errno_safe.h"

static void pass_context (flux_future_t *from, flux_future_t *to)
{
    flux_future_set_reactor (to, flux_future_get_reactor (from));
    flux_future_set_flux (to, flux_future_get_flux (from));
}

/* All */

struct child {
    struct child *next;
    char *name;
    flux_future_t *f;
};

struct composite {
    int seq;                    // names those that have none
    struct child *children;
};

static void composite_destroy (void *arg)
{
    struct composite *cf = arg;

    while (cf->children) {
        struct child *child = cf->children;
        cf->children = child->next;
        flux_future_destroy (child->f);
        free (child->name);
        free (child);
    }
    free (cf);
}

static struct composite *composite_get (flux_future_t *f)
{
    struct composite *cf = f ? flux_future_aux_get (f, "flux::composite") : NULL;

    if (!cf)
        errno = EINVAL;
    return cf;
}

static void child_cb (flux_future_t *f, void *arg)
{
    flux_future_t *parent = arg;
    struct composite *cf = composite_get (parent);
    int errnum = 0;

    for (struct child *child = cf->children; child; child = child->next) {
        if (!flux_future_is_ready (child->f))
            return;
        if (flux_future_get (child->f, NULL) < 0)
            errnum = errno;
    }
    if (errnum)
        flux_future_fulfill_error (parent, errnum, NULL);
    else
        flux_future_fulfill (parent, NULL, NULL);
}

static void composite_init (flux_future_t *f, void *arg)
{
    struct composite *cf = arg;

    for (struct child *child = cf->children; child; child = child->next) {
        pass_context (f, child->f);
        if (flux_future_then (child->f, -1., child_cb, f) < 0) {
            flux_future_fulfill_error (f, errno, NULL);
            return;
        }
    }
    if (!cf->children)      // all of none are ready
        flux_future_fulfill (f, NULL, NULL);
}

flux_future_t *flux_future_wait_all_create (void)
{
    struct composite *cf;
    flux_future_t *f;

    if (!(cf = calloc (1, sizeof (*cf))))
        return NULL;
    if (!(f = flux_future_create (composite_init, cf))
        || flux_future_aux_set (f, "flux::composite", cf,
                                composite_destroy) < 0) {
        flux_future_destroy (f);
        composite_destroy (cf);
        return NULL;
    }
    return f;
}

static struct child **child_find (struct composite *cf, const char *name)
{
    struct child **slot = &cf->children;

    while (*slot && strcmp ((*slot)->name, name))
        slot = &(*slot)->next;
    return slot;
}

int flux_future_push (flux_future_t *f, const char *name, flux_future_t *child)
{
    struct composite *cf = composite_get (f);
    struct child *entry = NULL;
    struct child **slot;
    char buf[16];

    if (!cf || !child) {
        errno = EINVAL;
        return -1;
    }
    if (!name) {
        snprintf (buf, sizeof (buf), "%d", cf->seq++);
        name = buf;
    }
    if (*(slot = child_find (cf, name))) {
        errno = EEXIST;
        return -1;
    }
    if (!(entry = calloc (1, sizeof (*entry)))
        || !(entry->name = strdup (name))
        || flux_future_aux_set (child, "flux::parent", f, NULL) < 0) {
        ERRNO_SAFE_BLOCK;
        if (entry)
            free (entry->name);
        free (entry);
        return -1;
    }
    entry->f = child;
    *slot = entry;
    return 0;
}

flux_future_t *flux_future_get_child (flux_future_t *f, const char *name)
{
    struct composite *cf = composite_get (f);
    struct child *child;

    if (!cf || !name) {
        errno = EINVAL;
        return NULL;
    }
    child = *child_find (cf, name);
    return child ? child->f : NULL;
}

/* One after the other.
 *
 * and_then/or_then (prev) return 'next'.  When prev is fulfilled, the
 * callback may start something else and have next fulfilled by that
 * (continue), fulfill it itself (continue_error, fulfill_next), or else next
 * gets what prev got.  next owns prev: the user has only next to destroy.
 */
struct chain {
    int refcount;               // one from each end, and each callback
    flux_future_t *prev;        // NULL: destroyed
    flux_future_t *next;        // NULL: destroyed
    flux_continuation_f and_cb;
    void *and_arg;
    flux_continuation_f or_cb;
    void *or_arg;
    bool continued;
};

static void chain_decref (struct chain *chain)
{
    if (--chain->refcount == 0)
        free (chain);
}

static void prev_destroyed (void *arg)
{
    struct chain *chain = arg;

    chain->prev = NULL;
    chain_decref (chain);
}

static void next_destroyed (void *arg)
{
    struct chain *chain = arg;

    chain->next = NULL;
    if (chain->prev)
        flux_future_destroy (chain->prev);
    chain_decref (chain);
}

static struct chain *chain_get (flux_future_t *prev)
{
    struct chain *chain = flux_future_aux_get (prev, "flux::chain");

    if (!chain || !chain->next) {
        errno = EINVAL;
        return NULL;
    }
    return chain;
}

static void fulfill_with (flux_future_t *next, flux_future_t *f)
{
    if (flux_future_fulfill_with (next, f) < 0)
        flux_future_fatal_error (next, errno, NULL);
}

static void prev_cb (flux_future_t *prev, void *arg)
{
    struct chain *chain = arg;
    flux_continuation_f cb = chain->and_cb;
    void *cb_arg = chain->and_arg;

    if (flux_future_get (prev, NULL) < 0) {
        cb = chain->or_cb;
        cb_arg = chain->or_arg;
    }
    chain->refcount++;
    chain->continued = false;
    flux_future_incref (prev);  // the callback may destroy it
    if (cb)
        cb (prev, cb_arg);
    // a callback that has reset prev waits for its next result
    if (flux_future_is_ready (prev)) {
        if (!chain->continued && chain->next)
            fulfill_with (chain->next, prev);
        flux_future_decref (prev);
        if (!cb)
            flux_future_decref (prev);
    }
    else
        flux_future_decref (prev);
    chain_decref (chain);
}

static void next_init (flux_future_t *f, void *arg)
{
    struct chain *chain = arg;

    errno = EINVAL;
    if (!chain->prev || !flux_future_get_reactor (f))
        goto error;
    pass_context (f, chain->prev);
    if (flux_future_then (chain->prev, -1., prev_cb, chain) < 0)
        goto error;
    return;
error:
    flux_future_fulfill_error (f, errno, NULL);
}

static struct chain *chain_create (flux_future_t *prev)
{
    struct chain *chain;

    if ((chain = flux_future_aux_get (prev, "flux::chain")))
        return chain;
    if (!(chain = calloc (1, sizeof (*chain))))
        return NULL;
    chain->refcount = 1;
    if (!(chain->next = flux_future_create (next_init, chain))
        || flux_future_aux_set (chain->next, NULL, chain, next_destroyed) < 0) {
        flux_future_destroy (chain->next);
        free (chain);
        return NULL;
    }
    chain->refcount++;
    if (flux_future_aux_set (prev, "flux::chain", chain, prev_destroyed) < 0) {
        chain->refcount--;
        flux_future_destroy (chain->next);
        return NULL;
    }
    chain->prev = prev;
    pass_context (prev, chain->next);
    return chain;
}

flux_future_t *flux_future_and_then (flux_future_t *prev,
                                     flux_continuation_f cb, void *arg)
{
    struct chain *chain = chain_create (prev);

    if (!chain)
        return NULL;
    chain->and_cb = cb;
    chain->and_arg = arg;
    return chain->next;
}

flux_future_t *flux_future_or_then (flux_future_t *prev,
                                    flux_continuation_f cb, void *arg)
{
    struct chain *chain = chain_create (prev);

    if (!chain)
        return NULL;
    chain->or_cb = cb;
    chain->or_arg = arg;
    return chain->next;
}

static void continue_cb (flux_future_t *f, void *arg)
{
    fulfill_with (arg, f);
    flux_future_destroy (f);    // next has its own reference
}

/* f NULL: not yet. */
int flux_future_continue (flux_future_t *prev, flux_future_t *f)
{
    struct chain *chain = chain_get (prev);

    if (!chain)
        return -1;
    chain->continued = true;
    if (!f)
        return 0;
    if (f == prev)
        return flux_future_fulfill_with (chain->next, f);
    pass_context (prev, f);
    return flux_future_then (f, -1., continue_cb, chain->next);
}

void flux_future_continue_error (flux_future_t *prev, int errnum,
                                 const char *errstr)
{
    struct chain *chain = chain_get (prev);

    if (chain) {
        chain->continued = true;
        flux_future_fulfill_error (chain->next, errnum, errstr);
    }
}

int flux_future_fulfill_next (flux_future_t *prev, void *result,
                              flux_free_f free_fn)
{
    struct chain *chain = chain_get (prev);

    if (!chain)
        return -1;
    chain->continued = true;
    flux_future_fulfill (chain->next, result, free_fn);
    return 0;
}
