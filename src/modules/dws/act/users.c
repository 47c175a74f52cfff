/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See users.h.
 */

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <jansson.h>

#include "libutil/errno_safe.h"
#include "act/groups.h"
#include "act/users.h"
#include "base/requests.h"
#include "base/timer.h"

struct request {
    const flux_msg_t *msg;
    uint32_t userid;
    struct request *next;
};

struct users {
    struct dws_ctx *ctx;
    struct request *waiting;
    flux_watcher_t *again;      // when the name service has failed
};

static void request_destroy (struct request *request)
{
    flux_msg_decref (request->msg);
    free (request);
}

/* Returns false if there is no answer yet.
 */
static bool answer (struct users *users, const struct request *request)
{
    struct groups *groups = users->ctx->groups;
    flux_t *h = users->ctx->h;
    dws_error_t error;
    gid_t gid;

    if (!groups_ready (groups, request->userid, NULL))
        return false;
    if (groups_find (groups, request->userid, NULL, &gid, &error) == 0) {
        requests_answer (h, request->msg,
                         json_pack ("{s:s}", "user",
                                    groups_user (groups, request->userid, NULL)),
                         NULL);
        return true;
    }
    if (errno == ENOENT) {
        requests_refuse (h, request->msg, ENOENT, error.text);
        return true;
    }
    timer_start (users->again, GROUPS_LIFETIME_FAILED);
    return false;
}

/* Answer the requests about one user, or (NULL) about all.
 */
static void look (struct users *users, const uint32_t *userid)
{
    struct request **pp = &users->waiting;

    while (*pp) {
        struct request *request = *pp;

        if ((!userid || request->userid == *userid)
            && answer (users, request)) {
            *pp = request->next;
            request_destroy (request);
        }
        else
            pp = &request->next;
    }
}

void users_found (struct users *users, uint32_t userid)
{
    look (users, &userid);
}

static void again_cb (flux_reactor_t *r, flux_watcher_t *w, int revents,
                      void *arg)
{
    look (arg, NULL);
}

void users_cb (flux_t *h, flux_msg_handler_t *mh,
               const flux_msg_t *msg, void *arg)
{
    struct dws_ctx *ctx = arg;
    struct users *users = ctx->users;
    struct request *request;
    dws_error_t error;
    json_int_t userid;

    if (flux_request_unpack (msg, NULL, "{s:I}", "userid", &userid) < 0) {
        requests_refuse (h, msg, errno, NULL);
        return;
    }
    if (userid == UINT32_MAX) {
        requests_refuse (h, msg, EPROTO, "userid: this is not the number of a user");
        return;
    }
    if (!(request = calloc (1, sizeof (*request)))) {
        requests_refuse (h, msg, ENOMEM, NULL);
        return;
    }
    if (!(request->msg = requests_keep (ctx->requests, msg, REQUESTS_WAITING,
                                        &error))) {
        requests_refuse (h, msg, errno, error.text);
        free (request);
        return;
    }
    request->userid = userid;
    request->next = users->waiting;
    users->waiting = request;
    if (answer (users, request)) {
        users->waiting = request->next;
        request_destroy (request);
    }
}

struct users *users_create (struct dws_ctx *ctx)
{
    struct users *users;

    if (!(users = calloc (1, sizeof (*users))))
        return NULL;
    users->ctx = ctx;
    if (!(users->again = timer_make (ctx->h, again_cb, users))) {
        users_destroy (users);
        return NULL;
    }
    return users;
}

void users_destroy (struct users *users)
{
    if (users) {
        ERRNO_SAFE_BLOCK;
        while (users->waiting) {
            struct request *request = users->waiting;

            users->waiting = request->next;
            requests_refuse (users->ctx->h, request->msg, ENOSYS, NULL);
            request_destroy (request);
        }
        flux_watcher_destroy (users->again);
        free (users);
    }
}
