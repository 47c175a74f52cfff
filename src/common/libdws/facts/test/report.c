/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Tests of report.c.
 */

#include "libdws/facts/report.h"
#include "libdws/facts/workflow.h"
#include "libdws/test/util.h"

static char *quoted (const char *text)
{
    json_t *o = J (text);
    char *s = json_dumps (o, JSON_COMPACT);

    json_decref (o);
    return s;
}

/* The only report of a request.
 */
struct only {
    json_t *o;
    struct dws_workflow *wf;
    char *workflow;
    bool deleted;
};

static void read_only (const char *text, struct only *only)
{
    char *s = quoted (text);
    char *payload = malloc (strlen (s) + 32);
    struct dws_reports *reports;
    struct dws_report *report;

    sprintf (payload, "{\"reports\":[%s]}", s);
    assert_non_null (reports = dws_reports_create ("me"));
    assert_int_equal (dws_reports_begin (reports, payload, NULL), 0);
    assert_int_equal (dws_reports_next (reports, &report), 1);
    *only = (struct only){
        .o = json_incref (report->o),
        .wf = report->wf,
        .workflow = report->workflow.s ? strndup (report->workflow.s,
                                                  report->workflow.len) : NULL,
        .deleted = report->deleted,
    };
    report->wf = NULL;
    assert_int_equal (dws_reports_next (reports, &report), 0);
    dws_reports_destroy (reports);
    free (payload);
    free (s);
}

static void forget_only (struct only *only)
{
    dws_workflow_destroy (only->wf);
    json_decref (only->o);
    free (only->workflow);
}

/* One without a workflow.
 */
static void assert_report (const char *text, const char *expected)
{
    struct only only;

    read_only (text, &only);
    assert_json (only.o, expected);
    assert_null (only.wf);
    assert_null (only.workflow);
    forget_only (&only);
}

/* All that is decoded of a workflow, but for pointers.
 */
static void assert_same (const struct dws_workflow *a,
                         const struct dws_workflow *b)
{
#define SAME(x) assert_true (a->x == b->x)
#define SAME_TEXT(x) \
    assert_string_equal (a->x ? a->x : "none", b->x ? b->x : "none")
    SAME_TEXT (name);
    SAME_TEXT (namespace);
    SAME_TEXT (uid);
    SAME_TEXT (message);
    SAME_TEXT (silent);
    SAME_TEXT (elapsed);
    SAME_TEXT (computes);
    SAME_TEXT (computes_namespace);
    SAME_TEXT (failed);
    SAME_TEXT (waived);
    SAME_TEXT (env);
    SAME_TEXT (token);
    SAME_TEXT (token_namespace);
    SAME_TEXT (breakdown_refs);
    SAME_TEXT (noted);
    SAME (jobid);
    SAME (version);
    SAME (ours);
    SAME (stray);
    SAME (deleting);
    SAME (finalizer);
    SAME (desired);
    SAME (state);
    SAME (status);
    SAME (trouble);
    SAME (ready);
    SAME (force_ready);
    SAME (userid);
    SAME (directives_hash);
    SAME (destroys);
    SAME (containers);
    SAME (mounts);
    SAME (moves);
    SAME (t_desired);
    SAME (stamp_state);
    SAME (stamped);
    SAME (t_stamp);
    SAME (failed_at);
    SAME (t_failed);
    SAME (retry);
    SAME (t_ready);
    SAME (breakdown_count);
}

#define WORKFLOW(DRIVERS, MORE) \
    "{'apiVersion': 'v1', 'kind': 'Workflow'," \
    " 'metadata': {'name': 'fluxjob-77', 'namespace': 'ns', 'uid': 'u1'," \
    "  'generation': 7, 'resourceVersion': '123', " MORE \
    "  'labels': {'flux-framework.org/instance': 'me'}, 'annotations': {" \
    "   'flux-framework.org/failed-nodes': 'a', " \
    "   'flux-framework.org/waived-nodes': 'b', " \
    "   'flux-framework.org/transient-since': 'Setup 5.5', " \
    "   'flux-framework.org/stage-out-failed': '7.5', " \
    "   'flux-framework.org/stage-out-retry': '1'}," \
    "  'finalizers': ['a', 'flux-framework.readthedocs.io/workflow']}," \
    " 'spec': {'desiredState': 'Setup', 'userID': 5000, 'hurry': false," \
    "  'forceReady': true, 'groupID': 5, 'wlmID': 'flux', 'jobID': 'f2'," \
    "  'dwDirectives': ['#DW jobdw type=xfs name=a', '#DW container name=b'," \
    "   '#DW destroy_persistent name=x', '#DW copy_out source=/a', 5]}," \
    " 'status': {'state': 'Setup', 'ready': true, 'status': 'DriverWait'," \
    "  'message': 'DW Directive 3: m', 'elapsedTimeLastState': '1s'," \
    "  'desiredStateChange': '2026-01-02T03:04:05.250000Z'," \
    "  'readyChange': '2026-01-02T03:04:06.250000Z'," \
    "  'computes': {'kind': 'Computes', 'name': 'c', 'namespace': 'n'}," \
    "  'env': {'DW_JOB_a': '/b'}, 'workflowToken': {" \
    "   'secretName': 's', 'secretNamespace': 'sn'}," \
    "  'directiveBreakdowns': [{'name': 'b', 'namespace': 'n'}]," \
    "  'drivers': " DRIVERS "}}"

#define SILENT \
    "[{'watchState': 'Setup', 'completed': false, 'error': 'internal error: " \
    "Node: rabbit-1: default/x has not been reconciled after 600 s'}]"

static const char *const workflows[] = {
    WORKFLOW ("[]", ""),
    WORKFLOW ("[]", "'deletionTimestamp': '2026-01-02T03:04:05Z',"),
    WORKFLOW ("[{'watchState': 'Setup', 'completed': false,"
              " 'message': 'allocation set not ready'}]", ""),
    WORKFLOW ("[{'watchState': 'Setup', 'completed': false, 'message': ''}]",
              ""),
    WORKFLOW ("[{'watchState': 'Setup', 'completed': true, 'message': 'x'},"
              " {'watchState': 'Setup', 'completed': false,"
              "  'status': 'Error'}]", ""),
    WORKFLOW ("[{'watchState': 'Setup', 'status': 'TransientCondition'}]", ""),
    WORKFLOW (SILENT, ""),
};

/* What is reported is the same as what is decoded of the object alone.
 */
static void check_decoded (const char *text, const char *report)
{
    char *object = quoted (text);
    struct dws_workflow *a = dws_workflow_decode (dws_text (object), "me", NULL);
    struct only only;

    assert_non_null (a);
    read_only (report, &only);
    assert_non_null (only.wf);
    assert_same (a, only.wf);
    assert_string_equal (only.workflow, object);
    forget_only (&only);
    dws_workflow_destroy (a);
    free (object);
}

/* The parts that are read make the same of it as the whole.
 */
static void test_workflow (void **state)
{
    for (size_t i = 0; i < sizeof (workflows) / sizeof (workflows[0]); i++) {
        char buf[4096];

        snprintf (buf, sizeof (buf), "{'type': 'workflow', 'event': 'MODIFIED',"
                  " 'object': %s}", workflows[i]);
        check_decoded (workflows[i], buf);
        snprintf (buf, sizeof (buf), "{'type': 'result', 'seq': 7, 'ok': true,"
                  " 'object': %s}", workflows[i]);
        check_decoded (workflows[i], buf);
    }
}

/* Of the result of a command there is the rest, too.
 */
static void test_result (void **state)
{
    struct only only;

    read_only ("{'object': {'kind': 'Workflow', 'metadata': {'name': 'x'}},"
               " 'type': 'result', 'seq': 7, 'ok': false,"
               " 'status': 409, 'reason': 'r', 'message': 'm'}", &only);
    assert_json (only.o, "{'type': 'result', 'seq': 7, 'ok': false,"
                 " 'status': 409, 'message': 'm'}");
    assert_null (only.wf);
    assert_string_equal (only.workflow,
                         "{\"kind\":\"Workflow\",\"metadata\":{\"name\":\"x\"}}");
    forget_only (&only);
}

static void test_deleted (void **state)
{
    struct only only;

    read_only ("{'type': 'workflow', 'event': 'DELETED', 'object':"
               " {'metadata': {'name': 'fluxjob-1'}}}", &only);
    assert_null (only.o);
    assert_non_null (only.wf);
    assert_true (only.deleted);
    forget_only (&only);
}

/* Of other objects, and of any that is read, all is there.
 */
static void test_whole (void **state)
{
    static const char *const texts[] = {
        "{'type': 'result', 'seq': 1, 'ok': true, 'object':"
        " {'kind': 'Servers', 'metadata': {'x': 1}, 'y': 2}}",
        "{'type': 'result', 'seq': 1, 'ok': true, 'objects': [{'x': 1}]}",
        "{'type': 'storage', 'event': 'ADDED', 'object': {'x': {'y': []}}}",
        "{'type': 'health', 'ok': false, 'message': 'm'}",
        "{'type': 'unheard of', 'x': 1}",
    };

    for (size_t i = 0; i < sizeof (texts) / sizeof (texts[0]); i++)
        assert_report (texts[i], texts[i]);
}

static void test_servers (void **state)
{
    assert_report ("{'type': 'snapshot', 'more': true, 'servers': [{'kind':"
                   " 'Servers', 'metadata': {'name': 'n', 'uid': 'u',"
                   "  'labels': {'a': 'b', '" DWS_LABEL_WORKFLOW "': 'w',"
                   "   '" DWS_LABEL_PERSISTENT "': 'p'}},"
                   " 'spec': {'x': 1}, 'status':"
                   " {'ready': true, 'lastUpdate': 't', 'allocationSets':"
                   "  [{'label': 'xfs'}]}}],"
                   " 'storages': [{'x': 1}]}",
                   "{'type': 'snapshot', 'more': true, 'servers':"
                   " [{'metadata': {'name': 'n', 'labels':"
                   "    {'" DWS_LABEL_WORKFLOW "': 'w',"
                   "     '" DWS_LABEL_PERSISTENT "': 'p'}},"
                   "   'spec': {'x': 1}, 'status': {'ready': true,"
                   "   'allocationSets': [{'label': 'xfs'}]}}],"
                   " 'storages': [{'x': 1}]}");
}

static void test_breakdown (void **state)
{
    assert_report ("{'type': 'result', 'seq': 7, 'ok': true, 'object':"
                   " {'apiVersion': 'v1', 'kind': 'DirectiveBreakdown',"
                   "  'metadata': {'name': 'n', 'labels': {'a': 'b'}},"
                   "  'spec': {'x': 1}, 'status': {'y': 1}}}",
                   "{'type': 'result', 'seq': 7, 'ok': true, 'object':"
                   " {'kind': 'DirectiveBreakdown', 'metadata': {'name': 'n'},"
                   "  'status': {'y': 1}}}");
}

/* The workflows of a snapshot are there as text.
 */
static void test_snapshot (void **state)
{
    struct dws_reports *reports = dws_reports_create ("me");
    struct dws_report *report;

    assert_non_null (reports);
    assert_int_equal (dws_reports_begin (reports, "{\"reports\":[{\"type\":"
                                         "\"snapshot\",\"workflows\":[{\"x\":1},"
                                         "{}]}]}", NULL), 0);
    assert_int_equal (dws_reports_next (reports, &report), 1);
    assert_true (dws_text_is (report->workflows, "[{\"x\":1},{}]"));
    assert_json (report->o, "{'type': 'snapshot', 'workflows': [{}, {}]}");
    dws_reports_destroy (reports);
}

static void test_malformed (void **state)
{
    static const struct {
        const char *payload;
        const char *fault;
    } none[] = {
        { NULL, "reports: is required" },
        { "", "reports: is required" },
        { "x", "reports: is required" },
        { "{}", "reports: is required" },
        { "{\"reports\": null}", "reports: expected an array" },
        { "{\"reports\": 7}", "reports: expected an array" },
        { "{\"reports\": \"[]\"}", "reports: expected an array" },
        { "{\"reports\": {}}", "reports: expected an array" },
    };
    static const char *const payloads[] = {
        "{\"reports\": [",
        "{\"reports\": [{\"type\": \"workflow\", \"object\": {}",
        "{\"reports\": [{\"type\": x}]}",
    };

    struct dws_reports *reports = dws_reports_create ("me");
    struct dws_report *report;
    dws_error_t error;

    assert_non_null (reports);
    for (size_t i = 0; i < sizeof (none) / sizeof (none[0]); i++) {
        assert_int_equal (dws_reports_begin (reports, none[i].payload, &error), -1);
        assert_int_equal (errno, EPROTO);
        assert_string_equal (error.text, none[i].fault);
    }
    for (size_t i = 0; i < sizeof (payloads) / sizeof (payloads[0]); i++) {
        assert_int_equal (dws_reports_begin (reports, payloads[i], NULL), 0);
        errno = 0;
        assert_int_equal (dws_reports_next (reports, &report), -1);
        assert_int_equal (errno, EINVAL);
    }
    dws_reports_destroy (reports);
    dws_reports_destroy (NULL);
}

/* A report that can not be read is one of its own, and those beside it can.
 */
static void test_unreadable (void **state)
{
    static const struct {
        const char *report;
        const char *read;
    } tab[] = {
        { "{'type': 'workflow', 'object': x}", "{'type': 'workflow'}" },
        { "{'type': 'workflow', 'object': {'metadata': {'name': 'fluxjob-1'},"
          " 'spec': {'dwDirectives': [x]}}}", "{'type': 'workflow'}" },
        { "{'type': 'workflow', 'object': {'metadata': {'name': 'fluxjob-1',"
          " 'uid': '\\q'}}}", "{'type': 'workflow'}" },
        { "{'type': 'health', 'x': '\\q'}", "{'type': 'health'}" },
        { "{'type': 'storage', 'object': {'x': 99999999999999999999}}",
          "{'type': 'storage'}" },
        { "{'objects': [{'log': 'a\\ud800b'}], 'ok': true, 'seq': 7,"
          " 'type': 'result'}",
          "{'seq': 7, 'type': 'result', 'ok': false, 'status': 500, 'message':"
          " 'the answer of Kubernetes can not be read'}" },
    };
    struct dws_reports *reports = dws_reports_create ("me");
    struct dws_report *report;

    assert_non_null (reports);
    for (size_t i = 0; i < sizeof (tab) / sizeof (tab[0]); i++) {
        char payload[1024];

        snprintf (payload, sizeof (payload), "{'reports':[{'type':'a'},%s,"
                  "{'type':'b'}]}", tab[i].report);
        for (char *p = payload; *p; p++)
            if (*p == '\'')
                *p = '"';
        assert_int_equal (dws_reports_begin (reports, payload, NULL), 0);
        assert_int_equal (dws_reports_next (reports, &report), 1);
        assert_false (report->malformed);
        assert_int_equal (dws_reports_next (reports, &report), 1);
        assert_true (report->malformed);
        assert_json (report->o, tab[i].read);
        assert_null (report->wf);
        assert_null (report->workflow.s);
        assert_int_equal (dws_reports_next (reports, &report), 1);
        assert_false (report->malformed);
        assert_json (report->o, "{'type': 'b'}");
        assert_int_equal (dws_reports_next (reports, &report), 0);
    }
    dws_reports_destroy (reports);
}

/* A report of each type, with its fields: '?' begins the name of one that may be left out,
 * and a field that only failures have is in a report of its own.
 */
#define PLAIN_WORKFLOW "{'kind':'Workflow','metadata':{'name':'fluxjob-1'}}"

static const struct {
    const char *report;
    const char *fields[8];
} of_type[] = {
    { "{'type':'snapshot','workflows':[],'servers':[],'storages':[],"
      "'persistentstorageinstances':[],'more':true}",
      { "type", "?workflows", "?servers", "?storages",
        "?persistentstorageinstances", "?more" } },
    { "{'type':'workflow','event':'ADDED','object':" PLAIN_WORKFLOW "}",
      { "type", "event", "object" } },
    { "{'type':'storage','event':'MODIFIED','object':{}}",
      { "type", "event", "object" } },
    { "{'type':'persistent','event':'DELETED','object':{}}",
      { "type", "event", "object" } },
    { "{'type':'servers','event':'ADDED','object':{}}",
      { "type", "event", "object" } },
    { "{'type':'result','seq':7,'ok':true,'object':{},'objects':[],'value':'x'}",
      { "type", "seq", "ok", "?object", "?objects", "?value" } },
    { "{'type':'result','seq':7,'ok':false,'status':404,'message':'no'}",
      { "type", "seq", "ok", "status", "message" } },
    { "{'type':'result','seq':7,'ok':true,'object':" PLAIN_WORKFLOW "}",
      { "type", "seq", "ok" } },
    { "{'type':'result','seq':7,'ok':false,'status':409,'message':'no','object':"
      PLAIN_WORKFLOW "}", { "type", "seq", "ok", "status", "message" } },
    { "{'type':'health','ok':true,'message':''}", { "type", "ok", "message" } },
    { "{'type':'trouble','seq':7,'status':0,'message':''}",
      { "type", "seq", "status", "message" } },
    { "{'type':'stats','stats':{}}", { "type", "stats" } },
};

/* Is it malformed, for that field?
 */
static bool at_fault (json_t *o, const char *field)
{
    struct dws_reports *reports = dws_reports_create ("me");
    struct dws_report *report;
    json_t *request = json_pack ("{s:[O]}", "reports", o);
    char *payload = json_dumps (request, JSON_COMPACT);
    bool malformed;

    assert_int_equal (dws_reports_begin (reports, payload, NULL), 0);
    assert_int_equal (dws_reports_next (reports, &report), 1);
    malformed = report->malformed;
    if (malformed && field
        && (strncmp (report->fault, field, strlen (field)) != 0
            || report->fault[strlen (field)] != ':'))
        fail_msg ("%s: %s: '%s'", payload, field, report->fault);
    dws_reports_destroy (reports);
    free (payload);
    json_decref (request);
    return malformed;
}

static void test_fields (void **state)
{
    static const char *const values[] = {
        "null", "true", "-1", "0", "1.5", "7", "'x'", "[]", "{}",
    };

    for (size_t i = 0; i < sizeof (of_type) / sizeof (of_type[0]); i++) {
        json_t *good = J (of_type[i].report);

        assert_false (at_fault (good, NULL));
        for (const char *const *s = of_type[i].fields; *s; s++) {
            bool optional = **s == '?';
            const char *field = optional ? *s + 1 : *s;
            json_t *right = json_object_get (good, field);
            json_t *bad = json_copy (good);
            int wrong = 0;

            /* Without its type nobody knows what it has to have. */
            json_object_del (bad, field);
            assert_true (at_fault (bad, strcmp (field, "type") ? field : NULL)
                         || optional);
            for (size_t j = 0; j < sizeof (values) / sizeof (values[0]); j++) {
                json_t *value = J (values[j]);
                bool same = json_typeof (value) == json_typeof (right)
                    || (json_is_boolean (value) && json_is_boolean (right));

                json_object_set_new (bad, field, value);
                if (!same || (json_is_integer (value) && *values[j] == '-')) {
                    if (!at_fault (bad, strcmp (field, "type") ? field : NULL))
                        fail_msg ("%s: %s is taken as %s", of_type[i].report,
                                  values[j], field);
                    wrong++;
                }
            }
            assert_true (wrong >= 6);
            json_decref (bad);
        }
        json_decref (good);
    }
}

/* What programs print may have any character in it.
 */
static void test_nul (void **state)
{
    struct only only;

    read_only ("{'type': 'result', 'seq': 1, 'ok': true, 'object': {'kind': 'x',"
               " 'log': 'a\\u0000b'}}", &only);
    assert_json (only.o, "{'type': 'result', 'seq': 1, 'ok': true, 'object':"
                 " {'kind': 'x', 'log': 'a\\u0000b'}}");
    forget_only (&only);
    read_only ("{'type': 'workflow', 'event': 'ADDED', 'object': {'metadata':"
               " {'name': 'fluxjob-1'}, 'status': {'message': 'a\\u0000b'}}}", &only);
    assert_non_null (only.wf);
    assert_string_equal (only.wf->message, "a");
    forget_only (&only);
}

static void test_several (void **state)
{
    static const struct {
        const char *payload;
        const char *types;
    } tab[] = {
        { "{\"reports\":[{\"type\":\"x\"}]}", "x" },
        { "{ \"reports\" : [ {\"type\": \"a\"} , {\"type\": \"b\"} ] }",
          "ab" },
        { "{\"reports\":[]}", "" },
        { "{\"reports\":[{\"type\":\"y\"}]}", "y" },
    };
    struct dws_reports *reports = dws_reports_create ("me");
    struct dws_report *report;

    assert_non_null (reports);
    for (size_t i = 0; i < sizeof (tab) / sizeof (tab[0]); i++) {
        assert_int_equal (dws_reports_begin (reports, tab[i].payload, NULL),
                          0);
        for (const char *type = tab[i].types; *type; type++) {
            json_t *found;

            assert_int_equal (dws_reports_next (reports, &report), 1);
            found = json_object_get (report->o, "type");
            assert_int_equal (*json_string_value (found), *type);
        }
        assert_int_equal (dws_reports_next (reports, &report), 0);
    }
    dws_reports_destroy (reports);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_workflow),
        cmocka_unit_test (test_result),
        cmocka_unit_test (test_deleted),
        cmocka_unit_test (test_whole),
        cmocka_unit_test (test_servers),
        cmocka_unit_test (test_breakdown),
        cmocka_unit_test (test_snapshot),
        cmocka_unit_test (test_malformed),
        cmocka_unit_test (test_unreadable),
        cmocka_unit_test (test_fields),
        cmocka_unit_test (test_nul),
        cmocka_unit_test (test_several),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
