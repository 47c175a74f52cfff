/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of job.c.
 */

#include "libdws/directive/command.h"
#include "libdws/facts/job.h"
#include "libdws/test/util.h"

#define JOB "{'id': 5, 'userid': 7, 'phase': 'prolog', 'dw': ['#DW a']," \
    " 'resources': [], 'failure_tolerance': 2, 'run_started': false," \
    " 'exception': false, 'abandoned': false, 'teardown': false, 't_epilog': 0," \
    " 'other': 1}"

#define REQUEST "{'jobid': 9, 'userid': 7, 'dw_directives': ['#DW a']," \
    " 'resources': [], 'failure_tolerance': 3, 'group': 'g'," \
    " 'phase': 'epilog', 'exception': true}"

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
    assert_string_equal (dws_directives_text (job->directives, 0), "#DW a");
    assert_string_equal (job->resources, "[]");
    assert_string_equal (dws_phase_name (job->phase), "prolog");
    assert_string_equal (dws_phase_name (99), "");
    dws_job_destroy (job);
    dws_job_destroy (NULL);
}

/* Where the job is, is not for a request to say.
 */
static void test_request (void **state)
{
    json_t *o = J (REQUEST);
    struct dws_job *job = dws_job_decode_request (o, NULL);

    assert_non_null (job);
    assert_true (job->id == 9);
    assert_int_equal (job->userid, 7);
    assert_int_equal (job->failure_tolerance, 3);
    assert_string_equal (dws_directives_text (job->directives, 0), "#DW a");
    assert_string_equal (job->resources, "[]");
    assert_string_equal (job->group, "g");
    assert_int_equal (job->phase, DWS_PHASE_DEPEND);
    assert_false (job->exception);
    dws_job_destroy (job);
    json_decref (o);
}

static struct dws_job *request_decode (const char *directive)
{
    json_t *o = json_pack ("{s:i s:i s:[s] s:[] s:i}", "jobid", 9, "userid", 7,
                           "dw_directives", directive, "resources",
                           "failure_tolerance", 0);
    struct dws_job *job = dws_job_decode_request (o, NULL);

    json_decref (o);
    return job;
}

/* How long its file system is kept is between the user and Flux.
 */
static void test_lifetime (void **state)
{
    struct dws_job *job;
    struct dws_job *plain;

    job = request_decode ("#DW create_persistent expires=2d type=xfs name=aa");
    plain = request_decode ("#DW create_persistent type=xfs name=aa");
    assert_non_null (job);
    assert_non_null (plain);
    assert_true (job->lifetime == 2 * 86400.);
    assert_true (plain->lifetime == -1.);
    assert_string_equal (dws_directives_text (job->directives, 0),
                         "#DW create_persistent type=xfs name=aa");
    assert_true (job->directives_hash == plain->directives_hash);
    assert_int_equal (job->commands, DWS_COMMAND_CREATE_PERSISTENT);
    dws_job_update (plain, job);
    assert_true (plain->lifetime == 2 * 86400.);
    dws_job_destroy (plain);
    dws_job_destroy (job);
}

/* Each field left out, and of each wrong type. '?' begins the name of one that may be left
 * out, and one that may be null has '0'.
 */
static void check_fields (const char *text, const char *const *fields,
                          struct dws_job *(*decode) (json_t *o,
                                                     dws_error_t *error))
{
    static const char *const values[] = {
        "null", "true", "-1", "1.5", "4294967296", "'x'", "[7]", "{}",
    };
    json_t *good = J (text);

    for (; *fields; fields++) {
        bool nullable = **fields == '0';
        bool optional = nullable || **fields == '?';
        const char *field = *fields + optional;
        json_t *right = json_object_get (good, field);
        json_t *bad = json_copy (good);
        int refused = 0;

        for (int i = -1; i < (int)(sizeof (values) / sizeof (values[0])); i++) {
            dws_error_t error = { "" };
            struct dws_job *job;

            if (i < 0)
                json_object_del (bad, field);
            else
                json_object_set_new (bad, field, J (values[i]));
            errno = 0;
            job = decode (bad, &error);
            if (i < 0 && (job != NULL) != optional)
                fail_msg ("%s: left out", field);
            if (job) {
                dws_job_destroy (job);
                continue;
            }
            assert_int_equal (errno, EPROTO);
            assert_true (strstr (error.text, field) == error.text);
            refused++;
        }
        /* One or two of these values are right, and of numbers one more. */
        if (refused < 9 - (optional ? 1 : 0) - (nullable ? 1 : 0)
            - (json_is_number (right) ? 3 : 1))
            fail_msg ("%s: only %d refused", field, refused);
        json_decref (bad);
    }
    json_decref (good);
}

#define OPTIONAL "'group': 'g', 'bank': 'b', 'queue': 'q', 'rabbits': 'r'," \
    " 'near': 'n', 'first': true, 'constraints': {}, 'waits': true"

static void test_fields (void **state)
{
    static const char *const listed[] = {
        "id", "userid", "phase", "dw", "resources", "failure_tolerance",
        "run_started", "exception", "abandoned", "teardown", "?t_prolog",
        "t_epilog", "?group", "?bank", "?queue", "?rabbits", "?near", "0first",
        "?constraints", "?waits", NULL,
    };
    static const char *const request[] = {
        "jobid", "userid", "dw_directives", "resources", "failure_tolerance",
        "?group", "?bank", "?queue", "?rabbits", "?near", "0first",
        "?constraints", "?waits", NULL,
    };

    check_fields ("{'id': 5, 'userid': 7, 'phase': 'depend', 'dw': [],"
                  " 'resources': [], 'failure_tolerance': 0,"
                  " 'run_started': true, 'exception': true, 'abandoned': true,"
                  " 'teardown': true, 't_prolog': 0, 't_epilog': 0, " OPTIONAL "}",
                  listed, dws_job_decode);
    check_fields ("{'jobid': 5, 'userid': 7, 'dw_directives': [],"
                  " 'resources': [], 'failure_tolerance': 0, " OPTIONAL "}",
                  request, dws_job_decode_request);
}

/* The names of the one do not stand for those of the other.
 */
static void test_job_refused (void **state)
{
    static const char *const bad[] = { "[]", "null", REQUEST };
    dws_error_t error = { "" };
    json_t *o;

    for (size_t i = 0; i < sizeof (bad) / sizeof (bad[0]); i++) {
        errno = 0;
        assert_null (job_decode (bad[i], &error));
        assert_int_equal (errno, EPROTO);
        assert_string_not_equal (error.text, "");
    }
    o = J (JOB);
    assert_null (dws_job_decode_request (o, &error));
    assert_string_equal (error.text, "jobid: is required");
    json_decref (o);
}

static void test_job_update (void **state)
{
    struct dws_job *job = job_decode (JOB, NULL);
    struct dws_job *old;

    old = job_decode ("{'id': 5, 'userid': 7, 'phase': 'depend',"
                      " 'dw': ['#DW jobdw name=a', '#DW copy_in'],"
                      " 'resources': [1], 'failure_tolerance': 0,"
                      " 'group': 'g', 'bank': 'b', 'queue': 'q',"
                      " 'rabbits': 'r0', 'near': 'n',"
                      " 'run_started': false, 'exception': true,"
                      " 'abandoned': false, 'teardown': false, 't_epilog': 0}",
                      NULL);
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
    assert_string_equal (job->group, "g");
    assert_string_equal (job->bank, "b");
    assert_string_equal (job->queue, "q");
    assert_string_equal (job->rabbits, "r0");
    assert_string_equal (job->near, "n");
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
        cmocka_unit_test (test_request),
        cmocka_unit_test (test_lifetime),
        cmocka_unit_test (test_fields),
        cmocka_unit_test (test_job_refused),
        cmocka_unit_test (test_job_update),
        cmocka_unit_test (test_R),
    };

    return cmocka_run_group_tests_name ("job", tests, NULL, NULL);
}
