/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See losses.h.
 */

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libdws/util/jsonmake.h"
#include "libutil/errno_safe.h"
#include "libutil/names.h"
#include "libutil/safelog.h"
#include "base/calls.h"
#include "base/commits.h"
#include "base/requests.h"
#include "tell/losses.h"
#include "tell/notices.h"

/* Upper bounds for each user: listed losses, and purged jobs whose stage-out is done.
 * The user's own oldest entries give way.
 */
#define LOSSES_MAX 256

struct losses {
    struct dws_ctx *ctx;
    json_t *list;               // array of {"id", "userid", "t", "text", "until"?}
    json_t *moved;              // array of {"id", "userid"} of jobs
    int total;
};

static json_int_t id_of (json_t *loss)
{
    return json_integer_value (json_object_get (loss, "id"));
}

static json_int_t userid_of (json_t *loss)
{
    return json_integer_value (json_object_get (loss, "userid"));
}

/* Make room in 'array' for one more entry of a user. Returns true if the user's oldest
 * was dropped.
 */
static bool make_room (json_t *array, json_int_t userid)
{
    size_t oldest = 0;
    int count = 0;

    for (size_t i = json_array_size (array); i > 0; i--) {
        if (userid_of (json_array_get (array, i - 1)) == userid) {
            oldest = i - 1;
            count++;
        }
    }
    return count >= LOSSES_MAX && json_array_remove (array, oldest) == 0;
}

static bool remove_id (struct losses *losses, json_int_t id)
{
    for (size_t i = 0; i < json_array_size (losses->list); i++) {
        if (id_of (json_array_get (losses->list, i)) == id) {
            json_array_remove (losses->list, i);
            return true;
        }
    }
    return false;
}

/* Is this loss on record already? A restarted module reports the losses that it
 * finds once more.
 */
static bool is_listed (struct losses *losses, json_int_t id, const char *text,
                       double until)
{
    json_t *loss;
    size_t index;

    json_array_foreach (losses->list, index, loss) {
        const char *s = "";
        double t = 0.;

        (void)json_unpack (loss, "{s:s s?F}", "text", &s, "until", &t);
        if (id_of (loss) == id)
            return !strcmp (s, text) && fabs (t - until) < 1.;
    }
    return false;
}

static int append_loss (struct losses *losses, struct job *job,
                        const char *text, double until)
{
    json_t *loss = json_pack ("{s:I s:I s:f s:s}",
                              "id", (json_int_t)job->facts->id,
                              "userid", (json_int_t)job->facts->userid,
                              "t", flux_reactor_time (),
                              "text", text);

    if (until > 0.)
        dws_json_set (&loss, "until", json_real (until));
    return json_array_append_new (losses->list, loss);
}

flux_future_t *losses_report (struct job *job, const char *text, double until)
{
    struct losses *losses = job->ctx->losses;
    char label[JOB_LABEL_SIZE];
    bool known = is_listed (losses, job->facts->id, text, until);
    bool again = remove_id (losses, job->facts->id);

    if (make_room (losses->list, job->facts->userid))
        safe_log (job->ctx->h, LOG_WARNING, "more than %d losses of user %ju: the "
                  "oldest is not listed any more", LOSSES_MAX,
                  (uintmax_t)job->facts->userid);
    if (append_loss (losses, job, text, until) < 0)
        return NULL;
    if (!again) {
        losses->total++;
        safe_log (job->ctx->h, LOG_ERR, "%s: not staged out: %s",
                  job_label (job, label), text);
    }
    if (!known)
        notices_stage_out (job, text, until);
    return commits_write (job->ctx, DWS_KEY_LOSSES, losses->list);
}

flux_future_t *losses_made_good (struct job *job)
{
    struct losses *losses = job->ctx->losses;
    char label[JOB_LABEL_SIZE];

    if (remove_id (losses, job->facts->id))
        safe_log (job->ctx->h, LOG_INFO, "%s: staged out after all",
                  job_label (job, label));
    return commits_write (job->ctx, DWS_KEY_LOSSES, losses->list);
}

void losses_vanished (struct job *job)
{
    const struct dws_workflow *wf = job->wf;

    if (!job->facts->released || job->facts->reported || job->facts->abandoned
        || (wf->desired != DWS_STATE_POSTRUN
            && wf->desired != DWS_STATE_DATAOUT)
        || (wf->state == DWS_STATE_DATAOUT && wf->ready))
        return;
    job->facts->reported = true;
    (void)calls_log (job->ctx,
                     losses_report (job, "the workflow is not there any more", 0.),
                     LOG_ERR, DWS_KEY_LOSSES);
}

void losses_moved (struct dws_ctx *ctx, uint64_t id, uint32_t userid)
{
    struct losses *losses = ctx->losses;

    make_room (losses->moved, userid);
    if (json_array_append_new (losses->moved,
                               json_pack ("{s:I s:I}",
                                          "id", (json_int_t)id,
                                          "userid", (json_int_t)userid)) < 0)
        safe_log_error (ctx->h, DWS_KEY_MOVED);
    else
        (void)commits_save (ctx, DWS_KEY_MOVED, losses->moved);
}

json_t *losses_status (const struct losses *losses)
{
    return json_pack ("{s:i s:i}",
                      "listed", (int)json_array_size (losses->list),
                      "total", losses->total);
}

/* Requests
 */

static bool may_see (const struct flux_msg_cred *cred, json_t *loss)
{
    return (cred->rolemask & FLUX_ROLE_OWNER)
        || userid_of (loss) == (json_int_t)cred->userid;
}

static json_t *visible_losses (struct losses *losses,
                               const struct flux_msg_cred *cred)
{
    json_t *array = json_array ();
    json_t *loss;
    size_t index;

    json_array_foreach (losses->list, index, loss) {
        if (may_see (cred, loss))
            dws_json_append (&array, json_incref (loss));
    }
    return array;
}

/* A loss of another user gets the same error as one that is not listed.
 */
static int acknowledge_loss (struct losses *losses, json_t *array,
                             json_int_t id)
{
    json_t *loss;
    size_t index;

    json_array_foreach (array, index, loss) {
        if (id_of (loss) == id) {
            remove_id (losses, id);
            json_array_remove (array, index);
            return commits_save (losses->ctx, DWS_KEY_LOSSES, losses->list);
        }
    }
    errno = ENOENT;
    return -1;
}

void losses_cb (flux_t *h, flux_msg_handler_t *mh,
                const flux_msg_t *msg, void *arg)
{
    struct dws_ctx *ctx = arg;
    struct flux_msg_cred cred;
    json_t *array = NULL;
    json_t *o = NULL;
    json_int_t id = 0;

    if (flux_request_unpack (msg, NULL, "{s?I}", "ack", &id) == 0
        && flux_msg_get_cred (msg, &cred) == 0
        && (array = visible_losses (ctx->losses, &cred))
        && (id == 0 || acknowledge_loss (ctx->losses, array, id) == 0))
        o = json_pack ("{s:O}", "losses", array);
    requests_answer (h, msg, o, errno == ENOENT
                                ? "nothing of that job is listed" : NULL);
    ERRNO_SAFE (json_decref (array));
}

/* Read an array, which is empty if there is no such key yet.
 */
static int read_array (flux_t *h, const char *key, json_t **array)
{
    if (commits_load (h, key, array) < 0)
        return -1;
    if (!*array)
        *array = json_array ();
    return json_is_array (*array) ? 0 : -1;
}

struct losses *losses_create (struct dws_ctx *ctx)
{
    struct losses *losses;

    if (!(losses = calloc (1, sizeof (*losses))))
        return NULL;
    losses->ctx = ctx;
    if (read_array (ctx->h, DWS_KEY_LOSSES, &losses->list) < 0
        || read_array (ctx->h, DWS_KEY_MOVED, &losses->moved) < 0) {
        losses_destroy (losses);
        return NULL;
    }
    return losses;
}

void losses_destroy (struct losses *losses)
{
    if (losses) {
        ERRNO_SAFE_BLOCK;
        json_decref (losses->list);
        json_decref (losses->moved);
        free (losses);
    }
}
