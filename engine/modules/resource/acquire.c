/* SPDX-License-Identifier: LGPL-3.0-only */
/* acquire.c - resource.acquire (RFC 28): the scheduler gets R, and then hears
 * which of its nodes come up and go down.
 */
#include <errno.h>
#include <stdlib.h>

#include "resource.h"

static struct idset *acquirer_up (const flux_msg_t *msg)
{
    return flux_msg_aux_get (msg, "up");
}

static int acquirer_set_up (const flux_msg_t *msg, struct idset *up)
{
    return flux_msg_aux_set (msg, "up", up, (flux_free_f)idset_destroy);
}

void acquire_update (struct resource *ctx)
{
    const flux_msg_t *msg = flux_msglist_first (ctx->acquirers);

    while (msg && !ctx->mute) {
        struct idset *was_up = acquirer_up (msg);
        struct idset *up = nodes_select (ctx, node_is_up);
        struct idset *more = idset_difference (up, was_up);
        struct idset *less = idset_difference (was_up, up);
        json_t *o = json_object ();

        if (idset_count (more) > 0)
            set_idset (o, "up", more);
        if (idset_count (less) > 0)
            set_idset (o, "down", less);
        if (json_object_size (o) > 0)
            respond_pack (ctx->h, msg, "O", o);
        json_decref (o);
        idset_destroy (more);
        idset_destroy (less);
        if (acquirer_set_up (msg, up) < 0)
            idset_destroy (up);
        msg = flux_msglist_next (ctx->acquirers);
    }
}

static void acquire_cb (flux_t *h,
                        flux_msg_handler_t *mh,
                        const flux_msg_t *msg,
                        void *arg)
{
    struct resource *ctx = arg;
    struct idset *excluded = nodes_select (ctx, node_is_excluded);
    struct idset *valid = idset_create (ctx->size, IDSET_FLAG_INITFULL);
    struct idset *up = NULL;
    json_t *o = NULL;

    if (!flux_msg_is_streaming (msg)) {
        errno = EPROTO;
        goto error;
    }
    if (flux_msglist_count (ctx->acquirers) > 0) {
        errno = EBUSY;
        goto error;
    }
    if (!excluded
        || !valid
        || idset_subtract (valid, excluded) < 0
        || !(up = nodes_select (ctx, node_is_up))
        || acquirer_set_up (msg, up) < 0
        || flux_msglist_append (ctx->acquirers, msg) < 0)
        goto error;
    o = json_pack ("{s:o}",
                   "resources", idset_count (excluded) > 0
                       ? R_select (ctx, valid, false)
                       : json_incref (ctx->R));
    set_idset (o, "up", up);
    respond_pack (h, msg, "O", o);
    goto out;
error:
    respond_error (h, msg, NULL);
out:
    json_decref (o);
    idset_destroy (excluded);
    idset_destroy (valid);
}

static void acquire_mute_cb (flux_t *h,
                             flux_msg_handler_t *mh,
                             const flux_msg_t *msg,
                             void *arg)
{
    struct resource *ctx = arg;

    ctx->mute = true;
    respond_ok (h, msg);
}

const struct flux_msg_handler_spec acquire_htab[] = {
    { FLUX_MSGTYPE_REQUEST, "resource.acquire", acquire_cb, 0 },
    { FLUX_MSGTYPE_REQUEST, "resource.acquire-mute", acquire_mute_cb, 0 },
    FLUX_MSGHANDLER_TABLE_END,
};
