/* SPDX-License-Identifier: LGPL-3.0-only */
/* test_rpc.c - message handlers and RPC, with a server in another thread, and
 * what a handle keeps: matchtags, options, aux.
 */

#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <flux/idset.h>

#include "test.h"

#define URI "interthread://test"

/* The server */

static void echo_cb (flux_t *h, flux_msg_handler_t *mh, const flux_msg_t *msg,
                     void *arg)
{
    const char *s;

    if (flux_request_decode (msg, NULL, &s) < 0)
        flux_respond_error (h, msg, errno, NULL);
    else
        flux_respond (h, msg, s);
}

static void count_cb (flux_t *h, flux_msg_handler_t *mh, const flux_msg_t *msg,
                      void *arg)
{
    int n;

    if (flux_request_unpack (msg, NULL, "{s:i}", "n", &n) < 0) {
        flux_respond_error (h, msg, errno, "how many?");
        return;
    }
    for (int i = 0; i < n; i++)
        flux_respond_pack (h, msg, "{s:i}", "i", i);
    flux_respond_error (h, msg, ENODATA, NULL);
}

static void never_cb (flux_t *h, flux_msg_handler_t *mh, const flux_msg_t *msg,
                      void *arg)
{
}

static void glob_cb (flux_t *h, flux_msg_handler_t *mh, const flux_msg_t *msg,
                     void *arg)
{
    flux_respond (h, msg, "glob");
}

static void quit_cb (flux_t *h, flux_msg_handler_t *mh, const flux_msg_t *msg,
                     void *arg)
{
    flux_reactor_stop (flux_get_reactor (h));
}

static void event_cb (flux_t *h, flux_msg_handler_t *mh, const flux_msg_t *msg,
                      void *arg)
{
    flux_msg_t *back = flux_event_encode ("back", NULL);

    flux_send (h, back, 0);
    flux_msg_destroy (back);
}

static const struct flux_msg_handler_spec methods[] = {
    { FLUX_MSGTYPE_REQUEST, "srv.*", glob_cb, 0 },
    { FLUX_MSGTYPE_REQUEST, "srv.echo", echo_cb, FLUX_ROLE_USER },
    { FLUX_MSGTYPE_REQUEST, "srv.owner", echo_cb, 0 },
    { FLUX_MSGTYPE_REQUEST, "srv.count", count_cb, 0 },
    { FLUX_MSGTYPE_REQUEST, "srv.never", never_cb, 0 },
    { FLUX_MSGTYPE_REQUEST, "srv.quit", quit_cb, 0 },
    { FLUX_MSGTYPE_EVENT, "ev.*", event_cb, 0 },
    { FLUX_MSGTYPE_EVENT, "ev.a", event_cb, 0 },
    FLUX_MSGHANDLER_TABLE_END,
};

static void *serve (void *arg)
{
    flux_t *h = arg;
    flux_msg_handler_t **handlers;

    if (flux_msg_handler_addvec (h, methods, NULL, &handlers) < 0)
        return NULL;
    flux_reactor_run (flux_get_reactor (h), 0);
    flux_msg_handler_delvec (handlers);
    flux_close (h);
    return h;
}

struct fixture {
    pthread_t thread;
    flux_t *h;
};

/* Both ends are opened here: who is first is then certain. */
static int setup (void **state)
{
    struct fixture *fix = calloc (1, sizeof (*fix));
    flux_t *server = flux_open (URI, 0);
    flux_error_t error;

    *state = fix;
    if (!server || !(fix->h = flux_open (URI, 0)))
        return -1;
    assert_errno (flux_open_ex (URI, 0, &error) == NULL, EADDRINUSE);
    return pthread_create (&fix->thread, NULL, serve, server);
}

static int teardown (void **state)
{
    struct fixture *fix = *state;
    flux_future_t *f = flux_rpc (fix->h, "srv.quit", NULL, FLUX_NODEID_ANY,
                                 FLUX_RPC_NORESPONSE);
    void *result = NULL;

    flux_future_destroy (f);
    pthread_join (fix->thread, &result);
    flux_close (fix->h);
    free (fix);
    return result ? 0 : -1;
}

/* Tests */

static void test_get (void **state)
{
    flux_t *h = ((struct fixture *)*state)->h;
    uint32_t avail = flux_matchtag_avail (h);
    flux_future_t *f;
    const char *s;
    int i;

    assert_non_null (f = flux_rpc (h, "srv.echo", "hello", 0, 0));
    assert_int_not_equal (flux_rpc_get_matchtag (f), FLUX_MATCHTAG_NONE);
    assert_int_equal (flux_rpc_get (f, &s), 0);
    assert_string_equal (s, "hello");
    assert_errno (flux_rpc_get_unpack (f, "{s:i}", "a", &i) < 0, EPROTO);
    flux_future_destroy (f);

    assert_non_null (f = flux_rpc_pack (h, "srv.echo", 0, 0, "{s:i}", "a", 5));
    assert_int_equal (flux_rpc_get_unpack (f, "{s:i}", "a", &i), 0);
    assert_int_equal (i, 5);
    flux_future_destroy (f);

    assert_non_null (f = flux_rpc (h, "srv.echo", NULL, 0, 0));
    assert_int_equal (flux_rpc_get (f, &s), 0);
    assert_null (s);
    flux_future_destroy (f);

    assert_errno (flux_rpc (NULL, "a", NULL, 0, 0) == NULL, EINVAL);
    assert_errno (flux_rpc (h, "a", NULL, 0, 0x80) == NULL, EINVAL);
    assert_errno (flux_rpc (h, NULL, NULL, 0, 0) == NULL, EINVAL);
    assert_int_equal (flux_matchtag_avail (h), avail);
}

static void test_errors (void **state)
{
    flux_t *h = ((struct fixture *)*state)->h;
    uint32_t avail = flux_matchtag_avail (h);
    flux_future_t *f;
    const char *s;

    assert_non_null (f = flux_rpc (h, "nosuch.method", NULL, 0, 0));
    assert_errno (flux_rpc_get (f, NULL) < 0, ENOSYS);
    assert_string_equal (flux_future_error_string (f),
                         "Unknown service method 'nosuch.method'");
    flux_future_destroy (f);
    assert_non_null (f = flux_rpc (h, "srv.other", NULL, 0, 0));
    assert_int_equal (flux_rpc_get (f, &s), 0);
    assert_string_equal (s, "glob");
    flux_future_destroy (f);
    assert_non_null (f = flux_rpc (h, "srv.count", NULL, 0, 0));
    assert_errno (flux_rpc_get (f, NULL) < 0, EPROTO);
    assert_string_equal (flux_future_error_string (f), "how many?");
    flux_future_destroy (f);
    assert_int_equal (flux_matchtag_avail (h), avail);

    // given up: the tag stays taken
    assert_non_null (f = flux_rpc (h, "srv.never", NULL, 0, 0));
    assert_errno (flux_future_wait_for (f, 0.01) < 0, ETIMEDOUT);
    flux_future_destroy (f);
    assert_int_equal (flux_matchtag_avail (h), avail - 1);
}

static void test_streaming (void **state)
{
    flux_t *h = ((struct fixture *)*state)->h;
    uint32_t avail = flux_matchtag_avail (h);
    flux_future_t *f;
    int i;

    assert_non_null (f = flux_rpc_pack (h, "srv.count", 0, FLUX_RPC_STREAMING,
                                        "{s:i}", "n", 3));
    for (int want = 0; want < 3; want++) {
        assert_int_equal (flux_rpc_get_unpack (f, "{s:i}", "i", &i), 0);
        assert_int_equal (i, want);
        flux_future_reset (f);
    }
    assert_errno (flux_rpc_get (f, NULL) < 0, ENODATA);
    flux_future_destroy (f);
    assert_int_equal (flux_matchtag_avail (h), avail);
}

/* What a guest's request for that topic gets. */
static flux_msg_t *ask_as_guest (flux_t *h, const char *topic)
{
    struct flux_msg_cred guest = { .userid = 1, .rolemask = FLUX_ROLE_USER };
    struct flux_match match = FLUX_MATCH_RESPONSE;
    flux_msg_t *msg = flux_request_encode (topic, NULL);

    match.matchtag = flux_matchtag_alloc (h);
    assert_int_equal (flux_msg_set_matchtag (msg, match.matchtag), 0);
    assert_int_equal (flux_msg_set_cred (msg, guest), 0);
    assert_int_equal (flux_send_new (h, &msg, 0), 0);
    assert_non_null (msg = flux_recv (h, match, 0));
    flux_matchtag_free (h, match.matchtag);
    return msg;
}

static void test_roles (void **state)
{
    flux_t *h = ((struct fixture *)*state)->h;
    flux_msg_t *msg = ask_as_guest (h, "srv.owner");
    const char *s;

    assert_errno (flux_response_decode (msg, NULL, NULL) < 0, EPERM);
    assert_int_equal (flux_response_decode_error (msg, &s), 0);
    assert_string_equal (s, "Request requires owner credentials");
    flux_msg_destroy (msg);
    msg = ask_as_guest (h, "srv.echo");
    assert_int_equal (flux_response_decode (msg, NULL, NULL), 0);
    flux_msg_destroy (msg);
}

struct then {
    flux_t *h;
    int order[8];
    int count;
};

static void then_cb (flux_future_t *f, void *arg)
{
    struct then *t = arg;
    int n;

    // another RPC within: what comes for others meanwhile is kept
    flux_future_t *g = flux_rpc (t->h, "srv.echo", "x", 0, 0);
    assert_int_equal (flux_rpc_get (g, NULL), 0);
    flux_future_destroy (g);
    assert_int_equal (flux_rpc_get_unpack (f, "{s:i}", "n", &n), 0);
    t->order[t->count++] = n;
    flux_future_destroy (f);
    if (t->count == 8)
        flux_reactor_stop (flux_get_reactor (t->h));
}

static void test_then (void **state)
{
    struct then t = { .h = ((struct fixture *)*state)->h };

    for (int i = 0; i < 8; i++) {
        flux_future_t *f = flux_rpc_pack (t.h, "srv.echo", 0, 0, "{s:i}",
                                          "n", i);
        assert_int_equal (flux_future_then (f, -1., then_cb, &t), 0);
    }
    assert_true (flux_reactor_run (flux_get_reactor (t.h), 0) >= 0);
    for (int i = 0; i < 8; i++)
        assert_int_equal (t.order[i], i);
}

static void test_event (void **state)
{
    flux_t *h = ((struct fixture *)*state)->h;
    struct flux_match match = FLUX_MATCH_EVENT;
    flux_msg_t *msg = flux_event_encode ("ev.a", NULL);
    flux_msg_t *back;

    // two handlers want it, so two events come back
    assert_int_equal (flux_send (h, msg, 0), 0);
    match.topic_glob = "back";
    for (int i = 0; i < 2; i++) {
        assert_non_null (back = flux_recv (h, match, 0));
        flux_msg_destroy (back);
    }
    assert_errno (flux_recv (h, match, FLUX_O_NONBLOCK) == NULL, EAGAIN);
    flux_msg_destroy (msg);
}

static void test_recv_match (void **state)
{
    flux_t *h = flux_open ("loop://", 0);
    struct flux_match match = FLUX_MATCH_EVENT;
    struct pollfd pfd;
    flux_msg_t *msg;
    char topic[] = "0";

    for (int i = 0; i < 4; i++) {
        topic[0] = '0' + i;
        msg = flux_event_encode (topic, NULL);
        assert_int_equal (flux_send_new (h, &msg, 0), 0);
        assert_null (msg);
    }
    match.topic_glob = "2";
    assert_non_null (msg = flux_recv (h, match, 0));
    flux_msg_destroy (msg);
    match.topic_glob = "nope";
    assert_errno (flux_recv (h, match, FLUX_O_NONBLOCK) == NULL, EAGAIN);
    // the others are still there, in their order, and pollfd says so
    pfd.fd = flux_pollfd (h);
    pfd.events = POLLIN;
    assert_int_equal (poll (&pfd, 1, 0), 1);
    assert_true (flux_pollevents (h) & FLUX_POLLIN);
    for (const char *want = "013"; *want; want++) {
        const char *s;
        assert_non_null (msg = flux_recv (h, FLUX_MATCH_ANY, FLUX_O_NONBLOCK));
        assert_int_equal (flux_msg_get_topic (msg, &s), 0);
        assert_int_equal (s[0], *want);
        flux_msg_destroy (msg);
    }
    assert_false (flux_pollevents (h) & FLUX_POLLIN);
    flux_close (h);
}

static void free_cb (void *arg)
{
    (*(int *)arg)++;
}

static void test_handle (void **state)
{
    flux_t *h = flux_open ("loop://", 0);
    flux_error_t error;
    flux_msg_t *msg = flux_event_encode ("x", NULL);
    uint32_t userid = 1234;
    int freed = 0;
    flux_t *clone;

    assert_errno (flux_open_ex ("loop://", 0x10000, &error) == NULL, EINVAL);
    assert_string_equal (error.text, "invalid flags specified");
    assert_errno (flux_open ("local:///nosuch", 0) == NULL, ENOENT);
    assert_errno (flux_send (NULL, msg, 0) < 0, EINVAL);
    assert_errno (flux_send (h, NULL, 0) < 0, EINVAL);
    assert_errno (flux_requeue (h, msg, 0) < 0, EINVAL);
    assert_errno (flux_opt_set (h, "nosuch", NULL, 0) < 0, EINVAL);
    assert_int_equal (flux_opt_set (h, FLUX_OPT_TESTING_USERID, &userid,
                                    sizeof (userid)), 0);
    assert_int_equal (flux_send (h, msg, 0), 0);
    flux_msg_destroy (msg);
    assert_non_null (msg = flux_recv (h, FLUX_MATCH_ANY, 0));
    assert_int_equal (flux_msg_get_userid (msg, &userid), 0);
    assert_int_equal (userid, 1234);
    flux_msg_destroy (msg);

    assert_int_equal (flux_aux_set (h, "k", &freed, free_cb), 0);
    assert_ptr_equal (flux_aux_get (h, "k"), &freed);
    assert_errno (flux_aux_get (h, "z") == NULL, ENOENT);
    assert_int_equal (flux_aux_set (h, "k", NULL, NULL), 0);
    assert_int_equal (freed, 1);
    assert_int_equal (flux_aux_set (h, "k", &freed, free_cb), 0);
    flux_reactor_t *r = flux_get_reactor (h);
    assert_non_null (r);
    assert_errno (flux_set_reactor (h, r) < 0, EEXIST);
    assert_int_equal (flux_flags_get (h), 0);

    // a clone shares tags and messages, not aux
    assert_non_null (clone = flux_clone (h));
    assert_null (flux_aux_get (clone, "k"));
    uint32_t tag = flux_matchtag_alloc (h);
    assert_int_not_equal (flux_matchtag_alloc (clone), tag);
    flux_close (clone);
    assert_ptr_equal (flux_incref (h), h);
    flux_close (h);
    assert_int_equal (freed, 1);
    flux_close (h);
    assert_int_equal (freed, 2);
}

/* However many RPCs are under way, no two have the same tag.
 */
static void test_many_matchtags (void **state)
{
    enum { COUNT = 100000 };
    flux_t *h = ((struct fixture *)*state)->h;
    struct idset *used;
    flux_future_t *f;
    const char *s;
    unsigned int tag;
    uint32_t avail;

    assert_non_null (used = idset_create (0, IDSET_FLAG_AUTOGROW));
    for (int i = 0; i < COUNT; i++) {
        tag = flux_matchtag_alloc (h);
        assert_int_not_equal (tag, FLUX_MATCHTAG_NONE);
        assert_false (idset_test (used, tag));
        assert_int_equal (idset_set (used, tag), 0);
    }
    assert_non_null (f = flux_rpc (h, "srv.echo", "hello", 0, 0));
    assert_false (idset_test (used, flux_rpc_get_matchtag (f)));
    assert_int_equal (flux_rpc_get (f, &s), 0);
    assert_string_equal (s, "hello");
    flux_future_destroy (f);

    // those given back are given out again
    avail = flux_matchtag_avail (h);
    for (tag = idset_first (used);
         tag != IDSET_INVALID_ID;
         tag = idset_next (used, tag))
        flux_matchtag_free (h, tag);
    assert_int_equal (flux_matchtag_avail (h), avail + COUNT);
    tag = flux_matchtag_alloc (h);
    assert_true (idset_test (used, tag));
    flux_matchtag_free (h, tag);
    idset_destroy (used);
}

static void remove_cb (flux_t *h, flux_msg_handler_t *mh,
                       const flux_msg_t *msg, void *arg)
{
    flux_msg_handler_t **other = arg;

    flux_msg_handler_destroy (*other);
    *other = NULL;
    flux_msg_handler_destroy (mh);
    flux_reactor_stop (flux_get_reactor (h));
}

static void fail_cb (flux_t *h, flux_msg_handler_t *mh,
                     const flux_msg_t *msg, void *arg)
{
    fail ();
}

/* Handlers may go while a message is handed round. */
static void test_handler_removal (void **state)
{
    flux_t *h = flux_open ("loop://", 0);
    flux_msg_t *msg = flux_event_encode ("x", NULL);
    flux_msg_handler_t *other, *mh;

    assert_non_null (other = flux_msg_handler_create (h, FLUX_MATCH_EVENT,
                                                      fail_cb, NULL));
    flux_msg_handler_start (other);
    assert_non_null (mh = flux_msg_handler_create (h, FLUX_MATCH_EVENT,
                                                   remove_cb, &other));
    flux_msg_handler_start (mh);
    assert_int_equal (flux_send (h, msg, 0), 0);
    flux_msg_destroy (msg);
    assert_true (flux_reactor_run (flux_get_reactor (h), 0) >= 0);
    assert_null (other);

    // and a handle may go before its handlers
    assert_non_null (mh = flux_msg_handler_create (h, FLUX_MATCH_EVENT,
                                                   fail_cb, NULL));
    flux_close (h);
    flux_msg_handler_destroy (mh);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_get),
        cmocka_unit_test (test_streaming),
        cmocka_unit_test (test_roles),
        cmocka_unit_test (test_then),
        cmocka_unit_test (test_event),
        cmocka_unit_test (test_errors),
        cmocka_unit_test (test_recv_match),
        cmocka_unit_test (test_handle),
        cmocka_unit_test (test_many_matchtags),
        cmocka_unit_test (test_handler_removal),
    };
    return cmocka_run_group_tests (tests, setup, teardown);
}
