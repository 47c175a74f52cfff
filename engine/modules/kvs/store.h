/* SPDX-License-Identifier: LGPL-3.0-only */
/* store.h - the KVS on disk, in SQLite.
 *
 * Writes go into one open transaction; store_flush () commits it.  The
 * journal is a WAL with synchronous=NORMAL: what was flushed survives the
 * death of the process at any moment.  When the machine loses power the last
 * moments may be lost, but the store stays consistent.
 *
 * Calls fail with EIO, and from then on all do: what was flushed before stays
 * as it is.
 */
#ifndef SOLO_KVS_STORE_H
#define SOLO_KVS_STORE_H

#include <flux/core.h>

#include "tree.h"

struct store;

struct store *store_open (const char *path, flux_error_t *error);
void store_close (struct store *s);

/* Called for each namespace that the store has, with its entries.
 */
typedef int (*store_load_f)(void *arg,
                            const char *ns,
                            uint32_t owner,
                            int seq,
                            struct node *root);
int store_load (struct store *s, store_load_f cb, void *arg);

/* With a root, what is in it is stored too.
 */
int store_create_ns (struct store *s,
                     const char *ns,
                     uint32_t owner,
                     struct node *root);
int store_remove_ns (struct store *s, const char *ns);
int store_apply (struct store *s, const char *ns, const struct change *changes);
int store_set_seq (struct store *s, const char *ns, int seq);
int store_flush (struct store *s);
const char *store_error (struct store *s);

#endif // !SOLO_KVS_STORE_H
