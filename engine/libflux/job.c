/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Jobs as a client sees them: requests to job-ingest, job-manager, job-info
 * and job-list.
 */
#include <math.h>
#include <jansson.h>
#include <unistd.h>

#include <flux/core.h>

#include "errprintf.h"
#include "handle_private.h"
#include "job_private.h"

static flux_future_t *inval (void)
{
    errno = EINVAL;
    return NULL;
}

flux_future_t *flux_job_submit (flux_t *h, const char *jobspec, int urgency,
                                int flags)
{
    flux_future_t *f;
    char *J = NULL;

    if (!h || !jobspec)
        return inval ();
    if (!(flags & FLUX_JOB_PRE_SIGNED)
        && !(J = job_sign_none (jobspec, getuid ())))
        return NULL;
    f = flux_rpc_pack (h, "job-ingest.submit", FLUX_NODEID_ANY, 0,
                       "{s:s s:i s:i}",
                       "J", J ? J : jobspec,
                       "urgency", urgency,
                       "flags", flags & ~FLUX_JOB_PRE_SIGNED);
    free (J);
    return f;
}

static int get_id (flux_future_t *f, flux_jobid_t *id)
{
    json_int_t val;

    if (!f) {
        errno = EINVAL;
        return -1;
    }
    if (flux_rpc_get_unpack (f, "{s:I}", "id", &val) < 0)
        return -1;
    if (id)
        *id = val;
    return 0;
}

int flux_job_submit_get_id (flux_future_t *f, flux_jobid_t *id)
{
    return get_id (f, id);
}

flux_future_t *flux_job_wait (flux_t *h, flux_jobid_t id)
{
    if (!h)
        return inval ();
    return flux_rpc_pack (h, "job-manager.wait", FLUX_NODEID_ANY, 0,
                          "{s:I}", "id", id);
}

int flux_job_wait_get_id (flux_future_t *f, flux_jobid_t *id)
{
    return get_id (f, id);
}

int flux_job_wait_get_status (flux_future_t *f, bool *success,
                              const char **errstr)
{
    int ok;
    const char *s;

    if (!f) {
        errno = EINVAL;
        return -1;
    }
    if (flux_rpc_get_unpack (f, "{s:b s:s}",
                             "success", &ok,
                             "errstr", &s) < 0)
        return -1;
    if (success)
        *success = ok;
    if (errstr)
        *errstr = s;
    return 0;
}

flux_future_t *flux_job_raise (flux_t *h, flux_jobid_t id, const char *type,
                               int severity, const char *note)
{
    if (!h || !type)
        return inval ();
    return flux_rpc_pack (h, "job-manager.raise", FLUX_NODEID_ANY, 0,
                          "{s:s s:i s:s* s:I}",
                          "type", type,
                          "severity", severity,
                          "note", note,
                          "id", id);
}

flux_future_t *flux_job_cancel (flux_t *h, flux_jobid_t id,
                                const char *reason)
{
    return flux_job_raise (h, id, "cancel", 0, reason);
}

flux_future_t *flux_job_kill (flux_t *h, flux_jobid_t id, int signum)
{
    if (signum < 1 || !h)
        return inval ();
    return flux_rpc_pack (h, "job-manager.kill", FLUX_NODEID_ANY, 0,
                          "{s:i s:I}", "signum", signum, "id", id);
}

flux_future_t *flux_job_event_watch (flux_t *h, flux_jobid_t id,
                                     const char *path, int flags)
{
    const int valid = FLUX_JOB_EVENT_WATCH_WAITCREATE
                      | FLUX_JOB_EVENT_WATCH_INITIAL_SENTINEL;

    if (!h || !path || (flags & ~valid))
        return inval ();
    return flux_rpc_pack (h, "job-info.eventlog-watch", FLUX_NODEID_ANY,
                          FLUX_RPC_STREAMING, "{s:I s:s s:i}",
                          "id", id,
                          "path", path,
                          "flags", flags);
}

/* The sentinel is a response without payload. */
int flux_job_event_watch_get (flux_future_t *f, const char **event)
{
    const char *s;

    if (flux_rpc_get (f, &s) < 0)
        return -1;
    if (s && flux_rpc_get_unpack (f, "{s:s}", "event", &s) < 0)
        return -1;
    if (event)
        *event = s;
    return 0;
}

int flux_job_event_watch_cancel (flux_future_t *f)
{
    return rpc_cancel (flux_future_get_flux (f),
                       "job-info.eventlog-watch-cancel",
                       f);
}

static int result_of (json_t *res)
{
    double t_run = -1.;
    int status = -1;
    const char *type = "";

    (void)json_unpack (res, "{s?F s?i s?s}",
                       "t_run", &t_run,
                       "waitstatus", &status,
                       "exception_type", &type);
    if (t_run > 0. && status == 0)
        return FLUX_JOB_RESULT_COMPLETED;
    if (strcmp (type, "cancel") == 0)
        return FLUX_JOB_RESULT_CANCELED;
    if (strcmp (type, "timeout") == 0)
        return FLUX_JOB_RESULT_TIMEOUT;
    return FLUX_JOB_RESULT_FAILED;
}

/* The worst exception counts. */
static int result_exception (json_t *res, json_t *context)
{
    json_t *old = json_object_get (res, "exception_severity");
    json_t *severity = json_object_get (context, "severity");

    if (old && json_integer_value (old) < json_integer_value (severity))
        return 0;
    return json_object_set (res, "exception_occurred", json_true ())
        || json_object_set (res, "exception_severity", severity)
        || json_object_set (res, "exception_type",
                            json_object_get (context, "type"))
        || json_object_set (res, "exception_note",
                            json_object_get (context, "note")) ? -1 : 0;
}

static int result_event (json_t *res, json_t *entry)
{
    json_t *t = json_object_get (entry, "timestamp");
    json_t *context = json_object_get (entry, "context");
    const char *name = json_string_value (json_object_get (entry, "name"));

    if (!t || !name)
        return -1;
    if (strcmp (name, "submit") == 0)
        return json_object_set (res, "t_submit", t);
    if (strcmp (name, "alloc") == 0)
        return json_object_set (res, "t_run", t);
    if (strcmp (name, "exception") == 0)
        return result_exception (res, context);
    if (strcmp (name, "finish") == 0)
        return json_object_set (res, "t_cleanup", t)
            || json_object_set (res, "waitstatus",
                                json_object_get (context, "status")) ? -1 : 0;
    return 0;
}

static void result_end (flux_future_t *f, json_t *res, int errnum)
{
    json_t *result = json_integer (result_of (res));
    char *s = NULL;

    if (json_object_set_new (res, "result", result) < 0
        || !(s = json_dumps (res, JSON_COMPACT)))
        errnum = ENOMEM;
    if (errnum)
        flux_future_fulfill_error (f, errnum, NULL);
    else
        flux_future_fulfill (f, s, free);
}

static void result_cb (flux_future_t *watch, void *arg)
{
    flux_future_t *f = arg;
    json_t *res = flux_future_aux_get (f, "flux::result");
    const char *s;
    json_t *entry = NULL;

    if (flux_future_get (watch, NULL) < 0)
        result_end (f, res, errno == ENODATA ? 0 : errno);
    else if (flux_job_event_watch_get (watch, &s) < 0
             || !s
             || !(entry = json_loads (s, 0, NULL))
             || result_event (res, entry) < 0)
        result_end (f, res, EPROTO);
    else
        flux_future_reset (watch);
    json_decref (entry);
}

/* In the reactor that the future is waited for in. */
static void result_init (flux_future_t *f, void *arg)
{
    json_t *res = flux_future_aux_get (f, "flux::result");
    flux_jobid_t id = json_integer_value (json_object_get (res, "id"));
    flux_t *h = flux_future_get_flux (f);
    flux_future_t *watch = flux_job_event_watch (h, id, "eventlog", 0);

    if (!watch
        || flux_future_aux_set (f, NULL, watch,
                                (flux_free_f)flux_future_destroy) < 0) {
        flux_future_fulfill_error (f, errno, NULL);
        flux_future_destroy (watch);
    }
    else if (flux_future_then (watch, -1., result_cb, f) < 0)
        flux_future_fulfill_error (f, errno, NULL);
}

flux_future_t *flux_job_result (flux_t *h, flux_jobid_t id, int flags)
{
    json_t *res = json_pack ("{s:I s:b}", "id", id, "exception_occurred", 0);
    flux_future_t *f = h ? flux_future_create (result_init, NULL) : inval ();

    if (!res
        || !f
        || flux_future_aux_set (f, "flux::result", res,
                                (flux_free_f)json_decref) < 0) {
        json_decref (res);
        flux_future_destroy (f);
        return NULL;
    }
    flux_future_set_flux (f, h);
    return f;
}

int flux_job_result_get (flux_future_t *f, const char **json_str)
{
    return flux_future_get (f, (const void **)json_str);
}
