/* SPDX-License-Identifier: LGPL-3.0-only */
/* kvs.c - the KVS module: commits, lookups, namespaces, snapshots.
 *
 * Everything is in memory (tree.c) and, if so asked, on disk (store.c).
 * Commits that arrive together are written together: answers and watch
 * responses go out once they are safe.
 *
 * Module argument: statedir, to keep all of it in the directory that the
 * attribute of that name says. (Arguments cannot have blanks.)
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libflux/kvs_treeobj.h"

#include "kvs.h"

enum { MAX_BATCH = 128 };       // commits

static int load_ns (void *arg,
                    const char *name,
                    uint32_t owner,
                    int seq,
                    struct node *root)
{
    struct kvs *kvs = arg;

    return ns_add (kvs, name, owner, seq, root) ? 0 : -1;
}

/* Batches
 */

/* Also to those who made a namespace, or removed one, which is then not there.
 */
static void respond_commit (struct kvs *kvs, const flux_msg_t *msg, int errnum)
{
    const char *name;
    struct ns *ns;
    char ref[48];

    errno = errnum;
    if (errnum
        || flux_request_unpack (msg, NULL, "{s:s}", "namespace", &name) < 0)
        respond_error (kvs->h, msg, NULL);
    else if (!(ns = ns_find (kvs, name)))
        respond_ok (kvs->h, msg);
    else {
        ref_encode (ns->root->id, ref, sizeof (ref));
        respond_pack (kvs->h,
                      msg,
                      "{s:s s:i}",
                      "rootref", ref,
                      "rootseq", ns->seq);
    }
}

void kvs_flush (struct kvs *kvs)
{
    struct batch *b = kvs->batch;
    const flux_msg_t *msg;

    if (kvs->store) {
        for (struct ns *ns = kvs->namespaces; ns != NULL; ns = ns->next) {
            if (ns->touched
                && store_set_seq (kvs->store, ns->name, ns->seq) < 0)
                b->errnum = errno;
            ns->touched = false;
        }
        if (store_flush (kvs->store) < 0)
            b->errnum = errno;
        if (b->errnum)
            flux_log (kvs->h,
                      LOG_CRIT,
                      "cannot write to disk: %s",
                      store_error (kvs->store));
    }
    while ((msg = flux_msglist_pop (b->commits))) {
        respond_commit (kvs, msg, b->errnum);
        flux_msg_decref (msg);
    }
    b->errnum = 0;
    watchers_run (kvs->watchers);
}

/* Nothing else is to be done now: all that has arrived is in.
 */
static void idle_cb (flux_reactor_t *r,
                     flux_watcher_t *w,
                     int revents,
                     void *arg)
{
    struct kvs *kvs = arg;

    if (flux_msglist_count (kvs->batch->commits) < MAX_BATCH
        && (flux_pollevents (kvs->h) & FLUX_POLLIN))
        return;
    flux_watcher_stop (kvs->batch->idle);
    kvs_flush (kvs);
}

void kvs_schedule_flush (struct kvs *kvs)
{
    flux_watcher_start (kvs->batch->idle);
}

/* Commit
 */

/* Services look up for guests what is in their namespaces. So there is nothing
 * in these that leads out of them.
 */
static int check_guest (json_t *dirent, flux_error_t *error)
{
    json_t *data;
    const char *type = treeobj_type (dirent, &data);

    if (type
        && strcmp (type, "val") != 0
        && (strcmp (type, "dir") != 0 || json_object_size (data) > 0)) {
        snprintf (error->text,
                  sizeof (error->text),
                  "guests may not commit %s%s objects",
                  strcmp (type, "dir") == 0 ? "non-empty " : "",
                  type);
        errno = EPERM;
        return -1;
    }
    return 0;
}

static int apply_op (struct kvs *kvs,
                     struct txn *txn,
                     json_t *op,
                     bool owner,
                     flux_error_t *error)
{
    const char *key;
    int flags;
    json_t *dirent;
    struct node *n;
    int rc;

    if (json_unpack (op,
                     "{s:s s:i s:o}",
                     "key", &key,
                     "flags", &flags,
                     "dirent", &dirent) < 0) {
        errno = EPROTO;
        return -1;
    }
    if (json_is_null (dirent))
        return txn_unlink (txn, key);
    if ((!owner && check_guest (dirent, error) < 0)
        || !(n = node_decode (kvs, dirent)))
        return -1;
    if (!(flags & FLUX_KVS_APPEND))
        return txn_put (txn, key, n);
    if (n->type != NODE_VALUE) {
        node_decref (n);
        errno = EPROTO;
        return -1;
    }
    rc = txn_append (txn, key, n->value.data, n->value.len);
    node_decref (n);
    return rc;
}

void kvs_committed (struct kvs *kvs, struct ns *ns, struct txn *txn)
{
    txn_commit (txn);
    ns->seq++;
    ns->touched = true;
    kvs->commits++;
    if (kvs->store
        && store_apply (kvs->store, ns->name, txn_changes (txn)) < 0)
        kvs->batch->errnum = errno;
    for (const struct change *c = txn_changes (txn); c != NULL; c = c->next)
        watchers_note (kvs->watchers, ns->name, c->path, c->below);
    kvs_schedule_flush (kvs);
}

/* Watches are told about keys as they were written, too, not only about where
 * they led.
 */
static void note_keys (struct kvs *kvs, struct ns *ns, json_t *ops)
{
    size_t i;
    json_t *op;

    json_array_foreach (ops, i, op) {
        const char *s = json_string_value (json_object_get (op, "key"));
        char *key = key_normalize (s ? s : ".");
        if (key)
            watchers_note (kvs->watchers, ns->name, key, false);
        free (key);
    }
}

static void commit_cb (flux_t *h,
                       flux_msg_handler_t *mh,
                       const flux_msg_t *msg,
                       void *arg)
{
    struct kvs *kvs = arg;
    const char *name;
    json_t *ops;
    int flags;
    struct ns *ns;
    struct txn *txn = NULL;
    size_t i;
    json_t *op;
    bool owner = flux_msg_authorize (msg, FLUX_USERID_UNKNOWN) == 0;
    flux_error_t error = { .text = "" };

    if (flux_request_unpack (msg,
                             NULL,
                             "{s:s s:i s:o}",
                             "namespace", &name,
                             "flags", &flags,
                             "ops", &ops) < 0
        || !(ns = ns_find (kvs, name))
        || ns_allow (kvs, ns, msg) < 0
        || !(txn = txn_create (&ns->root)))
        goto error;
    json_array_foreach (ops, i, op)
        if (apply_op (kvs, txn, op, owner, &error) < 0)
            goto error;
    if (flux_msglist_append (kvs->batch->commits, msg) < 0)
        goto error;
    kvs_committed (kvs, ns, txn);
    note_keys (kvs, ns, ops);
    txn_destroy (txn);
    return;
error:
    txn_destroy (txn);
    respond_error (h, msg, error.text[0] ? error.text : NULL);
}

/* Lookup
 */

static void lookup_cb (flux_t *h,
                       flux_msg_handler_t *mh,
                       const flux_msg_t *msg,
                       void *arg)
{
    struct kvs *kvs = arg;
    const char *key;
    const char *name = KVS_PRIMARY_NAMESPACE;
    int flags;
    json_t *rootdir = NULL;
    struct node *root = NULL;
    struct ns *ns = NULL;
    struct found found;
    json_t *val;

    if (flux_request_unpack (msg,
                             NULL,
                             "{s:s s?s s:i s?o}",
                             "key", &key,
                             "namespace", &name,
                             "flags", &flags,
                             "rootdir", &rootdir) < 0)
        goto error;
    if (rootdir) {
        if (flux_msg_authorize (msg, FLUX_USERID_UNKNOWN) < 0
            || !(root = node_decode (kvs, rootdir)))
            goto error;
    }
    else if (!(ns = ns_find (kvs, name)))
        goto error;
    kvs_find (kvs, ns, root, msg, key, flags, &found);
    errno = found.errnum;
    if (!found.node || !(val = kvs_treeobj (kvs, found.node, flags))) {
        node_decref (root);
        goto error;
    }
    respond_pack (h, msg, "{s:o}", "val", val);
    node_decref (root);
    return;
error:
    respond_error (h, msg, NULL);
}

static const struct flux_msg_handler_spec htab[] = {
    { FLUX_MSGTYPE_REQUEST, "kvs.lookup", lookup_cb, FLUX_ROLE_USER },
    { FLUX_MSGTYPE_REQUEST, "kvs.commit", commit_cb, FLUX_ROLE_USER },
    FLUX_MSGHANDLER_TABLE_END,
};

static int load_store (struct kvs *kvs, const char *dir)
{
    char *path;
    flux_error_t error;
    int rc = -1;

    if (asprintf (&path, "%s/kvs.sqlite", dir) < 0)
        return -1;
    if ((kvs->store = store_open (path, &error)))
        rc = store_load (kvs->store, load_ns, kvs);
    if (rc < 0)
        flux_log (kvs->h,
                  LOG_ERR,
                  "%s",
                  kvs->store ? store_error (kvs->store) : error.text);
    free (path);
    return rc;
}

static int open_store (struct kvs *kvs, const char *dir)
{
    if (dir && load_store (kvs, dir) < 0)
        return -1;
    if (!ns_find (kvs, KVS_PRIMARY_NAMESPACE)) {
        struct node *root = node_create_dir ();

        if (!root
            || !ns_add (kvs, KVS_PRIMARY_NAMESPACE, geteuid (), 0, root)
            || (kvs->store
                && (store_create_ns (kvs->store,
                                     KVS_PRIMARY_NAMESPACE,
                                     geteuid (),
                                     root) < 0
                    || store_flush (kvs->store) < 0)))
            return -1;
    }
    return 0;
}

static void kvs_destroy (struct kvs *kvs)
{
    if (!kvs)
        return;
    if (kvs->batch) {
        if (kvs->watchers)
            kvs_flush (kvs);
        flux_msglist_destroy (kvs->batch->commits);
        flux_watcher_destroy (kvs->batch->idle);
        free (kvs->batch);
    }
    flux_msg_handler_delvec (kvs->ns_handlers);
    flux_msg_handler_delvec (kvs->handlers);
    watchers_destroy (kvs->watchers);
    snapshots_destroy (kvs->snapshots);
    while (kvs->namespaces)
        ns_remove (kvs, kvs->namespaces);
    store_close (kvs->store);
    free (kvs);
}

static struct kvs *kvs_create (flux_t *h, const char *dir)
{
    flux_reactor_t *r = flux_get_reactor (h);
    struct kvs *kvs;

    if (!(kvs = calloc (1, sizeof (*kvs))))
        return NULL;
    kvs->h = h;
    if (!(kvs->batch = calloc (1, sizeof (*kvs->batch)))
        || !(kvs->snapshots = snapshots_create ())
        || !(kvs->batch->commits = flux_msglist_create ())
        || !(kvs->batch->idle = flux_idle_watcher_create (r, idle_cb, kvs))
        || open_store (kvs, dir) < 0
        || !(kvs->watchers = watchers_create (kvs))
        || flux_msg_handler_addvec (h, htab, kvs, &kvs->handlers) < 0
        || flux_msg_handler_addvec (h,
                                    namespace_htab,
                                    kvs,
                                    &kvs->ns_handlers) < 0) {
        kvs_destroy (kvs);
        return NULL;
    }
    return kvs;
}

int mod_main (flux_t *h, int argc, char **argv)
{
    const char *dir = NULL;
    struct kvs *kvs;
    int rc;

    for (int i = 0; i < argc; i++) {
        if (strcmp (argv[i], "statedir") == 0)
            dir = flux_attr_get (h, "statedir");
        else {
            flux_log (h, LOG_ERR, "unknown module argument: %s", argv[i]);
            errno = EINVAL;
            return -1;
        }
    }
    if (!(kvs = kvs_create (h, dir))) {
        flux_log_error (h, "cannot start the KVS");
        return -1;
    }
    rc = flux_reactor_run (flux_get_reactor (h), 0);
    kvs_destroy (kvs);
    return rc < 0 ? -1 : 0;
}
