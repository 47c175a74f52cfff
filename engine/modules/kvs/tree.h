/* SPDX-License-Identifier: LGPL-3.0-only */
/* tree.h - the KVS's entries in memory: values, directories, symbolic links.
 *
 * Nodes have a reference count.  A node with one reference belongs to the
 * live tree and is changed in place; one that a snapshot or a second
 * directory shares is copied before it is changed.  So a commit costs what it
 * changes, an append costs what it appends, and a snapshot costs nothing.
 */
#ifndef SOLO_KVS_TREE_H
#define SOLO_KVS_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum node_type { NODE_VALUE, NODE_DIR, NODE_LINK };

struct dirent {
    char *name;
    struct node *node;
};

struct node {
    int refs;
    enum node_type type;
    uint64_t id;                // unique for this content
    union {
        struct {
            char *data;
            size_t len;
            size_t size;
            unsigned int chunks;    // of the value in the store
            uint64_t origin;        // appends keep it, overwriting does not
        } value;
        struct {
            struct dirent *entries; // sorted by name
            size_t count;
            size_t size;
        } dir;
        struct {
            char *ns;           // or NULL
            char *target;
        } link;
    };
};

struct node *node_create_value (const void *data, size_t len);
struct node *node_create_dir (void);
struct node *node_create_link (const char *ns, const char *target);
struct node *node_incref (struct node *n);
void node_decref (struct node *n);

struct node *dir_get (const struct node *dir, const char *name, size_t len);

/* Where a key leads.
 */
struct walk {
    struct node *node;          // borrowed
    bool through_link;          // a symbolic link was followed
};

/* Get the root of another namespace for a link that names one.  Returns
 * NULL with errno set.
 */
typedef struct node *(*root_f)(void *arg, const char *ns);

/* Follow 'key' from 'root'.  A link in the last place is followed if
 * 'follow'.  Fails with ENOENT, ELOOP or what root_f fails with.
 */
int tree_walk (struct node *root,
               const char *key,
               bool follow,
               root_f root_of,
               void *arg,
               struct walk *result);

/* A key without empty components; "." for the root.  The caller
 * frees it.
 */
char *key_normalize (const char *key);

/* A transaction: changes that can be taken back.
 */
struct txn;

enum change_type {
    CHANGE_PUT,                 // 'node' is now at 'path'
    CHANGE_APPEND,              // 'data' was appended to 'node' at 'path'
    CHANGE_UNLINK,              // nothing is at 'path' any more
    CHANGE_EMPTY_DIR,           // the directory at 'path' is now empty
};

/* What was done, for the store.  Paths are free of symbolic links.
 */
struct change {
    enum change_type type;
    char *path;
    struct node *node;          // holds a reference, but for CHANGE_APPEND
    char *data;
    size_t len;
    unsigned int chunk;
    bool replaced;              // something was at 'path' before
    bool below;                 // more than the value at 'path' has changed
    struct change *next;
};

struct txn *txn_create (struct node **rootp);
/* Take back everything unless txn_commit () was called.
 */
void txn_destroy (struct txn *txn);
void txn_commit (struct txn *txn);
/* List of changes in order; it belongs to the txn.
 */
const struct change *txn_changes (struct txn *txn);

/* 'node' is taken over, also on failure.
 */
int txn_put (struct txn *txn, const char *key, struct node *node);
/* Fails with EISDIR or EOPNOTSUPP if there is a directory or a link.
 */
int txn_append (struct txn *txn, const char *key, const void *data, size_t len);
int txn_unlink (struct txn *txn, const char *key);

#endif // !SOLO_KVS_TREE_H
