/* SPDX-License-Identifier: LGPL-3.0-only */
/* attr.c - broker attributes, and what is derived from them: rank, size, the
 * map of ranks and hosts.  Values that cannot change are asked for once.
 */

#include <flux/core.h>
#include <flux/hostlist.h>
#include <flux/idset.h>

#include "errprintf.h"

enum { ATTR_IMMUTABLE = 1 };        // in the response to attr.get

struct attr {
    struct attr *next;
    char *name;
    char *value;
    bool cached;                    // else valid only until the next lookup
};

struct attrs {
    struct attr *list;
    struct attr *cursor;
    struct hostlist *hosts;
};

static void attr_destroy (struct attr *attr)
{
    if (attr) {
        free (attr->name);
        free (attr->value);
        free (attr);
    }
}

static void attrs_destroy (void *arg)
{
    struct attrs *attrs = arg;

    while (attrs->list) {
        struct attr *attr = attrs->list;
        attrs->list = attr->next;
        attr_destroy (attr);
    }
    hostlist_destroy (attrs->hosts);
    free (attrs);
}

static struct attrs *attrs_get (flux_t *h)
{
    struct attrs *attrs = flux_aux_get (h, "flux::attrs");

    if (!attrs && h && (attrs = calloc (1, sizeof (*attrs)))
        && flux_aux_set (h, "flux::attrs", attrs, attrs_destroy) < 0) {
        attrs_destroy (attrs);
        attrs = NULL;
    }
    return attrs;
}

static struct attr **find (struct attrs *attrs, const char *name)
{
    struct attr **slot = &attrs->list;

    while (*slot && strcmp ((*slot)->name, name))
        slot = &(*slot)->next;
    return slot;
}

static struct attr *attr_store (struct attrs *attrs, const char *name,
                                const char *value, bool cached)
{
    struct attr **slot = find (attrs, name);
    struct attr *attr = *slot;
    char *cpy;

    if (!(cpy = strdup (value)))
        return NULL;
    if (!attr) {
        if (!(attr = calloc (1, sizeof (*attr)))
            || !(attr->name = strdup (name))) {
            attr_destroy (attr);
            free (cpy);
            return NULL;
        }
        *slot = attr;
    }
    free (attr->value);
    attr->value = cpy;
    attr->cached = cached;
    return attr;
}

const char *flux_attr_get (flux_t *h, const char *name)
{
    struct attrs *attrs = attrs_get (h);
    struct attr *attr = NULL;
    flux_future_t *f;
    const char *value;
    int flags;

    if (!attrs || !name) {
        errno = EINVAL;
        return NULL;
    }
    if ((attr = *find (attrs, name)) && attr->cached)
        return attr->value;
    attr = NULL;
    if ((f = flux_rpc_pack (h, "attr.get", FLUX_NODEID_ANY, 0, "{s:s}",
                            "name", name))
        && flux_rpc_get_unpack (f, "{s:s s:i}",
                                "value", &value,
                                "flags", &flags) == 0)
        attr = attr_store (attrs, name, value, flags & ATTR_IMMUTABLE);
    flux_future_destroy (f);
    return attr ? attr->value : NULL;
}

int flux_attr_set (flux_t *h, const char *name, const char *val)
{
    flux_future_t *f;
    int rc;

    if (!h || !name || !val) {
        errno = EINVAL;
        return -1;
    }
    f = flux_rpc_pack (h, "attr.set", FLUX_NODEID_ANY, 0, "{s:s s:s}",
                       "value", val,
                       "name", name);
    rc = flux_rpc_get (f, NULL);
    flux_future_destroy (f);
    return rc;
}

int flux_attr_set_cacheonly (flux_t *h, const char *name, const char *val)
{
    struct attrs *attrs = attrs_get (h);
    struct attr **slot;

    if (!attrs || !name) {
        errno = EINVAL;
        return -1;
    }
    if (val)
        return attr_store (attrs, name, val, true) ? 0 : -1;
    if (*(slot = find (attrs, name))) {
        struct attr *attr = *slot;
        *slot = attr->next;
        attr_destroy (attr);
        attrs->cursor = NULL;
    }
    return 0;
}

static int get_number (flux_t *h, const char *name, double *result)
{
    const char *value = flux_attr_get (h, name);
    char *end;

    if (!value)
        return -1;
    errno = 0;
    *result = strtod (value, &end);
    if (errno || end == value || *end) {
        errno = EINVAL;
        return -1;
    }
    return 0;
}

int flux_get_rank (flux_t *h, uint32_t *rank)
{
    double value;

    if (get_number (h, "rank", &value) < 0)
        return -1;
    *rank = value;
    return 0;
}

/* Hosts */
