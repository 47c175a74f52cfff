/* SPDX-License-Identifier: LGPL-3.0-only */
/* kvs.c - the KVS module: commits, lookups, namespaces, snapshots.
 *
 * Everything is in memory (tree.c) and, given a path, on disk (store.c).
 * Commits that arrive together are written together: answers and watch
 * responses go out once they are safe.
 *
 * Module argument: path=FILE
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kvs.h"

enum { MAX_BATCH = 128 };       // commits

struct batch {
    struct flux_msglist *commits;
    flux_watcher_t *idle;
    int errnum;
};

/* Namespaces
 */

struct ns *ns_find (struct kvs *kvs, const char *name)
{
    for (struct ns *ns = kvs->namespaces; ns != NULL; ns = ns->next)
        if (strcmp (ns->name, name) == 0)
            return ns;
    errno = ENOTSUP;
    return NULL;
}

int ns_allow (struct kvs *kvs, struct ns *ns, const flux_msg_t *msg)
{
    struct flux_msg_cred cred;

    if (flux_msg_get_cred (msg, &cred) < 0)
        return -1;
    return flux_msg_cred_authorize (cred, ns->owner);
}

/* Takes over root.
 */
static struct ns *ns_add (struct kvs *kvs,
                          const char *name,
                          uint32_t owner,
                          int seq,
                          struct node *root)
{
    struct ns *ns;
    struct ns **p = &kvs->namespaces;

    if (!(ns = calloc (1, sizeof (*ns))) || !(ns->name = strdup (name))) {
        free (ns);
        node_decref (root);
        return NULL;
    }
    ns->owner = owner;
    ns->seq = seq;
    ns->root = root;
    while (*p)                  // "primary" stays the first
        p = &(*p)->next;
    *p = ns;
    return ns;
}

static void ns_remove (struct kvs *kvs, struct ns *ns)
{
    struct ns **p = &kvs->namespaces;

    while (*p != ns)
        p = &(*p)->next;
    *p = ns->next;
    node_decref (ns->root);
    free (ns->name);
    free (ns);
}

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

static void respond_commit (struct kvs *kvs, const flux_msg_t *msg, int errnum)
{
    const char *name;
    struct ns *ns;
    char ref[48];
    int rc;

    if (errnum == 0
        && flux_request_unpack (msg, NULL, "{s:s}", "namespace", &name) == 0
        && (ns = ns_find (kvs, name))) {
        ref_encode (ns->root->id, ref, sizeof (ref));
        rc = flux_respond_pack (kvs->h,
                                msg,
                                "{s:s s:i}",
                                "rootref", ref,
                                "rootseq", ns->seq);
    }
    else
        rc = flux_respond_error (kvs->h, msg, errnum ? errnum : ENOTSUP, NULL);
    if (rc < 0)
        flux_log_error (kvs->h, "error responding to kvs.commit");
}

static void version_waiters_run (struct kvs *kvs)
{
    const flux_msg_t *msg = flux_msglist_first (kvs->version_waiters);
    const char *name;
    struct ns *ns;
    int seq;

    while (msg) {
        if (flux_request_unpack (msg,
                                 NULL,
                                 "{s:s s:i}",
                                 "namespace", &name,
                                 "rootseq", &seq) < 0
            || !(ns = ns_find (kvs, name))) {
            (void)flux_respond_error (kvs->h, msg, ENOTSUP, NULL);
            flux_msglist_delete (kvs->version_waiters);
        }
        else if (ns->seq >= seq) {
            (void)flux_respond_pack (kvs->h, msg, "{s:i}", "rootseq", ns->seq);
            flux_msglist_delete (kvs->version_waiters);
        }
        msg = flux_msglist_next (kvs->version_waiters);
    }
}

static void flush (struct kvs *kvs)
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
    version_waiters_run (kvs);
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
    flush (kvs);
}

static void schedule_flush (struct kvs *kvs)
{
    flux_watcher_start (kvs->batch->idle);
}

/* Commit
 */

static int apply_op (struct kvs *kvs, struct txn *txn, json_t *op)
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
    if (!(n = node_decode (kvs, dirent)))
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

/* Watches are told about keys as they were written and about where they led.
 */
static void note_changes (struct kvs *kvs,
                          struct ns *ns,
                          struct txn *txn,
                          json_t *ops)
{
    const struct change *c;
    size_t i;
    json_t *op;

    for (c = txn_changes (txn); c != NULL; c = c->next)
        watchers_note (kvs->watchers,
                       ns->name,
                       c->path,
                       c->below);
    json_array_foreach (ops, i, op) {
        const char *s = json_string_value (json_object_get (op, "key"));
        char *key = key_normalize (s ? s : ".", NULL);
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
        if (apply_op (kvs, txn, op) < 0)
            goto error;
    if (flux_msglist_append (kvs->batch->commits, msg) < 0)
        goto error;
    txn_commit (txn);
    ns->seq++;
    ns->touched = true;
    kvs->commits++;
    if (kvs->store && store_apply (kvs->store, name, txn_changes (txn)) < 0)
        kvs->batch->errnum = errno;
    note_changes (kvs, ns, txn, ops);
    txn_destroy (txn);
    schedule_flush (kvs);
    return;
error:
    txn_destroy (txn);
    respond_commit (kvs, msg, errno);
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
        struct flux_msg_cred cred;

        if (flux_msg_get_cred (msg, &cred) < 0
            || flux_msg_cred_authorize (cred, FLUX_USERID_UNKNOWN) < 0
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
    if (flux_respond_pack (h, msg, "{s:o}", "val", val) < 0)
        flux_log_error (h, "error responding to kvs.lookup");
    node_decref (root);
    return;
error:
    if (flux_respond_error (h, msg, errno, NULL) < 0)
        flux_log_error (h, "error responding to kvs.lookup");
}

static void getroot_cb (flux_t *h,
                        flux_msg_handler_t *mh,
                        const flux_msg_t *msg,
                        void *arg)
{
    struct kvs *kvs = arg;
    const char *name;
    struct ns *ns;
    char ref[48];

    if (flux_request_unpack (msg, NULL, "{s:s}", "namespace", &name) < 0
        || !(ns = ns_find (kvs, name))
        || ns_allow (kvs, ns, msg) < 0) {
        if (flux_respond_error (h, msg, errno, NULL) < 0)
            flux_log_error (h, "error responding to kvs.getroot");
        return;
    }
    snapshot_keep (kvs, ns->root);
    ref_encode (ns->root->id, ref, sizeof (ref));
    if (flux_respond_pack (h,
                           msg,
                           "{s:i s:i s:s s:i}",
                           "owner", (int)ns->owner,
                           "rootseq", ns->seq,
                           "rootref", ref,
                           "flags", 0) < 0)
        flux_log_error (h, "error responding to kvs.getroot");
}

static void wait_version_cb (flux_t *h,
                             flux_msg_handler_t *mh,
                             const flux_msg_t *msg,
                             void *arg)
{
    struct kvs *kvs = arg;
    const char *name;
    int seq;
    struct ns *ns;

    if (flux_request_unpack (msg,
                             NULL,
                             "{s:s s:i}",
                             "namespace", &name,
                             "rootseq", &seq) < 0
        || !(ns = ns_find (kvs, name))
        || ns_allow (kvs, ns, msg) < 0
        || flux_msglist_append (kvs->version_waiters, msg) < 0) {
        if (flux_respond_error (h, msg, errno, NULL) < 0)
            flux_log_error (h, "error responding to kvs.wait-version");
        return;
    }
    schedule_flush (kvs);
}

static void namespace_create_cb (flux_t *h,
                                 flux_msg_handler_t *mh,
                                 const flux_msg_t *msg,
                                 void *arg)
{
    struct kvs *kvs = arg;
    const char *name;
    const char *rootref = "";
    int owner;
    uint32_t userid;
    struct node *root;
    struct ns *ns;

    if (flux_request_unpack (msg,
                             NULL,
                             "{s:s s?s s:i}",
                             "namespace", &name,
                             "rootref", &rootref,
                             "owner", &owner) < 0)
        goto error;
    if (ns_find (kvs, name)) {
        errno = EEXIST;
        goto error;
    }
    root = *rootref ? node_incref (ref_find (kvs, rootref))
                    : node_create_dir ();
    userid = owner;
    if (userid == FLUX_USERID_UNKNOWN)
        userid = geteuid ();
    if (!root || !(ns = ns_add (kvs, name, userid, 0, root)))
        goto error;
    if (kvs->store && store_create_ns (kvs->store, name, ns->owner, root) < 0)
        kvs->batch->errnum = errno;
    watchers_note_ns (kvs->watchers, name);
    schedule_flush (kvs);
    if (flux_respond (h, msg, NULL) < 0)
        flux_log_error (h, "error responding to kvs.namespace-create");
    return;
error:
    if (flux_respond_error (h, msg, errno, NULL) < 0)
        flux_log_error (h, "error responding to kvs.namespace-create");
}

static void namespace_remove_cb (flux_t *h,
                                 flux_msg_handler_t *mh,
                                 const flux_msg_t *msg,
                                 void *arg)
{
    struct kvs *kvs = arg;
    const char *name;
    struct ns *ns;

    if (flux_request_unpack (msg, NULL, "{s:s}", "namespace", &name) < 0)
        goto error;
    if (strcmp (name, KVS_PRIMARY_NAMESPACE) == 0) {
        errno = ENOTSUP;
        goto error;
    }
    if ((ns = ns_find (kvs, name))) {
        flush (kvs);            // its last commits are answered
        ns_remove (kvs, ns);
        if (kvs->store && store_remove_ns (kvs->store, name) < 0)
            kvs->batch->errnum = errno;
        watchers_note_ns (kvs->watchers, name);
        schedule_flush (kvs);
    }
    if (flux_respond (h, msg, NULL) < 0)
        flux_log_error (h, "error responding to kvs.namespace-remove");
    return;
error:
    if (flux_respond_error (h, msg, errno, NULL) < 0)
        flux_log_error (h, "error responding to kvs.namespace-remove");
}

static void namespace_list_cb (flux_t *h,
                               flux_msg_handler_t *mh,
                               const flux_msg_t *msg,
                               void *arg)
{
    struct kvs *kvs = arg;
    json_t *a = json_array ();

    for (struct ns *ns = kvs->namespaces; ns != NULL; ns = ns->next)
        json_array_append_new (a,
                               json_pack ("{s:s s:i s:i}",
                                          "namespace", ns->name,
                                          "owner", (int)ns->owner,
                                          "flags", 0));
    if (flux_respond_pack (h, msg, "{s:o}", "namespaces", a) < 0)
        flux_log_error (h, "error responding to kvs.namespace-list");
}

static void stats_cb (flux_t *h,
                      flux_msg_handler_t *mh,
                      const flux_msg_t *msg,
                      void *arg)
{
    struct kvs *kvs = arg;

    if (flux_respond_pack (h,
                           msg,
                           "{s:i s:b}",
                           "commits", (int)kvs->commits,
                           "durable", kvs->store != NULL) < 0)
        flux_log_error (h, "error responding to kvs.stats-get");
}

/* Nothing is cached: a lookup sees every commit that was answered.
 */
static void nothing_to_do_cb (flux_t *h,
                              flux_msg_handler_t *mh,
                              const flux_msg_t *msg,
                              void *arg)
{
    if (!flux_msg_is_noresponse (msg) && flux_respond (h, msg, NULL) < 0)
        flux_log_error (h, "error responding to request");
}

static void disconnect_cb (flux_t *h,
                           flux_msg_handler_t *mh,
                           const flux_msg_t *msg,
                           void *arg)
{
    struct kvs *kvs = arg;

    (void)flux_msglist_disconnect (kvs->version_waiters, msg);
}

static const struct flux_msg_handler_spec htab[] = {
    { FLUX_MSGTYPE_REQUEST, "kvs.lookup", lookup_cb, FLUX_ROLE_USER },
    { FLUX_MSGTYPE_REQUEST, "kvs.commit", commit_cb, FLUX_ROLE_USER },
    { FLUX_MSGTYPE_REQUEST, "kvs.getroot", getroot_cb, FLUX_ROLE_USER },
    { FLUX_MSGTYPE_REQUEST, "kvs.wait-version", wait_version_cb,
      FLUX_ROLE_USER },
    { FLUX_MSGTYPE_REQUEST, "kvs.namespace-create", namespace_create_cb, 0 },
    { FLUX_MSGTYPE_REQUEST, "kvs.namespace-remove", namespace_remove_cb, 0 },
    { FLUX_MSGTYPE_REQUEST, "kvs.namespace-list", namespace_list_cb, 0 },
    { FLUX_MSGTYPE_REQUEST, "kvs.stats-get", stats_cb, FLUX_ROLE_USER },
    { FLUX_MSGTYPE_REQUEST, "kvs.dropcache", nothing_to_do_cb, 0 },
    { FLUX_MSGTYPE_REQUEST, "kvs.disconnect", disconnect_cb, FLUX_ROLE_USER },
    FLUX_MSGHANDLER_TABLE_END,
};

static int open_store (struct kvs *kvs, const char *path)
{
    flux_error_t error;

    if (path
        && (!(kvs->store = store_open (path, &error))
            || store_load (kvs->store, load_ns, kvs) < 0)) {
        flux_log (kvs->h,
                  LOG_ERR,
                  "%s",
                  kvs->store ? store_error (kvs->store) : error.text);
        return -1;
    }
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
            flush (kvs);
        flux_msglist_destroy (kvs->batch->commits);
        flux_watcher_destroy (kvs->batch->idle);
        free (kvs->batch);
    }
    flux_msg_handler_delvec (kvs->handlers);
    watchers_destroy (kvs->watchers);
    flux_msglist_destroy (kvs->version_waiters);
    snapshots_destroy (kvs->snapshots);
    while (kvs->namespaces)
        ns_remove (kvs, kvs->namespaces);
    store_close (kvs->store);
    free (kvs);
}

static struct kvs *kvs_create (flux_t *h, const char *path)
{
    flux_reactor_t *r = flux_get_reactor (h);
    struct kvs *kvs;

    if (!(kvs = calloc (1, sizeof (*kvs))))
        return NULL;
    kvs->h = h;
    if (!(kvs->batch = calloc (1, sizeof (*kvs->batch)))
        || !(kvs->snapshots = snapshots_create ())
        || !(kvs->version_waiters = flux_msglist_create ())
        || !(kvs->batch->commits = flux_msglist_create ())
        || !(kvs->batch->idle = flux_idle_watcher_create (r, idle_cb, kvs))
        || open_store (kvs, path) < 0
        || !(kvs->watchers = watchers_create (kvs))
        || flux_msg_handler_addvec (h, htab, kvs, &kvs->handlers) < 0) {
        kvs_destroy (kvs);
        return NULL;
    }
    return kvs;
}

int mod_main (flux_t *h, int argc, char **argv)
{
    const char *path = NULL;
    struct kvs *kvs;
    int rc;

    for (int i = 0; i < argc; i++) {
        if (strncmp (argv[i], "path=", 5) == 0)
            path = argv[i] + 5;
        else {
            flux_log (h, LOG_ERR, "unknown module argument: %s", argv[i]);
            errno = EINVAL;
            return -1;
        }
    }
    if (!(kvs = kvs_create (h, path))) {
        flux_log_error (h, "cannot start the KVS");
        return -1;
    }
    rc = flux_reactor_run (flux_get_reactor (h), 0);
    kvs_destroy (kvs);
    return rc < 0 ? -1 : 0;
}
