/* SPDX-License-Identifier: LGPL-3.0-only */
/* message_print.c - messages for people to read. */

#include "message_private.h"

struct name {
    uint32_t value;
    const char *name;
};

static const struct name flag_names[] = {
    { FLUX_MSGFLAG_TOPIC, "topic" },
    { FLUX_MSGFLAG_PAYLOAD, "payload" },
    { FLUX_MSGFLAG_NORESPONSE, "noresponse" },
    { FLUX_MSGFLAG_ROUTE, "route" },
    { FLUX_MSGFLAG_UPSTREAM, "upstream" },
    { FLUX_MSGFLAG_PRIVATE, "private" },
    { FLUX_MSGFLAG_STREAMING, "streaming" },
    { FLUX_MSGFLAG_USER1, "user1" },
    { 0, NULL },
};

static const struct name role_names[] = {
    { FLUX_ROLE_OWNER, "owner" },
    { FLUX_ROLE_USER, "user" },
    { FLUX_ROLE_LOCAL, "local" },
    { FLUX_ROLE_ADMIN, "admin" },
    { 0, NULL },
};

const char *flux_msg_typestr (int type)
{
    switch (type) {
    case FLUX_MSGTYPE_REQUEST:
        return "request";
    case FLUX_MSGTYPE_RESPONSE:
        return "response";
    case FLUX_MSGTYPE_EVENT:
        return "event";
    case FLUX_MSGTYPE_CONTROL:
        return "control";
    }
    return "unknown";
}

char *flux_msg_route_string (const flux_msg_t *msg)
{
    char *s, *p;

    if (!msg || !(msg->flags & FLUX_MSGFLAG_ROUTE)) {
        errno = msg ? EPROTO : EINVAL;
        return NULL;
    }
    // 8 characters of each id, separators, NUL
    if (!(s = p = malloc (msg->route_count * 9 + 1)))
        return NULL;
    *p = '\0';
    for (int i = 0; i < msg->route_count; i++)
        p += sprintf (p, "%s%.8s", i > 0 ? "!" : "", msg->routes[i]);
    return s;
}

static void print_mask (FILE *f, uint32_t mask, const struct name *names)
{
    const char *sep = "";

    for (; names->name; names++) {
        if (mask & names->value) {
            fprintf (f, "%s%s", sep, names->name);
            mask &= ~names->value;
            sep = ",";
        }
    }
    if (mask)
        fprintf (f, "%s0x%x", sep, mask);
}

static void print_id (FILE *f, const char *key, uint32_t id, const char *none)
{
    if (id == 0xffffffff)
        fprintf (f, " %s=%s", key, none);
    else
        fprintf (f, " %s=%u", key, id);
}

static void print_payload (FILE *f, char prefix, const struct payload *payload)
{
    const char *s = payload->data;
    size_t max = 36;

    fprintf (f, "%c ", prefix);
    if (s[payload->size - 1] == '\0')
        fprintf (f, "%s", s);
    else {
        for (size_t i = 0; i < payload->size && i < max; i++)
            fprintf (f, "%02X", (uint8_t)s[i]);
        if (payload->size > max)
            fprintf (f, "...");
    }
    fprintf (f, "\n");
}

void flux_msg_fprint_ts (FILE *f, const flux_msg_t *msg, double timestamp)
{
    char prefix;

    fprintf (f, "--------------------------------------\n");
    if (!msg) {
        fprintf (f, "NULL");
        return;
    }
    prefix = msg->type == FLUX_MSGTYPE_REQUEST ? '>'
             : msg->type == FLUX_MSGTYPE_RESPONSE ? '<'
             : msg->type == FLUX_MSGTYPE_EVENT ? 'e' : 'c';
    if (timestamp >= 0.)
        fprintf (f, "%c %.5f\n", prefix, timestamp);
    if (msg->topic)
        fprintf (f, "%c %s\n", prefix, msg->topic);
    fprintf (f, "%c flags=", prefix);
    print_mask (f, msg->flags, flag_names);
    print_id (f, "userid", msg->userid, "unknown");
    fprintf (f, " rolemask=");
    if (msg->rolemask == FLUX_ROLE_NONE)
        fprintf (f, "none");
    else if (msg->rolemask == (uint32_t)FLUX_ROLE_ALL)
        fprintf (f, "all");
    else
        print_mask (f, msg->rolemask, role_names);
    switch (msg->type) {
    case FLUX_MSGTYPE_REQUEST:
        print_id (f, "nodeid", msg->nodeid, "any");
        fprintf (f, " matchtag=%u\n", msg->matchtag);
        break;
    case FLUX_MSGTYPE_RESPONSE:
        fprintf (f, " errnum=%u matchtag=%u\n", msg->errnum, msg->matchtag);
        break;
    case FLUX_MSGTYPE_EVENT:
        fprintf (f, " sequence=%u\n", msg->seq);
        break;
    case FLUX_MSGTYPE_CONTROL:
        fprintf (f, " type=%u status=%u\n", msg->control_type,
                 msg->control_status);
        break;
    }
    if (msg->route_count > 0) {
        char *routes = flux_msg_route_string (msg);
        fprintf (f, "%c |%s|\n", prefix, routes ? routes : "");
        free (routes);
    }
    if (msg->payload)
        print_payload (f, prefix, msg->payload);
}

void flux_msg_fprint (FILE *f, const flux_msg_t *msg)
{
    flux_msg_fprint_ts (f, msg, -1.);
}
