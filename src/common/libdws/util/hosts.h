/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * RFC 29 hostlists as text: joined, subtracted, counted, and made host by
 * host. The caller frees the text, which is "" for no hosts.
 */

#ifndef LIBDWS_HOSTS_H
#define LIBDWS_HOSTS_H

#include <stdbool.h>
#include <stddef.h>
#include <jansson.h>
#include <flux/hostlist.h>

#include "error.h"

/* Decoding a list costs flux-core a quarter of a megabyte that it clears. Lists are
 * therefore decoded together here, and a list of a single host not at all.
 */

/* Go through the hosts of a list. 'hosts' is borrowed. begin fails with EINVAL (it is
 * malformed) or ENOMEM; else end is to be called. next returns NULL after the last one.
 */
struct hosts_walk {
    const char *one;            // the only host, which is not decoded, until it
                                //  was returned
    struct hostlist *hl;        // or else all
    bool begun;
    int count;                  // of all hosts
};

int hosts_walk_begin (struct hosts_walk *walk, const char *hosts);
const char *hosts_walk_next (struct hosts_walk *walk);
void hosts_walk_end (struct hosts_walk *walk);

/* The hosts of all these lists in order, each once. Fails with EINVAL or ENOMEM.
 */
char *dws_hosts_merge (const char *const *lists, size_t count,
                       dws_error_t *error);

/* Likewise of the entries of an array.
 */
char *dws_hosts_merge_json (json_t *lists, dws_error_t *error);

/* The hosts in 'hosts' or 'more' (NULL is the same as ""), or in 'hosts' but
 * not in 'less'. Fails with EINVAL or ENOMEM.
 */
char *dws_hosts_join (const char *hosts, const char *more,
                      dws_error_t *error);
char *dws_hosts_subtract (const char *hosts, const char *less,
                          dws_error_t *error);

/* The number of hosts, 0 if 'hosts' is NULL or malformed.
 */
size_t dws_hosts_count (const char *hosts);

/* To make one host by host. create fails with ENOMEM, append with EINVAL
 * ('hosts' is malformed) or ENOMEM. finish destroys the list and returns its
 * text, each host once, or NULL if 'ok' is false or for lack of memory.
 */
struct hostlist *hosts_list_create (dws_error_t *error);
int hosts_list_append (struct hostlist *hl,
                       const char *hosts,
                       dws_error_t *error);
char *hosts_list_finish (struct hostlist *hl, bool ok, dws_error_t *error);

/* The constraint (RFC 31) to be on one of the hosts of 'hl', sorted: a new object
 * {"hostlist": [HOSTS]}. Fails with ENOMEM.
 */
json_t *hosts_list_constraint (struct hostlist *hl, dws_error_t *error);

#endif /* !LIBDWS_HOSTS_H */
