/* SPDX-License-Identifier: LGPL-3.0-only */
/* tree.c - the KVS's entries in memory (see tree.h).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tree.h"

enum { MAX_LINKS = 10 };

static uint64_t new_id (void)
{
    static uint64_t last;       // one thread, one KVS module

    return ++last;
}

/* Nodes
 */

static struct node *node_create (enum node_type type)
{
    struct node *n;

    if (!(n = calloc (1, sizeof (*n))))
        return NULL;
    n->refs = 1;
    n->type = type;
    n->id = new_id ();
    return n;
}

struct node *node_incref (struct node *n)
{
    if (n)
        n->refs++;
    return n;
}

void node_decref (struct node *n)
{
    if (!n || --n->refs > 0)
        return;
    int saved_errno = errno;
    switch (n->type) {
        case NODE_VALUE:
            free (n->value.data);
            break;
        case NODE_DIR:
            for (size_t i = 0; i < n->dir.count; i++) {
                free (n->dir.entries[i].name);
                node_decref (n->dir.entries[i].node);
            }
            free (n->dir.entries);
            break;
        case NODE_LINK:
            free (n->link.ns);
            free (n->link.target);
            break;
    }
    free (n);
    errno = saved_errno;
}

static int value_append (struct node *n, const void *data, size_t len)
{
    if (n->value.len + len > n->value.size) {
        size_t size = n->value.size ? n->value.size * 2 : 0;
        char *p;

        if (size < n->value.len + len)
            size = n->value.len + len;
        if (!(p = realloc (n->value.data, size)))
            return -1;
        n->value.data = p;
        n->value.size = size;
    }
    if (len > 0)
        memcpy (n->value.data + n->value.len, data, len);
    n->value.len += len;
    n->value.chunks++;
    n->id = new_id ();
    return 0;
}

struct node *node_create_value (const void *data, size_t len)
{
    struct node *n;

    if (!(n = node_create (NODE_VALUE)))
        return NULL;
    n->value.origin = n->id;
    if (value_append (n, data, len) < 0) {
        node_decref (n);
        return NULL;
    }
    return n;
}

struct node *node_create_dir (void)
{
    return node_create (NODE_DIR);
}

struct node *node_create_link (const char *ns, const char *target)
{
    struct node *n;

    if (!(n = node_create (NODE_LINK)))
        return NULL;
    if ((ns && !(n->link.ns = strdup (ns)))
        || !(n->link.target = strdup (target))) {
        node_decref (n);
        return NULL;
    }
    return n;
}

/* Directories
 */

static size_t dir_position (const struct node *dir,
                            const char *name,
                            size_t len,
                            bool *found)
{
    size_t lo = 0;
    size_t hi = dir->dir.count;

    *found = false;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        const char *s = dir->dir.entries[mid].name;
        int cmp = strncmp (name, s, len);

        if (cmp == 0 && s[len] != '\0')
            cmp = -1;
        if (cmp == 0) {
            *found = true;
            return mid;
        }
        if (cmp < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

struct node *dir_get (const struct node *dir, const char *name, size_t len)
{
    bool found;
    size_t i = dir_position (dir, name, len, &found);

    return found ? dir->dir.entries[i].node : NULL;
}

/* Put 'node' (taken over; NULL removes) at 'name'.  What was there is
 * handed to the caller in *old.
 */
static int dir_set (struct node *dir,
                    const char *name,
                    size_t len,
                    struct node *node,
                    struct node **old)
{
    bool found;
    size_t i = dir_position (dir, name, len, &found);
    struct dirent *e = dir->dir.entries;
    size_t tail = dir->dir.count - i;

    *old = found ? e[i].node : NULL;
    if (found && node)
        e[i].node = node;
    else if (found) {
        free (e[i].name);
        memmove (&e[i], &e[i + 1], sizeof (*e) * (tail - 1));
        dir->dir.count--;
    }
    else if (node) {
        char *cpy = strndup (name, len);

        if (cpy && dir->dir.count == dir->dir.size) {
            size_t size = dir->dir.size ? dir->dir.size * 2 : 4;
            if ((e = realloc (e, sizeof (*e) * size))) {
                dir->dir.entries = e;
                dir->dir.size = size;
            }
        }
        if (!cpy || !e) {
            free (cpy);
            return -1;
        }
        memmove (&e[i + 1], &e[i], sizeof (*e) * tail);
        e[i] = (struct dirent){ .name = cpy, .node = node };
        dir->dir.count++;
    }
    dir->id = new_id ();
    return 0;
}

/* A copy that shares what is below it.
 */
static struct node *node_copy (const struct node *n)
{
    struct node *cpy;

    if (n->type == NODE_VALUE) {
        if ((cpy = node_create_value (n->value.data, n->value.len))) {
            cpy->value.chunks = n->value.chunks;
            cpy->value.origin = n->value.origin;
        }
        return cpy;
    }
    if (!(cpy = node_create_dir ())
        || !(cpy->dir.entries = calloc (n->dir.count + 1,
                                        sizeof (*cpy->dir.entries)))) {
        node_decref (cpy);
        return NULL;
    }
    cpy->dir.size = n->dir.count + 1;
    for (size_t i = 0; i < n->dir.count; i++) {
        struct dirent *e = &cpy->dir.entries[i];
        if (!(e->name = strdup (n->dir.entries[i].name))) {
            node_decref (cpy);
            return NULL;
        }
        e->node = node_incref (n->dir.entries[i].node);
        cpy->dir.count++;
    }
    return cpy;
}

/* Keys
 */

char *key_normalize (const char *key, bool *dir)
{
    size_t len = strlen (key);
    char *s;
    char *p;

    if (dir)
        *dir = len > 0 && key[len - 1] == '.';
    if (!(p = s = malloc (len + 2)))
        return NULL;
    while (*key) {
        size_t n = strcspn (key, ".");
        if (n > 0) {
            if (p > s)
                *p++ = '.';
            memcpy (p, key, n);
            p += n;
        }
        key += n + (key[n] == '.');
    }
    if (p == s)
        *p++ = '.';
    *p = '\0';
    return s;
}

int tree_walk (struct node *root,
               const char *key,
               bool follow,
               root_f root_of,
               void *arg,
               struct walk *w)
{
    char *path = key_normalize (key, NULL);
    char *p = path;
    struct node *n = root;
    int links = 0;
    int rc = -1;

    w->node = NULL;
    w->through_link = false;
    if (!path)
        return -1;
    if (strcmp (path, ".") == 0)
        *p = '\0';
    while (*p) {
        size_t len = strcspn (p, ".");
        bool last = p[len] == '\0';

        if (n->type != NODE_DIR || !(n = dir_get (n, p, len))) {
            errno = ENOENT;
            goto out;
        }
        p += len + !last;
        if (n->type == NODE_LINK && (!last || follow)) {
            char *s;

            w->through_link = true;
            if (++links > MAX_LINKS) {
                errno = ELOOP;
                goto out;
            }
            if (n->link.ns && !(root = root_of (arg, n->link.ns)))
                goto out;
            if (asprintf (&s, "%s.%s", n->link.target, p) < 0)
                goto out;
            free (path);
            if (!(p = path = key_normalize (s, NULL))) {
                free (s);
                goto out;
            }
            free (s);
            if (strcmp (path, ".") == 0)
                *p = '\0';
            n = root;
        }
    }
    w->node = n;
    rc = 0;
out:
    free (path);
    return rc;
}

/* Transactions
 */

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
    int saved_errno = errno;
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
    errno = saved_errno;
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
            *path = key_normalize (s, NULL);
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
    char *path = key_normalize (key, NULL);
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
    if (node->type == NODE_VALUE) {
        /* The store must not see later appends in this one.
         */
        if (node->value.len > 0
            && !(c->data = malloc (node->value.len)))
            goto out;
        memcpy (c->data ? c->data : "", node->value.data, node->value.len);
        c->len = node->value.len;
    }
    else
        c->node = node_incref (node);
    rc = set_entry (txn, dir, name, strlen (name), node);
    node = NULL;
out:
    node_decref (node);
    free (path);
    return rc;
}

int txn_append (struct txn *txn, const char *key, const void *data, size_t len)
{
    char *path = key_normalize (key, NULL);
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
        || !(u = calloc (1, sizeof (*u))))
        goto out;
    u->appended = n;
    u->old_len = n->value.len;
    c->chunk = n->value.chunks;
    if (value_append (n, data, len) < 0
        || (len > 0 && !(c->data = malloc (len)))) {
        free (u);
        goto out;
    }
    memcpy (c->data ? c->data : "", data, len);
    c->len = len;
    u->next = txn->undo;
    txn->undo = u;
    rc = 0;
out:
    free (path);
    return rc;
}

int txn_unlink (struct txn *txn, const char *key)
{
    char *path = key_normalize (key, NULL);
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
