/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See report.h.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libdws/util/fields.h"
#include "libdws/util/jsonexcerpt.h"
#include "libdws/util/jsonparse.h"
#include "libutil/errno_safe.h"
#include "report.h"
#include "workflow_private.h"

struct dws_reports {
    const char *instance;
    struct dws_excerpt excerpt; // of the last one
    size_t size;                // of its buffer
    bool begun;
    struct dws_report report;
    dws_error_t fault;          // of the last one
    json_t *decoded;            // texts of 'report.wf'
};

/* A report with a Workflow object.
 */
struct about_workflow {
    struct workflow_text object;
    struct dws_text whole;
    struct dws_text type;
    struct dws_text event;
    struct dws_text message;
    struct dws_text ok;
    json_int_t seq;
    json_int_t status;
};

#define NO_STATUS -1            // a result has none that could be read

#define MEMBER(NAME, TYPE, FIELD, ...) \
    { .key = NAME, .type = DWS_PICK_##TYPE, \
      .offset = offsetof (struct about_workflow, FIELD), ##__VA_ARGS__ }

static const struct dws_member about_workflow[] = {
    MEMBER ("type", STRING, type),
    MEMBER ("event", STRING, event),
    MEMBER ("seq", INTEGER, seq),
    MEMBER ("ok", VALUE, ok),
    MEMBER ("status", INTEGER, status),
    MEMBER ("message", STRING, message),
    MEMBER ("object", VALUE, whole, .members = workflow_members),
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

static const struct dws_part breakdown_metadata[] = {
    { .key = "name" },
    { .key = "namespace" },
    { 0 },
};

static const struct dws_part breakdown[] = {
    { .key = "kind" },
    { .key = "metadata", .parts = breakdown_metadata },
    { .key = "status" },
    { 0 },
};

/* The parts of a report besides its object.
 */
#define REPORT \
    { .key = "type" }, { .key = "event" }, { .key = "seq" }, { .key = "ok" }, \
    { .key = "status" }, { .key = "reason" }, { .key = "message" }

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

static const struct dws_part of_malformed[] = {
    { .key = "type" },
    { .key = "seq" },
    { 0 },
};

/* The fields of each type of report. Those of one about a workflow are checked by
 * check_workflow().
 */
#define ANY_FIELDS DWS_REQUIRED ("type", STRING)
#define OBJECT_FIELDS ANY_FIELDS, DWS_REQUIRED ("event", STRING), \
                      DWS_REQUIRED ("object", OBJECT)
#define RESULT_FIELDS ANY_FIELDS, DWS_REQUIRED ("seq", ID), \
                      DWS_REQUIRED ("ok", BOOL)

static const struct {
    const char *type;
    struct dws_field fields[7];
} reports_fields[] = {
    { "snapshot", { ANY_FIELDS,
        DWS_OPTIONAL ("workflows", ARRAY),
        DWS_OPTIONAL ("servers", ARRAY),
        DWS_OPTIONAL ("storages", ARRAY),
        DWS_OPTIONAL ("persistentstorageinstances", ARRAY),
        DWS_OPTIONAL ("more", BOOL) } },
    { "storage", { OBJECT_FIELDS } },
    { "persistent", { OBJECT_FIELDS } },
    { "servers", { OBJECT_FIELDS } },
    { "result", { RESULT_FIELDS,
        DWS_OPTIONAL ("object", OBJECT),
        DWS_OPTIONAL ("objects", ARRAY),
        DWS_OPTIONAL ("value", STRING) } },
    { "health", { ANY_FIELDS, DWS_REQUIRED ("ok", BOOL),
                  DWS_REQUIRED ("message", STRING) } },
    { "trouble", { ANY_FIELDS, DWS_REQUIRED ("seq", ID),
                   DWS_REQUIRED ("status", COUNT),
                   DWS_REQUIRED ("message", STRING) } },
    { "stats", { ANY_FIELDS, DWS_REQUIRED ("stats", OBJECT) } },
    { NULL, { ANY_FIELDS } },   // of a newer release
};

static const struct dws_field failure_fields[] = {
    RESULT_FIELDS,
    DWS_REQUIRED ("status", COUNT),
    DWS_REQUIRED ("message", STRING),
    { 0 },
};

static const struct dws_part none[] = { { 0 } };

static const struct dws_part of_snapshot[] = {
    { .key = "type" },
    { .key = "more" },
    { .key = "workflows", .parts = none, .marked = true },
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

static bool is_result (struct dws_text text)
{
    return is (text, "type", "\"result\"");
}

/* The result of a command may be about an object of any kind.
 */
static bool has_workflow (struct dws_text text)
{
    if (is_result (text))
        return is (dws_text_find (text, "object"), "kind", "\"Workflow\"");
    return is (text, "type", "\"workflow\"");
}

static const struct dws_part *parts_of (struct dws_text text)
{
    if (is (text, "type", "\"servers\""))
        return of_servers;
    if (is (text, "type", "\"snapshot\""))
        return of_snapshot;
    if (is_result (text)
        && is (dws_text_find (text, "object"), "kind",
               "\"DirectiveBreakdown\""))
        return of_breakdown;
    return NULL;
}

struct dws_reports *dws_reports_create (const char *instance)
{
    struct dws_reports *reports = calloc (1, sizeof (*reports));

    if (reports)
        reports->instance = instance;
    return reports;
}

static void forget_report (struct dws_reports *reports)
{
    json_decref (reports->report.o);
    dws_workflow_destroy (reports->report.wf);
    json_decref (reports->decoded);
    reports->decoded = NULL;
    reports->report = (struct dws_report){ NULL };
}

int dws_reports_begin (struct dws_reports *reports, const char *payload,
                       dws_error_t *error)
{
    struct dws_excerpt *excerpt = &reports->excerpt;

    reports->begun = false;
    excerpt->rest = dws_text_find (dws_text (payload), "reports");
    if (excerpt->rest.len == 0)
        return dws_error (error, EPROTO, "reports: is required");
    if (*excerpt->rest.s != '[')
        return dws_error (error, EPROTO, "reports: expected an array");
    if (excerpt->rest.len > reports->size) {
        char *buf = realloc (excerpt->buf, excerpt->rest.len);

        if (!buf)
            return dws_error_nomem (error);
        excerpt->buf = buf;
        reports->size = excerpt->rest.len;
    }
    return 0;
}

void dws_reports_destroy (struct dws_reports *reports)
{
    if (reports) {
        ERRNO_SAFE_BLOCK;
        forget_report (reports);
        free (reports->excerpt.buf);
        free (reports);
    }
}

static int set_new (json_t *o, const char *key, json_t *value)
{
    return json_object_set_new_nocheck (o, key, value);
}

/* The result of a command, without its object.
 */
static json_t *result_of (const struct about_workflow *about)
{
    json_t *o = json_object ();

    if (!o || set_new (o, "type", json_string ("result")) < 0
        || set_new (o, "seq", json_integer (about->seq)) < 0
        || set_new (o, "ok", json_boolean (dws_text_is (about->ok, "true"))) < 0
        || set_new (o, "status", json_integer (about->status > 0
                                               ? about->status : 0)) < 0
        || set_new (o, "message", json_stringn_nocheck (about->message.s
                                                        ? about->message.s : "",
                                                        about->message.len)) < 0) {
        json_decref (o);
        errno = ENOMEM;
        return NULL;
    }
    return o;
}

static bool is_event (struct dws_text event)
{
    return dws_text_is (event, "ADDED") || dws_text_is (event, "MODIFIED")
        || dws_text_is (event, "DELETED");
}

static int check_workflow (const struct about_workflow *about,
                           dws_error_t *error)
{
    const char *fault = NULL;

    if (!about->whole.s || *about->whole.s != '{')
        fault = "object: expected an object";
    else if (!dws_text_is (about->type, "result")) {
        if (!is_event (about->event))
            fault = "event: expected ADDED, MODIFIED or DELETED";
    }
    else if (about->seq <= 0)
        fault = "seq: expected an integer above 0";
    else if (!about->ok.s)
        fault = "ok: is required";
    else if (dws_text_is (about->ok, "false")) {
        if (about->status < 0)
            fault = "status: expected an integer of 0 or more";
        else if (!about->message.s)
            fault = "message: expected a string";
    }
    else if (!dws_text_is (about->ok, "true"))
        fault = "ok: expected true or false";
    return fault ? dws_error (error, EINVAL, "%s", fault) : 0;
}

static int read_workflow (struct dws_reports *reports, struct dws_text text)
{
    struct dws_report *report = &reports->report;
    struct about_workflow about = {
        .object = workflow_unread,
        .status = NO_STATUS,
    };

    if (dws_text_pick (&text, about_workflow, &about, &reports->decoded) < 0)
        return -1;
    reports->excerpt.rest = text;
    if (check_workflow (&about, &reports->fault) < 0)
        return -1;
    if (dws_text_is (about.type, "result")
        && !(report->o = result_of (&about)))
        return -1;
    report->workflow = about.whole;
    report->deleted = dws_text_is (about.event, "DELETED");
    report->wf = workflow_create (&about.object, reports->instance,
                                  &reports->decoded, NULL);
    if (!report->wf && errno == EPROTO)
        errno = EINVAL;
    else if (!report->wf && errno == EINVAL)
        return 0;               // of somebody else, or no object at all
    return report->wf ? 0 : -1;
}

static int check_other (json_t *o, dws_error_t *error)
{
    const char *type = json_string_value (json_object_get (o, "type"));
    const char *event = json_string_value (json_object_get (o, "event"));
    int i = 0;

    while (reports_fields[i].type
           && (!type || strcmp (reports_fields[i].type, type) != 0))
        i++;
    if (dws_fields_check (o, reports_fields[i].fields, error) < 0
        || (!strcmp (type, "result") && json_is_false (json_object_get (o, "ok"))
            && dws_fields_check (o, failure_fields, error) < 0)) {
        errno = EINVAL;
        return -1;
    }
    if (event && !is_event (dws_text (event)))
        return dws_error (error, EINVAL,
                          "event: expected ADDED, MODIFIED or DELETED");
    return 0;
}

static int read_other (struct dws_reports *reports, struct dws_text text)
{
    struct dws_excerpt *excerpt = &reports->excerpt;

    if (dws_text_excerpt (text, parts_of (text), excerpt) < 0
        || !(reports->report.o = dws_json_parse (excerpt->buf, excerpt->len))
        || check_other (reports->report.o, &reports->fault) < 0)
        return -1;
    reports->report.workflows = excerpt->marked;
    return 0;
}

static int read_report (struct dws_reports *reports, struct dws_text text)
{
    if (has_workflow (text))
        return read_workflow (reports, text);
    return read_other (reports, text);
}

/* Who has sent a command waits for its result.
 */
static int read_malformed (struct dws_reports *reports, struct dws_text text)
{
    struct dws_excerpt *excerpt = &reports->excerpt;
    json_t *o;

    forget_report (reports);
    if (dws_text_excerpt (text, of_malformed, excerpt) < 0
        || !(o = dws_json_parse (excerpt->buf, excerpt->len)))
        return -1;
    reports->report.o = o;
    reports->report.malformed = true;
    reports->report.fault = reports->fault.text;
    if (is_result (text)
        && (set_new (o, "ok", json_false ()) < 0
            || set_new (o, "status", json_integer (500)) < 0
            || set_new (o, "message", json_string ("the answer of Kubernetes can "
                                                   "not be read")) < 0)) {
        errno = ENOMEM;
        return -1;
    }
    return 0;
}

int dws_reports_next (struct dws_reports *reports, struct dws_report **report)
{
    struct dws_text text = reports->excerpt.rest;
    int rc;

    forget_report (reports);
    reports->fault.text[0] = '\0';
    if ((rc = dws_text_advance (&text, reports->begun)) <= 0)
        return rc;
    reports->begun = true;
    if (read_report (reports, text) < 0
        && (errno != EINVAL || read_malformed (reports, text) < 0))
        return -1;
    *report = &reports->report;
    return 1;
}
