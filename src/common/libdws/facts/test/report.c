/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Tests of report.c.
 */

#include "libdws/facts/report.h"
#include "libdws/facts/workflow.h"
#include "libdws/test/util.h"

/* One without a workflow goes on as it is.
 */
static void assert_report (const char *text, const char *expected)
{
    struct dws_report report;
    json_t *o = J (text);

    assert_int_equal (dws_report_read (&report, o, "me"), 0);
    assert_false (report.malformed);
    assert_json (report.o, expected);
    assert_string_equal (report.type,
                         json_string_value (json_object_get (o, "type")));
    assert_null (report.wf);
    assert_null (report.workflow);
    dws_report_clear (&report);
    json_decref (o);
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
    "{'kind': 'Workflow', 'name': 'fluxjob-77', 'namespace': 'ns', 'uid': 'u1'," \
    " 'version': '123', " MORE " 'label': 'me', 'failed': 'a', 'waived': 'b'," \
    " 'stamp': 'Setup 5.5', 'failed_at': '7.5', 'retry': '1'," \
    " 'finalizers': ['a', 'flux-framework.readthedocs.io/workflow']," \
    " 'desired': 'Setup', 'userid': 5000, 'force_ready': true," \
    " 'wlm': 'flux', 'noted': 'f2'," \
    " 'directives': ['#DW jobdw type=xfs name=a', '#DW container name=b'," \
    "   '#DW destroy_persistent name=x', '#DW copy_out source=/a', 5]," \
    " 'state': 'Setup', 'ready': true, 'status': 'DriverWait'," \
    " 'message': 'DW Directive 3: m', 'elapsed': '1s'," \
    " 't_desired': '2026-01-02T03:04:05.250000Z'," \
    " 't_ready': '2026-01-02T03:04:06.250000Z'," \
    " 'computes': 'c', 'computes_namespace': 'n', 'env': {'DW_JOB_a': '/b'}," \
    " 'token': 's', 'token_namespace': 'sn'," \
    " 'breakdowns': [{'name': 'b', 'namespace': 'n'}]," \
    " 'drivers': " DRIVERS "}"

#define SILENT \
    "[{'watchState': 'Setup', 'completed': false, 'error': 'internal error: " \
    "Node: rabbit-1: default/x has not been reconciled after 600 s'}]"

static const char *const workflows[] = {
    WORKFLOW ("[]", ""),
    WORKFLOW ("[]", "'deleting': '2026-01-02T03:04:05Z',"),
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
static void check_decoded (json_t *object, const char *rest)
{
    json_t *o = J (rest);
    struct dws_workflow *a = dws_workflow_decode (object, "me", NULL);
    struct dws_report report;

    assert_non_null (a);
    assert_int_equal (json_object_set (o, "object", object), 0);
    assert_int_equal (dws_report_read (&report, o, "me"), 0);
    assert_non_null (report.wf);
    assert_same (a, report.wf);
    assert_ptr_equal (report.workflow, object);
    dws_report_clear (&report);
    dws_workflow_destroy (a);
    json_decref (o);
}

static void test_workflow (void **state)
{
    for (size_t i = 0; i < sizeof (workflows) / sizeof (workflows[0]); i++) {
        json_t *object = J (workflows[i]);

        check_decoded (object, "{'type': 'workflow', 'event': 'MODIFIED'}");
        check_decoded (object, "{'type': 'result', 'seq': 7, 'ok': true}");
        json_decref (object);
    }
}

/* Of the result of a command there is the rest, too.
 */
static void test_result (void **state)
{
    static const char text[] =
        "{'object': {'kind': 'Workflow', 'name': 'x'},"
        " 'type': 'result', 'seq': 7, 'ok': false,"
        " 'status': 409, 'reason': 'r', 'message': 'm'}";
    json_t *o = J (text);
    struct dws_report report;

    assert_int_equal (dws_report_read (&report, o, "me"), 0);
    assert_json (report.o, text);
    assert_null (report.wf);
    assert_json (report.workflow,
                 "{'kind': 'Workflow', 'name': 'x'}");
    assert_null (dws_report_text (report.workflow));
    dws_report_clear (&report);
    json_decref (o);
}

static void test_deleted (void **state)
{
    json_t *o = J ("{'type': 'workflow', 'event': 'DELETED', 'object':"
                   " {'name': 'fluxjob-1', 'text': 'x'}}");
    struct dws_report report;

    assert_int_equal (dws_report_read (&report, o, "me"), 0);
    assert_non_null (report.wf);
    assert_true (report.deleted);
    assert_string_equal (dws_report_text (report.workflow), "x");
    dws_report_clear (&report);
    json_decref (o);
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

/* A report that can not be read: that of a command is a failure.
 */
static void test_unreadable (void **state)
{
    static const struct {
        const char *report;
        const char *read;
    } tab[] = {
        { "{'type': 'workflow', 'event': 'ADDED', 'object': []}", NULL },
        { "{'type': 'workflow', 'event': 'GONE', 'object':"
          " {'name': 'fluxjob-1'}}", NULL },
        { "{'objects': {}, 'ok': true, 'seq': 7, 'type': 'result'}",
          "{'seq': 7, 'type': 'result', 'ok': false, 'status': 500, 'message':"
          " 'the answer of Kubernetes can not be read'}" },
        { "{'texts': [7], 'ok': true, 'seq': 7, 'type': 'result'}",
          "{'seq': 7, 'type': 'result', 'ok': false, 'status': 500, 'message':"
          " 'the answer of Kubernetes can not be read'}" },
        { "{'ok': true, 'type': 'result'}",
          "{'type': 'result', 'ok': false, 'status': 500, 'message':"
          " 'the answer of Kubernetes can not be read'}" },
        { "{'type': 7}", NULL }, { "{}", NULL }, { "[]", NULL }, { "'x'", NULL },
    };

    for (size_t i = 0; i < sizeof (tab) / sizeof (tab[0]); i++) {
        json_t *o = J (tab[i].report);
        struct dws_report report;

        assert_int_equal (dws_report_read (&report, o, "me"), 0);
        assert_true (report.malformed);
        assert_json (report.o, tab[i].read ? tab[i].read : tab[i].report);
        assert_null (report.wf);
        assert_null (report.workflow);
        dws_report_clear (&report);
        json_decref (o);
    }
}

/* A report of each type, with its fields: '?' begins the name of one that may be left out,
 * and a field that only failures have is in a report of its own.
 */
#define PLAIN_WORKFLOW "{'kind':'Workflow','name':'fluxjob-1'}"

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
    { "{'type':'result','seq':7,'ok':true,'object':{},'objects':[],'texts':[],"
      "'value':'x'}",
      { "type", "seq", "ok", "?object", "?objects", "?texts", "?value" } },
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
    struct dws_report report;
    bool malformed;

    assert_int_equal (dws_report_read (&report, o, "me"), 0);
    malformed = report.malformed;
    if (malformed && field
        && (strncmp (report.fault.text, field, strlen (field)) != 0
            || report.fault.text[strlen (field)] != ':'))
        fail_msg ("%s: '%s'", field, report.fault.text);
    dws_report_clear (&report);
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
    static const char text[] =
        "{'type': 'result', 'seq': 1, 'ok': true, 'object': {'kind': 'x',"
        " 'log': 'a\\u0000b'}}";
    json_t *o = J ("{'type': 'workflow', 'event': 'ADDED', 'object':"
                   " {'name': 'fluxjob-1', 'message': 'a\\u0000b'}}");
    struct dws_report report;

    assert_report (text, text);
    assert_int_equal (dws_report_read (&report, o, "me"), 0);
    assert_non_null (report.wf);
    assert_string_equal (report.wf->message, "a");
    dws_report_clear (&report);
    json_decref (o);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_workflow),
        cmocka_unit_test (test_result),
        cmocka_unit_test (test_deleted),
        cmocka_unit_test (test_whole),
        cmocka_unit_test (test_unreadable),
        cmocka_unit_test (test_fields),
        cmocka_unit_test (test_nul),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
