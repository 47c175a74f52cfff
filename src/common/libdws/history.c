/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * What the eventlog of a job that is gone still says: see dws_job_recall()
 * in workflow.h. It outlives every process, and all memory of the job.
 */

#include <string.h>

#include "workflow.h"

static bool is_epilog (json_t *entry)
{
    const char *name = NULL;
    const char *description = NULL;

    return json_unpack (entry, "{s:s s:{s:s}}",
                        "name", &name,
                        "context",
                          "description", &description) == 0
        && !strcmp (name, "epilog-start")
        && !strcmp (description, "dws-epilog");
}

static bool is_epilog_timeout (json_t *entry)
{
    const char *name = NULL;
    const char *type = NULL;
    int severity = -1;

    return json_unpack (entry, "{s:s s:{s:s s:i}}",
                        "name", &name,
                        "context",
                          "type", &type,
                          "severity", &severity) == 0
        && severity == 0
        && !strcmp (name, "exception")
        && !strcmp (type, "dws-epilog-timeout");
}

void dws_job_recall (struct dws_job *job, const char *eventlog)
{
    const char *line = eventlog ? eventlog : "";
    bool epilog = false;

    while (*line) {
        size_t len = strcspn (line, "\n");
        json_t *entry = json_loadb (line, len, 0, NULL);

        /* Raised earlier, by hand, it is an exception like any other. */
        epilog |= is_epilog (entry);
        if (epilog && is_epilog_timeout (entry))
            job->abandoned = true;
        json_decref (entry);
        line += len;
        line += strspn (line, "\n");
    }
    job->recalled = true;
}
