/* SPDX-License-Identifier: LGPL-3.0-only */
/* kvs_lookup.c - KVS client: lookup and watch.
 *
 * A lookup future remembers what was asked for, and what has been decoded of
 * the response it holds.  A watch has one response after the other: whenever
 * a getter finds a new one, what was decoded before is dropped.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <flux/core.h>

#include "libutil/errno_safe.h"
#include "kvs_treeobj.h"
#include "handle_private.h"
#include "kvs_private.h"

struct lookup {
    flux_t *h;
    char *key;
    int flags;

    json_t *treeobj;            // of the current response
    char *treeobj_str;
    void *data;
    size_t len;
    json_t *json;
    flux_kvsdir_t *dir;
};

static const char *auxkey = "solo::kvs_lookup";

enum {
    WATCH_MODES = FLUX_KVS_WATCH_FULL | FLUX_KVS_WATCH_UNIQ
                  | FLUX_KVS_WATCH_APPEND | FLUX_KVS_WATCH_INITIAL_SENTINEL,
    WATCH_ANY = FLUX_KVS_WATCH | FLUX_KVS_WAITCREATE | FLUX_KVS_STREAM,
};

static void forget_response (struct lookup *l)
{
    json_decref (l->treeobj);
    free (l->treeobj_str);
    free (l->data);
    json_decref (l->json);
    flux_kvsdir_destroy (l->dir);
    l->treeobj = NULL;
    l->treeobj_str = NULL;
    l->data = NULL;
    l->len = 0;
    l->json = NULL;
    l->dir = NULL;
}

static void lookup_destroy (struct lookup *l)
{
    if (l) {
        ERRNO_SAFE_BLOCK;
        forget_response (l);
        free (l->key);
        free (l);
    }
}

static bool flags_valid (int flags)
{
    int mode = flags & ~(WATCH_ANY | WATCH_MODES);

    if ((flags & WATCH_MODES) && !(flags & FLUX_KVS_WATCH))
        return false;
    return mode == 0
           || mode == FLUX_KVS_TREEOBJ
           || mode == FLUX_KVS_READDIR
           || mode == (FLUX_KVS_READDIR | FLUX_KVS_TREEOBJ)
           || mode == FLUX_KVS_READLINK;
}

/* Attach the context to f, which may be NULL.
 */
static flux_future_t *attach (flux_future_t *f,
                              flux_t *h,
                              int flags,
                              const char *key)
{
    struct lookup *l = NULL;

    if (!f)
        return NULL;
    if (!(l = calloc (1, sizeof (*l)))
        || !(l->key = strdup (key))
        || flux_future_aux_set (f,
                                auxkey,
                                l,
                                (flux_free_f)lookup_destroy) < 0) {
        lookup_destroy (l);
        flux_future_destroy (f);
        return NULL;
    }
    l->h = h;
    l->flags = flags;
    return f;
}

flux_future_t *flux_kvs_lookup (flux_t *h,
                                const char *ns,
                                int flags,
                                const char *key)
{
    bool streaming = flags & (FLUX_KVS_WATCH | FLUX_KVS_STREAM);

    if (!h || !key || *key == '\0' || !flags_valid (flags)) {
        errno = EINVAL;
        return NULL;
    }
    return attach (flux_rpc_pack (h,
                                  (flags & WATCH_ANY) ? "kvs-watch.lookup"
                                                      : "kvs.lookup",
                                  FLUX_NODEID_ANY,
                                  streaming ? FLUX_RPC_STREAMING : 0,
                                  "{s:s s:s s:i}",
                                  "key", key,
                                  "namespace",
                                  ns ? ns : kvs_default_namespace (),
                                  "flags", flags),
                   h,
                   flags,
                   key);
}

/* Get the context with the current response in it.  Its tree object is
 * NULL if the response is the sentinel after a watch's initial value.
 */
static struct lookup *get_response (flux_future_t *f)
{
    struct lookup *l;
    const char *s;
    json_t *o;

    if (!f || !(l = flux_future_aux_get (f, auxkey))) {
        errno = EINVAL;
        return NULL;
    }
    if (flux_rpc_get (f, &s) < 0)
        return NULL;
    if (!s && (l->flags & FLUX_KVS_WATCH_INITIAL_SENTINEL)) {
        forget_response (l);
        return l;
    }
    if (flux_rpc_get_unpack (f, "{s:o}", "val", &o) < 0)
        return NULL;
    if (!treeobj_type (o, NULL)) {
        errno = EPROTO;
        return NULL;
    }
    if (!l->treeobj || (l->treeobj != o && !json_equal (l->treeobj, o))) {
        forget_response (l);
        l->treeobj = json_incref (o);
    }
    return l;
}

static struct lookup *get_value (flux_future_t *f)
{
    struct lookup *l = get_response (f);
    json_t *data;
    const char *type;

    if (!l || l->data || !l->treeobj)
        return l;
    if (!(type = treeobj_type (l->treeobj, &data))
        || strcmp (type, "val") != 0) {
        errno = EINVAL;
        return NULL;
    }
    if (base64_decode (json_string_value (data), &l->data, &l->len) < 0)
        return NULL;
    return l;
}

/* An empty value is NULL, as in flux-core.
 */
int flux_kvs_lookup_get (flux_future_t *f, const char **value)
{
    struct lookup *l = get_value (f);

    if (!l)
        return -1;
    if (value)
        *value = l->len > 0 ? l->data : NULL;
    return 0;
}

int flux_kvs_lookup_get_raw (flux_future_t *f, const void **data, size_t *len)
{
    struct lookup *l = get_value (f);

    if (!l)
        return -1;
    if (data)
        *data = l->len > 0 ? l->data : NULL;
    if (len)
        *len = l->len;
    return 0;
}

int flux_kvs_lookup_get_unpack (flux_future_t *f, const char *fmt, ...)
{
    struct lookup *l = get_value (f);
    va_list ap;
    int rc;

    if (!l)
        return -1;
    if (!l->json
        && (!l->data
            || !(l->json = json_loadb (l->data,
                                       l->len,
                                       JSON_DECODE_ANY,
                                       NULL)))) {
        errno = EINVAL;
        return -1;
    }
    va_start (ap, fmt);
    if ((rc = json_vunpack_ex (l->json, NULL, 0, fmt, ap)) < 0)
        errno = EINVAL;
    va_end (ap);
    return rc;
}

int flux_kvs_lookup_get_treeobj (flux_future_t *f, const char **treeobj)
{
    struct lookup *l = get_response (f);

    if (!l)
        return -1;
    if (!l->treeobj_str
        && !(l->treeobj_str = json_dumps (l->treeobj, JSON_COMPACT))) {
        errno = EINVAL;
        return -1;
    }
    if (treeobj)
        *treeobj = l->treeobj_str;
    return 0;
}

int flux_kvs_lookup_get_dir (flux_future_t *f, const flux_kvsdir_t **dir)
{
    struct lookup *l = get_response (f);

    if (!l
        || (!l->dir
            && !(l->dir = kvsdir_create_json (l->key, l->treeobj))))
        return -1;
    if (dir)
        *dir = l->dir;
    return 0;
}

int flux_kvs_lookup_cancel (flux_future_t *f)
{
    struct lookup *l = f ? flux_future_aux_get (f, auxkey) : NULL;

    if (l && (l->flags & WATCH_ANY))
        return rpc_cancel (l->h, "kvs-watch.cancel", f);
    errno = EINVAL;
    return -1;
}
