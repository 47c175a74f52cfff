/* SPDX-License-Identifier: LGPL-3.0-only */
/* rset.h - make the resource set R (RFC 20) of an instance.
 */
#ifndef SOLO_RSET_H
#define SOLO_RSET_H

#include <jansson.h>
#include <flux/core.h>

/* 'size' equal nodes.  'hosts' is a hostlist in RFC 29 form.
 */
json_t *rset_make (int size,
                   const char *hosts,
                   int cores,
                   int gpus,
                   flux_error_t *error);

/* From R in a file.
 */
json_t *rset_from_file (const char *path, flux_error_t *error);

/* Number of nodes, or -1 if this is not R version 1 whose ranks are 0 to
 * size - 1, with one host name each.  'hosts' gets the hostlist, in rank
 * order, for the caller to free.
 */
int rset_check (json_t *R, char **hosts, flux_error_t *error);

#endif // !SOLO_RSET_H
