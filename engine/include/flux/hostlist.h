/* SPDX-License-Identifier: LGPL-3.0-only */
/* flux/hostlist.h - ordered lists of host names in bracket form (RFC 29).
 * Strings that first, next, nth... hand out belong to the list and hold
 * until the next call on it.
 */
#ifndef SOLO_FLUX_HOSTLIST_H
#define SOLO_FLUX_HOSTLIST_H

#ifdef __cplusplus
extern "C" {
#endif

struct hostlist;
struct hostlist_hostname;

struct hostlist *hostlist_create (void);
void hostlist_destroy (struct hostlist *hl);
struct hostlist *hostlist_copy (const struct hostlist *hl);
struct hostlist *hostlist_decode (const char *s);
char *hostlist_encode (struct hostlist *hl);

/* Both return the number of hosts appended, or -1. */
int hostlist_append (struct hostlist *hl, const char *hosts);
int hostlist_append_list (struct hostlist *hl1, struct hostlist *hl2);

/* The cursor stays at what is found. */
const char *hostlist_nth (struct hostlist *hl, int n);
int hostlist_find (struct hostlist *hl, const char *hostname);
int hostlist_find_hostname (struct hostlist *hl, struct hostlist_hostname *hn);
struct hostlist_hostname *hostlist_hostname_create (const char *hostname);
void hostlist_hostname_destroy (struct hostlist_hostname *hn);

int hostlist_delete (struct hostlist *hl, const char *hosts);
int hostlist_count (struct hostlist *hl);
void hostlist_sort (struct hostlist *hl);
void hostlist_uniq (struct hostlist *hl);

const char *hostlist_first (struct hostlist *hl);
const char *hostlist_next (struct hostlist *hl);
const char *hostlist_current (struct hostlist *hl);

#ifdef __cplusplus
}
#endif
#endif
