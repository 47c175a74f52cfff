/* SPDX-License-Identifier: LGPL-3.0-only */
/* handle.c - attributes, log, events, services and messages of libflux-core,
 * in an instance of four nodes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include "test.h"

static int setup (void **state)
{
    return (*state = flux_open (NULL, 0)) ? 0 : -1;
}

static int teardown (void **state)
{
    flux_close (*state);
    return 0;
}

static void works (flux_future_t *f)
{
    assert_non_null (f);
    assert_int_equal (flux_future_get (f, NULL), 0);
    flux_future_destroy (f);
}

static void fails (flux_future_t *f, int errnum)
{
    assert_non_null (f);
    assert_errno (flux_future_get (f, NULL) < 0, errnum);
    flux_future_destroy (f);
}

static void test_version (void **state)
{
    int major, minor, patch;

    assert_int_equal (sscanf (flux_core_version_string (), "%d.%d.%d",
                              &major, &minor, &patch), 3);
}

static void test_attributes (void **state)
{
    flux_t *h = *state;
    uint32_t n;

    assert_int_equal (flux_get_rank (h, &n), 0);
    assert_int_equal (n, 0);
    assert_string_equal (flux_attr_get (h, "size"), "4");
    assert_errno (flux_attr_get (h, "nosuch") == NULL, ENOENT);
    assert_errno (flux_attr_get (h, NULL) == NULL, EINVAL);
    assert_int_equal (flux_attr_set (h, "test.c", "x"), 0);
    assert_string_equal (flux_attr_get (h, "test.c"), "x");
    assert_int_equal (flux_attr_set (h, "test.c", "y"), 0);
    assert_string_equal (flux_attr_get (h, "test.c"), "y");
    assert_errno (flux_attr_set (h, "rank", "1") < 0, EINVAL);
    assert_errno (flux_attr_set (h, "nosuch", "1") < 0, ENOENT);
    assert_errno (flux_attr_set (h, NULL, "1") < 0, EINVAL);
    assert_int_equal (flux_attr_set_cacheonly (h, "cached", "1"), 0);
    assert_string_equal (flux_attr_get (h, "cached"), "1");
    assert_int_equal (flux_attr_set_cacheonly (h, "cached", NULL), 0);
    assert_errno (flux_attr_get (h, "cached") == NULL, ENOENT);
}

static void vlog (flux_t *h, const char *fmt, ...)
{
    va_list ap;

    va_start (ap, fmt);
    flux_vlog (h, LOG_INFO, fmt, ap);
    va_end (ap);
}

static void verror (flux_t *h, const char *fmt, ...)
{
    va_list ap;

    va_start (ap, fmt);
    flux_log_verror (h, fmt, ap);
    va_end (ap);
}

/* The instance gives log messages back. */
static void assert_logged (flux_t *h, const char *text)
{
    flux_future_t *f = flux_rpc_pack (h, "log.dmesg", FLUX_NODEID_ANY,
                                      FLUX_RPC_STREAMING,
                                      "{s:b s:b}", "follow", 1, "nobacklog", 0);
    const char *line;

    assert_non_null (f);
    while (flux_rpc_get (f, &line) == 0 && !strstr (line, text))
        flux_future_reset (f);
    assert_non_null (strstr (line, text));
    flux_future_destroy (f);
}

static void test_log (void **state)
{
    flux_t *h = *state;
    char line[200];

    flux_log_set_appname (h, "app");
    assert_int_equal (flux_log (h, LOG_ERR, "hello %d\n", 1), 0);
    snprintf (line, sizeof (line), " 0 app %d - - hello 1", (int)getpid ());
    assert_logged (h, line);
    vlog (h, "two %s", "2");
    assert_logged (h, " - - two 2");
    errno = EXDEV;
    flux_log_error (h, "three");
    assert_int_equal (errno, EXDEV);
    assert_logged (h, " - - three: Invalid cross-device link");
    errno = EBUSY;
    verror (h, "four");
    assert_logged (h, "four: Device or resource busy");
}

static void test_events (void **state)
{
    flux_t *h = *state;
    struct flux_match match = flux_match_init (FLUX_MSGTYPE_EVENT,
                                               FLUX_MATCHTAG_NONE, "c-ev*");
    flux_msg_t *msg;
    const char *topic;
    const char *s;
    const void *data;
    size_t len;
    int i;

    assert_int_equal (flux_event_subscribe (h, "c-ev.a"), 0);
    works (flux_event_subscribe_ex (h, "c-ev.b", 0));
    works (flux_event_publish (h, "c-ev.a", 0, "{\"x\":1}"));
    works (flux_event_publish (h, "c-other", 0, NULL));
    works (flux_event_publish_pack (h, "c-ev.b", FLUX_MSGFLAG_PRIVATE, "{s:i}",
                                    "x", 2));
    works (flux_event_publish_raw (h, "c-ev.a", 0, "a\0b", 3));

    msg = flux_recv (h, match, 0);
    assert_int_equal (flux_event_decode (msg, &topic, &s), 0);
    assert_string_equal (topic, "c-ev.a");
    assert_string_equal (s, "{\"x\":1}");
    flux_msg_destroy (msg);
    msg = flux_recv (h, match, 0);
    assert_int_equal (flux_event_unpack (msg, &topic, "{s:i}", "x", &i), 0);
    assert_string_equal (topic, "c-ev.b");
    assert_int_equal (i, 2);
    assert_true (flux_msg_is_private (msg));
    flux_msg_destroy (msg);
    msg = flux_recv (h, match, 0);
    assert_int_equal (flux_msg_get_payload (msg, &data, &len), 0);
    assert_int_equal (len, 3);
    assert_memory_equal (data, "a\0b", 3);
    flux_msg_destroy (msg);

    assert_int_equal (flux_event_unsubscribe (h, "c-ev.a"), 0);
    assert_int_equal (flux_event_unsubscribe (h, "c-ev.b"), 0);
    works (flux_event_publish (h, "c-ev.a", 0, NULL));
    assert_errno (flux_recv (h, match, FLUX_O_NONBLOCK) == NULL, EWOULDBLOCK);
    assert_errno (flux_event_publish (h, NULL, 0, NULL) == NULL, EINVAL);
    assert_errno (flux_event_publish (h, "x", 0x1000, NULL) == NULL, EINVAL);
    assert_errno (flux_event_subscribe_ex (h, NULL, 0) == NULL, EINVAL);
}

static void echo_cb (flux_t *h, flux_msg_handler_t *mh, const flux_msg_t *msg,
                    void *arg)
{
    const void *data = NULL;
    size_t len = 0;

    flux_request_decode_raw (msg, NULL, &data, &len);
    flux_respond (h, msg, data);
}

static void stop_cb (flux_t *h, flux_msg_handler_t *mh, const flux_msg_t *msg,
                     void *arg)
{
    flux_respond (h, msg, NULL);
    flux_reactor_stop (flux_get_reactor (h));
}

static flux_future_t *rpc_vpack (flux_t *h, const char *topic,
                                 const char *fmt, ...)
{
    flux_future_t *f;
    va_list ap;

    va_start (ap, fmt);
    f = flux_rpc_vpack (h, topic, FLUX_NODEID_ANY, 0, fmt, ap);
    va_end (ap);
    return f;
}

static void test_service (void **state)
{
    flux_t *h = *state;
    flux_t *server = flux_open (NULL, 0);
    const struct flux_msg_handler_spec table[] = {
        { FLUX_MSGTYPE_REQUEST, "echo", echo_cb, 0 },
        { FLUX_MSGTYPE_REQUEST, "stop", stop_cb, FLUX_ROLE_USER },
        FLUX_MSGHANDLER_TABLE_END,
    };
    flux_msg_handler_t **handlers;
    flux_future_t *f;
    flux_future_t *g;
    flux_future_t *q;
    const char *s;

    works (flux_service_register (server, "c-sv"));
    fails (flux_service_register (h, "c-sv"), EEXIST);
    assert_int_equal (flux_msg_handler_addvec_ex (server, "c-sv", table, NULL,
                                                  &handlers), 0);
    assert_int_equal (flux_aux_set (server, "flux::uuid", "me", NULL), 0);
    assert_int_equal (flux_register_default_methods (server, "c-sv", &handlers), 0);
    f = flux_rpc (h, "c-sv.echo", "text", FLUX_NODEID_ANY, 0);
    g = rpc_vpack (h, "c-sv.ping", "{s:i}", "n", 1);
    q = flux_rpc (h, "c-sv.stop", NULL, FLUX_NODEID_ANY, 0);
    assert_true (flux_reactor_run (flux_get_reactor (server), 0) >= 0);
    assert_int_equal (flux_rpc_get (f, &s), 0);
    assert_string_equal (s, "text");
    assert_int_equal (flux_rpc_get (g, NULL), 0);
    works (f);
    works (g);
    works (q);
    flux_msg_handler_delvec (handlers);
    works (flux_service_unregister (server, "c-sv"));
    fails (flux_service_unregister (server, "c-sv"), ENOENT);
    flux_close (server);
    fails (flux_rpc (h, "c-sv.echo", NULL, FLUX_NODEID_ANY, 0), ENOSYS);
}

static void test_references (void **state)
{
    flux_t *h = *state;
    flux_future_t *f = flux_future_create (NULL, NULL);
    flux_reactor_t *r = flux_reactor_create (0);
    int i = 7;

    flux_future_incref (f);
    flux_future_decref (f);
    flux_future_set_flux (f, h);
    assert_ptr_equal (flux_future_get_flux (f), h);
    flux_future_fulfill (f, &i, NULL);
    assert_int_equal (flux_future_get (f, NULL), 0);
    flux_future_destroy (f);
    flux_incref (h);
    flux_decref (h);
    flux_reactor_incref (r);
    flux_reactor_decref (r);
    flux_reactor_now_update (r);
    assert_true (flux_reactor_now (r) > 0);
    flux_reactor_destroy (r);
}

static void test_messages (void **state)
{
    flux_msg_t *msg;
    const char *s;

    msg = flux_request_encode_raw ("a.b", "xyz", 3);
    assert_int_equal (flux_request_decode_raw (msg, &s, NULL, NULL), -1);
    assert_int_equal (errno, EINVAL);
    flux_msg_destroy (msg);
}

static void vargs (const char *what, void *arg, const char *fmt, ...)
{
    va_list ap;

    va_start (ap, fmt);
    if (strcmp (what, "msg pack") == 0)
        assert_int_equal (flux_msg_vpack (arg, fmt, ap), 0);
    else if (strcmp (what, "msg unpack") == 0)
        assert_int_equal (flux_msg_vunpack (arg, fmt, ap), 0);
    else if (strcmp (what, "arg pack") == 0)
        assert_int_equal (flux_plugin_arg_vpack (arg, FLUX_PLUGIN_ARG_IN,
                                                 fmt, ap), 0);
    else
        assert_int_equal (flux_plugin_arg_vunpack (arg, FLUX_PLUGIN_ARG_IN,
                                                   fmt, ap), 0);
    va_end (ap);
}

static void test_argument_lists (void **state)
{
    flux_msg_t *msg = flux_msg_create (FLUX_MSGTYPE_EVENT);
    flux_plugin_arg_t *args = flux_plugin_arg_create ();
    flux_conf_t *conf = flux_conf_create ();
    int i = 0;

    vargs ("msg pack", msg, "{s:i}", "a", 1);
    vargs ("msg unpack", msg, "{s:i}", "a", &i);
    assert_int_equal (i, 1);
    vargs ("arg pack", args, "{s:i}", "a", 2);
    vargs ("arg unpack", args, "{s:i}", "a", &i);
    assert_int_equal (i, 2);
    assert_true (flux_conf_unpack (conf, NULL, "{s:i}", "a", &i) < 0);
    flux_conf_decref (conf);
    flux_plugin_arg_destroy (args);
    flux_msg_destroy (msg);
}

static void count_cb (flux_t *h, flux_msg_handler_t *mh, const flux_msg_t *msg,
                      void *arg)
{
    (*(int *)arg)++;
    flux_respond (h, msg, NULL);
}

/* The mask says which roles may call; a stopped handler is not there. */
static void test_handler (void **state)
{
    flux_t *server = flux_open (NULL, 0);
    flux_reactor_t *r = flux_get_reactor (server);
    struct flux_match match = flux_match_init (FLUX_MSGTYPE_REQUEST,
                                               FLUX_MATCHTAG_NONE, "c-mh.*");
    flux_msg_handler_t *mh;
    flux_future_t *f[2];
    flux_t *guest;
    int count = 0;

    setenv ("FLUX_HANDLE_USERID", "4711", 1);
    setenv ("FLUX_HANDLE_ROLEMASK", "2", 1);
    guest = flux_open (NULL, 0);
    unsetenv ("FLUX_HANDLE_USERID");
    unsetenv ("FLUX_HANDLE_ROLEMASK");
    works (flux_service_register (server, "c-mh"));
    mh = flux_msg_handler_create (server, match, count_cb, &count);
    for (int i = 0; i < 2; i++) {
        if (i == 0)
            flux_msg_handler_start (mh);
        else
            flux_msg_handler_allow_rolemask (mh, FLUX_ROLE_USER);
        f[i] = flux_rpc (guest, "c-mh.x", NULL, FLUX_NODEID_ANY, 0);
        while (!flux_future_is_ready (f[i])) {
            works (flux_rpc_pack (server, "broker.ping", FLUX_NODEID_ANY, 0, "{}"));
            assert_true (flux_reactor_run (r, FLUX_REACTOR_NOWAIT) >= 0);
            (void)flux_future_wait_for (f[i], 0.01);
        }
    }
    fails (f[0], EPERM);
    works (f[1]);
    assert_int_equal (count, 1);
    flux_msg_handler_stop (mh);
    flux_msg_handler_destroy (mh);
    flux_close (guest);
    flux_close (server);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_version),
        cmocka_unit_test (test_attributes),
        cmocka_unit_test (test_log),
        cmocka_unit_test (test_events),
        cmocka_unit_test (test_service),
        cmocka_unit_test (test_references),
        cmocka_unit_test (test_messages),
        cmocka_unit_test (test_argument_lists),
        cmocka_unit_test (test_handler),
    };

    return cmocka_run_group_tests_name ("handle", tests, setup, teardown);
}
