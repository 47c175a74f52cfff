/* SPDX-License-Identifier: LGPL-3.0-only */
/* test_message.c - messages: fields, payload, routes, wire form, codecs. */

#include "test.h"

static void test_fields (void **state)
{
    flux_msg_t *msg;
    uint32_t u;
    int type, n;

    assert_string_equal (flux_msg_typestr (FLUX_MSGTYPE_EVENT), "event");
    assert_errno (flux_msg_create (0) == NULL, EINVAL);
    assert_errno (flux_msg_create (3) == NULL, EINVAL);
    assert_non_null (msg = flux_msg_create (FLUX_MSGTYPE_REQUEST));
    assert_int_equal (flux_msg_get_type (msg, &type), 0);
    assert_int_equal (type, FLUX_MSGTYPE_REQUEST);
    assert_int_equal (flux_msg_get_nodeid (msg, &u), 0);
    assert_int_equal (u, FLUX_NODEID_ANY);
    assert_int_equal (flux_msg_get_matchtag (msg, &u), 0);
    assert_int_equal (u, FLUX_MATCHTAG_NONE);
    assert_int_equal (flux_msg_get_userid (msg, &u), 0);
    assert_int_equal (u, FLUX_USERID_UNKNOWN);
    assert_int_equal (flux_msg_get_rolemask (msg, &u), 0);
    assert_int_equal (u, FLUX_ROLE_NONE);
    assert_errno (flux_msg_set_nodeid (msg, FLUX_NODEID_UPSTREAM) < 0, EINVAL);
    assert_int_equal (flux_msg_set_nodeid (msg, 7), 0);
    assert_int_equal (flux_msg_set_matchtag (msg, 42), 0);
    assert_errno (flux_msg_get_errnum (msg, &n) < 0, EPROTO);
    assert_errno (flux_msg_set_errnum (msg, 1) < 0, EINVAL);
    assert_errno (flux_msg_set_seq (msg, 1) < 0, EINVAL);

    // as a response it keeps the tag
    assert_int_equal (flux_msg_set_type (msg, FLUX_MSGTYPE_RESPONSE), 0);
    assert_int_equal (flux_msg_get_matchtag (msg, &u), 0);
    assert_int_equal (u, 42);
    assert_int_equal (flux_msg_get_errnum (msg, &n), 0);
    assert_int_equal (n, 0);
    assert_errno (flux_msg_get_nodeid (msg, &u) < 0, EPROTO);

    assert_int_equal (flux_msg_set_type (msg, FLUX_MSGTYPE_EVENT), 0);
    assert_errno (flux_msg_set_matchtag (msg, 1) < 0, EINVAL);
    assert_errno (flux_msg_get_matchtag (msg, &u) < 0, EPROTO);
    assert_int_equal (flux_msg_set_seq (msg, 9), 0);

    assert_int_equal (flux_msg_set_type (msg, FLUX_MSGTYPE_CONTROL), 0);
    assert_errno (flux_msg_set_topic (msg, "a") < 0, EINVAL);
    flux_msg_destroy (msg);

    assert_errno (flux_msg_get_type (NULL, &type) < 0, EINVAL);
    assert_errno (flux_msg_incref (NULL) == NULL, EINVAL);
    assert_true (flux_msg_is_private (NULL));
    assert_true (flux_msg_is_streaming (NULL));
    assert_true (flux_msg_is_noresponse (NULL));
    assert_false (flux_msg_has_payload (NULL));
}

static void test_flags (void **state)
{
    flux_msg_t *msg = flux_msg_create (FLUX_MSGTYPE_REQUEST);

    assert_false (flux_msg_is_streaming (msg));
    assert_int_equal (flux_msg_set_streaming (msg), 0);
    assert_true (flux_msg_is_streaming (msg));
    assert_int_equal (flux_msg_set_noresponse (msg), 0);
    assert_true (flux_msg_is_noresponse (msg));
    assert_false (flux_msg_is_streaming (msg));
    assert_int_equal (flux_msg_set_private (msg), 0);
    assert_true (flux_msg_is_private (msg));
    assert_int_equal (flux_msg_set_flag (msg, FLUX_MSGFLAG_STREAMING), 0);
    assert_true (flux_msg_is_streaming (msg));
    assert_errno (flux_msg_set_flag (msg, 0x100) < 0, EINVAL);
    flux_msg_destroy (msg);
}

static void test_cred (void **state)
{
    flux_msg_t *msg = flux_msg_create (FLUX_MSGTYPE_REQUEST);
    struct flux_msg_cred cred = { .userid = 100, .rolemask = FLUX_ROLE_USER };

    assert_errno (flux_msg_authorize (msg, 100) < 0, EPERM);
    assert_int_equal (flux_msg_set_cred (msg, cred), 0);
    assert_int_equal (flux_msg_authorize (msg, 100), 0);
    assert_errno (flux_msg_authorize (msg, 101) < 0, EPERM);
    assert_int_equal (flux_msg_set_rolemask (msg, FLUX_ROLE_OWNER
                                                  | FLUX_ROLE_LOCAL), 0);
    assert_int_equal (flux_msg_authorize (msg, 101), 0);
    cred.userid = FLUX_USERID_UNKNOWN;
    assert_errno (flux_msg_cred_authorize (cred, FLUX_USERID_UNKNOWN) < 0,
                  EPERM);
    assert_errno (flux_msg_get_cred (msg, NULL) < 0, EINVAL);
    flux_msg_destroy (msg);
}

static void test_payload (void **state)
{
    flux_msg_t *msg = flux_msg_create (FLUX_MSGTYPE_REQUEST);
    const void *buf;
    const char *s;
    size_t size;
    int i;

    assert_errno (flux_msg_get_payload (msg, &buf, &size) < 0, EPROTO);
    assert_int_equal (flux_msg_get_string (msg, &s), 0);
    assert_null (s);
    assert_errno (flux_msg_unpack (msg, "{s:i}", "a", &i) < 0, EPROTO);

    assert_int_equal (flux_msg_set_payload (msg, "abc", 3), 0);
    assert_true (flux_msg_has_payload (msg));
    assert_errno (flux_msg_get_string (msg, &s) < 0, EPROTO);
    assert_int_equal (flux_msg_set_string (msg, "abc"), 0);
    assert_int_equal (flux_msg_get_payload (msg, &buf, &size), 0);
    assert_int_equal (size, 4);
    assert_errno (flux_msg_unpack (msg, "{s:i}", "a", &i) < 0, EPROTO);

    assert_int_equal (flux_msg_pack (msg, "{s:i s:s}", "a", 1, "b", "x"), 0);
    assert_int_equal (flux_msg_get_string (msg, &s), 0);
    assert_string_equal (s, "{\"a\":1,\"b\":\"x\"}");
    assert_int_equal (flux_msg_unpack (msg, "{s:i}", "a", &i), 0);
    assert_int_equal (i, 1);
    assert_errno (flux_msg_unpack (msg, "{s:i}", "b", &i) < 0, EPROTO);
    assert_errno (flux_msg_unpack (msg, "{s:i !}", "a", &i) < 0, EPROTO);
    assert_errno (flux_msg_pack (msg, "[i]", 1) < 0, EINVAL);
    assert_errno (flux_msg_pack (msg, "") < 0, EINVAL);
    assert_errno (flux_msg_pack (msg, "{s:s}", "a", NULL) < 0, EINVAL);

    // what was unpacked goes with the payload
    assert_int_equal (flux_msg_set_string (msg, "{\"a\":2}"), 0);
    assert_int_equal (flux_msg_unpack (msg, "{s:i}", "a", &i), 0);
    assert_int_equal (i, 2);
    assert_int_equal (flux_msg_set_string (msg, NULL), 0);
    assert_false (flux_msg_has_payload (msg));
    flux_msg_destroy (msg);
}

static void test_routes (void **state)
{
    flux_msg_t *msg = flux_msg_create (FLUX_MSGTYPE_REQUEST);
    flux_msg_t *other;
    char *s;

    assert_errno (flux_msg_route_count (msg) < 0, EPROTO);
    assert_errno (flux_msg_route_push (msg, "a") < 0, EPROTO);
    assert_errno (flux_msg_route_delete_last (msg) < 0, EPROTO);
    assert_null (flux_msg_route_first (msg));
    flux_msg_route_enable (msg);
    assert_int_equal (flux_msg_route_count (msg), 0);
    assert_int_equal (flux_msg_route_push (msg, "first"), 0);
    assert_int_equal (flux_msg_route_push (msg, "second-hop"), 0);
    assert_int_equal (flux_msg_route_count (msg), 2);
    assert_string_equal (flux_msg_route_first (msg), "first");
    assert_string_equal (flux_msg_route_last (msg), "second-hop");
    assert_non_null (s = flux_msg_route_string (msg));
    assert_string_equal (s, "first!second-h");
    free (s);

    assert_non_null (other = flux_msg_copy (msg, false));
    assert_true (flux_msg_route_match_first (msg, other));
    assert_int_equal (flux_msg_route_delete_last (other), 0);
    assert_string_equal (flux_msg_route_last (other), "first");
    assert_true (flux_msg_route_match_first (msg, other));
    assert_int_equal (flux_msg_route_delete_last (other), 0);
    assert_int_equal (flux_msg_route_count (other), 0);
    assert_false (flux_msg_route_match_first (msg, other));

    // a tag with routes belongs to somebody else
    assert_int_equal (flux_msg_set_matchtag (msg, 3), 0);
    assert_false (flux_msg_cmp_matchtag (msg, 3));
    assert_int_equal (flux_msg_set_matchtag (other, 3), 0);
    assert_true (flux_msg_cmp_matchtag (other, 3));
    flux_msg_destroy (msg);
    flux_msg_destroy (other);
}

static void test_match (void **state)
{
    static const struct {
        const char *glob;
        bool match;
    } cases[] = {
        { NULL, true }, { "", true }, { "*", true }, { "a.b", true },
        { "a.*", true }, { "a.?", true }, { "a.[ab]", true }, { "a", false },
        { "b.*", false }, { "a.bc", false },
    };
    flux_msg_t *msg = flux_msg_create (FLUX_MSGTYPE_EVENT);
    struct flux_match match = FLUX_MATCH_EVENT;

    match.topic_glob = "a.*";
    assert_false (flux_msg_cmp (msg, match));
    assert_int_equal (flux_msg_set_topic (msg, "a.b"), 0);
    for (size_t i = 0; i < sizeof (cases) / sizeof (cases[0]); i++) {
        match.topic_glob = cases[i].glob;
        assert_int_equal (flux_msg_cmp (msg, match), cases[i].match);
    }
    assert_false (flux_msg_cmp (msg, FLUX_MATCH_REQUEST));
    assert_true (flux_msg_cmp (msg, FLUX_MATCH_ANY));
    match.topic_glob = strdup ("x");
    flux_match_free (match);
    flux_msg_destroy (msg);
}

static int destroyed;

static void count_destroy (void *arg)
{
    destroyed++;
}

static void test_copy_aux (void **state)
{
    flux_msg_t *msg = flux_request_encode ("a.b", "{\"x\":1}");
    flux_msg_t *cpy;
    const char *s;
    int x;

    destroyed = 0;
    assert_int_equal (flux_msg_aux_set (msg, "k", msg, count_destroy), 0);
    assert_ptr_equal (flux_msg_aux_get (msg, "k"), msg);
    assert_errno (flux_msg_aux_get (msg, "z") == NULL, ENOENT);
    assert_non_null (cpy = flux_msg_copy (msg, true));
    assert_null (flux_msg_aux_get (cpy, "k"));
    assert_ptr_equal (flux_msg_incref (msg), msg);
    flux_msg_decref (msg);
    assert_int_equal (destroyed, 0);
    flux_msg_decref (msg);
    assert_int_equal (destroyed, 1);
    assert_int_equal (flux_msg_unpack (cpy, "{s:i}", "x", &x), 0);
    assert_int_equal (x, 1);
    flux_msg_destroy (cpy);

    msg = flux_request_encode ("a.b", "{}");
    assert_non_null (cpy = flux_msg_copy (msg, false));
    assert_false (flux_msg_has_payload (cpy));
    assert_int_equal (flux_msg_get_string (cpy, &s), 0);
    assert_null (s);
    flux_msg_destroy (cpy);
    flux_msg_destroy (msg);
}

/* Every message that is cut short, and every one that is too long, is
 * refused; what is whole comes back as it was.
 */
static void test_wire (void **state)
{
    flux_msg_t *msg = flux_request_encode ("some.topic", "{\"a\":1}");
    flux_msg_t *cpy;
    const char *topic, *s;
    uint32_t tag;
    ssize_t size;
    char *buf;

    flux_msg_route_push (msg, "one");
    flux_msg_route_push (msg, "two");
    flux_msg_set_matchtag (msg, 77);
    flux_msg_set_userid (msg, 1234);
    assert_true ((size = flux_msg_encode_size (msg)) > 0);
    assert_non_null (buf = malloc (size + 1));
    assert_errno (flux_msg_encode (msg, buf, size - 1) < 0, EINVAL);
    assert_int_equal (flux_msg_encode (msg, buf, size), 0);
    assert_non_null (cpy = flux_msg_decode (buf, size));
    assert_int_equal (flux_request_decode (cpy, &topic, &s), 0);
    assert_string_equal (topic, "some.topic");
    assert_string_equal (s, "{\"a\":1}");
    assert_int_equal (flux_msg_route_count (cpy), 2);
    assert_string_equal (flux_msg_route_first (cpy), "one");
    assert_int_equal (flux_msg_get_matchtag (cpy, &tag), 0);
    assert_int_equal (tag, 77);
    flux_msg_destroy (cpy);
    for (ssize_t n = 1; n < size; n++) {
        char *part = malloc (n);     // exact, for the sanitizer
        memcpy (part, buf, n);
        assert_null (flux_msg_decode (part, n));
        free (part);
    }
    free (buf);
    flux_msg_destroy (msg);
}

static void test_request_response (void **state)
{
    flux_msg_t *req = flux_request_encode ("a.b", NULL);
    flux_msg_t *rep;
    const char *topic, *s;
    const void *data;
    size_t len;
    uint32_t u;
    int n;

    assert_errno (flux_request_encode (NULL, NULL) == NULL, EINVAL);
    assert_int_equal (flux_request_decode (req, &topic, &s), 0);
    assert_null (s);
    assert_int_equal (flux_request_decode_raw (req, NULL, &data, &len), 0);
    assert_true (data == NULL && len == 0);
    assert_errno (flux_request_unpack (req, NULL, "{s:i}", "a", &n) < 0,
                  EPROTO);
    assert_errno (flux_response_decode (req, NULL, NULL) < 0, EPROTO);
    assert_errno (flux_event_decode (req, NULL, NULL) < 0, EPROTO);

    flux_msg_set_matchtag (req, 5);
    flux_msg_set_userid (req, 6);
    assert_non_null (rep = flux_response_derive (req, ENOENT));
    assert_int_equal (flux_msg_get_matchtag (rep, &u), 0);
    assert_int_equal (u, 5);
    assert_int_equal (flux_msg_get_userid (rep, &u), 0);
    assert_int_equal (u, FLUX_USERID_UNKNOWN);
    assert_errno (flux_response_decode (rep, NULL, NULL) < 0, ENOENT);
    assert_errno (flux_response_decode_error (rep, &s) < 0, ENOENT);
    flux_msg_set_string (rep, "no such thing");
    assert_int_equal (flux_response_decode_error (rep, &s), 0);
    assert_string_equal (s, "no such thing");
    flux_msg_destroy (rep);
    flux_msg_set_noresponse (req);
    assert_errno (flux_response_derive (req, 0) == NULL, EINVAL);
    flux_msg_destroy (req);
}

static void test_event (void **state)
{
    flux_msg_t *msg = flux_event_encode ("e", "{\"a\":1}");
    const char *topic;
    int n;

    assert_int_equal (flux_event_unpack (msg, &topic, "{s:i}", "a", &n), 0);
    assert_string_equal (topic, "e");
    flux_msg_destroy (msg);
}

static void test_list (void **state)
{
    struct flux_msglist *l = flux_msglist_create ();
    flux_msg_t *msg[4];
    const flux_msg_t *m;

    assert_int_equal (flux_msglist_count (l), 0);
    assert_null (flux_msglist_first (l));
    assert_null (flux_msglist_pop (l));
    for (int i = 0; i < 4; i++) {
        msg[i] = flux_request_encode ("a.b", NULL);
        flux_msg_set_matchtag (msg[i], i + 1);
        flux_msg_route_push (msg[i], i % 2 ? "odd" : "even");
        flux_msg_set_userid (msg[i], 10);
        assert_int_equal (flux_msglist_append (l, msg[i]), 0);
    }
    assert_ptr_equal (flux_msglist_first (l), msg[0]);
    assert_ptr_equal (flux_msglist_next (l), msg[1]);
    flux_msglist_delete (l);
    assert_ptr_equal (flux_msglist_next (l), msg[2]);
    assert_ptr_equal (flux_msglist_last (l), msg[3]);
    assert_null (flux_msglist_next (l));
    assert_int_equal (flux_msglist_count (l), 3);
    assert_ptr_equal (m = flux_msglist_pop (l), msg[0]);
    flux_msg_decref (m);
    assert_int_equal (flux_msglist_append (l, msg[0]), 0);

    // the sender of 0 and 2 goes away; not as user 11
    flux_msg_t *bye = flux_request_encode ("a.disconnect", NULL);
    flux_msg_route_push (bye, "even");
    flux_msg_set_userid (bye, 11);
    flux_msg_set_rolemask (bye, FLUX_ROLE_USER);
    assert_int_equal (flux_msglist_disconnect (l, bye), 0);
    flux_msg_set_userid (bye, 10);
    assert_true (flux_disconnect_match (bye, msg[0]));
    assert_int_equal (flux_msglist_disconnect (l, bye), 2);
    assert_int_equal (flux_msglist_count (l), 1);
    flux_msg_destroy (bye);

    flux_msg_t *cancel = flux_request_encode ("a.cancel", "{\"matchtag\":4}");
    flux_msg_route_push (cancel, "odd");
    flux_msg_set_rolemask (cancel, FLUX_ROLE_OWNER);
    assert_true (flux_cancel_match (cancel, msg[3]));
    assert_false (flux_cancel_match (cancel, msg[1]));
    flux_msg_destroy (cancel);

    flux_msglist_destroy (l);
    for (int i = 0; i < 4; i++)
        flux_msg_destroy (msg[i]);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_fields),
        cmocka_unit_test (test_flags),
        cmocka_unit_test (test_cred),
        cmocka_unit_test (test_payload),
        cmocka_unit_test (test_routes),
        cmocka_unit_test (test_match),
        cmocka_unit_test (test_copy_aux),
        cmocka_unit_test (test_wire),
        cmocka_unit_test (test_request_response),
        cmocka_unit_test (test_event),
        cmocka_unit_test (test_list),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
