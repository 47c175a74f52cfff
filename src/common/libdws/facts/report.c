/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See report.h.
 */

#include <errno.h>
#include <string.h>

#include "libdws/util/fields.h"
#include "libutil/errno_safe.h"
#include "report.h"

/* The fields of each type of report. Objects are not checked inside.
 */
#define ANY_FIELDS DWS_REQUIRED ("type", STRING)
#define OBJECT_FIELDS ANY_FIELDS, DWS_REQUIRED ("event", STRING), \
                      DWS_REQUIRED ("object", OBJECT)
#define RESULT_FIELDS ANY_FIELDS, DWS_REQUIRED ("seq", ID), \
                      DWS_REQUIRED ("ok", BOOL)

static const struct {
    const char *type;
    struct dws_field fields[8];
} reports_fields[] = {
    { "snapshot", { ANY_FIELDS,
        DWS_OPTIONAL ("workflows", ARRAY),
        DWS_OPTIONAL ("servers", ARRAY),
        DWS_OPTIONAL ("storages", ARRAY),
        DWS_OPTIONAL ("persistentstorageinstances", ARRAY),
        DWS_OPTIONAL ("more", BOOL) } },
    { "workflow", { OBJECT_FIELDS } },
    { "storage", { OBJECT_FIELDS } },
    { "persistent", { OBJECT_FIELDS } },
    { "servers", { OBJECT_FIELDS } },
    { "result", { RESULT_FIELDS,
        DWS_OPTIONAL ("object", OBJECT),
        DWS_OPTIONAL ("objects", ARRAY),
        DWS_OPTIONAL ("texts", STRINGS),
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

static const char *text_in (json_t *o, const char *key)
{
    const char *s = json_string_value (json_object_get (o, key));

    return s ? s : "";
}

static int check_event (json_t *o, dws_error_t *error)
{
    const char *event = text_in (o, "event");

    if (!json_object_get (o, "event") || !strcmp (event, "ADDED")
        || !strcmp (event, "MODIFIED") || !strcmp (event, "DELETED"))
        return 0;
    return dws_error (error, EPROTO,
                      "event: expected ADDED, MODIFIED or DELETED");
}

static int check_fields (json_t *o, const char *type, dws_error_t *error)
{
    int i = 0;

    while (reports_fields[i].type && strcmp (reports_fields[i].type, type) != 0)
        i++;
    if (dws_fields_check (o, reports_fields[i].fields, error) < 0
        || (!strcmp (type, "result") && json_is_false (json_object_get (o, "ok"))
            && dws_fields_check (o, failure_fields, error) < 0))
        return -1;
    return check_event (o, error);
}

/* A malformed result becomes a failure, since the sender of the command waits for it.
 */
static int set_malformed (struct dws_report *report)
{
    json_t *failed;

    report->malformed = true;
    if (strcmp (report->type, "result") != 0)
        return 0;
    failed = json_pack ("{s:s s:O* s:b s:i s:s}",
                        "type", "result",
                        "seq", json_object_get (report->o, "seq"),
                        "ok", 0,
                        "status", 500,
                        "message", "the answer of Kubernetes can not be read");
    if (!failed) {
        errno = ENOMEM;
        return -1;
    }
    json_decref (report->o);
    report->o = failed;
    report->type = json_string_value (json_object_get (failed, "type"));
    return 0;
}

/* The result of a command may be about an object of any kind.
 */
static bool has_workflow (const struct dws_report *report, json_t *object)
{
    return !strcmp (report->type, "workflow")
        || (!strcmp (report->type, "result")
            && !strcmp (text_in (object, "kind"), "Workflow"));
}

static int read_object (struct dws_report *report, const char *instance)
{
    json_t *object = json_object_get (report->o, "object");

    if (!has_workflow (report, object))
        return 0;
    report->workflow = object;
    report->deleted = !strcmp (text_in (report->o, "event"), "DELETED");
    report->wf = dws_workflow_decode (object, instance, NULL);
    return report->wf || errno == EINVAL ? 0 : -1;      // EINVAL: of no job
}

int dws_report_read (struct dws_report *report, json_t *o, const char *instance)
{
    *report = (struct dws_report){
        .o = json_incref (o),
        .type = text_in (o, "type"),
    };
    if ((check_fields (o, report->type, &report->fault) < 0
         ? set_malformed (report) : read_object (report, instance)) < 0) {
        ERRNO_SAFE (dws_report_clear (report));
        return -1;
    }
    return 0;
}

void dws_report_clear (struct dws_report *report)
{
    json_decref (report->o);
    dws_workflow_destroy (report->wf);
    report->o = NULL;
    report->wf = NULL;
}

const char *dws_report_text (json_t *workflow)
{
    return json_string_value (json_object_get (workflow, "text"));
}
