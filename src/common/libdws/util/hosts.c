/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See hosts.h.
 */

#include <errno.h>
#include <flux/hostlist.h>

#include "libutil/errno_safe.h"
#include "hosts.h"

struct hostlist *hosts_list_create (dws_error_t *error)
{
    struct hostlist *hl;

    if (!(hl = hostlist_create ()))
        dws_error (error, ENOMEM, "out of memory");
    return hl;
}

int hosts_list_append (struct hostlist *hl,
                       const char *hosts,
                       dws_error_t *error)
{
    if (hostlist_append (hl, hosts) < 0)
        return dws_error (error, errno == ENOMEM ? ENOMEM : EINVAL,
                          "malformed hostlist '%s'", hosts);
    return 0;
}

char *hosts_list_finish (struct hostlist *hl, bool ok, dws_error_t *error)
{
    char *s = NULL;

    if (ok) {
        hostlist_uniq (hl);
        if (!(s = hostlist_encode (hl)))
            dws_error (error, ENOMEM, "out of memory");
    }
    ERRNO_SAFE (hostlist_destroy (hl));
    return s;
}

char *dws_hosts_join (const char *hosts, const char *more,
                      dws_error_t *error)
{
    struct hostlist *hl;
    bool ok;

    if (!(hl = hosts_list_create (error)))
        return NULL;
    ok = (!hosts || hosts_list_append (hl, hosts, error) == 0)
        && (!more || hosts_list_append (hl, more, error) == 0);
    return hosts_list_finish (hl, ok, error);
}

char *dws_hosts_subtract (const char *hosts, const char *less,
                          dws_error_t *error)
{
    struct hostlist *hl;
    struct hostlist *drop = NULL;
    struct hostlist *rest = NULL;
    const char *host;
    char *s = NULL;
    bool ok = true;

    if (!(rest = hosts_list_create (error)))
        return NULL;
    hl = hostlist_decode (hosts ? hosts : "");
    drop = hostlist_decode (less ? less : "");
    if (!hl || !drop) {
        dws_error (error, EINVAL, "malformed hostlist");
        ok = false;
    }
    for (host = ok ? hostlist_first (hl) : NULL; host && ok;
         host = hostlist_next (hl)) {
        if (hostlist_find (drop, host) < 0)
            ok = hosts_list_append (rest, host, error) == 0;
    }
    s = hosts_list_finish (rest, ok, error);
    ERRNO_SAFE (hostlist_destroy (hl));
    ERRNO_SAFE (hostlist_destroy (drop));
    return s;
}

size_t dws_hosts_count (const char *hosts)
{
    struct hostlist *hl = hosts ? hostlist_decode (hosts) : NULL;
    int count = hl ? hostlist_count (hl) : 0;

    hostlist_destroy (hl);
    return count > 0 ? count : 0;
}
