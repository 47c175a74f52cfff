/* SPDX-License-Identifier: LGPL-3.0-only */
/* kvs.h - the key value store. */
#ifndef SOLO_FLUX_KVS_H
#define SOLO_FLUX_KVS_H

#include "future.h"

#define KVS_PRIMARY_NAMESPACE "primary"

#ifdef __cplusplus
extern "C" {
#endif

enum kvs_op {
    FLUX_KVS_READDIR = 1,
    FLUX_KVS_READLINK = 2,
    FLUX_KVS_WATCH = 4,
    FLUX_KVS_WAITCREATE = 8,
    FLUX_KVS_TREEOBJ = 16,
    FLUX_KVS_APPEND = 32,
    FLUX_KVS_WATCH_FULL = 64,
    FLUX_KVS_WATCH_UNIQ = 128,
    FLUX_KVS_WATCH_APPEND = 256,
    FLUX_KVS_STREAM = 512,
    FLUX_KVS_WATCH_INITIAL_SENTINEL = 1024,
};

enum kvs_commit_flags {
    FLUX_KVS_NO_MERGE = 1,
    FLUX_KVS_TXN_COMPACT = 2,
    FLUX_KVS_SYNC = 4,
};

typedef struct flux_kvs_txn flux_kvs_txn_t;
typedef struct flux_kvsdir flux_kvsdir_t;
typedef struct flux_kvsitr flux_kvsitr_t;

/* Namespaces. */
flux_future_t *flux_kvs_namespace_create (flux_t *h, const char *ns,
                                          uint32_t owner, int flags);
flux_future_t *flux_kvs_namespace_create_with (flux_t *h, const char *ns,
                                               const char *rootref,
                                               uint32_t owner, int flags);
flux_future_t *flux_kvs_namespace_remove (flux_t *h, const char *ns);

/* Transactions. */
flux_kvs_txn_t *flux_kvs_txn_create (void);
void flux_kvs_txn_destroy (flux_kvs_txn_t *txn);
int flux_kvs_txn_put (flux_kvs_txn_t *txn, int flags, const char *key,
                      const char *value);
int flux_kvs_txn_pack (flux_kvs_txn_t *txn, int flags, const char *key,
                       const char *fmt, ...);
int flux_kvs_txn_vpack (flux_kvs_txn_t *txn, int flags, const char *key,
                        const char *fmt, va_list ap);
int flux_kvs_txn_put_raw (flux_kvs_txn_t *txn, int flags, const char *key,
                          const void *data, size_t len);
int flux_kvs_txn_put_treeobj (flux_kvs_txn_t *txn, int flags, const char *key,
                              const char *treeobj);
int flux_kvs_txn_mkdir (flux_kvs_txn_t *txn, int flags, const char *key);
int flux_kvs_txn_unlink (flux_kvs_txn_t *txn, int flags, const char *key);
int flux_kvs_txn_symlink (flux_kvs_txn_t *txn, int flags, const char *key,
                          const char *ns, const char *target);
int flux_kvs_txn_clear (flux_kvs_txn_t *txn);
bool flux_kvs_txn_is_empty (flux_kvs_txn_t *txn);

flux_future_t *flux_kvs_commit (flux_t *h, const char *ns, int flags,
                                flux_kvs_txn_t *txn);

flux_future_t *flux_kvs_copy (flux_t *h, const char *srcns, const char *srckey,
                              const char *dstns, const char *dstkey,
                              int commit_flags);

/* Lookup and watch. */
flux_future_t *flux_kvs_lookup (flux_t *h, const char *ns, int flags,
                                const char *key);
int flux_kvs_lookup_get (flux_future_t *f, const char **value);
int flux_kvs_lookup_get_unpack (flux_future_t *f, const char *fmt, ...);
int flux_kvs_lookup_get_raw (flux_future_t *f, const void **data, size_t *len);
int flux_kvs_lookup_get_treeobj (flux_future_t *f, const char **treeobj);
int flux_kvs_lookup_get_dir (flux_future_t *f, const flux_kvsdir_t **dir);
int flux_kvs_lookup_cancel (flux_future_t *f);

/* Directories. */
flux_kvsdir_t *flux_kvsdir_copy (const flux_kvsdir_t *dir);
void flux_kvsdir_destroy (flux_kvsdir_t *dir);
int flux_kvsdir_get_size (const flux_kvsdir_t *dir);
bool flux_kvsdir_isdir (const flux_kvsdir_t *dir, const char *name);
char *flux_kvsdir_key_at (const flux_kvsdir_t *dir, const char *key);

flux_kvsitr_t *flux_kvsitr_create (const flux_kvsdir_t *dir);
void flux_kvsitr_destroy (flux_kvsitr_t *itr);
const char *flux_kvsitr_next (flux_kvsitr_t *itr);

#ifdef __cplusplus
}
#endif
#endif
