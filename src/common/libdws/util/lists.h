/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * RFC 29 hostlists and RFC 22 idsets from their text. A dozen bytes can name more than
 * memory holds, so what is in a text is bounded before Flux' libraries expand it; all
 * of flux-dws decodes lists here.
 */

#ifndef LIBDWS_LISTS_H
#define LIBDWS_LISTS_H

#include <stddef.h>
#include <flux/hostlist.h>
#include <flux/idset.h>

/* How many hosts a text names, if it is a hostlist; more than DWS_MAX_HOSTS are
 * DWS_MAX_HOSTS + 1.
 */
size_t dws_hostlist_named (const char *s);

/* Fail with E2BIG (more than DWS_MAX_HOSTS hosts), EINVAL (malformed, NULL, or a name
 * of more than DWS_MAX_HOST_NAME bytes) or ENOMEM. append returns the number of hosts.
 */
struct hostlist *dws_hostlist_decode (const char *s);
int dws_hostlist_append (struct hostlist *hl, const char *s);

/* For a text: "is not a hostlist", or that it names too many, by errno.
 */
const char *dws_hostlist_fault (int errnum);

/* The ids of a text that are less than 'below'; the others are passed over. Fail with
 * EINVAL (malformed, or NULL) or ENOMEM. add adds them to 'ids', which must grow.
 */
struct idset *dws_idset_decode (const char *s, unsigned int below);
int dws_idset_decode_add (struct idset *ids, const char *s, unsigned int below);

#endif /* !LIBDWS_LISTS_H */
