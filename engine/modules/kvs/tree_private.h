/* SPDX-License-Identifier: LGPL-3.0-only */
/* tree_private.h - what tree.c does for txn.c.
 */
#ifndef SOLO_KVS_TREE_PRIVATE_H
#define SOLO_KVS_TREE_PRIVATE_H

#include "tree.h"

enum { MAX_LINKS = 10 };

int value_append (struct node *n, const void *data, size_t len);

/* Put 'node' (taken over; NULL removes) at 'name'.  What was there is
 * handed to the caller in *old.
 */
int dir_set (struct node *dir,
             const char *name,
             size_t len,
             struct node *node,
             struct node **old);

/* A copy that shares what is below it.
 */
struct node *node_copy (const struct node *n);

#endif // !SOLO_KVS_TREE_PRIVATE_H
