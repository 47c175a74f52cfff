/* SPDX-License-Identifier: LGPL-3.0-only */
/* namespace.c - namespaces: who owns them, how they come and go.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kvs.h"

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

struct ns *ns_add (struct kvs *kvs,
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
    while (*p)
        p = &(*p)->next;
    *p = ns;
    return ns;
}

void ns_remove (struct kvs *kvs, struct ns *ns)
{
    struct ns **p = &kvs->namespaces;

    while (*p != ns)
        p = &(*p)->next;
    *p = ns->next;
    node_decref (ns->root);
    free (ns->name);
    free (ns);
}

/* One has come or gone: answer that when it is on disk. 'rc' is what the store
 * said, with errno.
 */
static void ns_changed (struct kvs *kvs, const char *name, int rc)
{
    if (rc < 0)
        kvs->batch->errnum = errno;
    watchers_note_ns (kvs->watchers, name);
    kvs_schedule_flush (kvs);
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
    if (!root
        || !(ns = ns_add (kvs, name, userid, 0, root))
        || flux_msglist_append (kvs->batch->commits, msg) < 0)
        goto error;
    ns_changed (kvs, name, kvs->store ? store_create_ns (kvs->store, name,
                                                         ns->owner, root) : 0);
    return;
error:
    respond_error (h, msg, NULL);
}

static void remove_ns (struct kvs *kvs, struct ns *ns, const char *name)
{
    ns_remove (kvs, ns);
    ns_changed (kvs, name, kvs->store ? store_remove_ns (kvs->store, name) : 0);
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
    if (!(ns = ns_find (kvs, name))) {
        respond_ok (h, msg);
        return;
    }
    kvs_flush (kvs);                // its last commits are answered
    if (flux_msglist_append (kvs->batch->commits, msg) < 0)
        goto error;
    remove_ns (kvs, ns, name);
    return;
error:
    respond_error (h, msg, NULL);
}

/* What is in the namespace goes to 'key' of the primary one, and it is removed.
 * Whatever was committed before is there, and nothing can be after.
 */
static void namespace_move_cb (flux_t *h,
                               flux_msg_handler_t *mh,
                               const flux_msg_t *msg,
                               void *arg)
{
    struct kvs *kvs = arg;
    struct ns *primary = ns_find (kvs, KVS_PRIMARY_NAMESPACE);
    const char *name;
    const char *key;
    struct ns *ns;
    struct txn *txn = NULL;

    if (flux_request_unpack (msg,
                             NULL,
                             "{s:s s:s}",
                             "namespace", &name,
                             "key", &key) < 0
        || !(ns = ns_find (kvs, name)))
        goto error;
    if (ns == primary) {
        errno = ENOTSUP;
        goto error;
    }
    kvs_flush (kvs);                // its last commits are answered
    if (!(txn = txn_create (&primary->root))
        || txn_put (txn, key, node_incref (ns->root)) < 0
        || flux_msglist_append (kvs->batch->commits, msg) < 0)
        goto error;
    kvs_committed (kvs, primary, txn);
    txn_destroy (txn);
    remove_ns (kvs, ns, name);
    return;
error:
    txn_destroy (txn);
    respond_error (h, msg, NULL);
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
    respond_pack (h, msg, "{s:o}", "namespaces", a);
}

const struct flux_msg_handler_spec namespace_htab[] = {
    { FLUX_MSGTYPE_REQUEST, "kvs.namespace-create", namespace_create_cb, 0 },
    { FLUX_MSGTYPE_REQUEST, "kvs.namespace-remove", namespace_remove_cb, 0 },
    { FLUX_MSGTYPE_REQUEST, "kvs.namespace-move", namespace_move_cb, 0 },
    { FLUX_MSGTYPE_REQUEST, "kvs.namespace-list", namespace_list_cb, 0 },
    FLUX_MSGHANDLER_TABLE_END,
};
