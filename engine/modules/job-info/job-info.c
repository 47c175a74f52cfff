/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The job-info module: guests cannot read the KVS, but may see here what it
 * has about their own jobs.
 */
#include <errno.h>
#include <string.h>

#include "job-info.h"

int info_authorize (const flux_msg_t *msg, const char *eventlog)
{
    json_t *entry;
    json_int_t userid;
    const char *name;
    int rc = -1;

    if (!eventlog
        || !(entry = json_loads (eventlog, JSON_DISABLE_EOF_CHECK, NULL))) {
        errno = EPROTO;
        return -1;
    }
    if (json_unpack (entry, "{s:s s:{s:I}}",
                     "name", &name,
                     "context",
                       "userid", &userid) < 0
        || !streq (name, "submit"))
        errno = EPROTO;
    else
        rc = flux_msg_authorize (msg, (uint32_t)userid);
    json_decref (entry);
    return rc;
}

static void disconnect_cb (flux_t *h, flux_msg_handler_t *mh,
                           const flux_msg_t *msg, void *arg)
{
    watch_disconnect (arg, msg);
}

#define GUEST FLUX_ROLE_USER
static const struct flux_msg_handler_spec htab[] = {
    { FLUX_MSGTYPE_REQUEST, "job-info.lookup", lookup_request, GUEST },
    { FLUX_MSGTYPE_REQUEST, "job-info.eventlog-watch",
      watch_request, GUEST },
    { FLUX_MSGTYPE_REQUEST, "job-info.eventlog-watch-cancel",
      watch_cancel_request, GUEST },
    { FLUX_MSGTYPE_REQUEST, "job-info.disconnect", disconnect_cb, GUEST },
    FLUX_MSGHANDLER_TABLE_END,
};

int mod_main (flux_t *h, int argc, char **argv)
{
    struct info ctx = { .h = h };
    flux_msg_handler_t **handlers = NULL;
    int rc = -1;

    if (flux_msg_handler_addvec (h, htab, &ctx, &handlers) < 0)
        flux_log_error (h, "flux_msg_handler_addvec");
    else if ((rc = flux_reactor_run (flux_get_reactor (h), 0)) > 0)
        rc = 0;
    flux_msg_handler_delvec (handlers);
    lookups_destroy (&ctx);
    watches_destroy (&ctx);
    return rc;
}
