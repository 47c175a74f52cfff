/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See report.h.
 */

#include <stdlib.h>
#include <string.h>

#include "libdws/util/jsonparse.h"
#include "libutil/errno_safe.h"
#include "report.h"

struct dws_reports {
    struct dws_excerpt excerpt; // of the last one
    size_t size;                // of its buffer
    bool begun;
    json_t *o;                  // the same, parsed
};

static bool says (struct dws_text key, struct dws_text value)
{
    if (dws_text_is (key, "status"))
        return dws_text_is (value, "\"Error\"")
            || dws_text_is (value, "\"TransientCondition\"");
    return (dws_text_is (key, "error") || dws_text_is (key, "message"))
        && !dws_text_is (value, "\"\"");
}

/* Drivers have an entry for each state, and most of them say nothing (drivers.c).
 */
static bool says_something (struct dws_text entry)
{
    struct dws_text key;
    struct dws_text value;
    size_t at = 0;

    while (dws_text_next (entry, &at, &key, &value) > 0) {
        if (says (key, value))
            return true;
    }
    return false;
}

static const struct dws_part metadata[] = {
    { .key = "name" },
    { .key = "namespace" },
    { .key = "uid" },
    { .key = "resourceVersion" },
    { .key = "deletionTimestamp" },
    { .key = "labels" },
    { .key = "annotations" },
    { .key = "finalizers" },
    { 0 },
};

static const struct dws_part spec[] = {
    { .key = "desiredState" },
    { .key = "dwDirectives" },
    { .key = "forceReady" },
    { .key = "jobID" },
    { .key = "userID" },
    { .key = "wlmID" },
    { 0 },
};

static const struct dws_part name[] = {
    { .key = "name" },
    { .key = "namespace" },
    { 0 },
};

static const struct dws_part status[] = {
    { .key = "state" },
    { .key = "status" },
    { .key = "ready" },
    { .key = "message" },
    { .key = "desiredStateChange" },
    { .key = "readyChange" },
    { .key = "elapsedTimeLastState" },
    { .key = "drivers", .wanted = says_something },
    { .key = "directiveBreakdowns", .parts = name },
    { .key = "computes", .parts = name },
    { .key = "env" },
    { .key = "workflowToken" },
    { 0 },
};

static const struct dws_part workflow[] = {
    { .key = "kind" },
    { .key = "metadata", .parts = metadata },
    { .key = "spec", .parts = spec },
    { .key = "status", .parts = status },
    { 0 },
};

static const struct dws_part servers_labels[] = {
    { .key = DWS_LABEL_WORKFLOW },
    { .key = DWS_LABEL_PERSISTENT },
    { 0 },
};

static const struct dws_part servers_metadata[] = {
    { .key = "name" },
    { .key = "namespace" },
    { .key = "labels", .parts = servers_labels },
    { .key = "annotations" },
    { 0 },
};

static const struct dws_part servers_status[] = {
    { .key = "ready" },
    { .key = "allocationSets" },
    { 0 },
};

static const struct dws_part servers[] = {
    { .key = "metadata", .parts = servers_metadata },
    { .key = "spec" },
    { .key = "status", .parts = servers_status },
    { 0 },
};

static const struct dws_part breakdown[] = {
    { .key = "kind" },
    { .key = "metadata", .parts = name },
    { .key = "status" },
    { 0 },
};

/* The parts of a report besides its object.
 */
#define REPORT \
    { .key = "type" }, { .key = "event" }, { .key = "seq" }, { .key = "ok" }, \
    { .key = "status" }, { .key = "reason" }, { .key = "message" }

static const struct dws_part of_workflow[] = {
    REPORT,
    { .key = "object", .parts = workflow, .marked = true },
    { 0 },
};

static const struct dws_part of_servers[] = {
    REPORT,
    { .key = "object", .parts = servers },
    { 0 },
};

static const struct dws_part of_breakdown[] = {
    REPORT,
    { .key = "object", .parts = breakdown },
    { 0 },
};

static const struct dws_part of_snapshot[] = {
    { .key = "type" },
    { .key = "more" },
    { .key = "workflows", .parts = workflow },
    { .key = "servers", .parts = servers },
    { .key = "storages" },
    { .key = "persistentstorageinstances" },
    { 0 },
};

static bool is (struct dws_text text, const char *key, const char *value)
{
    struct dws_text found = dws_text_find (text, key);

    return found.len > strlen (value)
        && !memcmp (found.s, value, strlen (value));
}

/* The result of a command may be about an object of any kind.
 */
static const struct dws_part *parts_of_result (struct dws_text text)
{
    struct dws_text object = dws_text_find (text, "object");

    if (is (object, "kind", "\"Workflow\""))
        return of_workflow;
    if (is (object, "kind", "\"DirectiveBreakdown\""))
        return of_breakdown;
    return NULL;
}

static const struct dws_part *parts_of (struct dws_text text)
{
    if (is (text, "type", "\"workflow\""))
        return of_workflow;
    if (is (text, "type", "\"servers\""))
        return of_servers;
    if (is (text, "type", "\"snapshot\""))
        return of_snapshot;
    if (is (text, "type", "\"result\""))
        return parts_of_result (text);
    return NULL;
}

struct dws_reports *dws_reports_create (void)
{
    return calloc (1, sizeof (struct dws_reports));
}

int dws_reports_begin (struct dws_reports *reports, const char *payload)
{
    struct dws_excerpt *excerpt = &reports->excerpt;

    reports->begun = false;
    excerpt->rest = dws_text_find (dws_text (payload), "reports");
    if (excerpt->rest.len > reports->size) {
        char *buf = realloc (excerpt->buf, excerpt->rest.len);

        if (!buf)
            return -1;
        excerpt->buf = buf;
        reports->size = excerpt->rest.len;
    }
    return 0;
}

void dws_reports_destroy (struct dws_reports *reports)
{
    if (reports) {
        ERRNO_SAFE_BLOCK;
        json_decref (reports->o);
        free (reports->excerpt.buf);
        free (reports);
    }
}

int dws_reports_next (struct dws_reports *reports, struct dws_report *report)
{
    struct dws_excerpt *excerpt = &reports->excerpt;
    struct dws_text text = excerpt->rest;
    int rc;

    json_decref (reports->o);
    reports->o = NULL;
    if ((rc = dws_text_advance (&text, reports->begun)) <= 0)
        return rc;
    reports->begun = true;
    if (dws_text_excerpt (text, parts_of (text), excerpt) < 0)
        return -1;
    if (!(reports->o = dws_json_parse (excerpt->buf, excerpt->len)))
        return -1;
    *report = (struct dws_report){ reports->o, excerpt->marked };
    return 1;
}
