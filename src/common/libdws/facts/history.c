/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See history.h.
 */

#include <string.h>

#include "libutil/names.h"
#include "history.h"

static bool is_named (json_t *entry, const char *name)
{
    const char *s = json_string_value (json_object_get (entry, "name"));

    return s && !strcmp (s, name);
}

static bool is_epilog (json_t *entry, const char *name)
{
    const char *description = NULL;

    return is_named (entry, name)
        && json_unpack (entry, "{s:{s:s}}",
                        "context",
                          "description", &description) == 0
        && !strcmp (description, DWS_EPILOG);
}

/* flux-coral2 lets go of an epilog whose workflow it does not know, too.
 */
static bool has_failed (json_t *entry)
{
    int status = 0;

    (void)json_unpack (entry, "{s:{s:i}}", "context", "status", &status);
    return status != 0;
}

static bool is_epilog_timeout (json_t *entry, uint32_t owner)
{
    const char *type = NULL;
    json_int_t userid = -1;
    int severity = -1;

    return is_named (entry, "exception")
        && json_unpack (entry, "{s:{s:s s:i s:I}}",
                        "context",
                          "type", &type,
                          "severity", &severity,
                          "userid", &userid) == 0
        && severity == 0
        && userid == (json_int_t)owner
        && !strcmp (type, DWS_EPILOG_TIMEOUT);
}

static void recall_entry (struct dws_job *job, json_t *entry, uint32_t owner,
                          bool *epilog)
{
    json_int_t userid;

    if (is_named (entry, "submit")
        && json_unpack (entry, "{s:{s:I}}",
                        "context",
                          "userid", &userid) == 0)
        job->userid = userid;
    else if (is_named (entry, "start"))
        job->run_started = true;
    else if (is_epilog (entry, "epilog-start")) {
        *epilog = true;
        (void)json_unpack (entry, "{s:F}", "timestamp", &job->t_epilog);
    }
    else if (is_epilog (entry, "epilog-finish")) {
        job->released = *epilog && !job->abandoned;
        *epilog = job->abandoned || !has_failed (entry);
    }
    /* Raised before or after the epilog, by hand, an exception of this type is
     * like any other, and so is one that a guest has raised. */
    else if (is_epilog_timeout (entry, owner))
        job->abandoned |= *epilog && !job->released;
}

void dws_job_recall (struct dws_job *job, const char *eventlog, uint32_t owner)
{
    const char *line = eventlog ? eventlog : "";
    bool epilog = false;

    while (*line) {
        size_t len = strcspn (line, "\n");
        json_t *entry = json_loadb (line, len, 0, NULL);

        recall_entry (job, entry, owner, &epilog);
        json_decref (entry);
        line += len;
        line += strspn (line, "\n");
    }
    /* No epilog has begun to clean up after the job: cleaning up begins now. */
    if (job->run_started && !epilog && eventlog) {
        job->stranded = true;
        job->released = !job->abandoned;
        job->t_epilog = job->t_gone;
    }
    job->remembered = eventlog && *eventlog;
    job->recalled = true;
}
