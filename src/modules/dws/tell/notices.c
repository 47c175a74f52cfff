/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See notices.h.
 */

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <sysexits.h>

#include "libdws/tell/notice.h"
#include "libutil/errno_safe.h"
#include "libutil/names.h"
#include "libutil/safelog.h"
#include "base/calls.h"
#include "base/commits.h"
#include "base/process.h"
#include "base/retry.h"
#include "facts/config.h"
#include "facts/persistent.h"
#include "tell/notices.h"

#define COMMAND "rabbit.notice_command"

/* Time limit of the command (s), after which it is killed and retried later.
 */
#define NOTICE_TIMEOUT 60.

/* Upper bound on pending notices of each user: the user's own oldest give way.
 */
#define NOTICES_MAX 256

/* Upper bound on commands that run at one time.
 */
#define RUNNING_MAX 4

/* Delays before a failed notice is retried, and the age at which it is given up (s).
 */
#define RETRY_MIN 60.
#define RETRY_MAX 3600.
#define AGE_MAX 86400.

struct notice {
    struct notices *notices;
    json_t *object;             // the input of the command
    struct process *process;    // NULL: not running
    bool deferred;              // until the timer
    struct notice *next;
};

struct notices {
    struct dws_ctx *ctx;
    struct notice *first;       // the oldest
    struct retry *retry;
    int told;
    int failed;
};

static const char *notice_id (const struct notice *notice)
{
    const char *id = json_string_value (json_object_get (notice->object, "id"));

    return id ? id : "";
}

static json_int_t notice_userid (const struct notice *notice)
{
    return json_integer_value (json_object_get (notice->object, "userid"));
}

static void notice_destroy (struct notice *notice)
{
    if (notice) {
        ERRNO_SAFE_BLOCK;
        process_destroy (notice->process);
        json_decref (notice->object);
        free (notice);
    }
}

static void notices_run (struct notices *notices);

/* The list
 */

static size_t count_of (const struct notices *notices)
{
    size_t count = 0;

    for (struct notice *n = notices->first; n; n = n->next)
        count++;
    return count;
}

/* Write the list with the next commit, which also has the change that the
 * latest notice is about.
 */
static void write_notices (struct notices *notices)
{
    json_t *array = json_array ();

    for (struct notice *n = notices->first; n; n = n->next)
        (void)json_array_append (array, n->object);
    (void)commits_save (notices->ctx, DWS_KEY_NOTICES, array);
    json_decref (array);
}

static void drop_notice (struct notice *notice)
{
    struct notice **np = &notice->notices->first;

    while (*np != notice)
        np = &(*np)->next;
    *np = notice->next;
    notice_destroy (notice);
}

/* Takes over 'object'.
 */
static int append_notice (struct notices *notices, json_t *object)
{
    struct notice **np = &notices->first;
    struct notice *notice;

    if (!object || !(notice = calloc (1, sizeof (*notice)))) {
        json_decref (object);
        errno = ENOMEM;
        return -1;
    }
    notice->notices = notices;
    notice->object = object;
    while (*np)
        np = &(*np)->next;
    *np = notice;
    return 0;
}

/* Give up the oldest notice of a user who has too many.
 */
static void bound_notices (struct notices *notices, json_int_t userid)
{
    struct notice *oldest = NULL;
    int count = 0;

    for (struct notice *n = notices->first; n; n = n->next) {
        if (notice_userid (n) == userid) {
            oldest = oldest ? oldest : n;
            count++;
        }
    }
    if (count <= NOTICES_MAX)
        return;
    safe_log (notices->ctx->h, LOG_WARNING, "more than %d notices for user %jd wait "
              "to be told: the oldest is given up", NOTICES_MAX, (intmax_t)userid);
    drop_notice (oldest);
    notices->failed++;
}

/* Takes over 'object'.
 */
static void add_notice (struct notices *notices, json_t *object)
{
    if (append_notice (notices, object) < 0) {
        safe_log_error (notices->ctx->h, DWS_KEY_NOTICES);
        return;
    }
    bound_notices (notices, json_integer_value (json_object_get (object, "userid")));
    write_notices (notices);
    notices_run (notices);
}

/* The command
 */

static bool is_too_old (const struct notice *notice)
{
    json_t *t = json_object_get (notice->object, "t");

    return json_number_value (t) + AGE_MAX < flux_reactor_time ();
}

/* May a retry succeed? A command that exits has failed for good unless its status is
 * EX_TEMPFAIL; one that was killed or could not be started is retried.
 */
static bool may_try_again (const struct notice *notice, int status)
{
    return !is_too_old (notice)
        && (status == -1 || !WIFEXITED (status)
            || WEXITSTATUS (status) == EX_TEMPFAIL);
}

static void tell_failed (const struct notice *notice, int status, bool again)
{
    const char *what = again ? "is told later" : "is given up";
    flux_t *h = notice->notices->ctx->h;

    if (status != -1 && WIFEXITED (status))
        safe_log (h, LOG_ERR, COMMAND ": exit status %d: notice %s %s",
                  WEXITSTATUS (status), notice_id (notice), what);
    else
        safe_log (h, LOG_ERR, COMMAND ": it has failed: notice %s %s",
                  notice_id (notice), what);
}

static void told_cb (int status, void *arg)
{
    struct notice *notice = arg;
    struct notices *notices = notice->notices;
    bool again = status != 0 && may_try_again (notice, status);

    process_destroy (notice->process);
    notice->process = NULL;
    if (status != 0)
        tell_failed (notice, status, again);
    else
        retry_reset (notices->retry);
    if (again) {
        notice->deferred = true;
        retry_later (notices->retry);
    }
    else {
        notices->told += status == 0;
        notices->failed += status != 0;
        drop_notice (notice);
        write_notices (notices);
    }
    notices_run (notices);
}

static void start_notice (struct notice *notice)
{
    struct dws_ctx *ctx = notice->notices->ctx;
    char *input = json_dumps (notice->object, JSON_COMPACT);

    errno = ENOMEM;
    if (!input
        || !(notice->process = process_create (ctx->h, COMMAND,
                                               ctx->config->notice_command,
                                               input,
                                               NOTICE_TIMEOUT,
                                               told_cb, notice))) {
        safe_log_error (ctx->h, COMMAND);
        tell_failed (notice, -1, true);
        notice->deferred = true;
        retry_later (notice->notices->retry);
    }
    ERRNO_SAFE (free (input));
}

/* Drop all notices, as no command is configured any more.
 */
static void drop_all (struct notices *notices)
{
    if (!notices->first)
        return;
    while (notices->first)
        drop_notice (notices->first);
    retry_stop (notices->retry);
    write_notices (notices);
}

static void run_some (struct notices *notices)
{
    int running = 0;

    for (struct notice *n = notices->first; n; n = n->next)
        running += n->process != NULL;
    for (struct notice *n = notices->first; n && running < RUNNING_MAX;
         n = n->next) {
        if (!n->process && !n->deferred) {
            start_notice (n);
            running += n->process != NULL;
        }
    }
}

static void notices_run (struct notices *notices)
{
    if (notices->ctx->config->notice_command)
        run_some (notices);
    else
        drop_all (notices);
}

static void end_deferral (void *arg)
{
    struct notices *notices = arg;

    for (struct notice *n = notices->first; n; n = n->next)
        n->deferred = false;
    notices_run (notices);
}

void notices_start (struct notices *notices)
{
    retry_reset (notices->retry);
    end_deferral (notices);
}

/* Kinds of notices
 */

void notices_stage_out (struct job *job, const char *text, double until)
{
    char f58[32];

    if (!job->ctx->config->notice_command)
        return;
    if (flux_job_id_encode (job->facts->id, "f58", f58, sizeof (f58)) < 0)
        snprintf (f58, sizeof (f58), "%ju", (uintmax_t)job->facts->id);
    add_notice (job->ctx->notices,
                dws_notice_stage_out (job->facts, f58, &job->claim.bytes, text,
                                      until, flux_reactor_time ()));
}

void notices_file_system (struct dws_ctx *ctx, const char *event,
                          const char *name, json_int_t userid, double expires)
{
    struct dws_bytes bytes = { 0 };

    if (!ctx->config->notice_command)
        return;
    (void)persistent_bytes (ctx->persistent, ctx->space, name, userid, &bytes,
                            NULL);
    add_notice (ctx->notices,
                dws_notice_file_system (event, name, userid, &bytes, expires,
                                        flux_reactor_time ()));
    dws_bytes_clear (&bytes);
}

json_t *notices_status (const struct notices *notices)
{
    return json_pack ("{s:i s:i s:i}",
                      "waiting", (int)count_of (notices),
                      "told", notices->told,
                      "failed", notices->failed);
}

static int read_notices (struct notices *notices)
{
    json_t *array;
    json_t *object;
    size_t index;
    int rc = commits_load (notices->ctx->h, DWS_KEY_NOTICES, &array);

    if (rc < 0)
        return -1;
    json_array_foreach (array, index, object) {
        if (append_notice (notices, json_incref (object)) < 0)
            rc = -1;
    }
    ERRNO_SAFE (json_decref (array));
    return rc;
}

struct notices *notices_create (struct dws_ctx *ctx)
{
    struct notices *notices;

    if (!(notices = calloc (1, sizeof (*notices))))
        return NULL;
    notices->ctx = ctx;
    if (!(notices->retry = retry_create (ctx->h, RETRY_MIN, RETRY_MAX,
                                         end_deferral, notices))
        || read_notices (notices) < 0) {
        notices_destroy (notices);
        return NULL;
    }
    return notices;
}

void notices_destroy (struct notices *notices)
{
    if (notices) {
        ERRNO_SAFE_BLOCK;
        while (notices->first)
            drop_notice (notices->first);
        retry_destroy (notices->retry);
        free (notices);
    }
}
