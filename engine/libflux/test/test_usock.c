/* SPDX-License-Identifier: LGPL-3.0-only */
/* test_usock.c - framing on a unix socket: greeting, large messages, many
 * messages, garbage, hang-up.
 */

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"
#include "usock.h"

static void test_connect (void **state)
{
    char dir[] = "/tmp/test_usock.XXXXXX";
    char path[64];
    struct flux_msg_cred cred;
    struct usock *server;
    int status;
    flux_error_t error;
    int fd;

    assert_non_null (mkdtemp (dir));
    snprintf (path, sizeof (path), "%s/sock", dir);
    assert_null (usock_connect (path, &error));
    assert_string_not_equal (error.text, "");
    assert_true ((fd = usock_listen (path, &error)) >= 0);
    pid_t pid = fork ();
    if (pid == 0)
        _exit (usock_connect (path, NULL) ? 0 : 1);
    assert_non_null (server = usock_accept (fd, getuid (), &cred));
    assert_int_equal (usock_greet (server, 0), 0);
    assert_int_equal (cred.userid, getuid ());
    assert_int_equal (cred.rolemask, FLUX_ROLE_OWNER | FLUX_ROLE_LOCAL);
    assert_int_equal (waitpid (pid, &status, 0), pid);
    assert_int_equal (status, 0);
    usock_destroy (server);

    if ((pid = fork ()) == 0)       // one that is turned away hears why
        _exit (!usock_connect (path, NULL) && errno == EPERM ? 0 : 1);
    assert_non_null (server = usock_accept (fd, getuid () + 1, &cred));
    assert_int_equal (cred.rolemask, FLUX_ROLE_USER | FLUX_ROLE_LOCAL);
    assert_int_equal (usock_greet (server, EPERM), 0);
    assert_int_equal (waitpid (pid, &status, 0), pid);
    assert_int_equal (status, 0);
    usock_destroy (server);
    close (fd);
    unlink (path);
    rmdir (dir);
}

static void make_pair (struct usock *us[2])
{
    int fd[2];

    assert_int_equal (socketpair (AF_UNIX, SOCK_STREAM, 0, fd), 0);
    assert_non_null (us[0] = usock_create (fd[0]));
    assert_non_null (us[1] = usock_create (fd[1]));
}

static void test_messages (void **state)
{
    struct usock *us[2];
    flux_msg_t *msg, *rx;
    const size_t sizes[] = { 10, 3000000, 12 }; // one overfills the socket
    char *big = malloc (sizes[1]);
    const void *data;
    size_t len;

    make_pair (us);
    memset (big, 'x', sizes[1]);
    assert_errno (usock_recv (us[1]) == NULL, EAGAIN);
    assert_int_equal (usock_read (us[1]), 0);
    assert_false (usock_has_message (us[1]));
    for (int i = 0; i < 3; i++) {
        msg = flux_request_encode_raw ("a.b", big, sizes[i]);
        assert_int_equal (usock_send (us[0], msg), 0);
        flux_msg_destroy (msg);
    }
    assert_true (usock_want_write (us[0]));
    for (int i = 0; i < 3; i++) {
        while (!(rx = usock_recv (us[1]))) {
            assert_int_equal (errno, EAGAIN);
            assert_int_equal (usock_flush (us[0]), 0);
            assert_int_equal (usock_read (us[1]), 0);
        }
        assert_int_equal (flux_request_decode_raw (rx, NULL, &data, &len), 0);
        assert_int_equal (len, sizes[i]);
        assert_memory_equal (data, big, len);
        flux_msg_destroy (rx);
    }
    assert_false (usock_want_write (us[0]));
    usock_destroy (us[0]);
    assert_errno (usock_read (us[1]) < 0, ECONNRESET);
    usock_destroy (us[1]);
    free (big);
}

static void test_garbage (void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
    } cases[] = {
        { "\0\0\0\0", 4 },
        { "\xff\xff\xff\xff", 4 },
        { "\0\0\0\5hello", 9 },
        { "\0\0\0\x18hello hello hello hello ", 28 },
    };

    for (size_t i = 0; i < sizeof (cases) / sizeof (cases[0]); i++) {
        struct usock *us[2];

        make_pair (us);
        assert_int_equal (write (usock_fd (us[0]), cases[i].bytes,
                                 cases[i].len), cases[i].len);
        assert_int_equal (usock_read (us[1]), 0);
        assert_true (usock_has_message (us[1]));
        assert_null (usock_recv (us[1]));
        assert_int_not_equal (errno, EAGAIN);
        usock_destroy (us[0]);
        usock_destroy (us[1]);
    }
}

/* Many empty routes are few bytes to send, and many to keep. */
static void test_routes (void **state)
{
    flux_msg_t *msg = flux_request_encode ("a.b", NULL);
    struct usock *us[2];

    make_pair (us);
    for (int i = 0; i < 1000; i++)
        assert_int_equal (flux_msg_route_push (msg, ""), 0);
    assert_int_equal (usock_send (us[0], msg), 0);
    assert_int_equal (usock_read (us[1]), 0);
    assert_errno (usock_recv (us[1]) == NULL, EPROTO);
    flux_msg_destroy (msg);
    usock_destroy (us[0]);
    usock_destroy (us[1]);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_connect),
        cmocka_unit_test (test_messages),
        cmocka_unit_test (test_garbage),
        cmocka_unit_test (test_routes),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
