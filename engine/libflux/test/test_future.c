/* SPDX-License-Identifier: LGPL-3.0-only */
/* test_future.c - futures: wait, then, timeouts, several results, errors;
 * all, one after the other.
 */

#include "test.h"

static int freed;

static void free_value (void *arg)
{
    freed++;
}

static void count_cb (flux_future_t *f, void *arg)
{
    (*(int *)arg)++;
}

static void test_now (void **state)
{
    flux_future_t *f = flux_future_create (NULL, NULL);
    const void *value;
    int x;

    freed = 0;
    assert_false (flux_future_is_ready (f));
    assert_errno (flux_future_wait_for (f, 0.) < 0, ETIMEDOUT);
    assert_errno (flux_future_wait_for (f, -1.) < 0, EDEADLOCK);
    assert_errno (flux_future_get (f, NULL) < 0, EDEADLOCK);
    assert_errno (flux_future_get_reactor (f) == NULL, EINVAL);
    assert_errno (flux_future_get_flux (f) == NULL, EINVAL);
    assert_errno (flux_future_then (f, -1., count_cb, &x) < 0, EINVAL);
    flux_future_fulfill (f, &x, free_value);
    assert_true (flux_future_is_ready (f));
    assert_int_equal (flux_future_wait_for (f, 0.), 0);
    assert_int_equal (flux_future_get (f, &value), 0);
    assert_ptr_equal (value, &x);
    assert_false (flux_future_has_error (f));
    assert_null (flux_future_error_string (f));

    // the second result waits until the first is taken
    flux_future_fulfill_error (f, ENOENT, "not there");
    assert_int_equal (flux_future_get (f, NULL), 0);
    flux_future_reset (f);
    assert_int_equal (freed, 1);
    assert_errno (flux_future_get (f, NULL) < 0, ENOENT);
    assert_string_equal (flux_future_error_string (f), "not there");
    flux_future_reset (f);
    assert_false (flux_future_is_ready (f));
    flux_future_fulfill_error (f, EPERM, NULL);
    assert_string_equal (flux_future_error_string (f), flux_strerror (EPERM));
    assert_string_equal (future_strerror (f, 0), flux_strerror (EPERM));

    // a fatal error stays
    flux_future_fatal_error (f, EIO, "broken");
    assert_errno (flux_future_get (f, NULL) < 0, EIO);
    flux_future_reset (f);
    flux_future_fulfill (f, &x, NULL);
    assert_errno (flux_future_get (f, NULL) < 0, EIO);
    assert_string_equal (flux_future_error_string (f), "broken");
    flux_future_destroy (f);
}

static void fulfill_timer_cb (flux_reactor_t *r, flux_watcher_t *w,
                              int revents, void *arg)
{
    flux_future_fulfill (arg, NULL, NULL);
}

static int inits;

static void timer_init (flux_future_t *f, void *arg)
{
    flux_reactor_t *r = flux_future_get_reactor (f);
    flux_watcher_t *w;

    inits++;
    w = flux_timer_watcher_create (r, *(double *)arg, 0., fulfill_timer_cb, f);
    flux_future_aux_set (f, NULL, w, (flux_free_f)flux_watcher_destroy);
    flux_watcher_start (w);
}

static double soon = 0.001;
static double late = 100.;

static void test_init (void **state)
{
    flux_reactor_t *r = flux_reactor_create (0);
    flux_future_t *f = flux_future_create (timer_init, &soon);
    int count = 0;

    inits = 0;
    assert_int_equal (flux_future_wait_for (f, -1.), 0);
    assert_int_equal (inits, 1);
    assert_int_equal (flux_future_wait_for (f, -1.), 0);
    flux_future_destroy (f);

    assert_non_null (f = flux_future_create (timer_init, &late));
    assert_errno (flux_future_wait_for (f, 0.001) < 0, ETIMEDOUT);
    assert_false (flux_future_is_ready (f));
    flux_future_destroy (f);

    assert_non_null (f = flux_future_create (timer_init, &soon));
    flux_future_set_reactor (f, r);
    assert_int_equal (flux_future_then (f, -1., count_cb, &count), 0);
    assert_int_equal (flux_reactor_run (r, 0), 0);
    assert_int_equal (count, 1);
    flux_future_destroy (f);

    // in then, the time-out is a result
    assert_non_null (f = flux_future_create (timer_init, &late));
    flux_future_set_reactor (f, r);
    assert_int_equal (flux_future_then (f, 0.001, count_cb, &count), 0);
    while (count < 2)
        assert_true (flux_reactor_run (r, FLUX_REACTOR_ONCE) >= 0);
    assert_errno (flux_future_get (f, NULL) < 0, ETIMEDOUT);
    flux_future_destroy (f);
    flux_reactor_destroy (r);
}

static void reset_cb (flux_future_t *f, void *arg)
{
    (*(int *)arg)++;
    flux_future_reset (f);
}

static void destroy_cb (flux_future_t *f, void *arg)
{
    (*(int *)arg)++;
    flux_future_destroy (f);
}

static void test_then (void **state)
{
    flux_reactor_t *r = flux_reactor_create (0);
    flux_future_t *f = flux_future_create (NULL, NULL);
    int count = 0;

    flux_future_set_reactor (f, r);
    assert_ptr_equal (flux_future_get_reactor (f), r);
    for (int i = 0; i < 3; i++)
        flux_future_fulfill (f, NULL, NULL);
    assert_int_equal (flux_future_then (f, -1., reset_cb, &count), 0);
    assert_int_equal (count, 0);    // from the reactor, not from here
    while (count < 3)
        assert_true (flux_reactor_run (r, FLUX_REACTOR_NOWAIT) >= 0);
    flux_reactor_run (r, FLUX_REACTOR_NOWAIT);
    assert_int_equal (count, 3);
    flux_future_fulfill (f, NULL, NULL);
    flux_reactor_run (r, FLUX_REACTOR_NOWAIT);
    assert_int_equal (count, 4);
    assert_int_equal (flux_future_then (f, -1., destroy_cb, &count), 0);
    flux_future_fulfill (f, NULL, NULL);
    assert_int_equal (flux_reactor_run (r, 0), 0);
    assert_int_equal (count, 5);
    flux_reactor_destroy (r);
}

static void timer_cb (flux_reactor_t *r, flux_watcher_t *w, int revents,
                      void *arg)
{
    (*(int *)arg)++;
}

/* One that is ready is an event by itself. */
static void test_then_once (void **state)
{
    flux_reactor_t *r = flux_reactor_create (0);
    flux_future_t *f = flux_future_create (NULL, NULL);
    int called = 0, expired = 0;
    flux_watcher_t *w = flux_timer_watcher_create (r, 1., 0., timer_cb,
                                                   &expired);

    flux_watcher_start (w);
    flux_future_set_reactor (f, r);
    flux_future_fulfill (f, NULL, NULL);
    assert_int_equal (flux_future_then (f, -1., count_cb, &called), 0);
    assert_true (flux_reactor_run (r, FLUX_REACTOR_ONCE) > 0);
    assert_int_equal (called, 1);
    assert_int_equal (expired, 0);
    flux_watcher_destroy (w);
    flux_future_destroy (f);
    flux_reactor_destroy (r);
}

static void test_aux (void **state)
{
    flux_future_t *f = flux_future_create (NULL, NULL);
    flux_future_t *p = flux_future_create (NULL, NULL);
    const void *value;
    int x;

    freed = 0;
    assert_int_equal (flux_future_aux_set (p, "key", &x, free_value), 0);
    assert_errno (flux_future_aux_get (f, "key") == NULL, ENOENT);
    assert_ptr_equal (flux_future_aux_get (p, "key"), &x);
    flux_future_fulfill (p, &x, free_value);
    assert_int_equal (flux_future_get (p, &value), 0);
    assert_ptr_equal (value, &x);
    assert_int_equal (freed, 0);
    flux_future_destroy (p);
    assert_int_equal (freed, 2);    // the value once, the aux once
    flux_future_destroy (f);
}

static flux_future_t *timer (double *after)
{
    return flux_future_create (timer_init, after);
}

static void test_all (void **state)
{
    flux_future_t *all = flux_future_wait_all_create ();
    flux_future_t *f = timer (&soon);

    assert_errno (flux_future_push (f, "a", all) < 0, EINVAL);
    assert_int_equal (flux_future_push (all, "a", f), 0);
    assert_errno (flux_future_push (all, "a", f) < 0, EEXIST);
    assert_int_equal (flux_future_push (all, NULL, timer (&soon)), 0);
    assert_int_equal (flux_future_get (all, NULL), 0);
    assert_true (flux_future_is_ready (f));
    flux_future_destroy (all);

    // none, and one that fails
    assert_non_null (all = flux_future_wait_all_create ());
    assert_int_equal (flux_future_get (all, NULL), 0);
    flux_future_destroy (all);
    assert_non_null (all = flux_future_wait_all_create ());
    assert_non_null (f = flux_future_create (NULL, NULL));
    flux_future_fulfill_error (f, ENOENT, NULL);
    assert_int_equal (flux_future_push (all, "bad", f), 0);
    assert_int_equal (flux_future_push (all, "good", timer (&soon)), 0);
    assert_errno (flux_future_get (all, NULL) < 0, ENOENT);
    flux_future_destroy (all);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_now),
        cmocka_unit_test (test_init),
        cmocka_unit_test (test_then),
        cmocka_unit_test (test_then_once),
        cmocka_unit_test (test_aux),
        cmocka_unit_test (test_all),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
