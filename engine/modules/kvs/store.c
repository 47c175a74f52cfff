/* SPDX-License-Identifier: LGPL-3.0-only */
/* store.c - the KVS on disk (see store.h).
 *
 * A value is one row, and one more for each append, numbered by 'chunk'.
 * Directories exist by what is in them; only empty ones have a row.  A row
 * of a directory that has become non-empty does no harm.
 */
#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/errno_safe.h"
#include "store.h"

enum { INSERT, DELETE, DELETE_BELOW, ADD_NS, REMOVE_NS, CLEAR_NS, SET_SEQ,
       STATEMENTS };

static const char *sql[STATEMENTS] = {
    [INSERT] = "INSERT OR REPLACE INTO entry VALUES (?1, ?2, ?3, ?4, ?5)",
    [DELETE] = "DELETE FROM entry WHERE ns = ?1 AND path = ?2",
    [DELETE_BELOW] = "DELETE FROM entry WHERE ns = ?1"
                     " AND path > ?2 || '.' AND path < ?2 || '/'",
    [ADD_NS] = "INSERT OR REPLACE INTO namespace VALUES (?1, ?2, 0)",
    [REMOVE_NS] = "DELETE FROM namespace WHERE name = ?1",
    [CLEAR_NS] = "DELETE FROM entry WHERE ns = ?1",
    [SET_SEQ] = "UPDATE namespace SET seq = ?2 WHERE name = ?1",
};

static const char schema[] =
    "PRAGMA journal_mode = WAL;"
    "PRAGMA synchronous = NORMAL;"
    "PRAGMA locking_mode = EXCLUSIVE;"
    "CREATE TABLE IF NOT EXISTS namespace ("
    " name TEXT PRIMARY KEY, owner INTEGER, seq INTEGER) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS entry ("
    " ns TEXT, path TEXT, chunk INTEGER, type INTEGER, data BLOB,"
    " PRIMARY KEY (ns, path, chunk)) WITHOUT ROWID;";

struct store {
    sqlite3 *db;
    sqlite3_stmt *stmt[STATEMENTS];
    bool in_transaction;
    bool failed;                // nothing is written any more
};

const char *store_error (struct store *s)
{
    return sqlite3_errmsg (s->db);
}

/* What an error interrupts must not be committed by half, nor what comes
 * later without it: the transaction stays open until it is dropped on close.
 */
static int check (struct store *s, bool ok)
{
    if (ok && !s->failed)
        return 0;
    s->failed = true;
    errno = EIO;
    return -1;
}

static int transaction (struct store *s, bool begin)
{
    if (s->failed || s->in_transaction == begin)
        return check (s, true);
    s->in_transaction = begin;
    return check (s, sqlite3_exec (s->db, begin ? "BEGIN" : "COMMIT",
                                   NULL, NULL, NULL) == SQLITE_OK);
}

int store_flush (struct store *s)
{
    return transaction (s, false);
}

static sqlite3_stmt *prepare (struct store *s, int i, const char *ns)
{
    if (transaction (s, true) < 0)
        return NULL;
    sqlite3_reset (s->stmt[i]);
    sqlite3_bind_text (s->stmt[i], 1, ns, -1, SQLITE_STATIC);
    return s->stmt[i];
}

static int step (struct store *s, sqlite3_stmt *stmt)
{
    int rc = sqlite3_step (stmt);

    sqlite3_reset (stmt);
    sqlite3_clear_bindings (stmt);
    return check (s, rc == SQLITE_DONE);
}

static int insert (struct store *s,
                   const char *ns,
                   const char *path,
                   unsigned int chunk,
                   enum node_type type,
                   const void *data,
                   size_t len)
{
    sqlite3_stmt *stmt = prepare (s, INSERT, ns);

    if (!stmt)
        return -1;
    sqlite3_bind_text (stmt, 2, path, -1, SQLITE_STATIC);
    sqlite3_bind_int64 (stmt, 3, chunk);
    sqlite3_bind_int (stmt, 4, type);
    sqlite3_bind_blob64 (stmt, 5, data ? data : "", len, SQLITE_STATIC);
    return step (s, stmt);
}

static int insert_node (struct store *s,
                        const char *ns,
                        const char *path,
                        struct node *n)
{
    switch (n->type) {
        case NODE_VALUE:
            /* A shared value counts its appends from where they are.
             */
            return insert (s, ns, path, n->value.chunks ? n->value.chunks - 1
                                                        : 0,
                           NODE_VALUE, n->value.data, n->value.len);
        case NODE_LINK: {
            char *s2;
            int len = asprintf (&s2,
                                "%s%c%s",
                                n->link.ns ? n->link.ns : "",
                                '\0',
                                n->link.target);
            int rc;
            if (len < 0)
                return -1;
            rc = insert (s, ns, path, 0, NODE_LINK, s2, len);
            free (s2);
            return rc;
        }
        case NODE_DIR:
            if (n->dir.count == 0 && strcmp (path, ".") != 0)
                return insert (s, ns, path, 0, NODE_DIR, NULL, 0);
            for (size_t i = 0; i < n->dir.count; i++) {
                char *below;
                int rc;
                if (asprintf (&below,
                              "%s%s%s",
                              strcmp (path, ".") ? path : "",
                              strcmp (path, ".") ? "." : "",
                              n->dir.entries[i].name) < 0)
                    return -1;
                rc = insert_node (s, ns, below, n->dir.entries[i].node);
                free (below);
                if (rc < 0)
                    return -1;
            }
    }
    return 0;
}

static int erase (struct store *s, const char *ns, const char *path)
{
    sqlite3_stmt *stmt;

    if (strcmp (path, ".") == 0)
        return (stmt = prepare (s, CLEAR_NS, ns)) ? step (s, stmt) : -1;
    for (int i = DELETE; i <= DELETE_BELOW; i++) {
        if (!(stmt = prepare (s, i, ns)))
            return -1;
        sqlite3_bind_text (stmt, 2, path, -1, SQLITE_STATIC);
        if (step (s, stmt) < 0)
            return -1;
    }
    return 0;
}

int store_apply (struct store *s, const char *ns, const struct change *c)
{
    for (; c != NULL; c = c->next) {
        int rc = 0;

        switch (c->type) {
            case CHANGE_PUT:
                if (c->replaced)
                    rc = erase (s, ns, c->path);
                if (rc == 0 && c->node)
                    rc = insert_node (s, ns, c->path, c->node);
                else if (rc == 0)
                    rc = insert (s, ns, c->path, 0, NODE_VALUE, c->data, c->len);
                break;
            case CHANGE_APPEND:
                rc = insert (s, ns, c->path, c->chunk, NODE_VALUE,
                             c->data, c->len);
                break;
            case CHANGE_UNLINK:
                rc = erase (s, ns, c->path);
                break;
            case CHANGE_EMPTY_DIR:
                rc = insert (s, ns, c->path, 0, NODE_DIR, NULL, 0);
                break;
        }
        if (rc < 0)
            return -1;
    }
    return 0;
}

int store_create_ns (struct store *s,
                     const char *ns,
                     uint32_t owner,
                     struct node *root)
{
    sqlite3_stmt *stmt;

    if (erase (s, ns, ".") < 0 || !(stmt = prepare (s, ADD_NS, ns)))
        return -1;
    sqlite3_bind_int64 (stmt, 2, owner);
    if (step (s, stmt) < 0)
        return -1;
    return insert_node (s, ns, ".", root);
}

int store_remove_ns (struct store *s, const char *ns)
{
    sqlite3_stmt *stmt;

    if (erase (s, ns, ".") < 0 || !(stmt = prepare (s, REMOVE_NS, ns)))
        return -1;
    return step (s, stmt);
}

int store_set_seq (struct store *s, const char *ns, int seq)
{
    sqlite3_stmt *stmt = prepare (s, SET_SEQ, ns);

    if (!stmt)
        return -1;
    sqlite3_bind_int (stmt, 2, seq);
    return step (s, stmt);
}

/* Load
 */

static int load_row (struct txn *txn, sqlite3_stmt *stmt, struct node **rootp)
{
    const char *path = (const char *)sqlite3_column_text (stmt, 0);
    unsigned int chunk = sqlite3_column_int (stmt, 1);
    // as text: that ends with a zero byte, which is not counted
    const char *data = (const char *)sqlite3_column_text (stmt, 3);
    size_t len = sqlite3_column_bytes (stmt, 3);
    struct node *n;

    switch (sqlite3_column_int (stmt, 2)) {
        case NODE_VALUE:
            if (txn_append (txn, path, data, len) < 0)
                return -1;
            /* The next append must not take a number that is in use.
             */
            struct walk w;
            if (tree_walk (*rootp, path, true, NULL, NULL, &w) < 0)
                return -1;
            w.node->value.chunks = chunk + 1;
            return 0;
        case NODE_LINK:
            if (!(n = node_create_link (*data ? data : NULL,
                                        data + strlen (data) + 1)))
                return -1;
            return txn_put (txn, path, n);
        default: {
            struct walk w;
            if (tree_walk (*rootp, path, false, NULL, NULL, &w) == 0)
                return 0;
            if (!(n = node_create_dir ()))
                return -1;
            return txn_put (txn, path, n);
        }
    }
}

static struct node *load_ns (struct store *s, const char *ns)
{
    struct node *root = node_create_dir ();
    sqlite3_stmt *stmt = NULL;
    struct txn *txn;
    int rc;

    /* By path: a link is not read before what lies in a directory of a
     * shorter path, and nothing lies below a link.
     */
    if (!root
        || sqlite3_prepare_v2 (s->db,
                               "SELECT path, chunk, type, data FROM entry"
                               " WHERE ns = ?1 ORDER BY path, chunk",
                               -1,
                               &stmt,
                               NULL) != SQLITE_OK)
        goto error;
    sqlite3_bind_text (stmt, 1, ns, -1, SQLITE_STATIC);
    while ((rc = sqlite3_step (stmt)) == SQLITE_ROW) {
        if (!(txn = txn_create (&root)))
            goto error;
        rc = load_row (txn, stmt, &root);
        txn_commit (txn);
        txn_destroy (txn);
        if (rc < 0)
            goto error;
    }
    if (rc != SQLITE_DONE)
        goto error;
    sqlite3_finalize (stmt);
    return root;
error:
    sqlite3_finalize (stmt);
    node_decref (root);
    errno = EIO;
    return NULL;
}

int store_load (struct store *s, store_load_f cb, void *arg)
{
    sqlite3_stmt *stmt;
    int rc;

    if (sqlite3_prepare_v2 (s->db,
                            "SELECT name, owner, seq FROM namespace",
                            -1,
                            &stmt,
                            NULL) != SQLITE_OK) {
        errno = EIO;
        return -1;
    }
    while ((rc = sqlite3_step (stmt)) == SQLITE_ROW) {
        const char *ns = (const char *)sqlite3_column_text (stmt, 0);
        struct node *root = load_ns (s, ns);

        if (!root
            || cb (arg,
                   ns,
                   sqlite3_column_int64 (stmt, 1),
                   sqlite3_column_int (stmt, 2),
                   root) < 0)
            break;
    }
    sqlite3_finalize (stmt);
    if (rc != SQLITE_DONE) {
        errno = EIO;
        return -1;
    }
    return 0;
}

struct store *store_open (const char *path, flux_error_t *error)
{
    struct store *s;
    char *text = NULL;

    if (!(s = calloc (1, sizeof (*s))))
        return NULL;
    if (sqlite3_open (path, &s->db) != SQLITE_OK
        || sqlite3_exec (s->db, schema, NULL, NULL, &text) != SQLITE_OK)
        goto error;
    for (int i = 0; i < STATEMENTS; i++)
        if (sqlite3_prepare_v2 (s->db, sql[i], -1, &s->stmt[i], NULL)
            != SQLITE_OK)
            goto error;
    return s;
error:
    snprintf (error->text,
              sizeof (error->text),
              "%s: %s",
              path,
              text ? text : sqlite3_errmsg (s->db));
    sqlite3_free (text);
    store_close (s);
    errno = EIO;
    return NULL;
}

void store_close (struct store *s)
{
    if (s) {
        ERRNO_SAFE_BLOCK;
        (void)store_flush (s);
        for (int i = 0; i < STATEMENTS; i++)
            sqlite3_finalize (s->stmt[i]);
        sqlite3_close (s->db);
        free (s);
    }
}
