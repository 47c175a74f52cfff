/* SPDX-License-Identifier: LGPL-3.0-only */
/* msglist.c - lists of messages with one cursor, and the matching of
 * disconnect and cancel requests against requests kept on one.
 */

#include <flux/core.h>

#include "libutil/errno_safe.h"

struct node {
    struct node *prev;
    struct node *next;
    const flux_msg_t *msg;
};

struct flux_msglist {
    struct node root;       // ring; root.msg is NULL
    struct node *cursor;    // &root: before the first
    int count;
};

struct flux_msglist *flux_msglist_create (void)
{
    struct flux_msglist *l;

    if (!(l = calloc (1, sizeof (*l))))
        return NULL;
    l->root.prev = l->root.next = l->cursor = &l->root;
    return l;
}

static const flux_msg_t *unlink_node (struct flux_msglist *l, struct node *n)
{
    const flux_msg_t *msg = n->msg;

    n->prev->next = n->next;
    n->next->prev = n->prev;
    l->count--;
    free (n);
    return msg;
}

void flux_msglist_destroy (struct flux_msglist *l)
{
    if (l) {
        ERRNO_SAFE_BLOCK;
        while (l->count > 0)
            flux_msg_decref (unlink_node (l, l->root.next));
        free (l);
    }
}

static int insert_after (struct flux_msglist *l, struct node *prev,
                         const flux_msg_t *msg)
{
    struct node *n;

    if (!l || !msg) {
        errno = EINVAL;
        return -1;
    }
    if (!(n = malloc (sizeof (*n))))
        return -1;
    *n = (struct node){ .prev = prev, .next = prev->next,
                        .msg = flux_msg_incref (msg) };
    n->prev->next = n->next->prev = n;
    l->count++;
    return 0;
}

int flux_msglist_append (struct flux_msglist *l, const flux_msg_t *msg)
{
    return insert_after (l, l ? l->root.prev : NULL, msg);
}

static const flux_msg_t *seek (struct flux_msglist *l, struct node *n)
{
    l->cursor = n;
    return n->msg;
}

const flux_msg_t *flux_msglist_first (struct flux_msglist *l)
{
    return seek (l, l->root.next);
}

const flux_msg_t *flux_msglist_last (struct flux_msglist *l)
{
    return seek (l, l->root.prev);
}

const flux_msg_t *flux_msglist_next (struct flux_msglist *l)
{
    return seek (l, l->cursor->next);
}

/* Step back, so that next continues with the one after what is deleted. */
void flux_msglist_delete (struct flux_msglist *l)
{
    struct node *n = l->cursor;

    if (n != &l->root) {
        l->cursor = n->prev;
        flux_msg_decref (unlink_node (l, n));
    }
}

const flux_msg_t *flux_msglist_pop (struct flux_msglist *l)
{
    if (l->count == 0)
        return NULL;
    if (l->cursor == l->root.next)
        l->cursor = &l->root;
    return unlink_node (l, l->root.next);
}

int flux_msglist_count (struct flux_msglist *l)
{
    return l ? l->count : 0;
}

/* msg1 comes from the sender of msg2, who may speak for its user. */
bool flux_disconnect_match (const flux_msg_t *msg1, const flux_msg_t *msg2)
{
    uint32_t userid;

    return flux_msg_route_match_first (msg1, msg2)
           && flux_msg_get_userid (msg2, &userid) == 0
           && flux_msg_authorize (msg1, userid) == 0;
}

int flux_msglist_disconnect (struct flux_msglist *l, const flux_msg_t *msg)
{
    const flux_msg_t *item;
    int count = 0;

    for (item = flux_msglist_first (l); item; item = flux_msglist_next (l)) {
        if (flux_disconnect_match (msg, item)) {
            flux_msglist_delete (l);
            count++;
        }
    }
    return count;
}

bool flux_cancel_match (const flux_msg_t *msg1, const flux_msg_t *msg2)
{
    uint32_t tag, matchtag;

    return flux_disconnect_match (msg1, msg2)
           && flux_request_unpack (msg1, NULL, "{s:i}", "matchtag", &tag) == 0
           && flux_msg_get_matchtag (msg2, &matchtag) == 0
           && tag == matchtag;
}

/* A matchtag is unique per sender, so there is at most one. */
int flux_msglist_cancel (flux_t *h, struct flux_msglist *l,
                         const flux_msg_t *msg)
{
    const flux_msg_t *item;

    for (item = flux_msglist_first (l); item; item = flux_msglist_next (l)) {
        if (flux_cancel_match (msg, item)) {
            if (flux_respond_error (h, item, ENODATA, NULL) < 0)
                return -1;
            flux_msglist_delete (l);
            return 1;
        }
    }
    return 0;
}
