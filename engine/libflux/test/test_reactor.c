/* SPDX-License-Identifier: LGPL-3.0-only */
/* test_reactor.c - the reactor and its watchers. */

#include <signal.h>
#include <unistd.h>

#include "test.h"

static void count_cb (flux_reactor_t *r, flux_watcher_t *w, int revents,
                      void *arg)
{
    (*(int *)arg)++;
}

static void stop_cb (flux_reactor_t *r, flux_watcher_t *w, int revents,
                     void *arg)
{
    flux_reactor_stop (r);
}

static void stop_error_cb (flux_reactor_t *r, flux_watcher_t *w, int revents,
                           void *arg)
{
    flux_reactor_stop_error (r);
}

static void test_run (void **state)
{
    flux_reactor_t *r = flux_reactor_create (0);
    flux_watcher_t *w;

    assert_errno (flux_reactor_create (0x80) == NULL, EINVAL);
    assert_errno (flux_reactor_run (r, 0x80) < 0, EINVAL);
    assert_int_equal (flux_reactor_run (r, 0), 0);  // nothing to wait for

    assert_non_null (w = flux_timer_watcher_create (r, 0., 0., stop_error_cb,
                                                    NULL));
    flux_watcher_start (w);
    assert_int_equal (flux_reactor_run (r, 0), -1);
    flux_watcher_destroy (w);
    assert_non_null (w = flux_idle_watcher_create (r, stop_cb, NULL));
    flux_watcher_start (w);
    assert_true (flux_reactor_run (r, 0) > 0);      // one was active
    flux_watcher_destroy (w);
    assert_true (flux_reactor_now (r) > 0.);
    assert_true (flux_reactor_time () > 0.);
    flux_reactor_destroy (r);
}

static void test_timer (void **state)
{
    flux_reactor_t *r = flux_reactor_create (0);
    flux_watcher_t *w;
    int count = 0;

    assert_errno (flux_timer_watcher_create (r, -1., 0., count_cb, &count)
                  == NULL, EINVAL);
    assert_non_null (w = flux_timer_watcher_create (r, 0., 0., count_cb,
                                                    &count));
    assert_false (flux_watcher_is_active (w));
    flux_watcher_start (w);
    assert_true (flux_watcher_is_active (w));
    assert_int_equal (flux_reactor_run (r, 0), 0);
    assert_int_equal (count, 1);
    assert_false (flux_watcher_is_active (w));

    // restarted with a repeat, until it is reset to none
    flux_timer_watcher_reset (w, 0., 0.001);
    flux_watcher_start (w);
    while (count < 4)
        assert_true (flux_reactor_run (r, FLUX_REACTOR_ONCE) >= 0);
    assert_true (flux_watcher_is_active (w));
    flux_timer_watcher_reset (w, 0., 0.);
    flux_timer_watcher_again (w);
    assert_false (flux_watcher_is_active (w));
    flux_timer_watcher_reset (w, 0., 10.);
    flux_timer_watcher_again (w);
    assert_true (flux_watcher_is_active (w));
    flux_watcher_destroy (w);
    flux_reactor_destroy (r);
}

static void test_ref (void **state)
{
    flux_reactor_t *r = flux_reactor_create (0);
    flux_watcher_t *w, *once;
    int count = 0;

    assert_non_null (w = flux_timer_watcher_create (r, 1000., 0., count_cb,
                                                    &count));
    flux_watcher_unref (w);
    flux_watcher_start (w);
    flux_watcher_start (w);
    assert_int_equal (flux_reactor_run (r, 0), 0);  // does not wait for w
    flux_watcher_stop (w);
    flux_watcher_start (w);
    flux_watcher_ref (w);
    flux_watcher_unref (w);

    // a one-shot that was unreferenced must not leave the count too low
    assert_non_null (once = flux_timer_watcher_create (r, 0., 0., count_cb,
                                                       &count));
    flux_watcher_unref (once);
    flux_watcher_start (once);
    assert_int_equal (flux_reactor_run (r, FLUX_REACTOR_NOWAIT), 0);
    flux_watcher_destroy (once);
    assert_non_null (once = flux_timer_watcher_create (r, 0.001, 0., count_cb,
                                                       &count));
    flux_watcher_start (once);
    count = 0;
    assert_int_equal (flux_reactor_run (r, 0), 0);
    assert_int_equal (count, 1);
    flux_watcher_destroy (once);
    flux_watcher_destroy (w);
    flux_reactor_destroy (r);
}

static void fd_cb (flux_reactor_t *r, flux_watcher_t *w, int revents,
                   void *arg)
{
    char c;

    assert_true (revents & FLUX_POLLIN);
    assert_int_equal (read (flux_fd_watcher_get_fd (w), &c, 1), 1);
    flux_watcher_stop (w);
}

static void test_fd (void **state)
{
    flux_reactor_t *r = flux_reactor_create (0);
    flux_watcher_t *w;
    int fd[2];
    int count = 0;

    assert_int_equal (pipe (fd), 0);
    assert_non_null (w = flux_fd_watcher_create (r, fd[0], FLUX_POLLIN, fd_cb,
                                                 NULL));
    assert_int_equal (flux_fd_watcher_get_fd (w), fd[0]);
    assert_errno (flux_signal_watcher_get_signum (w) < 0, EINVAL);
    flux_watcher_start (w);
    assert_int_equal (write (fd[1], "x", 1), 1);
    assert_int_equal (flux_reactor_run (r, 0), 0);
    flux_watcher_destroy (w);
    assert_non_null (w = flux_fd_watcher_create (r, fd[1], FLUX_POLLOUT,
                                                 count_cb, &count));
    flux_watcher_start (w);
    assert_true (flux_reactor_run (r, FLUX_REACTOR_ONCE) > 0);
    assert_int_equal (count, 1);
    flux_watcher_destroy (w);
    close (fd[0]);
    close (fd[1]);
    flux_reactor_destroy (r);
}

static void test_prepare_check (void **state)
{
    flux_reactor_t *r = flux_reactor_create (0);
    int prepared = 0, checked = 0, idled = 0;
    flux_watcher_t *p = flux_prepare_watcher_create (r, count_cb, &prepared);
    flux_watcher_t *c = flux_check_watcher_create (r, count_cb, &checked);
    flux_watcher_t *i = flux_idle_watcher_create (r, count_cb, &idled);

    flux_watcher_start (p);
    flux_watcher_start (c);
    flux_watcher_start (i);
    assert_true (flux_reactor_run (r, FLUX_REACTOR_ONCE) > 0);
    assert_true (prepared == 1 && checked == 1 && idled == 1);
    flux_watcher_destroy (p);
    flux_watcher_destroy (c);
    flux_watcher_destroy (i);
    flux_reactor_destroy (r);
}

static void test_signal (void **state)
{
    flux_reactor_t *r = flux_reactor_create (0);
    flux_watcher_t *w = flux_signal_watcher_create (r, SIGUSR1, stop_cb, NULL);

    assert_int_equal (flux_signal_watcher_get_signum (w), SIGUSR1);
    flux_watcher_start (w);
    raise (SIGUSR1);
    assert_true (flux_reactor_run (r, 0) >= 0);
    flux_watcher_destroy (w);
    flux_reactor_destroy (r);
}

static void handle_cb (flux_reactor_t *r, flux_watcher_t *w, int revents,
                       void *arg)
{
    flux_msg_t *msg;

    assert_non_null (msg = flux_recv (arg, FLUX_MATCH_ANY, FLUX_O_NONBLOCK));
    flux_msg_destroy (msg);
    flux_watcher_stop (w);
}

static void test_handle (void **state)
{
    flux_t *h = flux_open ("loop://", 0);
    flux_reactor_t *r = flux_get_reactor (h);
    flux_watcher_t *w = flux_handle_watcher_create (r, h, FLUX_POLLIN,
                                                    handle_cb, h);
    flux_msg_t *msg = flux_event_encode ("x", NULL);

    assert_int_equal (flux_pollevents (h), FLUX_POLLOUT);
    flux_watcher_start (w);
    assert_true (flux_watcher_is_active (w));
    assert_int_equal (flux_send (h, msg, 0), 0);
    assert_int_equal (flux_pollevents (h), FLUX_POLLIN | FLUX_POLLOUT);
    assert_int_equal (flux_reactor_run (r, 0), 0);
    // put back: the queue in front of the connector wakes it as well
    flux_watcher_start (w);
    assert_int_equal (flux_requeue (h, msg, FLUX_RQ_HEAD), 0);
    assert_int_equal (flux_reactor_run (r, 0), 0);
    flux_msg_destroy (msg);
    flux_watcher_destroy (w);
    flux_close (h);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_run),
        cmocka_unit_test (test_timer),
        cmocka_unit_test (test_ref),
        cmocka_unit_test (test_fd),
        cmocka_unit_test (test_prepare_check),
        cmocka_unit_test (test_signal),
        cmocka_unit_test (test_handle),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
