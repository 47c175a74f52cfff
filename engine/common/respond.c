/* SPDX-License-Identifier: LGPL-3.0-only */
/* respond.c - see respond.h.
 */
#include <errno.h>
#include <stdarg.h>
#include <jansson.h>

#include "common/va.h"
#include "libutil/errno_safe.h"
#include "respond.h"

static void check (flux_t *h, const flux_msg_t *msg, int rc)
{
    const char *topic = "request";

    if (rc < 0) {
        ERRNO_SAFE (flux_msg_get_topic (msg, &topic));
        flux_log_error (h, "error responding to %s", topic);
    }
}

void respond_ok (flux_t *h, const flux_msg_t *msg)
{
    check (h, msg, flux_respond (h, msg, NULL));
}

void respond_pack (flux_t *h, const flux_msg_t *msg, const char *fmt, ...)
{
    json_t *o;

    o = VA (fmt, json_vpack_ex (NULL, 0, fmt, ap));
    errno = EINVAL;
    check (h, msg, o ? flux_respond_pack (h, msg, "O", o) : -1);
    json_decref (o);
}

void respond_error (flux_t *h, const flux_msg_t *msg, const char *text)
{
    check (h,
           msg,
           flux_respond_error (h,
                               msg,
                               errno ? errno : EINVAL,
                               text && *text ? text : NULL));
}
