/* SPDX-License-Identifier: LGPL-3.0-only */
/* hostlist_private.h - a hostlist is an array of ranges of names. */
#ifndef SOLO_HOSTLIST_PRIVATE_H
#define SOLO_HOSTLIST_PRIVATE_H

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <flux/hostlist.h>

/* prefix and a number from lo to hi, padded with zeros to width; a width of
 * 0 says that nothing is padded.  A single is a name without a number.
 */
struct range {
    char *prefix;
    size_t prefix_len;
    bool single;
    int width;
    unsigned long lo;
    unsigned long hi;
};

struct hostlist {
    struct range *ranges;
    int size;
    int nranges;
    int nhosts;
    int index;              // cursor: a range, and a host in it
    unsigned long depth;
    bool removed;           // what it was at is gone: it is at the next one
    char *text;             // what current() has returned
};

unsigned long range_count (const struct range *r);

/* Append a copy of r, joined to the last range where it continues that. */
int hostlist_push (struct hostlist *hl, const struct range *r);

#endif
