/* SPDX-License-Identifier: LGPL-3.0-only */
/* txn.c - changes of the tree that can be taken back (see tree.h).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/errno_safe.h"
#include "tree_private.h"

struct undo {
    struct node *dir;           // alive: in the tree, or in another undo;
                                // NULL: 'old' is just kept alive
    char *name;
    struct node *old;           // holds a reference
    struct node *appended;      // instead: 'old_len' bytes were here
    size_t old_len;
    struct undo *next;
};

struct txn {
    struct node **rootp;
    struct node *old_root;      // if the root was copied
    struct undo *undo;          // the last one first
    struct change *changes;
    struct change **tail;
    bool committed;
};

struct txn *txn_create (struct node **rootp)
{
    struct txn *txn;

    if (!(txn = calloc (1, sizeof (*txn))))
        return NULL;
    txn->rootp = rootp;
    txn->tail = &txn->changes;
    return txn;
}

void txn_commit (struct txn *txn)
{
    txn->committed = true;
}

static void undo_one (struct undo *u)
{
    struct node *n;

    if (u->appended) {
        u->appended->value.len = u->old_len;
        u->appended->value.chunks--;
    }
    else if (u->dir
             && dir_set (u->dir, u->name, strlen (u->name), u->old, &n) == 0) {
        u->old = NULL;
        node_decref (n);
    }
}

void txn_destroy (struct txn *txn)
{
    struct undo *u;
    struct change *c;

    if (!txn)
        return;
    ERRNO_SAFE_BLOCK;
    struct undo *done = NULL;
    while ((u = txn->undo)) {
        txn->undo = u->next;
        if (!txn->committed)
            undo_one (u);
        u->next = done;         // keep 'old' alive until all is undone
        done = u;
    }
    if (txn->old_root && !txn->committed) {
        node_decref (*txn->rootp);
        *txn->rootp = txn->old_root;
        txn->old_root = NULL;
    }
    while ((u = done)) {
        done = u->next;
        node_decref (u->old);
        free (u->name);
        free (u);
    }
    node_decref (txn->old_root);
    while ((c = txn->changes)) {
        txn->changes = c->next;
        node_decref (c->node);
        free (c->path);
        free (c->data);
        free (c);
    }
    free (txn);
}

const struct change *txn_changes (struct txn *txn)
{
    return txn->changes;
}

static struct change *add_change (struct txn *txn,
                                  enum change_type type,
                                  const char *path,
                                  size_t len)
{
    struct change *c;

    if (!(c = calloc (1, sizeof (*c))) || !(c->path = strndup (path, len))) {
        free (c);
        return NULL;
    }
    c->type = type;
    *txn->tail = c;
    txn->tail = &c->next;
    return c;
}

/* The store must not see later appends in a value: a change has a copy.
 */
static int set_data (struct change *c, const void *data, size_t len)
{
    if (len > 0) {
        if (!(c->data = malloc (len)))
            return -1;
        memcpy (c->data, data, len);
    }
    c->len = len;
    return 0;
}

/* Set an entry and remember how to take it back.  Takes over node.
 */
static int set_entry (struct txn *txn,
                      struct node *dir,
                      const char *name,
                      size_t len,
                      struct node *node)
{
    struct undo *u;

    if (!(u = calloc (1, sizeof (*u)))
        || !(u->name = strndup (name, len))
        || dir_set (dir, name, len, node, &u->old) < 0) {
        if (u)
            free (u->name);
        free (u);
        node_decref (node);
        return -1;
    }
    u->dir = dir;
    u->next = txn->undo;
    txn->undo = u;
    return 0;
}

/* Takes over root.  The one before is kept until the end: changes of what
 * is in it may have to be taken back.
 */
static int set_root (struct txn *txn, struct node *root)
{
    if (txn->old_root) {
        struct undo *u;

        if (!(u = calloc (1, sizeof (*u)))) {
            node_decref (root);
            return -1;
        }
        u->old = *txn->rootp;
        u->next = txn->undo;
        txn->undo = u;
    }
    else
        txn->old_root = *txn->rootp;
    *txn->rootp = root;
    return 0;
}

/* The root, ours to change.
 */
static struct node *own_root (struct txn *txn)
{
    struct node *root = *txn->rootp;

    if (root->refs > 1
        && (!(root = node_copy (root)) || set_root (txn, root) < 0))
        return NULL;
    return root;
}

/* The entry, ours to change.
 */
static struct node *own_entry (struct txn *txn,
                               struct node *dir,
                               const char *name,
                               size_t len)
{
    struct node *n = dir_get (dir, name, len);

    if (n->refs == 1)
        return n;
    if (!(n = node_copy (n)) || set_entry (txn, dir, name, len, n) < 0)
        return NULL;
    return n;
}

/* Find the directory that holds (or shall hold) the last component of a key,
 * making the ones on the way unless 'create' is false.  '*path' is replaced
 * by one without links; '*name' points to its last component.
 * Returns NULL with errno set, to 0 if there is nothing to unlink.
 */
static struct node *find_parent (struct txn *txn,
                                 char **path,
                                 char **name,
                                 bool create)
{
    struct node *dir;
    char *p = *path;
    int links = 0;

    if (!(dir = own_root (txn)))
        return NULL;
    while (p[strcspn (p, ".")] != '\0') {
        size_t len = strcspn (p, ".");
        struct node *n = dir_get (dir, p, len);

        if (n && n->type == NODE_LINK) {
            char *s;

            if (n->link.ns || ++links > MAX_LINKS) {
                errno = n->link.ns ? EINVAL : ELOOP;
                return NULL;
            }
            if (asprintf (&s, "%s.%s", n->link.target, p + len) < 0)
                return NULL;
            free (*path);
            *path = key_normalize (s);
            free (s);
            if (!(p = *path) || !(dir = own_root (txn)))
                return NULL;
            continue;
        }
        if (!n || n->type != NODE_DIR) {
            if (!create) {
                errno = 0;
                return NULL;
            }
            if (n && !add_change (txn, CHANGE_UNLINK, *path, p + len - *path))
                return NULL;
            if (!(n = node_create_dir ())
                || set_entry (txn, dir, p, len, n) < 0)
                return NULL;
        }
        else if (!(n = own_entry (txn, dir, p, len)))
            return NULL;
        dir = n;
        p += len + 1;
    }
    *name = p;
    return dir;
}

int txn_put (struct txn *txn, const char *key, struct node *node)
{
    char *path = key_normalize (key);
    struct change *c;
    struct node *dir;
    struct node *old;
    char *name;
    int rc = -1;

    if (!path)
        goto out;
    if (strcmp (path, ".") == 0) {
        if (node->type != NODE_DIR) {
            errno = EINVAL;
            goto out;
        }
        if (!(c = add_change (txn, CHANGE_PUT, ".", 1)))
            goto out;
        c->replaced = true;
        c->below = true;
        c->node = node_incref (node);
        rc = set_root (txn, node);
        node = NULL;
        goto out;
    }
    if (!(dir = find_parent (txn, &path, &name, true))
        || !(c = add_change (txn, CHANGE_PUT, path, strlen (path))))
        goto out;
    old = dir_get (dir, name, strlen (name));
    c->replaced = old != NULL;
    c->below = node->type != NODE_VALUE || (old && old->type != NODE_VALUE);
    if (node->type != NODE_VALUE)
        c->node = node_incref (node);
    else if (set_data (c, node->value.data, node->value.len) < 0)
        goto out;
    rc = set_entry (txn, dir, name, strlen (name), node);
    node = NULL;
out:
    node_decref (node);
    free (path);
    return rc;
}

int txn_append (struct txn *txn, const char *key, const void *data, size_t len)
{
    char *path = key_normalize (key);
    struct node *dir;
    struct node *n;
    struct undo *u;
    struct change *c;
    char *name;
    int rc = -1;

    if (!path || !(dir = find_parent (txn, &path, &name, true)))
        goto out;
    if (!(n = dir_get (dir, name, strlen (name)))) {
        free (path);
        n = node_create_value (data, len);
        return n ? txn_put (txn, key, n) : -1;
    }
    if (n->type != NODE_VALUE) {
        errno = n->type == NODE_DIR ? EISDIR : EOPNOTSUPP;
        goto out;
    }
    if (!(n = own_entry (txn, dir, name, strlen (name)))
        || !(c = add_change (txn, CHANGE_APPEND, path, strlen (path)))
        || set_data (c, data, len) < 0
        || !(u = calloc (1, sizeof (*u))))
        goto out;
    u->appended = n;
    u->old_len = n->value.len;
    c->chunk = n->value.chunks;
    if (value_append (n, data, len) < 0) {
        free (u);
        goto out;
    }
    u->next = txn->undo;
    txn->undo = u;
    rc = 0;
out:
    free (path);
    return rc;
}

int txn_unlink (struct txn *txn, const char *key)
{
    char *path = key_normalize (key);
    struct change *c;
    struct node *dir;
    struct node *old;
    char *name;
    int rc = -1;

    if (!path)
        return -1;
    if (strcmp (path, ".") == 0) {
        errno = EINVAL;
        goto out;
    }
    if (!(dir = find_parent (txn, &path, &name, false))) {
        rc = errno == 0 ? 0 : -1;
        goto out;
    }
    if (!(old = dir_get (dir, name, strlen (name)))) {
        rc = 0;
        goto out;
    }
    if (!(c = add_change (txn, CHANGE_UNLINK, path, strlen (path))))
        goto out;
    c->below = old->type != NODE_VALUE;
    if (set_entry (txn, dir, name, strlen (name), NULL) < 0)
        goto out;
    if (dir->dir.count == 0
        && name > path
        && !add_change (txn, CHANGE_EMPTY_DIR, path, name - path - 1))
        goto out;
    rc = 0;
out:
    free (path);
    return rc;
}
