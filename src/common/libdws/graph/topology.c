/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See topology.h. The rabbits' hostlists fill the index, then each entry of
 * "computes" is compared with it.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <flux/hostlist.h>

#include "libutil/errno_safe.h"
#include "libdws/util/bounds.h"
#include "libdws/util/lists.h"
#include "libdws/util/strtab.h"
#include "topology.h"

struct rabbit {
    char *name;
    char *hosts;
    int64_t capacity;
    struct hostlist *hl;    // only until the hosts are indexed
};

struct dws_topology {
    struct rabbit *rabbits;
    size_t count;
    char **host_names;
    size_t host_count;
    struct strtab *by_name;
    struct strtab *by_host;
};

void dws_topology_destroy (struct dws_topology *topo)
{
    if (topo) {
        ERRNO_SAFE_BLOCK;
        for (size_t i = 0; i < topo->count; i++) {
            free (topo->rabbits[i].name);
            free (topo->rabbits[i].hosts);
            hostlist_destroy (topo->rabbits[i].hl);
        }
        free (topo->rabbits);
        for (size_t i = 0; i < topo->host_count; i++)
            free (topo->host_names[i]);
        free (topo->host_names);
        strtab_destroy (topo->by_name);
        strtab_destroy (topo->by_host);
        free (topo);
    }
}

/* Decode one rabbit. topo->count already covers it, so that destroy()
 * releases what a failure leaves behind.
 */
static int add_rabbit (struct dws_topology *topo,
                       int index,
                       const char *name,
                       json_t *value,
                       dws_error_t *error)
{
    struct rabbit *r = &topo->rabbits[index];
    json_int_t capacity;
    const char *hosts;

    if (json_unpack (value,
                     "{s:I s:s}",
                     "capacity", &capacity,
                     "hostlist", &hosts) < 0)
        return dws_error (error,
                          EINVAL,
                          "rabbitmapping: rabbits.%s must have an integer"
                          " 'capacity' and a string 'hostlist'",
                          name);
    if (capacity < 0)
        return dws_error (error,
                          EINVAL,
                          "rabbitmapping: rabbits.%s.capacity is negative",
                          name);
    r->capacity = capacity;
    if (!(r->hl = dws_hostlist_decode (hosts)))
        return dws_error (error,
                          EINVAL,
                          "rabbitmapping: rabbits.%s.hostlist: '%.60s' %s",
                          name,
                          hosts,
                          dws_hostlist_fault (errno));
    if (!(r->name = strdup (name)) || !(r->hosts = strdup (hosts)))
        return dws_error_nomem (error);
    if (strtab_insert (topo->by_name, r->name, index) < 0)
        return dws_error_nomem (error);
    return 0;
}

static int index_hosts (struct dws_topology *topo, dws_error_t *error)
{
    size_t total = 0;

    for (size_t i = 0; i < topo->count; i++)
        total += hostlist_count (topo->rabbits[i].hl);
    if (total > DWS_MAX_HOSTS)
        return dws_error (error,
                          EINVAL,
                          "rabbitmapping: the rabbits have %zu hosts, more"
                          " than %d",
                          total,
                          DWS_MAX_HOSTS);
    if (!(topo->by_host = strtab_create (total))
        || !(topo->host_names = calloc (total + 1, sizeof (char *))))
        return dws_error_nomem (error);
    for (size_t i = 0; i < topo->count; i++) {
        struct rabbit *r = &topo->rabbits[i];
        const char *host = hostlist_first (r->hl);

        for (; host; host = hostlist_next (r->hl)) {
            char *copy;

            if (!(copy = strdup (host)))
                return dws_error_nomem (error);
            topo->host_names[topo->host_count++] = copy;
            if (strtab_insert (topo->by_host, copy, i) < 0) {
                int other = strtab_find (topo->by_host, copy);

                if (other < 0)
                    return dws_error_nomem (error);
                return dws_error (error,
                                  EINVAL,
                                  "rabbitmapping: host %s is listed under"
                                  " %s and %s",
                                  host,
                                  topo->rabbits[other].name,
                                  r->name);
            }
        }
        hostlist_destroy (r->hl);
        r->hl = NULL;
    }
    return 0;
}

static int check_computes (const struct dws_topology *topo,
                           json_t *computes,
                           dws_error_t *error)
{
    const char *host;
    json_t *value;

    json_object_foreach (computes, host, value) {
        const char *rabbit = json_string_value (value);
        int index = dws_topology_find_host (topo, host);

        if (!rabbit)
            return dws_error (error,
                              EINVAL,
                              "rabbitmapping: computes.%s is not the name"
                              " of a rabbit",
                              host);
        if (dws_topology_find (topo, rabbit) < 0)
            return dws_error (error,
                              EINVAL,
                              "rabbitmapping: computes.%s: rabbit %s is not"
                              " among 'rabbits'",
                              host,
                              rabbit);
        if (index < 0 || strcmp (topo->rabbits[index].name, rabbit) != 0)
            return dws_error (error,
                              EINVAL,
                              "rabbitmapping: computes.%s is %s, but the"
                              " hostlist of %s does not name that host",
                              host,
                              rabbit,
                              rabbit);
    }
    for (size_t i = 0; i < topo->host_count; i++) {
        if (!json_object_get (computes, topo->host_names[i]))
            return dws_error (error,
                              EINVAL,
                              "rabbitmapping: host %s of rabbit %s is"
                              " missing from 'computes'",
                              topo->host_names[i],
                              dws_topology_rabbit (topo,
                                                   topo->host_names[i]));
    }
    return 0;
}

struct dws_topology *dws_topology_create (json_t *mapping,
                                          dws_error_t *error)
{
    struct dws_topology *topo = NULL;
    json_t *computes;
    json_t *rabbits;
    const char *name;
    json_t *value;
    size_t n;

    if (json_unpack (mapping,
                     "{s:o s:o}",
                     "computes", &computes,
                     "rabbits", &rabbits) < 0
        || !json_is_object (computes)
        || !json_is_object (rabbits)) {
        dws_error (error,
                   EINVAL,
                   "rabbitmapping: must be an object with objects"
                   " 'computes' and 'rabbits'");
        return NULL;
    }
    n = json_object_size (rabbits);
    if (!(topo = calloc (1, sizeof (*topo)))
        || !(topo->rabbits = calloc (n + 1, sizeof (struct rabbit)))
        || !(topo->by_name = strtab_create (n))) {
        dws_error_nomem (error);
        goto error;
    }
    json_object_foreach (rabbits, name, value) {
        int index = topo->count++;

        if (add_rabbit (topo, index, name, value, error) < 0)
            goto error;
    }
    if (index_hosts (topo, error) < 0
        || check_computes (topo, computes, error) < 0)
        goto error;
    return topo;
error:
    dws_topology_destroy (topo);
    return NULL;
}

size_t dws_topology_host_count (const struct dws_topology *topo)
{
    return topo->host_count;
}

size_t dws_topology_count (const struct dws_topology *topo)
{
    return topo->count;
}

int dws_topology_find (const struct dws_topology *topo, const char *rabbit)
{
    return strtab_find (topo->by_name, rabbit);
}

int dws_topology_find_host (const struct dws_topology *topo,
                            const char *host)
{
    return strtab_find (topo->by_host, host);
}

static const struct rabbit *rabbit_at (const struct dws_topology *topo,
                                       int index)
{
    if (index < 0 || (size_t)index >= topo->count) {
        errno = ENOENT;
        return NULL;
    }
    return &topo->rabbits[index];
}

const char *dws_topology_rabbit (const struct dws_topology *topo,
                                 const char *host)
{
    return dws_topology_name (topo, dws_topology_find_host (topo, host));
}

const char *dws_topology_name (const struct dws_topology *topo, int index)
{
    const struct rabbit *r = rabbit_at (topo, index);
    return r ? r->name : NULL;
}

const char *dws_topology_hostlist (const struct dws_topology *topo,
                                   int index)
{
    const struct rabbit *r = rabbit_at (topo, index);
    return r ? r->hosts : NULL;
}

int64_t dws_topology_capacity (const struct dws_topology *topo, int index)
{
    const struct rabbit *r = rabbit_at (topo, index);
    return r ? r->capacity : -1;
}
