/* SPDX-License-Identifier: LGPL-3.0-only */
/* kvs.c - KVS client: transactions, commit, roots and namespaces.
 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <flux/core.h>

#include "common/va.h"
#include "libutil/errno_safe.h"
#include "kvs_treeobj.h"
#include "kvs_private.h"

struct flux_kvs_txn {
    json_t *ops;
};

const char *kvs_default_namespace (void)
{
    const char *ns = getenv ("FLUX_KVS_NAMESPACE");

    return ns ? ns : KVS_PRIMARY_NAMESPACE;
}

/* Transactions
 */

flux_kvs_txn_t *flux_kvs_txn_create (void)
{
    flux_kvs_txn_t *txn;

    if (!(txn = calloc (1, sizeof (*txn))))
        return NULL;
    if (!(txn->ops = json_array ())) {
        free (txn);
        errno = ENOMEM;
        return NULL;
    }
    return txn;
}

void flux_kvs_txn_destroy (flux_kvs_txn_t *txn)
{
    if (txn) {
        ERRNO_SAFE_BLOCK;
        json_decref (txn->ops);
        free (txn);
    }
}

/* Takes over dirent, which may be NULL with errno set.
 */
static int add_op (flux_kvs_txn_t *txn,
                   int flags,
                   int allowed,
                   const char *key,
                   json_t *dirent)
{
    json_t *op;

    if (!dirent)
        return -1;
    if (!txn
        || !key
        || *key == '\0'
        || (flags & ~allowed)
        || (!json_is_null (dirent) && !treeobj_type (dirent, NULL))) {
        json_decref (dirent);
        errno = EINVAL;
        return -1;
    }
    op = json_pack ("{s:o s:s s:i}",
                    "dirent", dirent,
                    "key", key,
                    "flags", flags);
    errno = EINVAL;
    return json_array_append_new (txn->ops, op);
}

int flux_kvs_txn_put_raw (flux_kvs_txn_t *txn,
                          int flags,
                          const char *key,
                          const void *data,
                          size_t len)
{
    return add_op (txn,
                   flags,
                   FLUX_KVS_APPEND,
                   key,
                   treeobj_create_val (data, data ? len : 0));
}

int flux_kvs_txn_put (flux_kvs_txn_t *txn,
                      int flags,
                      const char *key,
                      const char *value)
{
    return flux_kvs_txn_put_raw (txn,
                                 flags,
                                 key,
                                 value,
                                 value ? strlen (value) : 0);
}

int flux_kvs_txn_vpack (flux_kvs_txn_t *txn,
                        int flags,
                        const char *key,
                        const char *fmt,
                        va_list ap)
{
    json_t *o;
    char *s;
    int rc;

    if (!txn || !key || !fmt || !(o = json_vpack_ex (NULL, 0, fmt, ap))) {
        errno = EINVAL;
        return -1;
    }
    s = json_dumps (o, JSON_ENCODE_ANY | JSON_COMPACT);
    json_decref (o);
    if (!s) {
        errno = ENOMEM;
        return -1;
    }
    rc = flux_kvs_txn_put (txn, flags, key, s);
    free (s);
    return rc;
}

int flux_kvs_txn_pack (flux_kvs_txn_t *txn,
                       int flags,
                       const char *key,
                       const char *fmt,
                       ...)
{
    return VA (fmt, flux_kvs_txn_vpack (txn, flags, key, fmt, ap));
}

int flux_kvs_txn_put_treeobj (flux_kvs_txn_t *txn,
                              int flags,
                              const char *key,
                              const char *treeobj)
{
    json_t *o = treeobj ? json_loads (treeobj, 0, NULL) : NULL;

    if (!o || !treeobj_type (o, NULL)) {
        json_decref (o);
        errno = treeobj ? EPROTO : EINVAL;
        return -1;
    }
    return add_op (txn, flags, 0, key, o);
}

int flux_kvs_txn_mkdir (flux_kvs_txn_t *txn, int flags, const char *key)
{
    return add_op (txn, flags, 0, key, treeobj_create ("dir", json_object ()));
}

int flux_kvs_txn_unlink (flux_kvs_txn_t *txn, int flags, const char *key)
{
    return add_op (txn, flags, 0, key, json_null ());
}

int flux_kvs_txn_symlink (flux_kvs_txn_t *txn,
                          int flags,
                          const char *key,
                          const char *ns,
                          const char *target)
{
    if (!target) {
        errno = EINVAL;
        return -1;
    }
    return add_op (txn, flags, 0, key, treeobj_create_symlink (ns, target));
}

int flux_kvs_txn_clear (flux_kvs_txn_t *txn)
{
    if (!txn) {
        errno = EINVAL;
        return -1;
    }
    return json_array_clear (txn->ops);
}

bool flux_kvs_txn_is_empty (flux_kvs_txn_t *txn)
{
    return !txn || json_array_size (txn->ops) == 0;
}

/* Commit.  The operations of a transaction are applied one after the other
 * without copying what is there, so FLUX_KVS_TXN_COMPACT has nothing to save.
 */

flux_future_t *flux_kvs_commit (flux_t *h,
                                const char *ns,
                                int flags,
                                flux_kvs_txn_t *txn)
{
    if (!h || !txn) {
        errno = EINVAL;
        return NULL;
    }
    return flux_rpc_pack (h,
                          "kvs.commit",
                          FLUX_NODEID_ANY,
                          0,
                          "{s:s s:i s:O}",
                          "namespace", ns ? ns : kvs_default_namespace (),
                          "flags", flags & ~FLUX_KVS_TXN_COMPACT,
                          "ops", txn->ops);
}

/* Roots
 */

/* Namespaces
 */

flux_future_t *flux_kvs_namespace_create_with (flux_t *h,
                                               const char *ns,
                                               const char *rootref,
                                               uint32_t owner,
                                               int flags)
{
    if (!h || !ns || !rootref || flags) {
        errno = EINVAL;
        return NULL;
    }
    return flux_rpc_pack (h,
                          "kvs.namespace-create",
                          0,
                          0,
                          "{s:s s:s s:i s:i}",
                          "namespace", ns,
                          "rootref", rootref,
                          "owner", owner,
                          "flags", flags);
}

flux_future_t *flux_kvs_namespace_create (flux_t *h,
                                          const char *ns,
                                          uint32_t owner,
                                          int flags)
{
    return flux_kvs_namespace_create_with (h, ns, "", owner, flags);
}

flux_future_t *flux_kvs_namespace_remove (flux_t *h, const char *ns)
{
    if (!h || !ns) {
        errno = EINVAL;
        return NULL;
    }
    return flux_rpc_pack (h,
                          "kvs.namespace-remove",
                          0,
                          0,
                          "{s:s}",
                          "namespace", ns);
}
