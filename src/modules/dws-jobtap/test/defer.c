/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit test of requests that wait until a job's eventlog has been read. What
 * the job manager does is made up here.
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

flux_t *flux_jobtap_get_flux (flux_plugin_t *p)
{
    return handle;
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

/* What the test does not come to */

flux_plugin_arg_t *flux_jobtap_job_lookup (flux_plugin_t *p, flux_jobid_t id)
{
    errno = ENOENT;
    return NULL;
}

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

int flux_jobtap_epilog_finish (flux_plugin_t *p,
                               flux_jobid_t id,
                               const char *description,
                               int status)
{
    fail ();
    return -1;
}

int flux_jobtap_event_post_pack (flux_plugin_t *p,
                                 flux_jobid_t id,
                                 const char *name,
                                 const char *fmt,
                                 ...)
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
    assert_string_equal (s, "{\"jobs\":[]}");

    flux_msg_destroy (answer);
    flux_msg_destroy (sync);
    jobtap_destroy (ctx);
    flux_plugin_destroy (p);
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
        cmocka_unit_test (test_job_ends_while_it_is_read),
    };

    cmocka_set_message_output (CM_OUTPUT_TAP);
    return cmocka_run_group_tests (tests, open_loop, close_loop);
}

// vi: ts=4 sw=4 expandtab
