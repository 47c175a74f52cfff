/* SPDX-License-Identifier: LGPL-3.0-only */
/* sync.c - a future that each heartbeat fulfills. */

#include <flux/core.h>

struct sync {
    flux_t *h;
    double minimum;
    double last;
    uint32_t seq;
    bool any;
};

static void sync_destroy (void *arg)
{
    struct sync *sync = arg;

    flux_future_destroy (flux_event_unsubscribe_ex (sync->h, "heartbeat.pulse",
                                                    FLUX_RPC_NORESPONSE));
    free (sync);
}

/* Whoever waits in a loop is shown an event again that others may want too:
 * its sequence number tells.
 */
static void heartbeat_cb (flux_t *h, flux_msg_handler_t *mh,
                          const flux_msg_t *msg, void *arg)
{
    flux_future_t *f = arg;
    struct sync *sync = flux_future_aux_get (f, "flux::sync");
    double now = flux_reactor_now (flux_get_reactor (h));
    uint32_t seq;

    if (flux_msg_authorize (msg, FLUX_USERID_UNKNOWN) < 0
        || flux_msg_get_seq (msg, &seq) < 0)
        return;
    if (sync->any && (seq <= sync->seq || now - sync->last < sync->minimum))
        return;
    sync->any = true;
    sync->seq = seq;
    sync->last = now;
    flux_future_fulfill (f, NULL, NULL);
}

static void init_cb (flux_future_t *f, void *arg)
{
    struct flux_match match = FLUX_MATCH_EVENT;
    flux_msg_handler_t *mh;

    match.topic_glob = "heartbeat.pulse";
    if (!(mh = flux_msg_handler_create (flux_future_get_flux (f), match,
                                        heartbeat_cb, f))
        || flux_future_aux_set (f, NULL, mh,
                                (flux_free_f)flux_msg_handler_destroy) < 0) {
        flux_future_fulfill_error (f, errno, NULL);
        flux_msg_handler_destroy (mh);
        return;
    }
    flux_msg_handler_start (mh);
}

flux_future_t *flux_sync_create (flux_t *h, double minimum)
{
    flux_future_t *f = NULL, *sub;
    struct sync *sync = NULL;

    if (!h) {
        errno = EINVAL;
        return NULL;
    }
    if (!(sub = flux_event_subscribe_ex (h, "heartbeat.pulse",
                                         FLUX_RPC_NORESPONSE)))
        return NULL;
    flux_future_destroy (sub);
    if (!(f = flux_future_create (init_cb, NULL))
        || !(sync = calloc (1, sizeof (*sync)))
        || flux_future_aux_set (f, "flux::sync", sync, sync_destroy) < 0) {
        free (sync);
        flux_future_destroy (f);
        return NULL;
    }
    sync->h = h;
    sync->minimum = minimum;
    flux_future_set_flux (f, h);
    return f;
}
