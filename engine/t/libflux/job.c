/* SPDX-License-Identifier: LGPL-3.0-only */
/* job.c - the job functions of libflux-core, in an instance. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "test.h"

#define UNKNOWN 1234

static int setup (void **state)
{
    return (*state = flux_open (NULL, 0)) ? 0 : -1;
}

static int teardown (void **state)
{
    flux_close (*state);
    return 0;
}

static void test_ids (void **state)
{
    flux_jobid_t id = 6731191091817518;
    char buf[64];

    for (const char **p = (const char *[]){ "dec", "6731191091817518",
                                            "hex", "0x17e9fb8df16c2e",
                                            "dothex", "0017.e9fb.8df1.6c2e",
                                            "kvs", "job.0017.e9fb.8df1.6c2e",
                                            "f58plain", "fuZZybuNNy",
                                            NULL };
         *p; p += 2) {
        flux_jobid_t again = 0;

        assert_int_equal (flux_job_id_encode (id, p[0], buf, sizeof (buf)), 0);
        assert_string_equal (buf, p[1]);
        assert_int_equal (flux_job_id_parse (buf, &again), 0);
        assert_true (again == id);
    }
    assert_int_equal (flux_job_id_encode (0, NULL, buf, sizeof (buf)), 0);
    assert_string_equal (buf, "0");
    assert_errno (flux_job_id_encode (id, "nosuch", buf, 64) < 0, EPROTO);
    assert_errno (flux_job_id_encode (id, "dec", buf, 3) < 0, EOVERFLOW);
    assert_errno (flux_job_id_parse ("f0", &id) < 0, EINVAL);
    assert_errno (flux_job_id_parse ("", &id) < 0, EINVAL);

    assert_int_equal (flux_job_kvs_key (buf, sizeof (buf), 1, "R"), 25);
    assert_string_equal (buf, "job.0000.0000.0000.0001.R");
    assert_true (flux_job_kvs_key (buf, sizeof (buf), 1, NULL) > 0);
    assert_string_equal (buf, "job.0000.0000.0000.0001");
    assert_errno (flux_job_kvs_key (buf, 5, 1, "R") < 0, EOVERFLOW);
    assert_true (flux_job_kvs_guest_key (buf, sizeof (buf), 1, "a") > 0);
    assert_string_equal (buf, "job.0000.0000.0000.0001.guest.a");
    assert_true (flux_job_kvs_namespace (buf, sizeof (buf), 1) > 0);
    assert_string_equal (buf, "job-1");
}

static void test_names (void **state)
{
    flux_error_t error;

    assert_string_equal (flux_job_statetostr (FLUX_JOB_STATE_SCHED, "L"), "SCHED");
    assert_string_equal (flux_job_statetostr (FLUX_JOB_STATE_SCHED, "l"), "sched");
    assert_string_equal (flux_job_statetostr (FLUX_JOB_STATE_SCHED, "S"), "S");
    assert_string_equal (flux_job_statetostr (FLUX_JOB_STATE_SCHED, "s"), "s");
    assert_string_equal (flux_job_resulttostr (FLUX_JOB_RESULT_TIMEOUT, "S"), "TO");
    assert_int_equal (flux_job_waitstatus_to_exitcode (0, &error), 0);
    assert_int_equal (flux_job_waitstatus_to_exitcode (3 << 8, &error), 3);
    assert_string_equal (error.text, "task(s) exited with exit code 3");
    assert_int_equal (flux_job_waitstatus_to_exitcode (9, &error), 137);
}

/* A jobspec of one task, for the caller to free. */
static char *spec_create (const char *first, const char *second)
{
    char *text;
    json_t *o = json_pack (
        "{s:i s:[{s:s s:i s:s s:[{s:s s:i}]}] s:[{s:[ss*] s:s s:{s:i}}]"
        " s:{s:{s:i s:{s:s}}}}",
        "version", 1,
        "resources",
          "type", "slot", "count", 1, "label", "task",
          "with", "type", "core", "count", 1,
        "tasks",
          "command", first, second,
          "slot", "task", "count", "per_slot", 1,
        "attributes", "system",
          "duration", 0,
          "environment", "PATH", "/usr/bin:/bin");

    assert_non_null (o);
    assert_non_null (text = json_dumps (o, 0));
    json_decref (o);
    return text;
}

static flux_jobid_t submit (flux_t *h, char *first, char *second, int urgency,
                            int flags)
{
    char *text = spec_create (first, second);
    flux_future_t *f = flux_job_submit (h, text, urgency, flags);
    flux_jobid_t id;

    assert_int_equal (flux_job_submit_get_id (f, &id), 0);
    flux_future_destroy (f);
    free (text);
    return id;
}

static void test_wait (void **state)
{
    flux_t *h = *state;
    flux_jobid_t id = submit (h, "false", NULL, 16, FLUX_JOB_WAITABLE);
    flux_jobid_t waited;
    flux_future_t *f = flux_job_wait (h, FLUX_JOBID_ANY);
    const char *s;
    bool success;

    assert_int_equal (flux_job_wait_get_id (f, &waited), 0);
    assert_true (waited == id);
    assert_int_equal (flux_job_wait_get_status (f, &success, &s), 0);
    assert_false (success);
    assert_string_equal (s, "task(s) exited with exit code 1");
    flux_future_destroy (f);
    f = flux_job_wait (h, id);
    assert_errno (flux_job_wait_get_status (f, &success, &s) < 0, ECHILD);
    flux_future_destroy (f);
}

static void wait_event (flux_t *h, flux_jobid_t id, const char *path,
                        const char *name)
{
    flux_future_t *f = flux_job_event_watch (h, id, path, 0);
    const char *s;
    char key[64];

    snprintf (key, sizeof (key), "\"name\":\"%s\"", name);
    while (1) {
        assert_int_equal (flux_job_event_watch_get (f, &s), 0);
        if (strstr (s, key))
            break;
        flux_future_reset (f);
    }
    assert_int_equal (flux_job_event_watch_cancel (f), 0);
    do
        flux_future_reset (f);
    while (flux_job_event_watch_get (f, &s) == 0);
    assert_int_equal (errno, ENODATA);
    flux_future_destroy (f);
}

static void fails (flux_future_t *f, int errnum, const char *text)
{
    assert_non_null (f);
    assert_errno (flux_future_get (f, NULL) < 0, errnum);
    assert_string_equal (flux_future_error_string (f), text);
    flux_future_destroy (f);
}

static void works (flux_future_t *f)
{
    assert_non_null (f);
    assert_int_equal (flux_future_get (f, NULL), 0);
    flux_future_destroy (f);
}

static void test_control (void **state)
{
    flux_t *h = *state;
    flux_jobid_t id = submit (h, "true", NULL, 0, 0);
    flux_future_t *f;
    const char *s;

    assert_errno (flux_job_submit (NULL, "x", 16, 0) == NULL, EINVAL);
    fails (flux_job_kill (h, id, SIGTERM), EINVAL, "job is not running");
    works (flux_job_cancel (h, id, "why"));
    f = flux_job_result (h, id, 0);
    assert_int_equal (flux_job_result_get (f, &s), 0);
    assert_non_null (strstr (s, "\"exception_type\":\"cancel\""));
    flux_future_destroy (f);
    f = flux_job_result (h, UNKNOWN, 0);
    assert_errno (flux_job_result_get (f, &s) < 0, ENOENT);
    flux_future_destroy (f);
    id = submit (h, "sleep", "60", 16, 0);
    wait_event (h, id, "guest.exec.eventlog", "shell.start");
    works (flux_job_raise (h, id, "odd", 3, "a note"));
    works (flux_job_kill (h, id, SIGTERM));
    wait_event (h, id, "eventlog", "clean");
    fails (flux_job_cancel (h, id, "why"), ENOENT, "job is inactive");
    fails (flux_job_raise (h, UNKNOWN, "x", 0, NULL), ENOENT, "unknown job id");
    assert_errno (flux_job_raise (h, id, NULL, 0, NULL) == NULL, EINVAL);
    assert_errno (flux_job_raise (NULL, id, "x", 0, NULL) == NULL, EINVAL);
    assert_errno (flux_job_event_watch (h, id, NULL, 0) == NULL, EINVAL);
    f = flux_job_event_watch (h, UNKNOWN, "eventlog", 0);
    assert_errno (flux_job_event_watch_get (f, &s) < 0, ENOENT);
    flux_future_destroy (f);
}

/* A signed jobspec can be read without its mechanism's help. */
static void test_unwrap (void **state)
{
    flux_jobid_t id = submit (*state, "true", NULL, 16, 0);
    flux_error_t error;
    flux_future_t *f;
    uint32_t userid = 0;
    const char *J;
    char *spec;

    f = flux_rpc_pack (*state, "job-info.lookup", FLUX_NODEID_ANY, 0,
                       "{s:I s:[s] s:i}", "id", (json_int_t)id,
                       "keys", "J", "flags", 0);
    assert_int_equal (flux_rpc_get_unpack (f, "{s:s}", "J", &J), 0);
    spec = flux_unwrap_string (J, true, &userid, &error);
    assert_non_null (spec);
    assert_int_equal (userid, getuid ());
    assert_non_null (strstr (spec, "\"true\""));
    free (spec);
    flux_future_destroy (f);
    assert_errno (flux_unwrap_string ("x.y.z", false, &userid, &error) == NULL,
                  EINVAL);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_ids),
        cmocka_unit_test (test_names),
        cmocka_unit_test (test_wait),
        cmocka_unit_test (test_control),
        cmocka_unit_test (test_unwrap),
    };

    return cmocka_run_group_tests_name ("job", tests, setup, teardown);
}
