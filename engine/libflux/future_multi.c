/* SPDX-License-Identifier: LGPL-3.0-only */
/* future_multi.c - futures of futures: wait for all.  The children always run
 * as continuations in the context (then or now) of the future that is made of
 * them.
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

