/* SPDX-License-Identifier: LGPL-3.0-only */
/* rpc.c - remote procedure calls: send a request, get a future that the
 * response to its matchtag fulfills.  A streaming one gets any number of
 * responses; an error response (ENODATA: the regular end) is the last.
 */

#include <flux/core.h>

#include "common/va.h"
#include "handle_private.h"

struct rpc {
    flux_t *h;
    uint32_t matchtag;
    uint32_t nodeid;
    int flags;
    bool done;              // no more responses to come
};

static void rpc_destroy (void *arg)
{
    struct rpc *rpc = arg;

    // otherwise the last response frees the tag, when it comes
    if (rpc->done)
        flux_matchtag_free (rpc->h, rpc->matchtag);
    flux_decref (rpc->h);
    free (rpc);
}

static void response_cb (flux_t *h, flux_msg_handler_t *mh,
                         const flux_msg_t *msg, void *arg)
{
    flux_future_t *f = arg;
    struct rpc *rpc = flux_future_aux_get (f, "flux::rpc");
    const char *errstr = NULL;

    if (flux_response_decode (msg, NULL, NULL) < 0) {
        int errnum = errno;
        rpc->done = true;
        flux_response_decode_error (msg, &errstr);
        flux_msg_handler_stop (mh);
        flux_future_fulfill_error (f, errnum, errstr);
        return;
    }
    if (!(rpc->flags & FLUX_RPC_STREAMING)) {
        rpc->done = true;
        flux_msg_handler_stop (mh);
    }
    flux_future_fulfill (f, (void *)flux_msg_incref (msg),
                         (flux_free_f)flux_msg_decref);
}

static void init_cb (flux_future_t *f, void *arg)
{
    struct rpc *rpc = flux_future_aux_get (f, "flux::rpc");
    struct flux_match match = FLUX_MATCH_RESPONSE;
    flux_msg_handler_t *mh;

    if (rpc->done)
        return;
    match.matchtag = rpc->matchtag;
    if (!(mh = flux_msg_handler_create (flux_future_get_flux (f), match,
                                        response_cb, f))
        || flux_future_aux_set (f, NULL, mh,
                                (flux_free_f)flux_msg_handler_destroy) < 0) {
        flux_future_fulfill_error (f, errno, NULL);
        flux_msg_handler_destroy (mh);
        return;
    }
    flux_msg_handler_allow_rolemask (mh, FLUX_ROLE_ALL);
    flux_msg_handler_start (mh);
}

static struct rpc *rpc_create (flux_t *h, uint32_t nodeid, int flags)
{
    struct rpc *rpc;

    if (!(rpc = calloc (1, sizeof (*rpc))))
        return NULL;
    rpc->nodeid = nodeid;
    rpc->flags = flags;
    rpc->done = true;       // until sent
    if (!(flags & FLUX_RPC_NORESPONSE)) {
        rpc->matchtag = flux_matchtag_alloc (h);
        if (rpc->matchtag == FLUX_MATCHTAG_NONE) {
            free (rpc);
            return NULL;
        }
    }
    rpc->h = flux_incref (h);
    return rpc;
}

static int address (flux_t *h, flux_msg_t *msg, const struct rpc *rpc)
{
    uint32_t nodeid = rpc->nodeid;

    if (nodeid == FLUX_NODEID_UPSTREAM) {
        if (flux_msg_set_flag (msg, FLUX_MSGFLAG_UPSTREAM) < 0
            || flux_get_rank (h, &nodeid) < 0)
            return -1;
    }
    if ((rpc->flags & FLUX_RPC_STREAMING) && flux_msg_set_streaming (msg) < 0)
        return -1;
    if ((rpc->flags & FLUX_RPC_NORESPONSE) && flux_msg_set_noresponse (msg) < 0)
        return -1;
    if (flux_msg_set_nodeid (msg, nodeid) < 0)
        return -1;
    return flux_msg_set_matchtag (msg, rpc->matchtag);
}

/* Takes msg over, which may be NULL after a failure to make it. */
static flux_future_t *rpc_send (flux_t *h, flux_msg_t *msg, uint32_t nodeid,
                                int flags)
{
    struct rpc *rpc = NULL;
    flux_future_t *f = NULL;

    if (!msg)
        return NULL;
    if (!h || (flags & ~(FLUX_RPC_NORESPONSE | FLUX_RPC_STREAMING))) {
        errno = EINVAL;
        goto error;
    }
    if (!(f = flux_future_create (init_cb, NULL))
        || !(rpc = rpc_create (h, nodeid, flags)))
        goto error;
    if (flux_future_aux_set (f, "flux::rpc", rpc, rpc_destroy) < 0) {
        rpc_destroy (rpc);
        goto error;
    }
    flux_future_set_flux (f, h);
    if (address (h, msg, rpc) < 0 || flux_send_new (h, &msg, 0) < 0)
        goto error;
    if (flags & FLUX_RPC_NORESPONSE)
        flux_future_fulfill (f, NULL, NULL);
    else
        rpc->done = false;
    return f;
error:
    flux_msg_decref (msg);
    flux_future_destroy (f);
    return NULL;
}

flux_future_t *flux_rpc (flux_t *h, const char *topic, const char *s,
                         uint32_t nodeid, int flags)
{
    return rpc_send (h, flux_request_encode (topic, s), nodeid, flags);
}

flux_future_t *flux_rpc_vpack (flux_t *h, const char *topic, uint32_t nodeid,
                               int flags, const char *fmt, va_list ap)
{
    flux_msg_t *msg = flux_request_encode (topic, NULL);

    if (msg && flux_msg_vpack (msg, fmt, ap) < 0) {
        flux_msg_decref (msg);
        return NULL;
    }
    return rpc_send (h, msg, nodeid, flags);
}

flux_future_t *flux_rpc_pack (flux_t *h, const char *topic, uint32_t nodeid,
                              int flags, const char *fmt, ...)
{
    return VA (fmt, flux_rpc_vpack (h, topic, nodeid, flags, fmt, ap));
}

int flux_rpc_get (flux_future_t *f, const char **s)
{
    const void *msg;

    if (flux_future_get (f, &msg) < 0)
        return -1;
    return flux_response_decode (msg, NULL, s);
}

int flux_rpc_get_unpack (flux_future_t *f, const char *fmt, ...)
{
    const void *msg;

    if (flux_future_get (f, &msg) < 0)
        return -1;
    return VA (fmt, flux_msg_vunpack (msg, fmt, ap));
}

uint32_t flux_rpc_get_matchtag (flux_future_t *f)
{
    struct rpc *rpc = flux_future_aux_get (f, "flux::rpc");
    return rpc ? rpc->matchtag : FLUX_MATCHTAG_NONE;
}

int rpc_cancel (flux_t *h, const char *topic, flux_future_t *rpc)
{
    flux_future_t *f = flux_rpc_pack (h,
                                      topic,
                                      FLUX_NODEID_ANY,
                                      FLUX_RPC_NORESPONSE,
                                      "{s:i}",
                                      "matchtag", flux_rpc_get_matchtag (rpc));

    flux_future_destroy (f);
    return f ? 0 : -1;
}
