/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of workflow.c.
 */

#include "libdws/facts/workflow.h"
#include "libdws/test/util.h"

#define WORKFLOW \
    "{'name': 'fluxjob-77', 'namespace': 'default', 'uid': 'u1'," \
    " 'version': '123', 'label': 'me'," \
    " 'finalizers': ['a', 'flux-framework.readthedocs.io/workflow']," \
    " 'desired': 'Setup', 'userid': 5000, 'directives': [" \
    "   '#DW jobdw type=xfs name=a', '#DW persistentdw name=b'," \
    "   '#DW copy_in source=/a', 5]," \
    " 'state': 'Setup', 'ready': true, 'status': 'Completed'," \
    " 'message': 'DW Directive 3: m', 'elapsed': '1s'," \
    " 't_desired': '2026-01-02T03:04:05.250000Z'," \
    " 'computes': 'c', 'computes_namespace': 'n'," \
    " 'env': {'DW_JOB_a': '/b'}, 'breakdowns': [{'name': 'b'}]}"

#define OTHER "{'name': 'fluxjob-77', 'uid': 'u2', 'desired': 'Proposal'}"

static struct dws_workflow *wf_decode (const char *text)
{
    json_t *o = J (text);
    struct dws_workflow *wf = dws_workflow_decode (o, "me", NULL);

    json_decref (o);
    return wf;
}

static void test_workflow (void **state)
{
    struct dws_workflow *wf = wf_decode (WORKFLOW);

    assert_non_null (wf);
    assert_string_equal (wf->name, "fluxjob-77");
    assert_true (wf->jobid == 77);
    assert_true (wf->version == 123);
    assert_true (wf->userid == 5000);
    assert_true (wf->ours);
    assert_true (wf->finalizer);
    assert_true (wf->ready);
    assert_false (wf->deleting);
    assert_int_equal (wf->desired, DWS_STATE_SETUP);
    assert_int_equal (wf->state, DWS_STATE_SETUP);
    assert_int_equal (wf->status, DWS_STATUS_COMPLETED);
    assert_string_equal (wf->message, "m");
    assert_int_equal (wf->mounts, 2);
    assert_string_equal (wf->elapsed, "1s");
    assert_string_equal (wf->computes, "c");
    assert_string_equal (wf->computes_namespace, "n");
    assert_int_equal (wf->breakdown_count, 1);
    assert_string_equal (wf->breakdown_refs, "[{\"name\":\"b\"}]");
    assert_string_equal (wf->env, "{\"DW_JOB_a\":\"/b\"}");
    assert_true (wf->t_desired == 1767323045.25);
    dws_workflow_destroy (wf);
    dws_workflow_destroy (NULL);
}

/* flux-coral2 gives no label, and other workload managers are none of ours.
 */
static void test_stray (void **state)
{
    static const struct {
        const char *text;
        bool stray;
    } tab[] = {
        { "{'name': 'fluxjob-1', 'wlm': 'flux'}", true },
        { "{'name': 'fluxjob-1', 'wlm': 'flux', 'label': 5}", true },
        { "{'name': 'fluxjob-1', 'wlm': 'flux', 'label': 'x'}", false },
        { "{'name': 'fluxjob-1', 'wlm': 'pbs'}", false },
        { "{'name': 'fluxjob-1'}", false },
    };

    for (size_t i = 0; i < sizeof (tab) / sizeof (tab[0]); i++) {
        struct dws_workflow *wf = wf_decode (tab[i].text);

        assert_non_null (wf);
        assert_int_equal (wf->stray, tab[i].stray);
        assert_false (wf->ours);
        dws_workflow_destroy (wf);
    }
}

/* The annotation says whose it is, whatever becomes of the label.
 */
static void test_ours (void **state)
{
    static const struct {
        const char *label;
        const char *maker;
        bool ours;
        bool unlabelled;
        bool stray;
    } tab[] = {
        { "'me'", "'me'", true, false, false },
        { "'me'", "null", true, false, false },
        { "'me'", "'other'", false, false, false },
        { "'other'", "'me'", true, true, false },
        { "''", "'me'", true, true, false },
        { "null", "'me'", true, true, false },
        { "'other'", "null", false, false, false },
        { "null", "'other'", false, false, false },
        { "null", "null", false, false, true },
    };

    for (size_t i = 0; i < sizeof (tab) / sizeof (tab[0]); i++) {
        struct dws_workflow *wf;
        char text[512];

        snprintf (text, sizeof (text),
                  "{'name': 'fluxjob-1', 'label': %s, 'maker': %s,"
                  " 'wlm': 'flux'}", tab[i].label, tab[i].maker);
        assert_non_null (wf = wf_decode (text));
        assert_int_equal (wf->ours, tab[i].ours);
        assert_int_equal (wf->unlabelled, tab[i].unlabelled);
        assert_int_equal (wf->stray, tab[i].stray);
        dws_workflow_destroy (wf);
    }
}

/* A fresh object, and one with nonsense in it: whatever can not be read has
 * not happened.
 */
static void test_workflow_tolerant (void **state)
{
    static const char *const odd[] = {
        "{'name': 'fluxjob-1'}",
        "{'name': 'fluxjob-1', 'label': 5, 'finalizers': {}, 'desired': [],"
        " 'state': {}}",
        "{'name': 'fluxjob-1', 'desired': 'X', 'computes': {}, 'env': {},"
        " 'ready': 1, 'state': 7, 't_desired': 'yesterday'}",
        "{'name': 'fluxjob-1', 'finalizers': [5, null, [], {}], 'maker': [],"
        " 'version': 'x', 'directives': {'a': 1}, 'userid': 1.5,"
        " 'force_ready': 'x', 'breakdowns': 'x', 'env': [1], 'token': 5,"
        " 'drivers': [5, null, 'x', [], {}, {'error': 5, 'status': []}]}",
        "{'name': 'fluxjob-1', 'finalizers': 'x', 'directives': 'x',"
        " 'userid': null, 'breakdowns': {'a': {}}, 'drivers': {'error': 'x'},"
        " 'env': null, 'stamp': 7, 'failed_at': {}, 'retry': true, 'noted': 5}",
    };

    for (size_t i = 0; i < sizeof (odd) / sizeof (odd[0]); i++) {
        struct dws_workflow *wf = wf_decode (odd[i]);
        assert_non_null (wf);
        assert_string_equal (wf->namespace, "default");
        assert_string_equal (wf->message, "");
        assert_null (wf->computes);
        assert_false (wf->ours);
        assert_false (wf->ready);
        assert_int_equal (wf->desired, DWS_STATE_NONE);
        assert_int_equal (wf->state, DWS_STATE_NONE);
        assert_true (wf->t_desired == 0.);
        dws_workflow_destroy (wf);
    }
}

static void test_foreign (void **state)
{
    static const char *const foreign[] = {
        "null", "{}", "{'name': 'other'}",
        "{'name': 'fluxjob-'}",
        "{'name': 'fluxjob-012'}",
        "{'name': 'fluxjob-12x'}",
        "{'name': 'fluxjob-12-'}",
        "{'name': 'fluxjob-12-0'}",
        "{'name': 'fluxjob-12-0123456'}",
        "{'name': 'fluxjob-12-012345678'}",
        "{'name': 'fluxjob-12-0123456x'}",
        "{'name': 'fluxjob-012-01234567'}",
        "{'name': 'fluxjob-99999999999999999999'}",
    };

    for (size_t i = 0; i < sizeof (foreign) / sizeof (foreign[0]); i++) {
        errno = 0;
        assert_null (wf_decode (foreign[i]));
        assert_int_equal (errno, EINVAL);
    }
}

static void test_inherit (void **state)
{
    struct dws_workflow *old = wf_decode (WORKFLOW);
    struct dws_workflow *wf = wf_decode (WORKFLOW);

    old->servers_written = true;
    old->breakdowns = dws_breakdowns_create (NULL, NULL);
    old->desired = wf->desired = DWS_STATE_PROPOSAL;
    dws_workflow_inherit (wf, old, 50.);
    assert_true (wf->servers_written);
    assert_non_null (wf->breakdowns);
    assert_null (old->breakdowns);
    dws_workflow_destroy (old);

    /* Breakdowns are not needed after Proposal. */
    old = wf;
    wf = wf_decode (WORKFLOW);
    dws_workflow_inherit (wf, old, 50.);
    assert_true (wf->servers_written);
    assert_null (wf->breakdowns);
    assert_true (wf->t_desired == 50.);
    dws_workflow_destroy (old);

    /* In this state it was first seen at 50, and touched later. */
    assert_true (wf->t_seen == 50.);
    wf->t_touched = 55.;

    /* A desired state that DWS has not taken up counts from its first sight,
     * as does a TransientCondition. */
    old = wf;
    wf = wf_decode (WORKFLOW);
    wf->desired = DWS_STATE_DATAIN;
    wf->status = DWS_STATUS_TRANSIENT;
    dws_workflow_inherit (wf, old, 60.);
    assert_true (wf->t_desired == 60.);
    assert_true (wf->t_seen == 50.);
    assert_true (wf->t_touched == 0.);
    assert_true (wf->t_transient == 60.);
    dws_workflow_destroy (old);
    old = wf;
    old->t_touched = 65.;
    wf = wf_decode (WORKFLOW);
    wf->desired = DWS_STATE_DATAIN;
    wf->status = DWS_STATUS_TRANSIENT;
    dws_workflow_inherit (wf, old, 70.);
    assert_true (wf->t_desired == 60.);
    assert_true (wf->t_touched == 65.);
    assert_true (wf->t_transient == 60.);
    dws_workflow_destroy (old);
    old = wf;
    wf = wf_decode (WORKFLOW);
    wf->desired = wf->state = DWS_STATE_DATAIN;
    dws_workflow_inherit (wf, old, 75.);
    assert_true (wf->t_seen == 75.);
    assert_true (wf->t_touched == 0.);
    dws_workflow_destroy (old);

    /* Another object of that name starts from nothing. */
    old = wf;
    wf = wf_decode (OTHER);
    wf->status = DWS_STATUS_TRANSIENT;
    dws_workflow_inherit (wf, old, 80.);
    assert_false (wf->servers_written);
    assert_null (wf->breakdowns);
    assert_true (wf->t_transient == 80.);
    dws_workflow_destroy (old);
    dws_workflow_inherit (wf, NULL, 90.);
    dws_workflow_destroy (wf);
}

#define TROUBLE(state, error) \
    "{'name': 'fluxjob-77', 'uid': 'u1', 'desired': 'Setup'," \
    " 'state': '" state "', 'status': 'DriverWait'," \
    " 'drivers': [{'watchState': '" state "', 'completed': false," \
    "   'status': 'Running', 'message': 'm', 'error': '" error "'}]}"

/* The clock of an error runs while there is one, in one state.
 */
static void test_trouble (void **state)
{
    static const struct {
        const char *text;
        double since;
    } course[] = {
        { TROUBLE ("Setup", "internal error: no"), 100. },
        { TROUBLE ("Setup", "internal error: r2: other"), 100. },
        { TROUBLE ("Setup", ""), 0. },
        { TROUBLE ("Setup", "internal error: no"), 103. },
        { TROUBLE ("DataIn", "internal error: no"), 104. },
    };
    struct dws_workflow *old = NULL;

    for (size_t i = 0; i < sizeof (course) / sizeof (course[0]); i++) {
        struct dws_workflow *wf = wf_decode (course[i].text);

        assert_non_null (wf);
        dws_workflow_inherit (wf, old, 100. + i);
        assert_true (wf->t_trouble == course[i].since);
        assert_false (dws_workflow_troubled (wf, 104.));
        dws_workflow_destroy (old);
        old = wf;
    }
    assert_true (dws_workflow_troubled (old, 109.));
    old->t_trouble = 0.;
    assert_false (dws_workflow_troubled (old, 109.));
    old->status = DWS_STATUS_ERROR;
    assert_true (dws_workflow_troubled (old, 0.));
    dws_workflow_destroy (old);
}

/* What the API server refuses in Proposal it refuses for good.
 */
#define REFUSED(state, ready) \
    "{'name': 'fluxjob-77', 'uid': 'u2', 'desired': '" state "'," \
    " 'state': '" state "', 'ready': " ready "," \
    " 'status': 'DriverWait', 'message': 'm', 'drivers': [" \
    "   {'watchState': '" state "', 'completed': false, 'status': 'Running'," \
    "    'error': 'internal error: admission webhook x denied the request: no'}" \
    " ]}"

static void test_refused (void **state)
{
    static const struct {
        const char *text;
        bool error;
    } tab[] = {
        { REFUSED ("Proposal", "false"), true },
        { REFUSED ("Proposal", "true"), false },
        { REFUSED ("Setup", "false"), false },
        { REFUSED ("PreRun", "false"), false },
    };

    for (size_t i = 0; i < sizeof (tab) / sizeof (tab[0]); i++) {
        struct dws_workflow *wf = wf_decode (tab[i].text);

        assert_non_null (wf);
        assert_int_equal (wf->status == DWS_STATUS_ERROR, tab[i].error);
        assert_non_null (strstr (wf->message, "denied the request: no"));
        dws_workflow_destroy (wf);
    }
}

/* What is seen to happen happens now, whatever the clock of the host says that DWS runs
 * on. Its stamps are for what has happened before.
 */
static void test_times (void **state)
{
    static const struct {
        enum dws_state desired;
        enum dws_state state;
        bool ready;
        double t_desired;
        double t_ready;
    } course[] = {
        { DWS_STATE_SETUP, DWS_STATE_SETUP, false, 1767323045.25, 0. },
        { DWS_STATE_SETUP, DWS_STATE_SETUP, true, 1767323045.25, 101. },
        { DWS_STATE_DATAIN, DWS_STATE_SETUP, true, 102., 101. },
        { DWS_STATE_DATAIN, DWS_STATE_DATAIN, false, 102., 0. },
        { DWS_STATE_DATAIN, DWS_STATE_DATAIN, true, 102., 104. },
        { DWS_STATE_PRERUN, DWS_STATE_PRERUN, true, 105., 105. },
        { DWS_STATE_PRERUN, DWS_STATE_PRERUN, true, 105., 105. },
    };
    struct dws_workflow *old = NULL;

    for (size_t i = 0; i < sizeof (course) / sizeof (course[0]); i++) {
        struct dws_workflow *wf = wf_decode (WORKFLOW);

        wf->desired = course[i].desired;
        wf->state = course[i].state;
        wf->ready = course[i].ready;
        dws_workflow_inherit (wf, old, 100. + i);
        assert_true (wf->t_desired == course[i].t_desired);
        assert_true (!wf->ready || wf->t_ready == course[i].t_ready);
        dws_workflow_destroy (old);
        old = wf;
    }
    dws_workflow_destroy (old);
}

#define FAILED(state, status, message) \
    "{'name': 'fluxjob-77', 'uid': 'u1', 'desired': '" state "'," \
    " 'state': '" state "', 'status': '" status "'," \
    " 'message': 'DW Directive 0: " message "'}"
#define OUTDATED "WLM error: Allocation request does not meet directive requirements"

/* Whether NNF has failed it for Servers that it had not seen is known of the object
 * until that is gone.
 */
static void test_outdated (void **state)
{
    static const struct {
        const char *text;
        bool outdated;
    } tab[] = {
        { FAILED ("Setup", "Error", OUTDATED), true },
        { FAILED ("Setup", "DriverWait", OUTDATED), false },
        { FAILED ("PreRun", "Error", OUTDATED), false },
        { FAILED ("Setup", "Error", "WLM error: storage directive requirements"
                  " were not satisfied"), false },
    };
    struct dws_workflow *old;
    struct dws_workflow *wf;

    for (size_t i = 0; i < sizeof (tab) / sizeof (tab[0]); i++) {
        wf = wf_decode (tab[i].text);
        assert_non_null (wf);
        assert_int_equal (wf->outdated, tab[i].outdated);
        dws_workflow_destroy (wf);
    }
    old = wf_decode (tab[0].text);
    wf = wf_decode (FAILED ("Teardown", "DriverWait", ""));
    dws_workflow_inherit (wf, old, 1.);
    assert_true (wf->outdated);
    dws_workflow_destroy (old);
    old = wf;
    wf = wf_decode (OTHER);
    dws_workflow_inherit (wf, old, 1.);
    assert_false (wf->outdated);
    dws_workflow_destroy (old);
    dws_workflow_destroy (wf);
}

/* The date of a TransientCondition outlives the process that has seen it begin,
 * in the same state.
 */
static void test_stamp (void **state)
{
    static const struct {
        const char *stamp;
        double since;
    } tab[] = {
        { "Setup 60.125", 60.125 },
        { "PreRun 60.125", 100. },
        { "Setup 100.5", 100. },        // somebody's clock
        { "Setup", 100. },
        { "Setup x", 100. },
        { "Setup -1", 100. },
        { "Setup inf", 100. },
        { "Setup nan", 100. },
        { "Nonsense 60", 100. },
        { "", 100. },
    };
    char buf[DWS_STAMP_SIZE];

    for (size_t i = 0; i < sizeof (tab) / sizeof (tab[0]); i++) {
        json_t *o = json_pack ("{s:s s:s s:s s:s s:s s:s}",
                               "name", "fluxjob-77",
                               "uid", "u1",
                               "stamp", tab[i].stamp,
                               "desired", "Setup",
                               "state", "Setup",
                               "status", "TransientCondition");
        struct dws_workflow *wf = dws_workflow_decode (o, "me", NULL);
        struct dws_workflow *next = dws_workflow_decode (o, "me", NULL);

        assert_non_null (wf);
        assert_non_null (next);
        dws_workflow_inherit (wf, NULL, 100.);
        assert_true (wf->t_transient == tab[i].since);
        assert_int_equal (dws_workflow_is_stamped (wf, wf->t_transient), i == 0);
        if (i == 0)
            assert_string_equal (dws_workflow_stamp (wf, wf->t_transient, buf),
                                 tab[i].stamp);
        /* who has seen it begin knows better */
        wf->t_transient = 90.;
        dws_workflow_inherit (next, wf, 110.);
        assert_true (next->t_transient == 90.);
        dws_workflow_destroy (next);
        dws_workflow_destroy (wf);
        json_decref (o);
    }
}

/* Texts that are not plain, in each place where they are copied from.
 */
static void test_escaped (void **state)
{
    static const char text[] =
        "{\"name\":\"fluxjob-\\u0037\",\"uid\":\"\\u00e9\\n\","
        "\"finalizers\":[\"flux-framework.readthedocs.io\\/workflow\"],"
        "\"desired\":\"Set\\u0075p\",\"state\":\"Setup\","
        "\"message\":\"DW Directive 1: \\\"x\\\"\"}";
    struct dws_workflow *wf = wf_decode (text);

    assert_non_null (wf);
    assert_string_equal (wf->name, "fluxjob-7");
    assert_true (wf->jobid == 7);
    assert_string_equal (wf->uid, "\xc3\xa9\n");
    assert_true (wf->finalizer);
    assert_int_equal (wf->desired, DWS_STATE_SETUP);
    assert_string_equal (wf->message, "\"x\"");
    dws_workflow_destroy (wf);
}

static void test_names (void **state)
{
    char buf[DWS_NAME_SIZE];

    assert_string_equal (dws_workflow_name (UINT64_MAX, NULL, buf),
                         "fluxjob-18446744073709551615");
    assert_true (dws_workflow_jobid (buf) == UINT64_MAX);
    assert_string_equal (dws_workflow_name (UINT64_MAX, "0123456789abcdef",
                                            buf),
                         "fluxjob-18446744073709551615-01234567");
    assert_true (dws_workflow_jobid (buf) == UINT64_MAX);
    assert_string_equal (dws_state_name (DWS_STATE_TEARDOWN), "Teardown");
    assert_string_equal (dws_state_name (99), "");
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_workflow),
        cmocka_unit_test (test_stray),
        cmocka_unit_test (test_ours),
        cmocka_unit_test (test_workflow_tolerant),
        cmocka_unit_test (test_foreign),
        cmocka_unit_test (test_inherit),
        cmocka_unit_test (test_trouble),
        cmocka_unit_test (test_refused),
        cmocka_unit_test (test_times),
        cmocka_unit_test (test_outdated),
        cmocka_unit_test (test_stamp),
        cmocka_unit_test (test_escaped),
        cmocka_unit_test (test_names),
    };

    return cmocka_run_group_tests_name ("workflow", tests, NULL, NULL);
}
