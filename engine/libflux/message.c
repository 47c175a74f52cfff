/* SPDX-License-Identifier: LGPL-3.0-only */
/* message.c - messages: life time, fields, flags, credentials, routes.
 * Getters of a field that the message type has not fail with EPROTO,
 * setters with EINVAL.
 */

#include <fnmatch.h>

#include "libutil/errno_safe.h"
#include "message_private.h"

static int fail (int errnum)
{
    errno = errnum;
    return -1;
}

struct payload *payload_create (const void *data, size_t size)
{
    struct payload *payload;

    if (!(payload = malloc (sizeof (*payload) + size)))
        return NULL;
    payload->refcount = 1;
    payload->size = size;
    memcpy (payload->data, data, size);
    return payload;
}

static struct payload *payload_incref (struct payload *payload)
{
    if (payload)
        __atomic_add_fetch (&payload->refcount, 1, __ATOMIC_RELAXED);
    return payload;
}

void payload_decref (struct payload *payload)
{
    if (payload
        && __atomic_sub_fetch (&payload->refcount, 1, __ATOMIC_ACQ_REL) == 0)
        free (payload);
}

/* Life time */

flux_msg_t *flux_msg_create (int type)
{
    flux_msg_t *msg;

    if (!message_type_valid (type)) {
        errno = EINVAL;
        return NULL;
    }
    if (!(msg = calloc (1, sizeof (*msg))))
        return NULL;
    msg->refcount = 1;
    msg->userid = FLUX_USERID_UNKNOWN;
    flux_msg_set_type (msg, type);
    return msg;
}

static void clear_routes (flux_msg_t *msg)
{
    for (int i = 0; i < msg->route_count; i++)
        free (msg->routes[i]);
    free (msg->routes);
    msg->routes = NULL;
    msg->route_count = 0;
}

void message_detach (flux_msg_t *msg)
{
    aux_destroy (&msg->aux);
    json_decref (msg->json);
    msg->json = NULL;
}

void flux_msg_destroy (flux_msg_t *msg)
{
    if (msg && __atomic_sub_fetch (&msg->refcount, 1, __ATOMIC_ACQ_REL) == 0) {
        ERRNO_SAFE_BLOCK;
        message_detach (msg);
        clear_routes (msg);
        payload_decref (msg->payload);
        free (msg->topic);
        free (msg);
    }
}

/* The reference count is not part of what const promises. */
void flux_msg_decref (const flux_msg_t *msg)
{
    flux_msg_destroy ((flux_msg_t *)msg);
}

const flux_msg_t *flux_msg_incref (const flux_msg_t *msg)
{
    if (!msg) {
        errno = EINVAL;
        return NULL;
    }
    __atomic_add_fetch (&((flux_msg_t *)msg)->refcount, 1, __ATOMIC_RELAXED);
    return msg;
}

flux_msg_t *flux_msg_copy (const flux_msg_t *msg, bool payload)
{
    flux_msg_t *cpy;

    if (!msg) {
        errno = EINVAL;
        return NULL;
    }
    if (!(cpy = flux_msg_create (msg->type)))
        return NULL;
    cpy->flags = msg->flags;
    cpy->userid = msg->userid;
    cpy->rolemask = msg->rolemask;
    cpy->aux1 = msg->aux1;
    cpy->aux2 = msg->aux2;
    if (msg->topic && !(cpy->topic = strdup (msg->topic)))
        goto error;
    for (int i = 0; i < msg->route_count; i++) {
        if (flux_msg_route_push (cpy, msg->routes[i]) < 0)
            goto error;
    }
    if (payload)
        cpy->payload = payload_incref (msg->payload);
    else
        cpy->flags &= ~FLUX_MSGFLAG_PAYLOAD;
    return cpy;
error:
    flux_msg_destroy (cpy);
    return NULL;
}

int flux_msg_aux_set (const flux_msg_t *msg, const char *name, void *aux,
                      flux_free_f destroy)
{
    if (!msg)
        return fail (EINVAL);
    return aux_set (&((flux_msg_t *)msg)->aux, name, aux, destroy);
}

void *flux_msg_aux_get (const flux_msg_t *msg, const char *name)
{
    if (!msg) {
        errno = EINVAL;
        return NULL;
    }
    return aux_get (msg->aux, name);
}

/* Type and topic */

int flux_msg_set_type (flux_msg_t *msg, int type)
{
    if (!msg || !message_type_valid (type))
        return fail (EINVAL);
    msg->type = type;
    msg->aux1 = 0;
    if (type == FLUX_MSGTYPE_REQUEST)
        msg->nodeid = FLUX_NODEID_ANY;
    if (type != FLUX_MSGTYPE_RESPONSE)  // a response keeps its request's tag
        msg->aux2 = 0;
    return 0;
}

int flux_msg_get_type (const flux_msg_t *msg, int *type)
{
    if (!msg)
        return fail (EINVAL);
    if (type)
        *type = msg->type;
    return 0;
}

int flux_msg_set_topic (flux_msg_t *msg, const char *topic)
{
    char *cpy = NULL;

    if (!msg || msg->type == FLUX_MSGTYPE_CONTROL)
        return fail (EINVAL);
    if (topic && !(cpy = strdup (topic)))
        return -1;
    free (msg->topic);
    msg->topic = cpy;
    if (cpy)
        msg->flags |= FLUX_MSGFLAG_TOPIC;
    else
        msg->flags &= ~FLUX_MSGFLAG_TOPIC;
    return 0;
}

int flux_msg_get_topic (const flux_msg_t *msg, const char **topic)
{
    if (!msg || !topic)
        return fail (EINVAL);
    if (!msg->topic)
        return fail (EPROTO);
    *topic = msg->topic;
    return 0;
}

/* Flags */

static int check_flag (const flux_msg_t *msg, int flag)
{
    if (!msg || (flag & ~0xff) || flag == 0)
        return fail (EINVAL);
    return 0;
}

int flux_msg_set_flag (flux_msg_t *msg, int flag)
{
    if (check_flag (msg, flag) < 0)
        return -1;
    msg->flags |= flag;
    return 0;
}

/* Without a message these three say true, the careful answer. */
static bool has_flag_or_null (const flux_msg_t *msg, int flag)
{
    if (!msg) {
        errno = EINVAL;
        return true;
    }
    return (msg->flags & flag) != 0;
}

static int change_flags (flux_msg_t *msg, int set, int clear)
{
    if (!msg)
        return fail (EINVAL);
    msg->flags = (msg->flags & ~clear) | set;
    return 0;
}

bool flux_msg_is_private (const flux_msg_t *msg)
{
    return has_flag_or_null (msg, FLUX_MSGFLAG_PRIVATE);
}

bool flux_msg_is_streaming (const flux_msg_t *msg)
{
    return has_flag_or_null (msg, FLUX_MSGFLAG_STREAMING);
}

bool flux_msg_is_noresponse (const flux_msg_t *msg)
{
    return has_flag_or_null (msg, FLUX_MSGFLAG_NORESPONSE);
}

int flux_msg_set_private (flux_msg_t *msg)
{
    return change_flags (msg, FLUX_MSGFLAG_PRIVATE, 0);
}

int flux_msg_set_streaming (flux_msg_t *msg)
{
    return change_flags (msg, FLUX_MSGFLAG_STREAMING, FLUX_MSGFLAG_NORESPONSE);
}

int flux_msg_set_noresponse (flux_msg_t *msg)
{
    return change_flags (msg, FLUX_MSGFLAG_NORESPONSE, FLUX_MSGFLAG_STREAMING);
}

/* Fields that depend on the type */

static int get_field (const flux_msg_t *msg, int types, uint32_t value,
                      uint32_t *result)
{
    if (!(msg->type & types))
        return fail (EPROTO);
    if (result)
        *result = value;
    return 0;
}

static int check_type (const flux_msg_t *msg, int types)
{
    return msg && (msg->type & types) ? 0 : fail (EINVAL);
}

int flux_msg_get_nodeid (const flux_msg_t *msg, uint32_t *nodeid)
{
    if (!msg)
        return fail (EINVAL);
    return get_field (msg, FLUX_MSGTYPE_REQUEST, msg->nodeid, nodeid);
}

int flux_msg_set_nodeid (flux_msg_t *msg, uint32_t nodeid)
{
    if (check_type (msg, FLUX_MSGTYPE_REQUEST) < 0)
        return -1;
    if (nodeid == FLUX_NODEID_UPSTREAM) // callers resolve this one
        return fail (EINVAL);
    msg->nodeid = nodeid;
    return 0;
}

int flux_msg_get_errnum (const flux_msg_t *msg, int *errnum)
{
    if (!msg)
        return fail (EINVAL);
    return get_field (msg, FLUX_MSGTYPE_RESPONSE, msg->errnum,
                      (uint32_t *)errnum);
}

int flux_msg_set_errnum (flux_msg_t *msg, int errnum)
{
    if (check_type (msg, FLUX_MSGTYPE_RESPONSE) < 0)
        return -1;
    msg->errnum = errnum;
    return 0;
}

int flux_msg_set_seq (flux_msg_t *msg, uint32_t seq)
{
    if (check_type (msg, FLUX_MSGTYPE_EVENT) < 0)
        return -1;
    msg->seq = seq;
    return 0;
}

int flux_msg_get_matchtag (const flux_msg_t *msg, uint32_t *matchtag)
{
    if (!msg)
        return fail (EINVAL);
    return get_field (msg, FLUX_MSGTYPE_REQUEST | FLUX_MSGTYPE_RESPONSE,
                      msg->matchtag, matchtag);
}

int flux_msg_set_matchtag (flux_msg_t *msg, uint32_t matchtag)
{
    if (check_type (msg, FLUX_MSGTYPE_REQUEST | FLUX_MSGTYPE_RESPONSE) < 0)
        return -1;
    msg->matchtag = matchtag;
    return 0;
}

/* Credentials */

int flux_msg_set_cred (flux_msg_t *msg, struct flux_msg_cred cred)
{
    if (!msg)
        return fail (EINVAL);
    msg->userid = cred.userid;
    msg->rolemask = cred.rolemask;
    return 0;
}

int flux_msg_get_cred (const flux_msg_t *msg, struct flux_msg_cred *cred)
{
    if (!msg || !cred)
        return fail (EINVAL);
    cred->userid = msg->userid;
    cred->rolemask = msg->rolemask;
    return 0;
}

int flux_msg_get_userid (const flux_msg_t *msg, uint32_t *userid)
{
    if (!msg)
        return fail (EINVAL);
    return get_field (msg, FLUX_MSGTYPE_ANY, msg->userid, userid);
}

int flux_msg_set_userid (flux_msg_t *msg, uint32_t userid)
{
    if (!msg)
        return fail (EINVAL);
    msg->userid = userid;
    return 0;
}

int flux_msg_get_rolemask (const flux_msg_t *msg, uint32_t *rolemask)
{
    if (!msg)
        return fail (EINVAL);
    return get_field (msg, FLUX_MSGTYPE_ANY, msg->rolemask, rolemask);
}

int flux_msg_set_rolemask (flux_msg_t *msg, uint32_t rolemask)
{
    if (!msg)
        return fail (EINVAL);
    msg->rolemask = rolemask;
    return 0;
}

int flux_msg_cred_authorize (struct flux_msg_cred cred, uint32_t userid)
{
    bool is_self = (cred.rolemask & FLUX_ROLE_USER) && cred.userid == userid
                   && cred.userid != FLUX_USERID_UNKNOWN;

    return (cred.rolemask & FLUX_ROLE_OWNER) || is_self ? 0 : fail (EPERM);
}

int flux_msg_authorize (const flux_msg_t *msg, uint32_t userid)
{
    struct flux_msg_cred cred;

    if (flux_msg_get_cred (msg, &cred) < 0)
        return -1;
    return flux_msg_cred_authorize (cred, userid);
}

/* Routes */

static bool has_routes (const flux_msg_t *msg)
{
    return msg && (msg->flags & FLUX_MSGFLAG_ROUTE);
}

void flux_msg_route_enable (flux_msg_t *msg)
{
    change_flags (msg, FLUX_MSGFLAG_ROUTE, 0);
}

int flux_msg_route_push (flux_msg_t *msg, const char *id)
{
    char **routes;

    if (!msg || !id)
        return fail (EINVAL);
    if (!has_routes (msg))
        return fail (EPROTO);
    if (!(routes = realloc (msg->routes,
                            (msg->route_count + 1) * sizeof (*routes))))
        return -1;
    msg->routes = routes;
    if (!(routes[msg->route_count] = strdup (id)))
        return -1;
    msg->route_count++;
    return 0;
}

int flux_msg_route_delete_last (flux_msg_t *msg)
{
    if (!msg)
        return fail (EINVAL);
    if (!has_routes (msg))
        return fail (EPROTO);
    if (msg->route_count > 0)
        free (msg->routes[--msg->route_count]);
    return 0;
}

const char *flux_msg_route_first (const flux_msg_t *msg)
{
    return has_routes (msg) && msg->route_count > 0 ? msg->routes[0] : NULL;
}

const char *flux_msg_route_last (const flux_msg_t *msg)
{
    return has_routes (msg) && msg->route_count > 0
           ? msg->routes[msg->route_count - 1] : NULL;
}

int flux_msg_route_count (const flux_msg_t *msg)
{
    if (!msg)
        return fail (EINVAL);
    return has_routes (msg) ? msg->route_count : fail (EPROTO);
}

bool flux_msg_route_match_first (const flux_msg_t *msg1,
                                 const flux_msg_t *msg2)
{
    const char *id1 = flux_msg_route_first (msg1);
    const char *id2 = flux_msg_route_first (msg2);

    return id1 && id2 ? !strcmp (id1, id2) : id1 == id2;
}

/* Matching */

struct flux_match flux_match_init (int typemask, uint32_t matchtag,
                                   const char *topic_glob)
{
    return (struct flux_match){ typemask, matchtag, topic_glob };
}

void flux_match_free (struct flux_match m)
{
    ERRNO_SAFE (free ((char *)m.topic_glob));
}

/* A message with routes carries a tag of somebody else's. */
bool flux_msg_cmp_matchtag (const flux_msg_t *msg, uint32_t matchtag)
{
    uint32_t tag;

    return flux_msg_get_matchtag (msg, &tag) == 0 && tag == matchtag
           && !(has_routes (msg) && msg->route_count > 0);
}

bool flux_msg_cmp (const flux_msg_t *msg, struct flux_match match)
{
    const char *glob = match.topic_glob;

    if (!msg || (match.typemask && !(msg->type & match.typemask)))
        return false;
    if (match.matchtag != FLUX_MATCHTAG_NONE
        && !flux_msg_cmp_matchtag (msg, match.matchtag))
        return false;
    if (!glob || !*glob || !strcmp (glob, "*"))
        return true;
    if (!msg->topic)
        return false;
    if (!strpbrk (glob, "*?["))
        return !strcmp (glob, msg->topic);
    return fnmatch (glob, msg->topic, 0) == 0;
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

/* The name of a type. */
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
