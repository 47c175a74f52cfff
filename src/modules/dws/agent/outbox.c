/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See outbox.h.
 */

#include <errno.h>
#include <stdlib.h>

#include "libdws/util/jsontext.h"
#include "libutil/errno_safe.h"
#include "agent/outbox.h"
#include "base/timer.h"

/* Upper bound on commands in one message: so many of the largest are a few MiB.
 */
#define BATCH_MAX 32

struct outbox {
    flux_t *h;
    void (*failed)(void *arg);
    void *arg;
    const flux_msg_t *request;  // of the agent, or NULL
    bool batches;               // the agent takes several in one message
    json_t *commands;           // to be sent
    flux_watcher_t *timer;
};

static int respond (struct outbox *box, const json_t *o)
{
    char *text = NULL;
    int rc = dws_jsontext_set (&text, o);

    if (rc == 0)
        rc = flux_respond (box->h, box->request, text);

    ERRNO_SAFE (free (text));
    return rc;
}

static int send_several (struct outbox *box, json_t *commands)
{
    json_t *o;
    int rc;

    if (json_array_size (commands) == 1)
        return respond (box, json_array_get (commands, 0));
    if (!(o = json_pack ("{s:s s:O}", "op", "batch", "commands", commands))) {
        errno = ENOMEM;
        return -1;
    }
    rc = respond (box, o);
    ERRNO_SAFE (json_decref (o));
    return rc;
}

static int send_all (struct outbox *box)
{
    size_t max = box->batches ? BATCH_MAX : 1;
    size_t count = json_array_size (box->commands);
    int rc = 0;

    for (size_t at = 0; at < count && rc == 0; at += max) {
        json_t *some = json_array ();

        for (size_t i = at; i < at + max && i < count; i++)
            rc |= json_array_append (some, json_array_get (box->commands, i));
        if (rc == 0)
            rc = send_several (box, some);
        else
            errno = ENOMEM;
        ERRNO_SAFE (json_decref (some));
    }
    return rc;
}

static void outbox_timer_cb (flux_reactor_t *r, flux_watcher_t *w, int revents,
                             void *arg)
{
    struct outbox *box = arg;
    int rc = send_all (box);

    ERRNO_SAFE (json_array_clear (box->commands));
    if (rc < 0)
        box->failed (box->arg);
}

void outbox_open (struct outbox *box, const flux_msg_t *request, bool batches)
{
    outbox_close (box);
    box->request = flux_msg_incref (request);
    box->batches = batches;
}

void outbox_close (struct outbox *box)
{
    flux_watcher_stop (box->timer);
    json_array_clear (box->commands);
    flux_msg_decref (box->request);
    box->request = NULL;
}

int outbox_put (struct outbox *box, json_t *command)
{
    if (json_array_append (box->commands, command) < 0) {
        errno = ENOMEM;
        return -1;
    }
    if (json_array_size (box->commands) == 1)
        timer_start (box->timer, 0.);
    return 0;
}

struct outbox *outbox_create (flux_t *h, void (*failed)(void *arg), void *arg)
{
    struct outbox *box;

    if (!(box = calloc (1, sizeof (*box))))
        return NULL;
    box->h = h;
    box->failed = failed;
    box->arg = arg;
    if (!(box->commands = json_array ())
        || !(box->timer = timer_make (h, outbox_timer_cb, box))) {
        outbox_destroy (box);
        errno = ENOMEM;
        return NULL;
    }
    return box;
}

void outbox_destroy (struct outbox *box)
{
    if (box) {
        ERRNO_SAFE_BLOCK;
        flux_watcher_destroy (box->timer);
        json_decref (box->commands);
        flux_msg_decref (box->request);
        free (box);
    }
}
