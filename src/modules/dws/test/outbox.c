/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of outbox.c, with the test at the other end of the handle in the agent's
 * place.
 */

#include <flux/core.h>

#include "libdws/test/util.h"
#include "agent/outbox.h"

#define URI "interthread://outbox"
#define BOUND 32                // commands of one message

static int errnum_to_send;      // what flux_respond() fails with, or 0

int __real_flux_respond (flux_t *h, const flux_msg_t *request, const char *s);

int __wrap_flux_respond (flux_t *h, const flux_msg_t *request, const char *s)
{
    if (errnum_to_send) {
        errno = errnum_to_send;
        return -1;
    }
    return __real_flux_respond (h, request, s);
}

struct world {
    flux_t *agent;
    flux_t *h;
    flux_msg_t *request;
    struct outbox *box;
    int failures;
    int errnum;                 // of the last one
};

static void failed (void *arg)
{
    struct world *w = arg;

    w->errnum = errno;
    w->failures++;
}

static void setup (struct world *w, bool batches)
{
    flux_future_t *f;

    memset (w, 0, sizeof (*w));
    assert_non_null (w->agent = flux_open (URI, 0));
    assert_non_null (w->h = flux_open (URI, 0));
    assert_non_null (w->box = outbox_create (w->h, failed, w));
    assert_non_null (f = flux_rpc (w->agent, "dws.agent", "{}", 0, 0));
    flux_future_destroy (f);
    w->request = flux_recv (w->h, FLUX_MATCH_REQUEST, FLUX_O_NONBLOCK);
    assert_non_null (w->request);
    outbox_open (w->box, w->request, batches);
}

static void teardown (struct world *w)
{
    outbox_destroy (w->box);
    flux_msg_destroy (w->request);
    flux_close (w->h);
    flux_close (w->agent);
}

static void turn (struct world *w)
{
    for (int i = 0; i < 3; i++)
        assert_true (flux_reactor_run (flux_get_reactor (w->h),
                                       FLUX_REACTOR_NOWAIT) >= 0);
}

static void put (struct world *w, int first, int last)
{
    for (int i = first; i <= last; i++) {
        json_t *command = json_pack ("{s:s s:i}", "op", "get", "seq", i);

        assert_int_equal (outbox_put (w->box, command), 0);
        json_decref (command);
    }
}

static flux_msg_t *receive (struct world *w)
{
    return flux_recv (w->agent, FLUX_MATCH_RESPONSE, FLUX_O_NONBLOCK);
}

static void assert_none (struct world *w)
{
    assert_null (receive (w));
}

static void assert_get (json_t *command, int seq)
{
    json_t *want = json_pack ("{s:s s:i}", "op", "get", "seq", seq);

    assert_true (json_equal (command, want));
    json_decref (want);
}

/* The next message is one command, or a batch of those from 'first' to 'last'.
 */
static void assert_message (struct world *w, int first, int last)
{
    flux_msg_t *msg = receive (w);
    const char *op;
    json_t *o;
    json_t *commands;

    assert_non_null (msg);
    assert_int_equal (flux_msg_unpack (msg, "o", &o), 0);
    if (first == last)
        assert_get (o, first);
    else {
        assert_int_equal (json_unpack (o, "{s:s s:o !}", "op", &op,
                                       "commands", &commands), 0);
        assert_string_equal (op, "batch");
        assert_int_equal (json_array_size (commands), last - first + 1);
        for (int i = first; i <= last; i++)
            assert_get (json_array_get (commands, i - first), i);
    }
    flux_msg_destroy (msg);
}

static void test_one_turn (void **state)
{
    struct world w;

    setup (&w, true);
    put (&w, 1, 3);
    assert_none (&w);
    turn (&w);
    assert_message (&w, 1, 3);
    put (&w, 4, 4);
    turn (&w);
    assert_message (&w, 4, 4);
    turn (&w);
    assert_none (&w);
    teardown (&w);
}

static void test_bound (void **state)
{
    struct world w;

    setup (&w, true);
    put (&w, 1, 2 * BOUND + 1);
    turn (&w);
    assert_message (&w, 1, BOUND);
    assert_message (&w, BOUND + 1, 2 * BOUND);
    assert_message (&w, 2 * BOUND + 1, 2 * BOUND + 1);
    assert_none (&w);
    teardown (&w);
}

/* An agent of the neighbouring release.
 */
static void test_one_by_one (void **state)
{
    struct world w;

    setup (&w, false);
    put (&w, 1, 3);
    turn (&w);
    for (int i = 1; i <= 3; i++)
        assert_message (&w, i, i);
    assert_none (&w);
    teardown (&w);
}

static void test_close (void **state)
{
    struct world w;

    setup (&w, true);
    put (&w, 1, 2);
    outbox_close (w.box);
    turn (&w);
    assert_none (&w);
    outbox_open (w.box, w.request, true);
    put (&w, 3, 3);
    turn (&w);
    assert_message (&w, 3, 3);
    assert_int_equal (w.failures, 0);
    teardown (&w);
}

static void test_fail (void **state)
{
    struct world w;

    setup (&w, true);
    put (&w, 1, 2 * BOUND);
    errnum_to_send = ENOMEM;
    turn (&w);
    errnum_to_send = 0;
    assert_int_equal (w.failures, 1);
    assert_int_equal (w.errnum, ENOMEM);
    put (&w, 3, 4);
    turn (&w);
    assert_message (&w, 3, 4);
    assert_none (&w);
    teardown (&w);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_one_turn),
        cmocka_unit_test (test_bound),
        cmocka_unit_test (test_one_by_one),
        cmocka_unit_test (test_close),
        cmocka_unit_test (test_fail),
    };

    return cmocka_run_group_tests (tests, NULL, NULL);
}
