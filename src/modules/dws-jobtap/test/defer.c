/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit test of what waits until a job's eventlog has been read: requests, and
 * the end of the job. What the job manager does is made up here.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "../job.h"
#include "../rebuild.h"
#include "../service.h"

static flux_t *handle;
static flux_msg_handler_f sync_cb;

/* One job */
static void *job_aux;
static flux_free_f job_free;
static int job_state = -1;      // -1: it is not known
static char posted[256];        // its events

flux_t *flux_jobtap_get_flux (flux_plugin_t *p)
{
    return handle;
}

int flux_jobtap_reprioritize_all (flux_plugin_t *p)
{
    return 0;
}

int flux_jobtap_service_register (flux_plugin_t *p,
                                  const char *method,
                                  flux_msg_handler_f cb,
                                  void *arg)
{
    if (!strcmp (method, "sync"))
        sync_cb = cb;
    return 0;
}

int flux_jobtap_job_aux_set (flux_plugin_t *p,
                             flux_jobid_t id,
                             const char *name,
                             void *val,
                             flux_free_f free_fn)
{
    job_aux = val;
    job_free = free_fn;
    return 0;
}

void *flux_jobtap_job_aux_get (flux_plugin_t *p,
                               flux_jobid_t id,
                               const char *name)
{
    return job_aux;
}

flux_plugin_arg_t *flux_jobtap_job_lookup (flux_plugin_t *p, flux_jobid_t id)
{
    flux_plugin_arg_t *args;

    if (job_state < 0) {
        errno = ENOENT;
        return NULL;
    }
    assert_non_null (args = flux_plugin_arg_create ());
    assert_int_equal (flux_plugin_arg_pack (args, FLUX_PLUGIN_ARG_IN, "{s:i}",
                                            "state", job_state), 0);
    return args;
}

static void note_event (const char *name, const char *description)
{
    size_t len = strlen (posted);

    snprintf (posted + len, sizeof (posted) - len, "%s %s\n", name,
              description);
}

/* The event is seen at once. */
int flux_jobtap_epilog_start (flux_plugin_t *p, const char *description)
{
    struct jobtap_job *job = job_aux;
    json_t *entry = json_pack ("{s:f s:s s:{s:s}}",
                               "timestamp", 3.,
                               "name", "epilog-start",
                               "context",
                                 "description", description);

    note_event ("epilog-start", description);
    assert_int_equal (jobtap_facts_apply (&job->facts, entry), 0);
    json_decref (entry);
    return 0;
}

int flux_jobtap_epilog_finish (flux_plugin_t *p,
                               flux_jobid_t id,
                               const char *description,
                               int status)
{
    note_event ("epilog-finish", description);
    return 0;
}

int flux_jobtap_event_post_pack (flux_plugin_t *p,
                                 flux_jobid_t id,
                                 const char *name,
                                 const char *fmt,
                                 ...)
{
    va_list ap;

    va_start (ap, fmt);
    assert_string_equal (fmt, "{s:s}");
    assert_string_equal (va_arg (ap, const char *), "description");
    note_event (name, va_arg (ap, const char *));
    va_end (ap);
    return 0;
}

/* What the test does not come to */

int flux_jobtap_raise_exception (flux_plugin_t *p,
                                 flux_jobid_t id,
                                 const char *type,
                                 int severity,
                                 const char *fmt,
                                 ...)
{
    fail ();
    return -1;
}

int flux_jobtap_dependency_add (flux_plugin_t *p,
                                flux_jobid_t id,
                                const char *description)
{
    fail ();
    return -1;
}

int flux_jobtap_dependency_remove (flux_plugin_t *p,
                                   flux_jobid_t id,
                                   const char *description)
{
    fail ();
    return -1;
}

int flux_jobtap_prolog_finish (flux_plugin_t *p,
                               flux_jobid_t id,
                               const char *description,
                               int status)
{
    fail ();
    return -1;
}

int flux_jobtap_jobspec_update_id_pack (flux_plugin_t *p,
                                        flux_jobid_t id,
                                        const char *fmt,
                                        ...)
{
    fail ();
    return -1;
}

static struct jobtap_job *make_job (struct jobtap *ctx)
{
    flux_plugin_arg_t *args = flux_plugin_arg_create ();
    struct jobtap_job *job;

    assert_int_equal (flux_plugin_arg_set (
        args,
        FLUX_PLUGIN_ARG_IN,
        "{\"id\": 1, \"userid\": 1, \"jobspec\": {\"resources\": [],"
        " \"attributes\": {\"system\": {\"dw\":"
        " \"#DW jobdw type=xfs capacity=1GiB name=a\"}}}}"), 0);
    job = jobtap_job_create (ctx, args);
    flux_plugin_arg_destroy (args);
    assert_non_null (job);
    job->accepted = true;
    return job;
}

/* dws.sync waits for all jobs, and the module waits for its answer. */
static void test_job_ends_while_it_is_read (void **state)
{
    flux_plugin_t *p = flux_plugin_create ();
    struct jobtap *ctx = jobtap_create (p);
    flux_msg_t *sync;
    flux_msg_t *answer;
    const char *s;

    assert_non_null (ctx);
    assert_int_equal (jobtap_service_register (ctx), 0);
    assert_int_equal (jobtap_rebuild (make_job (ctx)), 0);
    assert_non_null (sync = flux_request_encode ("job-manager.dws.sync", "{}"));
    sync_cb (handle, NULL, sync, ctx);
    assert_int_equal (flux_msglist_count (ctx->deferred), 1);

    job_free (job_aux);
    job_aux = NULL;
    assert_int_equal (flux_msglist_count (ctx->deferred), 1);
    assert_true (flux_reactor_run (flux_get_reactor (handle),
                                   FLUX_REACTOR_ONCE) >= 0);
    assert_int_equal (flux_msglist_count (ctx->deferred), 0);
    assert_non_null (answer = flux_recv (handle,
                                         FLUX_MATCH_RESPONSE,
                                         FLUX_O_NONBLOCK));
    assert_int_equal (flux_response_decode (answer, NULL, &s), 0);
    assert_string_equal (s, "{\"jobs\":[],\"release\":\"" DWS_RELEASE "\"}");

    flux_msg_destroy (answer);
    flux_msg_destroy (sync);
    jobtap_destroy (ctx);
    flux_plugin_destroy (p);
}

/* The job manager has the eventlog, and answers. */
static void answer_getattr (const struct jobtap_job *job, const char *eventlog)
{
    flux_msg_t *request;
    char payload[2048];
    flux_msg_t *msg;

    request = flux_recv (handle, FLUX_MATCH_REQUEST, FLUX_O_NONBLOCK);
    assert_non_null (request);
    snprintf (payload, sizeof (payload), "{\"eventlog\": [%s]}", eventlog);
    assert_non_null (msg = flux_response_derive (request, 0));
    assert_int_equal (flux_msg_set_string (msg, payload), 0);
    assert_int_equal (flux_send (handle, msg, 0), 0);
    flux_msg_destroy (msg);
    flux_msg_destroy (request);
    while (!job->known)
        assert_true (flux_reactor_run (flux_get_reactor (handle),
                                       FLUX_REACTOR_ONCE) >= 0);
}

/* Its tasks were lost with the leader, its nodes are released. */
static void check_lost (const char *more, const char *events)
{
    flux_plugin_t *p = flux_plugin_create ();
    struct jobtap *ctx = jobtap_create (p);
    char eventlog[1024];
    struct jobtap_job *job;

    assert_non_null (ctx);
    posted[0] = '\0';
    job_state = FLUX_JOB_STATE_CLEANUP;
    job = make_job (ctx);
    assert_int_equal (jobtap_rebuild (job), 0);
    /* by its state and by the release of its nodes */
    assert_int_equal (jobtap_rebuild_hold (job), 0);
    assert_int_equal (jobtap_rebuild_hold (job), 0);
    assert_string_equal (posted, "epilog-start dws-rebuild\n");
    snprintf (eventlog, sizeof (eventlog),
              "{\"timestamp\": 1.0, \"name\": \"start\"},"
              "{\"timestamp\": 2.0, \"name\": \"release\","
              " \"context\": {\"ranks\": \"all\", \"final\": true}}%s", more);
    answer_getattr (job, eventlog);
    assert_string_equal (posted, events);
    job_free (job_aux);
    job_aux = NULL;
    job_state = -1;
    jobtap_destroy (ctx);
    flux_plugin_destroy (p);
}

static void test_job_is_lost_before_it_is_read (void **state)
{
    check_lost ("", "epilog-start dws-rebuild\n"
                "epilog-start dws-epilog\n"
                "epilog-finish dws-rebuild\n");
}

/* One load has ended what it had begun, another was removed before it could. */
static void test_earlier_loads_have_held_it (void **state)
{
    check_lost (",{\"timestamp\": 1.1, \"name\": \"epilog-start\","
                " \"context\": {\"description\": \"dws-rebuild\"}},"
                "{\"timestamp\": 1.2, \"name\": \"epilog-finish\","
                " \"context\": {\"description\": \"dws-rebuild\"}},"
                "{\"timestamp\": 1.3, \"name\": \"epilog-start\","
                " \"context\": {\"description\": \"dws-rebuild\"}}",
                "epilog-start dws-rebuild\n"
                "epilog-start dws-epilog\n"
                "epilog-finish dws-rebuild\n"
                "epilog-finish dws-rebuild\n");
}

static void test_job_has_had_its_epilog (void **state)
{
    check_lost (",{\"timestamp\": 1.1, \"name\": \"epilog-start\","
                " \"context\": {\"description\": \"dws-epilog\"}},"
                "{\"timestamp\": 1.2, \"name\": \"epilog-finish\","
                " \"context\": {\"description\": \"dws-epilog\"}}",
                "epilog-start dws-rebuild\n"
                "epilog-finish dws-rebuild\n");
}

static int open_loop (void **state)
{
    return (handle = flux_open ("loop://", FLUX_O_TEST_NOSUB)) ? 0 : -1;
}

static int close_loop (void **state)
{
    flux_close (handle);
    return 0;
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown (test_job_ends_while_it_is_read,
                                         open_loop, close_loop),
        cmocka_unit_test_setup_teardown (test_job_is_lost_before_it_is_read,
                                         open_loop, close_loop),
        cmocka_unit_test_setup_teardown (test_earlier_loads_have_held_it,
                                         open_loop, close_loop),
        cmocka_unit_test_setup_teardown (test_job_has_had_its_epilog,
                                         open_loop, close_loop),
    };

    cmocka_set_message_output (CM_OUTPUT_TAP);
    return cmocka_run_group_tests (tests, NULL, NULL);
}
