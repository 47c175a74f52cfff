/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of job.c.
 */

#include "libdws/directive/command.h"
#include "libdws/facts/job.h"
#include "libdws/test/util.h"

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
    assert_string_equal (dws_phase_name (job->phase), "prolog");
    assert_string_equal (dws_phase_name (99), "");
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

/* How long its file system is kept is between the user and Flux.
 */
static void test_lifetime (void **state)
{
    struct dws_job *job;
    struct dws_job *plain;

    job = job_decode ("{'id': 9, 'userid': 7, 'resources': [], 'dw': ["
                      "'#DW create_persistent expires=2d type=xfs name=aa']}",
                      NULL);
    plain = job_decode ("{'id': 9, 'userid': 7, 'resources': [], 'dw': ["
                        "'#DW create_persistent type=xfs name=aa']}", NULL);
    assert_non_null (job);
    assert_non_null (plain);
    assert_true (job->lifetime == 2 * 86400.);
    assert_true (plain->lifetime == -1.);
    assert_string_equal (job->directives, plain->directives);
    assert_true (job->directives_hash == plain->directives_hash);
    assert_int_equal (job->commands, DWS_COMMAND_CREATE_PERSISTENT);
    dws_job_update (plain, job);
    assert_true (plain->lifetime == 2 * 86400.);
    dws_job_destroy (plain);
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

    old = job_decode ("{'id': 5, 'userid': 7, 'phase': 'depend',"
                      " 'dw': ['#DW jobdw name=a', '#DW copy_in'],"
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
    assert_int_equal (job->commands,
                      DWS_COMMAND_JOBDW | DWS_COMMAND_COPY_IN);
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

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_job),
        cmocka_unit_test (test_create_payload),
        cmocka_unit_test (test_lifetime),
        cmocka_unit_test (test_job_refused),
        cmocka_unit_test (test_job_update),
        cmocka_unit_test (test_R),
    };

    return cmocka_run_group_tests_name ("job", tests, NULL, NULL);
}
