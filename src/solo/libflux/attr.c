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

int flux_attr_set_ex (flux_t *h, const char *name, const char *val,
                      bool force, flux_error_t *errp)
{
    flux_future_t *f = NULL;
    int rc = -1;

    if (!h || !name || !val) {
        errno = EINVAL;
        errprintf (errp, "%s", strerror (errno));
        return -1;
    }
    if (force)
        f = flux_rpc_pack (h, "attr.set", FLUX_NODEID_ANY, 0, "{s:s s:s s:b}",
                           "name", name,
                           "value", val,
                           "force", 1);
    else
        f = flux_rpc_pack (h, "attr.set", FLUX_NODEID_ANY, 0, "{s:s s:s}",
                           "name", name,
                           "value", val);
    if (f)
        rc = flux_rpc_get (f, NULL);
    if (rc < 0)
        errprintf (errp, "%s", future_strerror (f, errno));
    flux_future_destroy (f);
    return rc;
}

int flux_attr_set (flux_t *h, const char *name, const char *val)
{
    return flux_attr_set_ex (h, name, val, false, NULL);
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

static const char *seek (struct attrs *attrs, struct attr *attr)
{
    while (attr && !attr->cached)
        attr = attr->next;
    attrs->cursor = attr;
    return attr ? attr->name : NULL;
}

const char *flux_attr_cache_first (flux_t *h)
{
    struct attrs *attrs = attrs_get (h);
    return attrs ? seek (attrs, attrs->list) : NULL;
}

const char *flux_attr_cache_next (flux_t *h)
{
    struct attrs *attrs = attrs_get (h);
    return attrs && attrs->cursor ? seek (attrs, attrs->cursor->next) : NULL;
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

int flux_get_size (flux_t *h, uint32_t *size)
{
    double value;

    if (get_number (h, "size", &value) < 0)
        return -1;
    *size = value;
    return 0;
}

int flux_get_instance_starttime (flux_t *h, double *starttime)
{
    double value;

    if (get_number (h, "broker.starttime", &value) < 0)
        return -1;
    if (starttime)
        *starttime = value;
    return 0;
}

/* Hosts */

static struct hostlist *hosts_get (flux_t *h)
{
    struct attrs *attrs = attrs_get (h);
    const char *value;

    if (!attrs)
        return NULL;
    if (!attrs->hosts && (value = flux_attr_get (h, "hostlist")))
        attrs->hosts = hostlist_decode (value);
    return attrs->hosts;
}

const char *flux_get_hostbyrank (flux_t *h, uint32_t rank)
{
    struct hostlist *hosts;
    const char *host = NULL;

    if (rank == FLUX_NODEID_ANY)
        return "any";
    if (rank == FLUX_NODEID_UPSTREAM)
        return "upstream";
    if ((hosts = hosts_get (h)))
        host = hostlist_nth (hosts, rank);
    return host ? host : "(null)";
}

int flux_get_rankbyhost (flux_t *h, const char *host)
{
    struct hostlist *hosts = hosts_get (h);
    return hosts ? hostlist_find (hosts, host) : -1;
}

static char *ranks_to_hosts (struct hostlist *map, struct idset *ranks,
                             flux_error_t *errp)
{
    struct hostlist *hosts = hostlist_create ();
    char *result = NULL;
    unsigned int rank;

    for (rank = idset_first (ranks); hosts && rank != IDSET_INVALID_ID;
         rank = idset_next (ranks, rank)) {
        const char *host = hostlist_nth (map, rank);
        if (!host) {
            errprintf (errp, "rank %u is not in host map", rank);
            goto done;
        }
        if (hostlist_append (hosts, host) < 0)
            break;
    }
    if (!hosts || rank != IDSET_INVALID_ID
        || !(result = hostlist_encode (hosts)))
        errprintf (errp, "%s", strerror (errno));
done:
    hostlist_destroy (hosts);
    return result;
}

static char *hosts_to_ranks (struct hostlist *map, struct hostlist *hosts,
                             flux_error_t *errp)
{
    struct idset *ranks = idset_create (0, IDSET_FLAG_AUTOGROW);
    char *result = NULL;
    const char *host;

    for (host = hostlist_first (hosts); ranks && host;
         host = hostlist_next (hosts)) {
        int rank = hostlist_find (map, host);
        if (rank < 0) {
            errprintf (errp, "host %s not found in host map", host);
            goto done;
        }
        if (idset_set (ranks, rank) < 0)
            break;
    }
    if (!ranks || host || !(result = idset_encode (ranks, IDSET_FLAG_RANGE)))
        errprintf (errp, "%s", strerror (errno));
done:
    idset_destroy (ranks);
    return result;
}

char *flux_hostmap_lookup (flux_t *h, const char *targets, flux_error_t *errp)
{
    struct hostlist *map = hosts_get (h);
    struct hostlist *hosts = NULL;
    struct idset *ranks;
    char *result = NULL;

    if (!map) {
        errprintf (errp, "%s", strerror (errno));
        return NULL;
    }
    if ((ranks = idset_decode (targets)))
        result = ranks_to_hosts (map, ranks, errp);
    else if ((hosts = hostlist_decode (targets)))
        result = hosts_to_ranks (map, hosts, errp);
    else
        errprintf (errp, "target must be a valid idset or hostlist");
    idset_destroy (ranks);
    hostlist_destroy (hosts);
    return result;
}
