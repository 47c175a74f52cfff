/* SPDX-License-Identifier: LGPL-3.0-only */
/* kvs.c - the KVS functions of libflux-core, in an instance. */
#include <stdlib.h>
#include <string.h>
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

static void done (flux_future_t *f)
{
    assert_non_null (f);
    assert_int_equal (flux_future_get (f, NULL), 0);
    flux_future_destroy (f);
}

static void commit (flux_t *h, flux_kvs_txn_t *txn)
{
    done (flux_kvs_commit (h, NULL, 0, txn));
    flux_kvs_txn_destroy (txn);
}

static void put (flux_t *h, const char *key, const char *value)
{
    flux_kvs_txn_t *txn = flux_kvs_txn_create ();

    assert_int_equal (flux_kvs_txn_put (txn, 0, key, value), 0);
    commit (h, txn);
}

static flux_future_t *lookup (flux_t *h, int flags, const char *key)
{
    flux_future_t *f = flux_kvs_lookup (h, NULL, flags, key);

    assert_non_null (f);
    return f;
}

static void assert_value (flux_t *h, const char *key, const char *value)
{
    flux_future_t *f = lookup (h, 0, key);
    const char *s;

    assert_int_equal (flux_kvs_lookup_get (f, &s), 0);
    assert_string_equal (s, value);
    flux_future_destroy (f);
}

static void vpack (flux_kvs_txn_t *txn, const char *key, const char *fmt, ...)
{
    va_list ap;

    va_start (ap, fmt);
    assert_int_equal (flux_kvs_txn_vpack (txn, 0, key, fmt, ap), 0);
    va_end (ap);
}

static void test_values (void **state)
{
    flux_t *h = *state;
    flux_kvs_txn_t *txn = flux_kvs_txn_create ();
    flux_future_t *f;
    const char *s;
    const void *data;
    size_t len;
    int i;

    assert_true (flux_kvs_txn_is_empty (txn));
    assert_int_equal (flux_kvs_txn_pack (txn, 0, "c.v.o", "{s:i}", "a", 1), 0);
    vpack (txn, "c.v.i", "i", 7);
    assert_int_equal (flux_kvs_txn_put (txn, 0, "c.v.text", "plain"), 0);
    assert_int_equal (flux_kvs_txn_put_raw (txn, 0, "c.v.raw", "a\0b", 3), 0);
    assert_int_equal (flux_kvs_txn_put_raw (txn, 0, "c.v.empty", NULL, 0), 0);
    assert_false (flux_kvs_txn_is_empty (txn));
    commit (h, txn);

    f = lookup (h, 0, "c.v.o");
    assert_int_equal (flux_kvs_lookup_get_unpack (f, "{s:i}", "a", &i), 0);
    assert_int_equal (i, 1);
    flux_future_destroy (f);
    assert_value (h, "c.v.i", "7");
    assert_value (h, "c.v.text", "plain");

    f = lookup (h, 0, "c.v.text");
    assert_errno (flux_kvs_lookup_get_unpack (f, "{s:i}", "a", &i) < 0, EINVAL);
    flux_future_destroy (f);

    f = lookup (h, 0, "c.v.raw");
    assert_int_equal (flux_kvs_lookup_get_raw (f, &data, &len), 0);
    assert_int_equal (len, 3);
    assert_memory_equal (data, "a\0b", 3);
    flux_future_destroy (f);

    f = lookup (h, 0, "c.v.empty");
    assert_int_equal (flux_kvs_lookup_get (f, &s), 0);
    assert_null (s);
    assert_int_equal (flux_kvs_lookup_get_raw (f, &data, &len), 0);
    assert_int_equal (len, 0);
    flux_future_destroy (f);
}

static void test_errors (void **state)
{
    flux_t *h = *state;
    flux_kvs_txn_t *txn = flux_kvs_txn_create ();
    flux_future_t *f;
    const char *s;

    assert_errno (flux_kvs_txn_put (NULL, 0, "a", "1") < 0, EINVAL);
    assert_errno (flux_kvs_txn_put (txn, 0, NULL, "1") < 0, EINVAL);
    assert_errno (flux_kvs_txn_put (txn, 0xffff, "a", "1") < 0, EINVAL);
    assert_errno (flux_kvs_txn_pack (txn, 0, "a", NULL) < 0, EINVAL);
    assert_errno (flux_kvs_txn_put_treeobj (txn, 0, "a", "{}") < 0, EPROTO);
    assert_errno (flux_kvs_txn_put_treeobj (txn, 0, "a", "[") < 0, EPROTO);
    assert_errno (flux_kvs_txn_mkdir (txn, FLUX_KVS_APPEND, "a") < 0, EINVAL);
    assert_errno (flux_kvs_txn_symlink (txn, 0, "a", NULL, NULL) < 0, EINVAL);
    assert_true (flux_kvs_txn_is_empty (txn));
    assert_errno (flux_kvs_commit (h, NULL, 0, NULL) == NULL, EINVAL);
    assert_errno (flux_kvs_lookup (h, NULL, 0, NULL) == NULL, EINVAL);
    assert_errno (flux_kvs_lookup (h, NULL, 0x10000, "a") == NULL, EINVAL);
    assert_errno (flux_kvs_lookup (NULL, NULL, 0, "a") == NULL, EINVAL);
    f = lookup (h, 0, "c.nosuch");
    assert_errno (flux_kvs_lookup_get (f, &s) < 0, ENOENT);
    flux_future_destroy (f);
    put (h, "c.e", "1");
    flux_kvs_txn_destroy (txn);
    flux_kvs_txn_destroy (NULL);
}

static void test_changes (void **state)
{
    flux_t *h = *state;
    flux_kvs_txn_t *txn = flux_kvs_txn_create ();
    flux_future_t *f;
    const char *s;

    assert_int_equal (flux_kvs_txn_put (txn, 0, "c.gone", "1"), 0);
    assert_int_equal (flux_kvs_txn_clear (txn), 0);
    assert_true (flux_kvs_txn_is_empty (txn));
    assert_int_equal (flux_kvs_txn_mkdir (txn, 0, "c.dir"), 0);
    assert_int_equal (flux_kvs_txn_symlink (txn, 0, "c.link", NULL, "c.log"), 0);
    assert_int_equal (flux_kvs_txn_put (txn, 0, "c.log", "a"), 0);
    assert_int_equal (flux_kvs_txn_put (txn, FLUX_KVS_APPEND, "c.log", "b"), 0);
    commit (h, txn);
    assert_value (h, "c.log", "ab");
    assert_value (h, "c.link", "ab");
    f = lookup (h, 0, "c.gone");
    assert_errno (flux_kvs_lookup_get (f, &s) < 0, ENOENT);
    flux_future_destroy (f);

    txn = flux_kvs_txn_create ();
    assert_int_equal (flux_kvs_txn_unlink (txn, 0, "c.link"), 0);
    commit (h, txn);
    f = lookup (h, 0, "c.link");
    assert_errno (flux_kvs_lookup_get (f, &s) < 0, ENOENT);
    flux_future_destroy (f);
}

/* A second key can get the object of the first. */
static void test_treeobj (void **state)
{
    flux_t *h = *state;
    flux_kvs_txn_t *txn = flux_kvs_txn_create ();
    flux_future_t *f;
    const char *s;

    put (h, "c.t.a", "1");
    f = lookup (h, FLUX_KVS_TREEOBJ, "c.t");
    assert_int_equal (flux_kvs_lookup_get_treeobj (f, &s), 0);
    assert_int_equal (flux_kvs_txn_put_treeobj (txn, 0, "c.again", s), 0);
    flux_future_destroy (f);
    commit (h, txn);
    assert_value (h, "c.again.a", "1");
}

static void test_directories (void **state)
{
    flux_t *h = *state;
    flux_kvs_txn_t *txn = flux_kvs_txn_create ();
    flux_future_t *f;
    const flux_kvsdir_t *d;
    flux_kvsdir_t *dir;
    flux_kvsitr_t *itr;
    const char *name;
    char *key;
    int n = 0;

    assert_int_equal (flux_kvs_txn_put (txn, 0, "c.d.a", "1"), 0);
    assert_int_equal (flux_kvs_txn_mkdir (txn, 0, "c.d.sub"), 0);
    assert_int_equal (flux_kvs_txn_symlink (txn, 0, "c.d.l", NULL, "x"), 0);
    commit (h, txn);
    f = lookup (h, FLUX_KVS_READDIR, "c.d");
    assert_int_equal (flux_kvs_lookup_get_dir (f, &d), 0);
    dir = flux_kvsdir_copy (d);
    flux_future_destroy (f);
    assert_int_equal (flux_kvsdir_get_size (dir), 3);
    assert_true (flux_kvsdir_isdir (dir, "sub"));
    assert_false (flux_kvsdir_isdir (dir, "a"));
    key = flux_kvsdir_key_at (dir, "a");
    assert_string_equal (key, "c.d.a");
    free (key);
    itr = flux_kvsitr_create (dir);
    while ((name = flux_kvsitr_next (itr)))
        n++;
    assert_int_equal (n, 3);
    flux_kvsitr_destroy (itr);
    flux_kvsdir_destroy (dir);
    f = lookup (h, FLUX_KVS_READDIR, "c.d.a");
    assert_errno (flux_kvs_lookup_get_dir (f, &d) < 0, ENOTDIR);
    flux_future_destroy (f);
}

static void test_namespaces (void **state)
{
    flux_t *h = *state;
    flux_kvs_txn_t *txn = flux_kvs_txn_create ();
    flux_future_t *f;
    const char *s;

    done (flux_kvs_namespace_create (h, "c-ns", getuid (), 0));
    f = flux_kvs_namespace_create_with (h, "c-ns", "", getuid (), 0);
    assert_errno (flux_future_get (f, NULL) < 0, EEXIST);
    flux_future_destroy (f);
    assert_int_equal (flux_kvs_txn_put (txn, 0, "a", "1"), 0);
    done (flux_kvs_commit (h, "c-ns", 0, txn));
    f = flux_kvs_lookup (h, "c-ns", 0, "a");
    assert_int_equal (flux_kvs_lookup_get (f, &s), 0);
    assert_string_equal (s, "1");
    flux_future_destroy (f);
    done (flux_kvs_namespace_remove (h, "c-ns"));
    f = flux_kvs_commit (h, "c-ns", 0, txn);
    assert_errno (flux_future_get (f, NULL) < 0, ENOTSUP);
    flux_future_destroy (f);
    flux_kvs_txn_destroy (txn);
}

static void watch_cb (flux_future_t *f, void *arg)
{
    int *seen = arg;
    const char *s;

    if (flux_kvs_lookup_get (f, &s) < 0) {
        assert_int_equal (errno, ENODATA);
        flux_future_destroy (f);
        return;
    }
    assert_int_equal (atoi (s), *seen);
    (*seen)++;
    if (*seen == 3)
        assert_int_equal (flux_kvs_lookup_cancel (f), 0);
    else {
        char next[8];
        flux_kvs_txn_t *txn = flux_kvs_txn_create ();

        snprintf (next, sizeof (next), "%d", *seen);
        assert_int_equal (flux_kvs_txn_put (txn, 0, "c.w", next), 0);
        flux_future_destroy (flux_kvs_commit (flux_future_get_flux (f),
                                              NULL, 0, txn));
        flux_kvs_txn_destroy (txn);
    }
    flux_future_reset (f);
}

static void test_watch (void **state)
{
    flux_t *h = *state;
    flux_future_t *f;
    int seen = 0;

    put (h, "c.w", "0");
    f = lookup (h, FLUX_KVS_WATCH, "c.w");
    assert_int_equal (flux_future_then (f, 30., watch_cb, &seen), 0);
    assert_true (flux_reactor_run (flux_get_reactor (h), 0) >= 0);
    assert_int_equal (seen, 3);
    f = lookup (h, 0, "c.w");
    assert_errno (flux_kvs_lookup_cancel (f) < 0, EINVAL);
    flux_future_destroy (f);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_values),
        cmocka_unit_test (test_errors),
        cmocka_unit_test (test_changes),
        cmocka_unit_test (test_treeobj),
        cmocka_unit_test (test_directories),
        cmocka_unit_test (test_namespaces),
        cmocka_unit_test (test_watch),
    };

    return cmocka_run_group_tests_name ("kvs", tests, setup, teardown);
}
