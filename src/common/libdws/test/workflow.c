/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of workflow.c.
 */

#include "libdws/workflow.h"
#include "util.h"

#define JOB "{'id': 5, 'userid': 7, 'phase': 'prolog', 'dw': ['#DW a']," \
    " 'resources': [], 'failure_tolerance': 2, 'run_started': false," \
    " 'exception': false, 'abandoned': false, 't_epilog': 0, 'other': 1}"

static struct dws_job *job_decode (const char *text, dws_error_t *error)
{
    json_t *o = J (text);
    struct dws_job *job = dws_job_decode (o, error);

    json_decref (o);
    return job;
}

static void test_job (void **state)
{
    struct dws_job *job = job_decode (JOB, NULL);

    assert_non_null (job);
    assert_true (job->id == 5);
    assert_int_equal (job->userid, 7);
    assert_int_equal (job->phase, DWS_PHASE_PROLOG);
    assert_int_equal (job->failure_tolerance, 2);
    assert_string_equal (job->directives, "[\"#DW a\"]");
    assert_string_equal (job->resources, "[]");
    dws_job_destroy (job);
    dws_job_destroy (NULL);
}

static void test_create_payload (void **state)
{
    struct dws_job *job;

    job = job_decode ("{'jobid': 9, 'userid': 7, 'dw_directives': ['#DW a'],"
                      " 'resources': [], 'failure_tolerance': 0}", NULL);
    assert_non_null (job);
    assert_true (job->id == 9);
    assert_int_equal (job->phase, DWS_PHASE_DEPEND);
    dws_job_destroy (job);
}

static void test_job_refused (void **state)
{
    static const char *const bad[] = {
        "{}", "[]", "null",
        "{'userid': 7, 'dw': [], 'resources': []}",
        "{'id': -1, 'userid': 7, 'dw': [], 'resources': []}",
        "{'id': 5, 'userid': -7, 'dw': [], 'resources': []}",
        "{'id': 5, 'userid': 4294967296, 'dw': [], 'resources': []}",
        "{'id': 5, 'userid': 7, 'dw': '#DW', 'resources': []}",
        "{'id': 5, 'userid': 7, 'resources': []}",
        "{'id': 5, 'userid': 7, 'dw': []}",
        "{'id': 5, 'userid': 7, 'dw': [], 'resources': [], 'phase': 'x'}",
        "{'id': 5, 'userid': 7, 'dw': [], 'resources': [],"
        " 'failure_tolerance': -1}",
    };

    for (size_t i = 0; i < sizeof (bad) / sizeof (bad[0]); i++) {
        dws_error_t error = { "" };
        errno = 0;
        assert_null (job_decode (bad[i], &error));
        assert_int_equal (errno, EPROTO);
        assert_string_not_equal (error.text, "");
    }
}

static void test_job_update (void **state)
{
    struct dws_job *job = job_decode (JOB, NULL);
    struct dws_job *old;

    old = job_decode ("{'id': 5, 'userid': 7, 'phase': 'depend', 'dw': [],"
                      " 'resources': [1], 'exception': true}", NULL);
    assert_non_null (old);
    assert_true (dws_job_advance (job, DWS_PHASE_EPILOG));
    assert_false (dws_job_advance (job, DWS_PHASE_EPILOG));
    assert_false (dws_job_advance (job, DWS_PHASE_RUNNING));
    job->run_started = true;
    dws_job_update (job, old);
    assert_int_equal (job->phase, DWS_PHASE_EPILOG);
    assert_true (job->run_started);
    assert_true (job->exception);
    assert_string_equal (job->resources, "[1]");
    dws_job_destroy (old);
    dws_job_destroy (job);
}

static void test_R (void **state)
{
    struct dws_job *job = job_decode (JOB, NULL);
    dws_error_t error;
    json_t *R;
    static const char *const bad[] = {
        "{}", "{'execution': {'nodelist': 'node[0-3]'}}",
        "{'execution': {'nodelist': [5]}}",
        "{'execution': {'nodelist': ['node[0-']}}",
    };

    R = J ("{'execution': {'nodelist': ['node[2-3]', 'node[0-1,2]']}}");
    assert_int_equal (dws_job_set_R (job, R, &error), 0);
    assert_string_equal (job->hosts, "node[0-3]");
    json_decref (R);
    for (size_t i = 0; i < sizeof (bad) / sizeof (bad[0]); i++) {
        R = J (bad[i]);
        assert_int_equal (dws_job_set_R (job, R, &error), -1);
        assert_int_equal (errno, EINVAL);
        assert_string_equal (job->hosts, "node[0-3]");
        json_decref (R);
    }
    dws_job_destroy (job);
}

#define WORKFLOW \
    "{'metadata': {'name': 'fluxjob-77', 'namespace': 'default'," \
    "  'uid': 'u1', 'resourceVersion': '123'," \
    "  'labels': {'flux-framework.org/instance': 'me'}," \
    "  'finalizers': ['a', 'flux-framework.readthedocs.io/workflow']}," \
    " 'spec': {'desiredState': 'Setup'}," \
    " 'status': {'state': 'Setup', 'ready': true, 'status': 'Completed'," \
    "  'message': 'm', 'elapsedTimeLastState': '1s'," \
    "  'desiredStateChange': '2026-01-02T03:04:05.250000Z'," \
    "  'computes': {'name': 'c', 'namespace': 'n'}," \
    "  'env': {'DW_JOB_a': '/b'}," \
    "  'directiveBreakdowns': [{'name': 'b'}]}}"

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
    assert_true (wf->ours);
    assert_true (wf->finalizer);
    assert_true (wf->ready);
    assert_false (wf->deleting);
    assert_int_equal (wf->desired, DWS_STATE_SETUP);
    assert_int_equal (wf->state, DWS_STATE_SETUP);
    assert_int_equal (wf->status, DWS_STATUS_COMPLETED);
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

/* A fresh object, and one with nonsense in it: whatever can not be read has
 * not happened.
 */
static void test_workflow_tolerant (void **state)
{
    static const char *const odd[] = {
        "{'metadata': {'name': 'fluxjob-1'}}",
        "{'metadata': {'name': 'fluxjob-1', 'labels': 5, 'finalizers': {}},"
        " 'spec': [], 'status': 'x'}",
        "{'metadata': {'name': 'fluxjob-1'}, 'spec': {'desiredState': 'X'},"
        " 'status': {'computes': {}, 'env': {}, 'ready': 1, 'state': 7,"
        " 'desiredStateChange': 'yesterday'}}",
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
        "null", "{}", "{'metadata': {'name': 'other'}}",
        "{'metadata': {'name': 'fluxjob-'}}",
        "{'metadata': {'name': 'fluxjob-012'}}",
        "{'metadata': {'name': 'fluxjob-12x'}}",
        "{'metadata': {'name': 'fluxjob-12-'}}",
        "{'metadata': {'name': 'fluxjob-12-0'}}",
        "{'metadata': {'name': 'fluxjob-12-0123456'}}",
        "{'metadata': {'name': 'fluxjob-12-012345678'}}",
        "{'metadata': {'name': 'fluxjob-12-0123456x'}}",
        "{'metadata': {'name': 'fluxjob-012-01234567'}}",
        "{'metadata': {'name': 'fluxjob-99999999999999999999'}}",
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
    old->breakdowns = strdup ("[]");
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
    assert_true (wf->t_desired == 1767323045.25);
    dws_workflow_destroy (old);

    /* A desired state that DWS has not taken up counts from its first sight,
     * as does a TransientCondition. */
    old = wf;
    wf = wf_decode (WORKFLOW);
    wf->desired = DWS_STATE_DATAIN;
    wf->status = DWS_STATUS_TRANSIENT;
    dws_workflow_inherit (wf, old, 60.);
    assert_true (wf->t_desired == 60.);
    assert_true (wf->t_transient == 60.);
    dws_workflow_destroy (old);
    old = wf;
    wf = wf_decode (WORKFLOW);
    wf->desired = DWS_STATE_DATAIN;
    wf->status = DWS_STATUS_TRANSIENT;
    dws_workflow_inherit (wf, old, 70.);
    assert_true (wf->t_desired == 60.);
    assert_true (wf->t_transient == 60.);
    dws_workflow_destroy (old);

    /* Another object of that name starts from nothing. */
    old = wf;
    wf = wf_decode (WORKFLOW);
    free (wf->uid);
    wf->uid = strdup ("u2");
    wf->status = DWS_STATUS_TRANSIENT;
    dws_workflow_inherit (wf, old, 80.);
    assert_false (wf->servers_written);
    assert_null (wf->breakdowns);
    assert_true (wf->t_transient == 80.);
    dws_workflow_destroy (old);
    dws_workflow_inherit (wf, NULL, 90.);
    dws_workflow_destroy (wf);
}

#define EXCEPTION(type, severity) \
    "{\"timestamp\":2,\"name\":\"exception\",\"context\":" \
    "{\"type\":\"" type "\",\"severity\":" severity "}}\n"
#define EPILOG(description) \
    "{\"timestamp\":1,\"name\":\"epilog-start\",\"context\":" \
    "{\"description\":\"" description "\"}}\n"

#define FINISH \
    "{\"timestamp\":3,\"name\":\"epilog-finish\",\"context\":" \
    "{\"description\":\"dws-epilog\",\"status\":0}}\n"
#define SUBMIT "{\"timestamp\":1,\"name\":\"submit\",\"context\":" \
    "{\"userid\":42,\"urgency\":16,\"flags\":0,\"version\":1}}\n"

/* Only the exception of its own epilog lets a job go early.
 */
static void test_recall (void **state)
{
    static const struct {
        const char *eventlog;
        bool abandoned;
        bool released;
    } tab[] = {
        { NULL, false, false },
        { "", false, false },
        { "not JSON\n{}\n[]", false, false },
        { EPILOG ("dws-epilog") EXCEPTION ("dws-epilog-timeout", "0"),
          true, false },
        { "{}\n" EPILOG ("dws-epilog") EXCEPTION ("cancel", "0")
          EXCEPTION ("dws-epilog-timeout", "0") "{}", true, false },
        { EPILOG ("dws-epilog") EXCEPTION ("dws-epilog-timeout", "1"),
          false, false },
        { EPILOG ("dws-epilog") EXCEPTION ("cancel", "0"), false, false },
        { EXCEPTION ("dws-epilog-timeout", "0") EPILOG ("dws-epilog"),
          false, false },
        { EPILOG ("other") EXCEPTION ("dws-epilog-timeout", "0"),
          false, false },
        { EPILOG ("dws-epilog") FINISH, false, true },
        { EPILOG ("dws-epilog") EXCEPTION ("cancel", "0") FINISH,
          false, true },
        { EPILOG ("dws-epilog") EXCEPTION ("dws-epilog-timeout", "0") FINISH,
          true, false },
        { EPILOG ("dws-epilog") FINISH EXCEPTION ("dws-epilog-timeout", "0"),
          false, true },
        { FINISH, false, false },
    };

    for (size_t i = 0; i < sizeof (tab) / sizeof (tab[0]); i++) {
        struct dws_job job = { .id = 1 };

        dws_job_recall (&job, tab[i].eventlog);
        assert_true (job.recalled);
        assert_int_equal (job.abandoned, tab[i].abandoned);
        assert_int_equal (job.released, tab[i].released);
    }
}

/* What time limits and the record of a loss go by.
 */
static void test_recall_owner (void **state)
{
    struct dws_job job = { .id = 1 };

    dws_job_recall (&job, SUBMIT EPILOG ("dws-epilog") FINISH);
    assert_int_equal (job.userid, 42);
    assert_true (job.t_epilog == 1.);
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
    for (int i = DWS_STATE_PROPOSAL; i <= DWS_STATE_TEARDOWN; i++)
        assert_int_equal (dws_state_parse (dws_state_name (i)), i);
    assert_int_equal (dws_state_parse (NULL), DWS_STATE_NONE);
    assert_string_equal (dws_phase_name (99), "");
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_job),
        cmocka_unit_test (test_create_payload),
        cmocka_unit_test (test_job_refused),
        cmocka_unit_test (test_job_update),
        cmocka_unit_test (test_R),
        cmocka_unit_test (test_workflow),
        cmocka_unit_test (test_workflow_tolerant),
        cmocka_unit_test (test_foreign),
        cmocka_unit_test (test_inherit),
        cmocka_unit_test (test_recall),
        cmocka_unit_test (test_recall_owner),
        cmocka_unit_test (test_names),
    };

    return cmocka_run_group_tests_name ("workflow", tests, NULL, NULL);
}
