/* SPDX-License-Identifier: LGPL-3.0-only */
/* kvs.h - what the files of the KVS module share.
 */
#ifndef SOLO_KVS_H
#define SOLO_KVS_H

#include <jansson.h>
#include <flux/core.h>

#include "common/respond.h"

#include "store.h"
#include "tree.h"

struct ns {
    char *name;
    uint32_t owner;
    int seq;
    struct node *root;
    bool touched;               // since the last flush
    struct ns *next;
};

struct batch {
    struct flux_msglist *commits;
    flux_watcher_t *idle;
    int errnum;
};

struct kvs {
    flux_t *h;
    struct ns *namespaces;
    struct store *store;        // or NULL
    struct batch *batch;
    struct watchers *watchers;
    struct snapshots *snapshots;
    flux_msg_handler_t **handlers;
    flux_msg_handler_t **ns_handlers;
    unsigned int commits;
};

/* kvs.c
 */

/* Write what has come in, and answer; now, or once nothing else is to be
 * done.
 */
void kvs_flush (struct kvs *kvs);
void kvs_schedule_flush (struct kvs *kvs);
/* The changes of txn are to stay.
 */
void kvs_committed (struct kvs *kvs, struct ns *ns, struct txn *txn);

/* namespace.c
 */
extern const struct flux_msg_handler_spec namespace_htab[];

/* Fails with ENOTSUP.
 */
struct ns *ns_find (struct kvs *kvs, const char *name);
/* May the sender of msg use this namespace?  Fails with EPERM.
 */
int ns_allow (struct kvs *kvs, struct ns *ns, const flux_msg_t *msg);
/* In memory only.  Takes over root.
 */
struct ns *ns_add (struct kvs *kvs,
                   const char *name,
                   uint32_t owner,
                   int seq,
                   struct node *root);
void ns_remove (struct kvs *kvs, struct ns *ns);

/* object.c: tree objects and snapshots
 */
struct snapshots *snapshots_create (void);
void snapshots_destroy (struct snapshots *s);
/* Let the node be found by its reference for a while.
 */
void snapshot_keep (struct kvs *kvs, struct node *n);
void ref_encode (uint64_t id, char *buf, size_t size);
/* The node of a reference, borrowed.  Fails with ENOENT.
 */
struct node *ref_find (struct kvs *kvs, const char *ref);
/* Make a node of what a client wants to put, or of a reference to look from.
 * Anybody can guess references: those of guests are not for this.
 */
struct node *node_decode (struct kvs *kvs, json_t *treeobj);

/* What a lookup found, as the response needs it.
 */
struct found {
    struct node *node;          // NULL: errnum says why
    int errnum;
    bool through_link;
};

void kvs_find (struct kvs *kvs,
               struct ns *ns,
               struct node *root,
               const flux_msg_t *msg,
               const char *key,
               int flags,
               struct found *found);

/* The tree object for a response to a lookup with these flags.
 */
json_t *kvs_treeobj (struct kvs *kvs, struct node *n, int flags);

/* watch.c: kvs-watch.lookup and the like
 */
struct watchers *watchers_create (struct kvs *kvs);
void watchers_destroy (struct watchers *ws);
/* 'key' (normalized) in namespace 'ns' was named in a commit.  If 'below',
 * what lies below it may have changed as well.
 */
void watchers_note (struct watchers *ws,
                    const char *ns,
                    const char *key,
                    bool below);
/* The namespace has come or gone.
 */
void watchers_note_ns (struct watchers *ws, const char *ns);
/* Answer those watches that were noted.
 */
void watchers_run (struct watchers *ws);

#endif // !SOLO_KVS_H
