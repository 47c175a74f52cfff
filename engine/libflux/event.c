/* SPDX-License-Identifier: LGPL-3.0-only */
/* event.c - subscribe to events, publish them; claim service names. */

#include <flux/core.h>
#include <jansson.h>

#include "common/base64.h"
#include "common/va.h"

/* An RPC with one string argument. */
static flux_future_t *string_rpc (flux_t *h, const char *topic, int flags,
                                  const char *key, const char *value)
{
    if (!h || !value) {
        errno = EINVAL;
        return NULL;
    }
    return flux_rpc_pack (h, topic, FLUX_NODEID_ANY, flags, "{s:s}",
                          key, value);
}

flux_future_t *flux_service_register (flux_t *h, const char *name)
{
    return string_rpc (h, "service.add", 0, "service", name);
}

flux_future_t *flux_service_unregister (flux_t *h, const char *name)
{
    return string_rpc (h, "service.remove", 0, "service", name);
}

flux_future_t *flux_event_subscribe_ex (flux_t *h, const char *topic,
                                        int flags)
{
    return string_rpc (h, "event.subscribe", flags, "topic", topic);
}

static int finish (flux_future_t *f)
{
    int rc = f ? flux_future_get (f, NULL) : -1;

    flux_future_destroy (f);
    return rc;
}

int flux_event_subscribe (flux_t *h, const char *topic)
{
    if (h && (flux_flags_get (h) & FLUX_O_TEST_NOSUB))
        return 0;
    return finish (flux_event_subscribe_ex (h, topic, 0));
}

int flux_event_unsubscribe (flux_t *h, const char *topic)
{
    if (h && (flux_flags_get (h) & FLUX_O_TEST_NOSUB))
        return 0;
    return finish (string_rpc (h, "event.unsubscribe", 0, "topic", topic));
}

flux_future_t *flux_event_publish_raw (flux_t *h, const char *topic, int flags,
                                       const void *data, size_t len)
{
    flux_future_t *f;
    char *payload;

    if (!h || !topic || (flags & ~FLUX_MSGFLAG_PRIVATE)) {
        errno = EINVAL;
        return NULL;
    }
    if (!data)
        return flux_rpc_pack (h, "event.publish", 0, 0, "{s:s s:i}",
                              "topic", topic,
                              "flags", flags);
    if (!(payload = base64_encode (data, len)))
        return NULL;
    f = flux_rpc_pack (h, "event.publish", 0, 0, "{s:s s:i s:s}",
                       "topic", topic,
                       "flags", flags,
                       "payload", payload);
    free (payload);
    return f;
}

flux_future_t *flux_event_publish (flux_t *h, const char *topic, int flags,
                                   const char *s)
{
    return flux_event_publish_raw (h, topic, flags, s,
                                   s ? strlen (s) + 1 : 0);
}

flux_future_t *flux_event_publish_pack (flux_t *h, const char *topic,
                                        int flags, const char *fmt, ...)
{
    flux_future_t *f;
    json_t *o = NULL;
    char *s;

    if (fmt) {
        o = VA (fmt, json_vpack_ex (NULL, 0, fmt, ap));
    }
    if (!o) {
        errno = EINVAL;
        return NULL;
    }
    s = json_dumps (o, JSON_COMPACT);
    json_decref (o);
    if (!s) {
        errno = ENOMEM;
        return NULL;
    }
    f = flux_event_publish (h, topic, flags, s);
    free (s);
    return f;
}
