/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See expiry.h.
 */

#include <errno.h>

#include "libutil/errno_safe.h"
#include "libutil/names.h"
#include "libutil/safelog.h"
#include "agent/agent.h"
#include "base/calls.h"
#include "base/requests.h"
#include "facts/leases.h"
#include "facts/persistent.h"
#include "tell/expiry.h"

/* Answer the request after the commit: only then is the new expiry certain.
 */
static void committed_cb (const struct call *call, flux_future_t *f)
{
    const flux_msg_t *msg = flux_future_aux_get (f, "dws::request");
    flux_t *h = call->ctx->h;

    if (flux_future_get (f, NULL) < 0)
        requests_refuse (h, msg, errno, future_strerror (f, errno));
    else if (flux_respond (h, msg, NULL) < 0)
        safe_log_error (h, DWS_TOPIC_EXPIRY);
}

/* Set an expiry. Returns the future of its commit. Keep the request first, since that
 * can fail.
 */
static flux_future_t *set_expiry (struct dws_ctx *ctx, const flux_msg_t *msg,
                                  const char *name, double expires,
                                  dws_error_t *error)
{
    const flux_msg_t *kept;
    flux_future_t *f = NULL;

    if (!(kept = requests_keep (ctx->requests, msg, REQUESTS_WAITING, error)))
        return NULL;
    if (!(f = leases_set (ctx, name, expires, error))
        || flux_future_aux_set (f, "dws::request", (void *)kept,
                                (flux_free_f)flux_msg_decref) < 0) {
        ERRNO_SAFE (flux_msg_decref (kept));
        ERRNO_SAFE (flux_future_destroy (f));
        return NULL;
    }
    return f;
}

/* A file system of another user gets the same error as one that does not exist.
 */
static int check_owner (struct dws_ctx *ctx, const struct flux_msg_cred *cred,
                        const char *name, dws_error_t *error)
{
    json_t *o = persistent_find (ctx->persistent, name);
    json_t *userid = json_object_get (o, "userid");

    if (!o && agent_link (ctx->agent) != DWS_LINK_UP)
        return dws_error (error, EAGAIN, "Kubernetes is out of reach");
    if (!o || (!(cred->rolemask & FLUX_ROLE_OWNER)
               && json_integer_value (userid) != (json_int_t)cred->userid))
        return dws_error (error, ENOENT, "there is no file system '%s' of "
                          "yours", name);
    return 0;
}

void expiry_cb (flux_t *h, flux_msg_handler_t *mh,
                const flux_msg_t *msg, void *arg)
{
    struct dws_ctx *ctx = arg;
    struct flux_msg_cred cred;
    dws_error_t error = { "" };
    flux_future_t *f;
    const char *name;
    double expires;

    if (flux_request_unpack (msg, NULL, "{s:s s:F}", "name", &name,
                             "expires", &expires) < 0
        || flux_msg_get_cred (msg, &cred) < 0
        || check_owner (ctx, &cred, name, &error) < 0
        || !(f = set_expiry (ctx, msg, name, expires, &error))
        || calls_add (ctx, f, 0, 0, committed_cb) < 0) {
        requests_refuse (h, msg, errno, error.text);
        return;
    }
    safe_log (h, LOG_INFO, "persistent file system '%s': its expiry is changed by "
              "user %u", name, (unsigned)cred.userid);
}
