/* SPDX-License-Identifier: LGPL-3.0-only */
/* tree.c - the KVS's entries in memory (see tree.h).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/errno_safe.h"
#include "common/by_name.h"

#include "tree_private.h"

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
    ERRNO_SAFE_BLOCK;
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
}

int value_append (struct node *n, const void *data, size_t len)
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
    return by_name_position (dir->dir.entries,
                             dir->dir.count,
                             sizeof (dir->dir.entries[0]),
                             name,
                             len,
                             found);
}

struct node *dir_get (const struct node *dir, const char *name, size_t len)
{
    bool found;
    size_t i = dir_position (dir, name, len, &found);

    return found ? dir->dir.entries[i].node : NULL;
}

int dir_set (struct node *dir,
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

struct node *node_copy (const struct node *n)
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

char *key_normalize (const char *key)
{
    size_t len = strlen (key);
    char *s;
    char *p;

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
    char *path = key_normalize (key);
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
            if (!(p = path = key_normalize (s))) {
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
