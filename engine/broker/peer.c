/* SPDX-License-Identifier: LGPL-3.0-only */
/* peer.c - whoever exchanges messages with the router: a client, a module
 * or the broker itself.
 *
 * A peer's id begins with its slot number in eight hex digits, so the way
 * back of a response is an array index and one string comparison.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "router.h"

/* String sets
 */

static ssize_t set_find (const struct string_set *set, const char *s)
{
    for (size_t i = 0; i < set->count; i++)
        if (!strcmp (set->items[i], s))
            return i;
    return -1;
}

int set_add (struct string_set *set, const char *s)
{
    ssize_t i = set_find (set, s);
    char **items;
    int *uses;
    char *cpy;

    if (i >= 0) {
        set->uses[i]++;
        return 0;
    }
    if (!(cpy = strdup (s)))
        return -1;
    if ((items = realloc (set->items, sizeof (*items) * (set->count + 1))))
        set->items = items;
    if ((uses = realloc (set->uses, sizeof (*uses) * (set->count + 1))))
        set->uses = uses;
    if (!items || !uses) {
        free (cpy);
        return -1;
    }
    set->items[set->count] = cpy;
    set->uses[set->count++] = 1;
    return 0;
}

int set_remove (struct string_set *set, const char *s)
{
    ssize_t i = set_find (set, s);

    if (i < 0) {
        errno = ENOENT;
        return -1;
    }
    if (--set->uses[i] == 0) {
        free (set->items[i]);
        set->count--;
        set->items[i] = set->items[set->count];
        set->uses[i] = set->uses[set->count];
    }
    return 0;
}

bool set_has_prefix_of (const struct string_set *set, const char *s)
{
    for (size_t i = 0; i < set->count; i++)
        if (!strncmp (set->items[i], s, strlen (set->items[i])))
            return true;
    return false;
}

static void set_clear (struct string_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        free (set->items[i]);
    free (set->items);
    free (set->uses);
    memset (set, 0, sizeof (*set));
}

/* Peers
 */

const char *peer_id (struct peer *p)
{
    return p->id;
}

struct peer *peer_lookup (struct router *r, const char *id)
{
    unsigned long slot = id ? strtoul (id, NULL, 16) : 0;

    if (!id
        || slot >= r->nslots
        || !r->slots[slot]
        || strcmp (r->slots[slot]->id, id) != 0)
        return NULL;
    return r->slots[slot];
}

/* A dashed lower case uuid in form, whose first field is the slot.
 */
static int make_id (struct peer *p)
{
    uint16_t x[6];

    if (getrandom (x, sizeof (x), 0) != sizeof (x))
        return -1;
    snprintf (p->id,
              sizeof (p->id),
              "%08" PRIx32 "-%04x-4%03x-8%03x-%04x%04x%04x",
              p->slot, x[0], x[1] & 0xfff, x[2] & 0xfff, x[3], x[4], x[5]);
    return 0;
}

struct peer *peer_create (struct router *r,
                          struct flux_msg_cred cred,
                          bool is_process,
                          peer_send_f send,
                          void *arg)
{
    struct peer *p;
    uint32_t slot = 0;

    while (slot < r->nslots && r->slots[slot])
        slot++;
    if (slot == r->nslots) {
        uint32_t n = r->nslots ? r->nslots * 2 : 64;
        struct peer **slots = realloc (r->slots, sizeof (*slots) * n);
        if (!slots)
            return NULL;
        memset (slots + r->nslots, 0, sizeof (*slots) * (n - r->nslots));
        r->slots = slots;
        r->nslots = n;
    }
    if (!(p = calloc (1, sizeof (*p))))
        return NULL;
    p->router = r;
    p->slot = slot;
    p->cred = cred;
    p->send = send;
    p->arg = arg;
    if (make_id (p) < 0
        || (is_process && !(p->pending = flux_msglist_create ()))) {
        free (p);
        return NULL;
    }
    r->slots[slot] = p;
    return p;
}

void peer_free (struct peer *p)
{
    free (p->notices);
    flux_msglist_destroy (p->pending);
    set_clear (&p->subs);
    free (p);
}

void peer_mute (struct peer *p)
{
    p->muted = true;
}

int peer_deliver (struct peer *p, flux_msg_t **msg)
{
    if (p->muted) {
        const char *topic;
        int type;

        if (flux_msg_get_type (*msg, &type) < 0
            || type != FLUX_MSGTYPE_RESPONSE
            || flux_msg_get_topic (*msg, &topic) < 0
            || strcmp (topic, "module.status") != 0) {
            errno = ENOSYS;
            return -1;
        }
    }
    return p->send (p->arg, msg);
}

/* Only the header is kept.
 */
bool pending_add (struct peer *p, const flux_msg_t *msg)
{
    flux_msg_t *cpy;
    bool added;

    if (!p->pending
        || flux_msg_is_noresponse (msg)
        || !(cpy = flux_msg_copy (msg, false)))
        return false;
    added = flux_msglist_append (p->pending, cpy) == 0;
    flux_msg_decref (cpy);
    return added;
}

bool pending_answer (struct peer *p, const flux_msg_t *response)
{
    const flux_msg_t *msg;
    uint32_t tag, t;
    int errnum;

    if (flux_msg_get_matchtag (response, &tag) < 0
        || flux_msg_get_errnum (response, &errnum) < 0)
        return false;
    msg = flux_msglist_first (p->pending);
    while (msg) {
        if (flux_msg_get_matchtag (msg, &t) == 0
            && t == tag
            && flux_msg_route_match_first (msg, response)) {
            if (errnum != 0 || !flux_msg_is_streaming (msg))
                flux_msglist_delete (p->pending);
            return true;
        }
        msg = flux_msglist_next (p->pending);
    }
    return false;
}

int notice_arm (struct peer *p, const flux_msg_t *msg)
{
    const char *topic;
    const char *dot;
    struct notice *notices;
    flux_msg_t *cpy = NULL;
    char *s = NULL;
    int len;

    if (flux_msg_is_noresponse (msg) || flux_msg_get_topic (msg, &topic) < 0)
        return 0;
    len = (dot = strrchr (topic, '.')) ? dot - topic + 1 : 0;
    for (size_t i = 0; i < p->notice_count; i++)
        if (!strncmp (p->notices[i].topic, topic, len)
            && !strcmp (p->notices[i].topic + len, "disconnect"))
            return 0;
    if (asprintf (&s, "%.*sdisconnect", len, topic) < 0)
        return -1;
    if (!(cpy = flux_msg_copy (msg, false))
        || flux_msg_set_topic (cpy, s) < 0
        || flux_msg_set_noresponse (cpy) < 0
        || !(notices = realloc (p->notices,
                                sizeof (*notices) * (p->notice_count + 1)))) {
        flux_msg_decref (cpy);
        free (s);
        return -1;
    }
    p->notices = notices;
    notices[p->notice_count++] = (struct notice){ .topic = s, .msg = cpy };
    return 0;
}
