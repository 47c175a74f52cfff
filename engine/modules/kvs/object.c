/* SPDX-License-Identifier: LGPL-3.0-only */
/* object.c - between nodes and the tree objects of messages; snapshots.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libflux/kvs_treeobj.h"

#include "kvs.h"

enum {
    MAX_SNAPSHOTS = 256,
    INLINE_LIMIT = 256,         // bytes of a value in a directory listing
};

/* A node that somebody got a reference to.  The oldest is forgotten.
 */
struct snapshots {
    struct node *nodes[MAX_SNAPSHOTS];
    unsigned int next;
};

struct snapshots *snapshots_create (void)
{
    return calloc (1, sizeof (struct snapshots));
}

void snapshots_destroy (struct snapshots *s)
{
    for (int i = 0; s && i < MAX_SNAPSHOTS; i++)
        node_decref (s->nodes[i]);
    free (s);
}

/* Snapshots.  A reference has the form of a hash, as clients expect.
 */

void ref_encode (uint64_t id, char *buf, size_t size)
{
    snprintf (buf, size, "sha1-%040" PRIx64, id);
}

void snapshot_keep (struct kvs *kvs, struct node *n)
{
    struct snapshots *s = kvs->snapshots;

    for (int i = 0; i < MAX_SNAPSHOTS; i++)
        if (s->nodes[i] == n)
            return;
    node_decref (s->nodes[s->next]);
    s->nodes[s->next] = node_incref (n);
    s->next = (s->next + 1) % MAX_SNAPSHOTS;
}

/* The node of a reference, borrowed.
 */
struct node *ref_find (struct kvs *kvs, const char *ref)
{
    struct snapshots *s = kvs->snapshots;
    uint64_t id;

    if (sscanf (ref, "sha1-%" SCNx64, &id) == 1) {
        for (int i = 0; i < MAX_SNAPSHOTS; i++)
            if (s->nodes[i] && s->nodes[i]->id == id)
                return s->nodes[i];
        for (struct ns *ns = kvs->namespaces; ns != NULL; ns = ns->next)
            if (ns->root->id == id)
                return ns->root;
    }
    errno = ENOENT;
    return NULL;
}

/* Tree objects
 */

struct node *node_decode (struct kvs *kvs, json_t *treeobj)
{
    const char *type;
    json_t *data;
    struct node *n = NULL;

    if (!(type = treeobj_type (treeobj, &data)))
        return NULL;
    if (strcmp (type, "val") == 0) {
        void *buf;
        size_t len;

        if (base64_decode (json_string_value (data), &buf, &len) < 0)
            return NULL;
        n = node_create_value (buf, len);
        free (buf);
    }
    else if (strcmp (type, "symlink") == 0) {
        const char *ns = NULL;
        const char *target;

        if (json_unpack (data, "{s:s s?s}", "target", &target,
                         "namespace", &ns) == 0)
            n = node_create_link (ns, target);
        else
            errno = EPROTO;
    }
    else if (strcmp (type, "dirref") == 0) {
        const char *ref = json_string_value (json_array_get (data, 0));

        n = node_incref (ref_find (kvs, ref ? ref : ""));
    }
    else if (strcmp (type, "dir") == 0) {
        struct txn *txn;
        const char *name;
        json_t *o;

        if (!(n = node_create_dir ()) || !(txn = txn_create (&n)))
            return n;
        json_object_foreach (data, name, o) {
            struct node *child = node_decode (kvs, o);
            if (!child || txn_put (txn, name, child) < 0) {
                txn_destroy (txn);
                node_decref (n);
                return NULL;
            }
        }
        txn_commit (txn);
        txn_destroy (txn);
    }
    else
        errno = EINVAL;
    return n;
}

static json_t *node_encode (struct node *n, size_t limit)
{
    char ref[48];

    ref_encode (n->id, ref, sizeof (ref));
    switch (n->type) {
        case NODE_VALUE:
            if (n->value.len > limit)
                return treeobj_create ("valref", json_pack ("[s]", ref));
            return treeobj_create_val (n->value.data, n->value.len);
        case NODE_LINK:
            return treeobj_create_symlink (n->link.ns, n->link.target);
        case NODE_DIR:
            return treeobj_create_dirref (ref);
    }
    return NULL;
}

json_t *kvs_treeobj (struct kvs *kvs, struct node *n, int flags)
{
    json_t *entries;

    if (n->type != NODE_DIR || !(flags & FLUX_KVS_READDIR)) {
        if (n->type == NODE_DIR)
            snapshot_keep (kvs, n);
        return node_encode (n, SIZE_MAX);
    }
    entries = json_object ();
    for (size_t i = 0; i < n->dir.count; i++)
        json_object_set_new (entries,
                             n->dir.entries[i].name,
                             node_encode (n->dir.entries[i].node,
                                          INLINE_LIMIT));
    return treeobj_create ("dir", entries);
}

/* Lookup
 */

struct other_ns {
    struct kvs *kvs;
    const flux_msg_t *msg;
};

static struct node *other_root (void *arg, const char *name)
{
    struct other_ns *o = arg;
    struct ns *ns;

    if (!(ns = ns_find (o->kvs, name)) || ns_allow (o->kvs, ns, o->msg) < 0)
        return NULL;
    return ns->root;
}

void kvs_find (struct kvs *kvs,
               struct ns *ns,
               struct node *root,
               const flux_msg_t *msg,
               const char *key,
               int flags,
               struct found *found)
{
    struct other_ns other = { .kvs = kvs, .msg = msg };
    bool follow = !(flags & (FLUX_KVS_READLINK | FLUX_KVS_TREEOBJ));
    struct walk w;
    int type_error = 0;

    found->node = NULL;
    found->errnum = 0;
    found->through_link = false;
    if (ns && ns_allow (kvs, ns, msg) < 0) {
        found->errnum = errno;
        return;
    }
    if (tree_walk (root ? root : ns->root, key, follow, other_root, &other, &w)
        < 0) {
        found->errnum = errno;
        found->through_link = w.through_link;
        return;
    }
    found->through_link = w.through_link;
    if ((flags & FLUX_KVS_READLINK)) {
        if (w.node->type != NODE_LINK)
            type_error = EINVAL;
    }
    else if ((flags & FLUX_KVS_READDIR)) {
        if (w.node->type != NODE_DIR)
            type_error = ENOTDIR;
    }
    else if (!(flags & FLUX_KVS_TREEOBJ) && w.node->type == NODE_DIR)
        type_error = EISDIR;
    if (type_error)
        found->errnum = type_error;
    else
        found->node = w.node;
}
