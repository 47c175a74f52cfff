/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of commits.c, with the test at the other end of the handle in the
 * KVS's place.
 */

#include <flux/core.h>

#include "libdws/test/util.h"
#include "base/commits.h"

#define URI "interthread://commits"
#define BOUND 32                // writers of one commit

static int errnum_to_send;      // what flux_kvs_commit() fails with, or 0

flux_future_t *__real_flux_kvs_commit (flux_t *h, const char *ns, int flags,
                                       flux_kvs_txn_t *txn);

flux_future_t *__wrap_flux_kvs_commit (flux_t *h, const char *ns, int flags,
                                       flux_kvs_txn_t *txn)
{
    if (errnum_to_send) {
        errno = errnum_to_send;
        return NULL;
    }
    return __real_flux_kvs_commit (h, ns, flags, txn);
}

struct world {
    flux_t *kvs;
    flux_t *h;
    struct commits *commits;
    flux_future_t *writers[4 * BOUND];
    int count;
};

static void setup (struct world *w)
{
    memset (w, 0, sizeof (*w));
    assert_non_null (w->kvs = flux_open (URI, 0));
    assert_non_null (w->h = flux_open (URI, 0));
    assert_non_null (w->commits = commits_create (w->h));
}

static void teardown (struct world *w)
{
    for (int i = 0; i < w->count; i++)
        flux_future_destroy (w->writers[i]);
    commits_destroy (w->commits);
    flux_close (w->h);
    flux_close (w->kvs);
}

/* The reactor has nothing left to do at once.
 */
static void turn (struct world *w)
{
    for (int i = 0; i < 3; i++)
        assert_true (flux_reactor_run (flux_get_reactor (w->h),
                                       FLUX_REACTOR_NOWAIT) >= 0);
}

/* A writer of two keys, as all of ours are.
 */
static void write_keys (struct world *w)
{
    flux_kvs_txn_t *txn;
    char key[32];

    for (const char *c = "ab"; *c; c++) {
        assert_non_null (txn = commits_txn (w->commits));
        snprintf (key, sizeof (key), "%d%c", w->count, *c);
        assert_int_equal (flux_kvs_txn_put (txn, 0, key, "1"), 0);
    }
    w->writers[w->count] = commits_wait (w->commits);
    assert_non_null (w->writers[w->count++]);
}

static flux_msg_t *receive (struct world *w)
{
    return flux_recv (w->kvs, FLUX_MATCH_REQUEST, FLUX_O_NONBLOCK);
}

static void assert_none (struct world *w)
{
    assert_null (receive (w));
}

/* The next commit has the keys of writers 'first' to 'last', in order.
 */
static flux_msg_t *receive_keys (struct world *w, int first, int last)
{
    flux_msg_t *msg = receive (w);
    const char *topic;
    json_t *ops;

    assert_non_null (msg);
    assert_int_equal (flux_request_unpack (msg, &topic, "{s:o}", "ops", &ops),
                      0);
    assert_string_equal (topic, "kvs.commit");
    assert_int_equal (json_array_size (ops), 2 * (last - first + 1));
    for (int i = 0; i < 2 * (last - first + 1); i++) {
        json_t *key = json_object_get (json_array_get (ops, i), "key");
        char want[32];

        snprintf (want, sizeof (want), "%d%c", first + i / 2, 'a' + i % 2);
        assert_string_equal (json_string_value (key), want);
    }
    return msg;
}

/* Answer a commit: 'errnum' or success.
 */
static void answer (struct world *w, flux_msg_t *msg, int errnum)
{
    if (errnum)
        assert_int_equal (flux_respond_error (w->kvs, msg, errnum, "no"), 0);
    else
        assert_int_equal (flux_respond_pack (w->kvs, msg, "{s:s s:i}",
                                             "rootref", "sha1-0",
                                             "rootseq", 1), 0);
    flux_msg_destroy (msg);
    turn (w);
}

static void assert_waiting (struct world *w, int first, int last)
{
    for (int i = first; i <= last; i++)
        assert_false (flux_future_is_ready (w->writers[i]));
}

static void assert_told (struct world *w, int first, int last, int errnum)
{
    for (int i = first; i <= last; i++) {
        assert_true (flux_future_is_ready (w->writers[i]));
        errno = 0;
        assert_int_equal (flux_future_get (w->writers[i], NULL),
                          errnum ? -1 : 0);
        if (errnum)
            assert_int_equal (errno, errnum);
    }
}

/* What is written in one turn of the reactor goes into one commit.
 */
static void test_one_turn (void **state)
{
    struct world w;

    setup (&w);
    turn (&w);
    assert_none (&w);
    errno = 0;
    assert_null (commits_wait (w.commits));     // for nothing
    assert_int_equal (errno, EINVAL);
    for (int i = 0; i < 3; i++)
        write_keys (&w);
    assert_none (&w);
    turn (&w);
    flux_msg_t *first = receive_keys (&w, 0, 2);
    write_keys (&w);                            // the next turn
    turn (&w);
    flux_msg_t *second = receive_keys (&w, 3, 3);
    assert_none (&w);
    assert_waiting (&w, 0, 3);
    answer (&w, first, 0);
    assert_told (&w, 0, 2, 0);
    assert_waiting (&w, 3, 3);
    answer (&w, second, 0);
    assert_told (&w, 3, 3, 0);
    teardown (&w);
}

/* A full commit does not wait for the end of the turn. Commits leave in the
 * order of the writes; their answers may come in any.
 */
static void test_bound (void **state)
{
    flux_msg_t *msgs[3];
    struct world w;

    setup (&w);
    for (int i = 0; i < 2 * BOUND + 1; i++)
        write_keys (&w);
    msgs[0] = receive_keys (&w, 0, BOUND - 1);
    msgs[1] = receive_keys (&w, BOUND, 2 * BOUND - 1);
    assert_none (&w);
    turn (&w);
    msgs[2] = receive_keys (&w, 2 * BOUND, 2 * BOUND);
    answer (&w, msgs[1], 0);
    assert_waiting (&w, 0, BOUND - 1);
    assert_told (&w, BOUND, 2 * BOUND - 1, 0);
    assert_waiting (&w, 2 * BOUND, 2 * BOUND);
    answer (&w, msgs[0], 0);
    answer (&w, msgs[2], 0);
    assert_told (&w, 0, 2 * BOUND, 0);
    turn (&w);
    assert_none (&w);
    teardown (&w);
}

/* Each writer of a commit hears that it has failed, those of others do not.
 */
static void test_failure (void **state)
{
    flux_msg_t *msg;
    struct world w;

    setup (&w);
    write_keys (&w);
    write_keys (&w);
    turn (&w);
    msg = receive_keys (&w, 0, 1);
    write_keys (&w);
    turn (&w);
    answer (&w, msg, ENOSPC);
    assert_told (&w, 0, 1, ENOSPC);
    assert_waiting (&w, 2, 2);
    answer (&w, receive_keys (&w, 2, 2), 0);
    assert_told (&w, 2, 2, 0);
    teardown (&w);
}

/* As above, for what can not be sent: by the timer, and by a writer that makes
 * a commit full.
 */
static void test_unsent (void **state)
{
    struct world w;

    setup (&w);
    errnum_to_send = EHOSTUNREACH;
    write_keys (&w);
    turn (&w);
    assert_told (&w, 0, 0, EHOSTUNREACH);
    for (int i = 0; i < BOUND; i++)
        write_keys (&w);
    assert_told (&w, 1, BOUND, EHOSTUNREACH);
    errnum_to_send = 0;
    write_keys (&w);
    turn (&w);
    assert_waiting (&w, BOUND + 1, BOUND + 1);
    answer (&w, receive_keys (&w, BOUND + 1, BOUND + 1), 0);
    assert_told (&w, BOUND + 1, BOUND + 1, 0);
    teardown (&w);
}

/* What was written before the end is committed, though nobody hears of it.
 */
static void test_end (void **state)
{
    flux_msg_t *msg;
    struct world w;

    setup (&w);
    write_keys (&w);
    turn (&w);
    write_keys (&w);
    commits_destroy (w.commits);
    w.commits = NULL;
    msg = receive_keys (&w, 0, 0);
    answer (&w, msg, 0);
    answer (&w, receive_keys (&w, 1, 1), 0);
    assert_waiting (&w, 0, 1);
    commits_destroy (NULL);
    teardown (&w);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_one_turn),
        cmocka_unit_test (test_bound),
        cmocka_unit_test (test_failure),
        cmocka_unit_test (test_unsent),
        cmocka_unit_test (test_end),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
