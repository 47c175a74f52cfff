/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See requests.h.
 */

#include <errno.h>
#include <stdlib.h>

#include "libutil/errno_safe.h"
#include "libutil/safelog.h"
#include "base/requests.h"

/* A user with pending requests, in the map by user id + 1.
 */
struct sender {
    struct idmap *senders;
    uint64_t key;
    size_t waiting;
};

int requests_check_size (const flux_msg_t *msg, dws_error_t *error)
{
    struct flux_msg_cred cred;
    ssize_t size;

    if (flux_msg_get_cred (msg, &cred) < 0
        || (size = flux_msg_encode_size (msg)) < 0)
        return dws_error (error, errno, "the request cannot be read");
    if (size > REQUESTS_BYTES && !(cred.rolemask & FLUX_ROLE_OWNER))
        return dws_error (error, EMSGSIZE, "the request has %zd bytes, of at most "
                          "%d for users", size, REQUESTS_BYTES);
    return 0;
}

static void check (flux_t *h, const flux_msg_t *msg, int rc)
{
    const char *topic = "request";

    if (rc < 0) {
        ERRNO_SAFE (flux_msg_get_topic (msg, &topic));
        safe_log_error (h, "%s", topic);
    }
}

void requests_refuse (flux_t *h, const flux_msg_t *msg, int errnum,
                      const char *text)
{
    check (h, msg, flux_respond_error (h, msg, errnum,
                                       text && *text ? text : NULL));
}

void requests_answer (flux_t *h, const flux_msg_t *msg, json_t *o,
                      const char *text)
{
    if (o)
        check (h, msg, flux_respond_pack (h, msg, "o", o));
    else
        requests_refuse (h, msg, errno, text);
}

static struct sender *find_sender (struct idmap *senders, uint32_t userid)
{
    uint64_t key = (uint64_t)userid + 1;
    struct sender *sender;

    if (!(sender = idmap_find (senders, key))) {
        if (!(sender = calloc (1, sizeof (*sender))))
            return NULL;
        sender->senders = senders;
        sender->key = key;
        if (idmap_insert (senders, key, sender) < 0) {
            ERRNO_SAFE (free (sender));
            return NULL;
        }
    }
    return sender;
}

static void drop_idle (struct sender *sender)
{
    if (sender->waiting == 0)
        idmap_delete (sender->senders, sender->key);
}

/* A counted message is destroyed.
 */
static void count_out (void *arg)
{
    struct sender *sender = arg;

    sender->waiting--;
    drop_idle (sender);
}

static int count_in (struct idmap *senders, const flux_msg_t *msg,
                     uint32_t userid, size_t max, dws_error_t *error)
{
    struct sender *sender;

    if (!(sender = find_sender (senders, userid)))
        return dws_error_nomem (error);
    if (sender->waiting >= max)
        return dws_error (error, EBUSY, "%zu requests of user %u wait already, of "
                          "at most %zu: ask again when they are answered",
                          sender->waiting, (unsigned int)userid, max);
    if (flux_msg_aux_set (msg, "dws::sender", sender, count_out) < 0) {
        ERRNO_SAFE (drop_idle (sender));
        return dws_error (error, errno, "the request cannot be kept");
    }
    sender->waiting++;
    return 0;
}

const flux_msg_t *requests_keep (struct idmap *senders,
                                 const flux_msg_t *msg, size_t max,
                                 dws_error_t *error)
{
    struct flux_msg_cred cred;
    flux_msg_t *copy;

    if (flux_msg_get_cred (msg, &cred) < 0
        || !(copy = flux_msg_copy (msg, false))) {
        dws_error (error, errno, "the request cannot be kept");
        return NULL;
    }
    if (!(cred.rolemask & FLUX_ROLE_OWNER)
        && count_in (senders, copy, cred.userid, max, error) < 0) {
        ERRNO_SAFE (flux_msg_decref (copy));
        return NULL;
    }
    return copy;
}
