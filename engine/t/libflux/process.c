/* SPDX-License-Identifier: LGPL-3.0-only */
/* process.c - the subprocess functions of libflux-core that need no broker. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test.h"

struct run {
    char out[200];
    char err[200];
    int completed;
    int exited;
};

static flux_cmd_t *command (const char *script)
{
    char *argv[] = { "bash", "--norc", "-c", (char *)script, NULL };
    char *env[] = { "PATH=/usr/bin:/bin", "A=1", NULL };

    return flux_cmd_create (4, argv, env);
}

static void test_command (void **state)
{
    char *argv[] = { "a", "b", NULL };
    char *env[] = { "A=1", "B=2", NULL };
    flux_cmd_t *cmd = flux_cmd_create (2, argv, env);
    flux_cmd_t *cpy;

    assert_string_equal (flux_cmd_arg (cmd, 1), "b");
    assert_errno (flux_cmd_arg (cmd, 2) == NULL, EINVAL);
    assert_errno (flux_cmd_create (1, argv, env) == NULL, EINVAL);
    assert_int_equal (flux_cmd_argv_append (cmd, "c"), 0);
    assert_string_equal (flux_cmd_arg (cmd, 2), "c");
    assert_int_equal (flux_cmd_argv_append (cmd, ""), 0);
    cpy = flux_cmd_copy (cmd);
    assert_string_equal (flux_cmd_arg (cpy, 0), "a");
    assert_string_equal (flux_cmd_arg (cpy, 3), "");
    assert_errno (flux_cmd_arg (cpy, 4) == NULL, EINVAL);
    flux_cmd_destroy (cpy);
    flux_cmd_destroy (cmd);
    flux_cmd_destroy (NULL);
}

/* Lines come whole, the last one even without its end; then nothing. */
static void output_cb (flux_subprocess_t *p, const char *stream)
{
    struct run *run = flux_subprocess_aux_get (p, "run");
    char *to = strcmp (stream, "stderr") == 0 ? run->err : run->out;
    const char *s;
    int len = flux_subprocess_getline (p, stream, &s);

    assert_true (len >= 0);
    strncat (to, len > 0 ? s : ".", len > 0 ? len : 1);
}

static void state_cb (flux_subprocess_t *p, flux_subprocess_state_t state)
{
    struct run *run = flux_subprocess_aux_get (p, "run");

    if (run && state == FLUX_SUBPROCESS_EXITED)
        run->exited++;
}

static void completion_cb (flux_subprocess_t *p)
{
    struct run *run = flux_subprocess_aux_get (p, "run");

    run->completed++;
}

static const flux_subprocess_ops_t ops = {
    .on_completion = completion_cb,
    .on_state_change = state_cb,
    .on_stdout = output_cb,
    .on_stderr = output_cb,
};

static flux_subprocess_t *start (flux_reactor_t *r, flux_cmd_t *cmd,
                                 struct run *run)
{
    flux_subprocess_t *p = flux_local_exec (r, 0, cmd, &ops);

    assert_non_null (p);
    assert_int_equal (flux_subprocess_aux_set (p, "run", run, NULL), 0);
    return p;
}

static void test_run (void **state)
{
    flux_reactor_t *r = flux_reactor_create (0);
    flux_cmd_t *cmd = command ("read x; echo $x $A; printf two; echo err >&2; exit 3");
    struct run run = { 0 };
    flux_subprocess_t *p;

    // set, and left alone as it is there
    assert_int_equal (flux_cmd_setenvf (cmd, 1, "A", "%d", 7), 0);
    assert_int_equal (flux_cmd_setenvf (cmd, 0, "A", "%d", 8), 0);
    p = start (r, cmd, &run);
    assert_true (flux_subprocess_active (p));
    assert_int_equal (flux_subprocess_state (p), FLUX_SUBPROCESS_RUNNING);
    assert_int_equal (flux_subprocess_write (p, "stdin", "in\n", 3), 3);
    assert_int_equal (flux_subprocess_close (p, "stdin"), 0);
    assert_errno (flux_subprocess_write (p, "stdin", "x", 1) < 0, EPIPE);
    assert_errno (flux_subprocess_write (p, "nosuch", "x", 1) < 0, EINVAL);
    assert_int_equal (flux_reactor_run (r, 0), 0);
    assert_string_equal (run.out, "in 7\ntwo.");
    assert_string_equal (run.err, "err\n.");
    assert_int_equal (run.completed, 1);
    assert_int_equal (run.exited, 1);
    assert_false (flux_subprocess_active (p));
    assert_int_equal (flux_subprocess_exit_code (p), 3);
    assert_int_equal (flux_subprocess_status (p), 3 << 8);
    assert_errno (flux_subprocess_signaled (p) < 0, EINVAL);
    flux_subprocess_destroy (p);
    flux_cmd_destroy (cmd);
    flux_reactor_destroy (r);
}

static void killed_cb (flux_future_t *f, void *arg)
{
    assert_int_equal (flux_future_get (f, NULL), 0);
    flux_future_destroy (f);
}

static void test_kill (void **state)
{
    flux_reactor_t *r = flux_reactor_create (0);
    flux_cmd_t *cmd = command ("exec sleep 60");
    struct run run = { 0 };
    flux_subprocess_t *p = start (r, cmd, &run);
    flux_future_t *f = flux_subprocess_kill (p, SIGTERM);

    assert_non_null (f);
    flux_future_then (f, -1, killed_cb, NULL);
    assert_errno (flux_subprocess_kill (p, 0) == NULL, EINVAL);
    assert_int_equal (flux_reactor_run (r, 0), 0);
    assert_int_equal (flux_subprocess_signaled (p), SIGTERM);
    assert_errno (flux_subprocess_exit_code (p) < 0, EINVAL);
    assert_int_equal (run.completed, 1);
    flux_subprocess_destroy (p);
    flux_cmd_destroy (cmd);
    flux_reactor_destroy (r);
}

static void test_no_program (void **state)
{
    char *argv[] = { "/nosuch/program", NULL };
    char *env[] = { NULL };
    flux_reactor_t *r = flux_reactor_create (0);
    flux_cmd_t *cmd = flux_cmd_create (1, argv, env);

    assert_errno (flux_local_exec (r, 0, cmd, &ops) == NULL, ENOENT);
    assert_errno (flux_local_exec (r, 0x4000, cmd, &ops) == NULL, EINVAL);
    assert_errno (flux_local_exec (NULL, 0, cmd, &ops) == NULL, EINVAL);
    flux_cmd_destroy (cmd);
    flux_reactor_destroy (r);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_command),
        cmocka_unit_test (test_run),
        cmocka_unit_test (test_kill),
        cmocka_unit_test (test_no_program),
    };

    return cmocka_run_group_tests_name ("process", tests, NULL, NULL);
}
