/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of requests.c: what users can make the module keep.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libdws/test/util.h"
#include "base/requests.h"

static flux_msg_t *request_of (uint32_t userid, uint32_t rolemask, size_t bytes)
{
    struct flux_msg_cred cred = { .userid = userid, .rolemask = rolemask };
    flux_msg_t *msg = flux_request_encode ("dws.profiles", NULL);
    char *payload = calloc (1, bytes + 1);

    assert_non_null (msg);
    assert_non_null (payload);
    memset (payload, ' ', bytes);
    assert_int_equal (flux_msg_set_string (msg, bytes ? payload : NULL), 0);
    assert_int_equal (flux_msg_set_cred (msg, cred), 0);
    flux_msg_route_enable (msg);
    assert_int_equal (flux_msg_route_push (msg, "client"), 0);
    assert_int_equal (flux_msg_set_matchtag (msg, 7), 0);
    free (payload);
    return msg;
}

static void test_size (void **state)
{
    flux_msg_t *small = request_of (7, FLUX_ROLE_USER, REQUESTS_BYTES / 2);
    flux_msg_t *large = request_of (7, FLUX_ROLE_USER, REQUESTS_BYTES);
    flux_msg_t *owner = request_of (7, FLUX_ROLE_OWNER, REQUESTS_BYTES);
    dws_error_t error;

    assert_int_equal (requests_check_size (small, &error), 0);
    assert_int_equal (requests_check_size (owner, &error), 0);
    assert_int_equal (requests_check_size (large, &error), -1);
    assert_int_equal (errno, EMSGSIZE);
    assert_non_null (strstr (error.text, "at most 4096"));
    flux_msg_decref (small);
    flux_msg_decref (large);
    flux_msg_decref (owner);
}

/* The route is not the payload's: a topic or hop of any length counts.
 */
static void test_size_without_payload (void **state)
{
    flux_msg_t *msg = request_of (7, FLUX_ROLE_USER, 0);
    char hop[201];
    dws_error_t error;

    memset (hop, 'x', 200);
    hop[200] = '\0';
    for (int i = 0; i <= REQUESTS_BYTES / 200; i++)
        assert_int_equal (flux_msg_route_push (msg, hop), 0);
    assert_int_equal (requests_check_size (msg, &error), -1);
    assert_int_equal (errno, EMSGSIZE);
    flux_msg_decref (msg);
}

static void test_no_payload_kept (void **state)
{
    struct idmap *requests = idmap_create (free);
    flux_msg_t *msg = request_of (7, FLUX_ROLE_USER, 1000);
    const flux_msg_t *kept;
    const char *topic;
    uint32_t matchtag;
    dws_error_t error;

    assert_non_null (requests);
    assert_non_null (kept = requests_keep (requests, msg, 1, &error));
    assert_false (flux_msg_has_payload (kept));
    assert_int_equal (flux_msg_get_topic (kept, &topic), 0);
    assert_string_equal (topic, "dws.profiles");
    assert_int_equal (flux_msg_get_matchtag (kept, &matchtag), 0);
    assert_int_equal (matchtag, 7);
    assert_true (flux_disconnect_match (msg, kept));
    flux_msg_decref (msg);
    flux_msg_decref (kept);
    idmap_destroy (requests);
}

static void test_number (void **state)
{
    struct idmap *requests = idmap_create (free);
    flux_msg_t *msg = request_of (7, FLUX_ROLE_USER, 0);
    flux_msg_t *other = request_of (0, FLUX_ROLE_USER, 0);
    flux_msg_t *owner = request_of (7, FLUX_ROLE_OWNER, 0);
    const flux_msg_t *kept[5];
    dws_error_t error;

    assert_non_null (kept[0] = requests_keep (requests, msg, 2, &error));
    assert_non_null (kept[1] = requests_keep (requests, msg, 2, &error));
    assert_null (requests_keep (requests, msg, 2, &error));
    assert_int_equal (errno, EBUSY);
    assert_non_null (strstr (error.text, "user 7"));
    assert_non_null (strstr (error.text, "at most 2"));

    /* Each user has his own number, and the owner none. */
    assert_non_null (kept[2] = requests_keep (requests, other, 2, &error));
    assert_non_null (kept[3] = requests_keep (requests, owner, 2, &error));

    /* Only the last reference ends one. */
    flux_msg_incref (kept[0]);
    flux_msg_decref (kept[0]);
    assert_null (requests_keep (requests, msg, 2, &error));
    flux_msg_decref (kept[0]);
    assert_non_null (kept[4] = requests_keep (requests, msg, 2, &error));
    assert_null (requests_keep (requests, msg, 2, &error));
    for (int i = 1; i < 5; i++)
        flux_msg_decref (kept[i]);
    assert_non_null (kept[0] = requests_keep (requests, msg, 1, &error));
    flux_msg_decref (kept[0]);
    flux_msg_decref (msg);
    flux_msg_decref (other);
    flux_msg_decref (owner);
    idmap_destroy (requests);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_size),
        cmocka_unit_test (test_size_without_payload),
        cmocka_unit_test (test_no_payload_kept),
        cmocka_unit_test (test_number),
    };

    return cmocka_run_group_tests (tests, NULL, NULL);
}
