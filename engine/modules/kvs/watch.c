/* SPDX-License-Identifier: LGPL-3.0-only */
/* watch.c - lookups that wait for a key, or go on when it changes.
 *
 * A commit notes the keys it names; when it is safe, the watches of those
 * keys are looked at.  Watches are found by a hash of namespace and key.
 * Those whose key leads through a symbolic link are looked at after every
 * commit: what they watch has another name.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/errno_safe.h"
#include "libflux/kvs_treeobj.h"

#include "kvs.h"

enum { BUCKETS = 4096 };

struct watch {
    struct kvs *kvs;
    const flux_msg_t *msg;
    const char *key;            // as asked for, borrowed from msg
    const char *ns;
    char *path;                 // normalized key
    int flags;
    bool answered;
    bool through_link;
    bool noted;
    uint64_t last_id;           // of the node, when last looked at
    json_t *last;               // UNIQ, FULL: what was last answered
    uint64_t origin;            // APPEND: whose first 'sent' bytes were sent
    size_t sent;
    struct watch *bucket_next;
    struct watch *next;
    struct watch **prev;
};

struct watchers {
    struct kvs *kvs;
    struct watch *buckets[BUCKETS];
    struct watch *list;
    int links;                  // how many lead through a link
    struct watch **noted;
    size_t noted_count;
    size_t noted_size;
    flux_msg_handler_t **handlers;
};

static struct watch **bucket (struct watchers *ws,
                              const char *ns,
                              const char *key,
                              size_t len)
{
    uint32_t hash = 2166136261;         // FNV-1a

    for (; *ns; ns++)
        hash = (hash ^ (uint8_t)*ns) * 16777619;
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (uint8_t)key[i]) * 16777619;
    return &ws->buckets[hash % BUCKETS];
}

static void watch_destroy (struct watchers *ws, struct watch *w)
{
    struct watch **p = bucket (ws, w->ns, w->path, strlen (w->path));

    while (*p != w)
        p = &(*p)->bucket_next;
    *p = w->bucket_next;
    *w->prev = w->next;
    if (w->next)
        w->next->prev = w->prev;
    if (w->through_link)
        ws->links--;
    for (size_t i = 0; w->noted && i < ws->noted_count; i++)
        if (ws->noted[i] == w)
            ws->noted[i] = NULL;
    flux_msg_decref (w->msg);
    json_decref (w->last);
    free (w->path);
    free (w);
}

static void watch_fail (struct watch *w, int errnum)
{
    errno = errnum;
    respond_error (w->kvs->h, w->msg, NULL);
}

/* Takes over val.
 */
static void respond_value (struct watch *w, json_t *val)
{
    respond_pack (w->kvs->h, w->msg, "{s:o}", "val", val);
}

/* Each returns -1 with errno set when the watch has ended with that error.
 */

static int answer_append (struct watch *w, struct node *n)
{
    if (n->type != NODE_VALUE
        || (w->answered && (n->value.origin != w->origin
                            || n->value.len < w->sent))) {
        errno = EINVAL;
        return -1;
    }
    if (!w->answered || n->value.len > w->sent)
        respond_value (w,
                       treeobj_create_val (n->value.data
                                               ? n->value.data + w->sent
                                               : NULL,
                                           n->value.len - w->sent));
    w->origin = n->value.origin;
    w->sent = n->value.len;
    if (!w->answered && (w->flags & FLUX_KVS_WATCH_INITIAL_SENTINEL))
        respond_ok (w->kvs->h, w->msg);
    return 0;
}

static int answer (struct watch *w, struct node *n)
{
    json_t *val;

    if ((w->flags & FLUX_KVS_WATCH_APPEND))
        return answer_append (w, n);
    if (w->answered && w->through_link && n->id == w->last_id)
        return 0;
    if (!(val = kvs_treeobj (w->kvs, n, w->flags)))
        return -1;
    if ((w->flags & (FLUX_KVS_WATCH_UNIQ | FLUX_KVS_WATCH_FULL))) {
        if (w->last && json_equal (w->last, val)) {
            json_decref (val);
            return 0;
        }
        json_decref (w->last);
        w->last = json_incref (val);
    }
    respond_value (w, val);
    if (!w->answered && (w->flags & FLUX_KVS_WATCH_INITIAL_SENTINEL))
        respond_ok (w->kvs->h, w->msg);
    if ((w->flags & FLUX_KVS_WATCH))
        return 0;
    errno = ENODATA;            // the end of a FLUX_KVS_STREAM
    return -1;
}

/* Look at what is watched.  Returns false if the watch has ended.
 */
static bool watch_run (struct watchers *ws, struct watch *w)
{
    struct kvs *kvs = ws->kvs;
    bool waiting = (w->flags & FLUX_KVS_WAITCREATE) && !w->answered;
    struct found found = { 0 };
    struct ns *ns;

    if ((ns = ns_find (kvs, w->ns)))
        kvs_find (kvs, ns, NULL, w->msg, w->key, w->flags, &found);
    else
        found.errnum = ENOTSUP;
    if (found.through_link != w->through_link) {
        w->through_link = found.through_link;
        ws->links += w->through_link ? 1 : -1;
    }
    if (!found.node) {
        if (waiting && (found.errnum == ENOENT || found.errnum == ENOTSUP))
            return true;
        watch_fail (w, found.errnum);
        return false;
    }
    if (answer (w, found.node) < 0) {
        if (errno != ENODATA || (w->flags & (FLUX_KVS_STREAM | FLUX_KVS_WATCH)))
            watch_fail (w, errno);
        return false;
    }
    w->answered = true;
    w->last_id = found.node->id;
    return true;
}

/* Noting
 */

static void note (struct watchers *ws, struct watch *w)
{
    if (w->noted)
        return;
    if (ws->noted_count == ws->noted_size) {
        size_t size = ws->noted_size ? ws->noted_size * 2 : 64;
        struct watch **p = realloc (ws->noted, sizeof (*p) * size);
        if (!p)
            return;
        ws->noted = p;
        ws->noted_size = size;
    }
    ws->noted[ws->noted_count++] = w;
    w->noted = true;
}

static void note_bucket (struct watchers *ws,
                         const char *ns,
                         const char *key,
                         size_t len,
                         bool exact)
{
    struct watch *w;

    for (w = *bucket (ws, ns, key, len); w != NULL; w = w->bucket_next)
        if (strncmp (w->path, key, len) == 0
            && w->path[len] == '\0'
            && strcmp (w->ns, ns) == 0
            && (exact || (w->flags & FLUX_KVS_WATCH_FULL)))
            note (ws, w);
}

void watchers_note (struct watchers *ws,
                    const char *ns,
                    const char *key,
                    bool below)
{
    size_t len = strlen (key);

    if (!ws->list)
        return;
    note_bucket (ws, ns, key, len, true);
    for (size_t i = len; i > 0; i--)
        if (key[i - 1] == '.')
            note_bucket (ws, ns, key, i - 1, false);
    note_bucket (ws, ns, ".", 1, false);
    if (!below && ws->links == 0)
        return;
    for (struct watch *w = ws->list; w != NULL; w = w->next) {
        bool is_below = below
                        && strcmp (w->ns, ns) == 0
                        && (strcmp (key, ".") == 0
                            || (strncmp (w->path, key, len) == 0
                                && w->path[len] == '.'));
        if (w->through_link
            || (is_below
                && (!w->answered || (w->flags & FLUX_KVS_WATCH_FULL))))
            note (ws, w);
    }
}

void watchers_note_ns (struct watchers *ws, const char *ns)
{
    for (struct watch *w = ws->list; w != NULL; w = w->next)
        if (w->through_link || strcmp (w->ns, ns) == 0)
            note (ws, w);
}

void watchers_run (struct watchers *ws)
{
    for (size_t i = 0; i < ws->noted_count; i++) {
        struct watch *w = ws->noted[i];

        if (w) {
            w->noted = false;
            if (!watch_run (ws, w))
                watch_destroy (ws, w);
        }
    }
    ws->noted_count = 0;
}

/* Requests
 */

static void lookup_cb (flux_t *h,
                       flux_msg_handler_t *mh,
                       const flux_msg_t *msg,
                       void *arg)
{
    struct watchers *ws = arg;
    struct watch *w = NULL;
    struct watch **b;

    if (!(w = calloc (1, sizeof (*w)))
        || flux_request_unpack (msg,
                                NULL,
                                "{s:s s:s s:i}",
                                "key", &w->key,
                                "namespace", &w->ns,
                                "flags", &w->flags) < 0
        || !(w->path = key_normalize (w->key)))
        goto error;
    if ((w->flags & (FLUX_KVS_WATCH | FLUX_KVS_STREAM))
        && !flux_msg_is_streaming (msg)) {
        errno = EPROTO;
        goto error;
    }
    w->kvs = ws->kvs;
    w->msg = flux_msg_incref (msg);
    b = bucket (ws, w->ns, w->path, strlen (w->path));
    w->bucket_next = *b;
    *b = w;
    w->prev = &ws->list;
    if ((w->next = ws->list))
        w->next->prev = &w->next;
    ws->list = w;
    if (!watch_run (ws, w))
        watch_destroy (ws, w);
    return;
error:
    respond_error (h, msg, NULL);
    if (w)
        free (w->path);
    free (w);
}

static void cancel_cb (flux_t *h,
                       flux_msg_handler_t *mh,
                       const flux_msg_t *msg,
                       void *arg)
{
    struct watchers *ws = arg;
    struct watch *next;

    for (struct watch *w = ws->list; w != NULL; w = next) {
        next = w->next;
        if (flux_cancel_match (msg, w->msg)) {
            watch_fail (w, ENODATA);
            watch_destroy (ws, w);
        }
    }
}

static void disconnect_cb (flux_t *h,
                           flux_msg_handler_t *mh,
                           const flux_msg_t *msg,
                           void *arg)
{
    struct watchers *ws = arg;
    struct watch *next;

    for (struct watch *w = ws->list; w != NULL; w = next) {
        next = w->next;
        if (flux_disconnect_match (msg, w->msg))
            watch_destroy (ws, w);
    }
}

static const struct flux_msg_handler_spec htab[] = {
    { FLUX_MSGTYPE_REQUEST, "kvs-watch.lookup", lookup_cb, FLUX_ROLE_USER },
    { FLUX_MSGTYPE_REQUEST, "kvs-watch.cancel", cancel_cb, FLUX_ROLE_USER },
    { FLUX_MSGTYPE_REQUEST, "kvs-watch.disconnect", disconnect_cb,
      FLUX_ROLE_USER },
    FLUX_MSGHANDLER_TABLE_END,
};

struct watchers *watchers_create (struct kvs *kvs)
{
    struct watchers *ws;
    flux_future_t *f = NULL;

    if (!(ws = calloc (1, sizeof (*ws))))
        return NULL;
    ws->kvs = kvs;
    if (flux_msg_handler_addvec (kvs->h, htab, ws, &ws->handlers) < 0
        || !(f = flux_service_register (kvs->h, "kvs-watch"))
        || flux_future_get (f, NULL) < 0) {
        flux_log_error (kvs->h, "cannot register service kvs-watch");
        watchers_destroy (ws);
        ws = NULL;
    }
    flux_future_destroy (f);
    return ws;
}

void watchers_destroy (struct watchers *ws)
{
    if (ws) {
        ERRNO_SAFE_BLOCK;
        flux_msg_handler_delvec (ws->handlers);
        while (ws->list) {
            watch_fail (ws->list, ENOSYS);
            watch_destroy (ws, ws->list);
        }
        free (ws->noted);
        free (ws);
    }
}
