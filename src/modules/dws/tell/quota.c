/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See quota.h. The client finds the rules that apply to a user, since that may need the
 * name service.
 */

#include <errno.h>
#include <stdbool.h>

#include "base/ctx.h"
#include "base/requests.h"
#include "facts/config.h"
#include "facts/jobs.h"
#include "facts/space.h"
#include "facts/totals.h"
#include "tell/quota.h"

#define EVERYBODY -1

struct quota {
    json_int_t userid;          // of whom, or EVERYBODY
    json_t *own_banks;          // names of the banks in which the user has jobs
    json_t *users;
    json_t *banks;
};

static bool is_used (const struct account *account)
{
    return account->jobs > 0 || account->persistent > 0 || account->waiting > 0;
}

static bool is_wanted (const struct quota *quota, const struct account *account)
{
    if (quota->userid == EVERYBODY)
        return is_used (account);
    if (account->bank)
        return json_object_get (quota->own_banks, account->bank) != NULL;
    return account->userid == quota->userid;
}

static void note_bank (struct job *job, void *arg)
{
    struct quota *quota = arg;

    if (job->facts->bank && job->facts->userid == quota->userid)
        json_object_set_new (quota->own_banks, job->facts->bank, json_true ());
}

static void describe (struct account *account, void *arg)
{
    struct quota *quota = arg;
    json_t *o;

    if (!is_wanted (quota, account))
        return;
    o = json_pack ("{s:I s:i s:i}",
                   "bytes",
                     (json_int_t)(account->bytes + account->persistent_bytes),
                   "jobs", (int)account->jobs,
                   "waiting", (int)account->waiting);
    if (account->bank) {
        json_object_set_new (o, "bank", json_string (account->bank));
        json_array_append_new (quota->banks, o);
    }
    else {
        json_object_set_new (o, "userid", json_integer (account->userid));
        json_object_set_new (o, "persistent",
                             json_integer (account->persistent));
        json_array_append_new (quota->users, o);
    }
}

static json_t *answer (struct dws_ctx *ctx, struct quota *quota)
{
    json_t *rules = ctx->config->limits_table;

    if (dws_limits_any (ctx->config->storage_limits)) {
        jobs_each (ctx->jobs, note_bank, quota);
        totals_each (ctx->totals, describe, quota);
    }
    return json_pack ("{s:b s:O* s:O s:O}",
                      "known", space_known (ctx->space),
                      "limits", rules,
                      "users", quota->users,
                      "banks", quota->banks);
}

/* Get the user id in the request, by default that of its sender. Fails with EPERM and a
 * text, or EPROTO.
 */
static int read_request (const flux_msg_t *msg, json_int_t *userid,
                         const char **errstr)
{
    struct flux_msg_cred cred;
    const char *payload;
    int all = 0;

    if (flux_msg_get_cred (msg, &cred) < 0
        || flux_request_decode (msg, NULL, &payload) < 0)
        return -1;
    *userid = cred.userid;
    if (payload && flux_request_unpack (msg, NULL, "{s?I s?b}",
                                        "userid", userid,
                                        "all", &all) < 0)
        return -1;
    if (all)
        *userid = EVERYBODY;
    if (*userid != (json_int_t)cred.userid
        && !(cred.rolemask & FLUX_ROLE_OWNER)) {
        *errstr = "only the owner of the instance sees what others have";
        errno = EPERM;
        return -1;
    }
    return 0;
}

void quota_cb (flux_t *h, flux_msg_handler_t *mh,
               const flux_msg_t *msg, void *arg)
{
    struct quota quota = {
        .own_banks = json_object (),
        .users = json_array (),
        .banks = json_array (),
    };
    const char *errstr = NULL;
    json_t *o = NULL;
    int rc = read_request (msg, &quota.userid, &errstr);

    if (rc == 0 && !(o = answer (arg, &quota)))
        errno = ENOMEM;
    requests_answer (h, msg, o, errstr);
    json_decref (quota.own_banks);
    json_decref (quota.users);
    json_decref (quota.banks);
}
