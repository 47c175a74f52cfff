/* SPDX-License-Identifier: LGPL-3.0-only */
/* test_plugin.c - plugins: handlers, arguments, configuration, loading. */

#include "test.h"

static int record_cb (flux_plugin_t *p, const char *topic,
                      flux_plugin_arg_t *args, void *data)
{
    *(const char **)data = topic;
    return strcmp (topic, "a.fail") ? 0 : -1;
}

static void test_properties (void **state)
{
    flux_plugin_t *p = flux_plugin_create ();
    int i;

    assert_errno (flux_plugin_set_flags (p, 0x100) < 0, EINVAL);
    assert_int_equal (flux_plugin_set_flags (p, FLUX_PLUGIN_RTLD_NOW), 0);
    assert_null (flux_plugin_get_name (p));
    assert_null (flux_plugin_get_path (p));
    assert_int_equal (flux_plugin_set_name (p, "me"), 0);
    assert_string_equal (flux_plugin_get_name (p), "me");
    assert_int_equal (flux_plugin_aux_set (p, "k", &i, NULL), 0);
    assert_ptr_equal (flux_plugin_aux_get (p, "k"), &i);
    assert_int_equal (flux_plugin_aux_set (p, "k", NULL, NULL), 0);
    assert_errno (flux_plugin_aux_get (p, "k") == NULL, ENOENT);

    assert_errno (flux_plugin_get_conf (p) == NULL, ENOENT);
    assert_errno (flux_plugin_conf_unpack (p, "{s:i}", "a", &i) < 0, ENOENT);
    assert_string_equal (flux_plugin_strerror (p), "No plugin conf set");
    assert_true (flux_plugin_set_conf (p, "{") < 0);
    assert_string_not_equal (flux_plugin_strerror (p), "");
    assert_int_equal (flux_plugin_set_conf (p, "{ \"a\" : 1 }"), 0);
    assert_string_equal (flux_plugin_get_conf (p), "{\"a\":1}");
    assert_int_equal (flux_plugin_conf_unpack (p, "{s:i}", "a", &i), 0);
    assert_int_equal (i, 1);
    assert_true (flux_plugin_conf_unpack (p, "{s:i}", "b", &i) < 0);
    flux_plugin_destroy (p);
}

static void test_handlers (void **state)
{
    const char *one = NULL, *any = NULL;
    const struct flux_plugin_handler handlers[] = {
        { "a.one", record_cb, &one },
        { "a.*", record_cb, &any },
        { 0 },
    };
    flux_plugin_t *p = flux_plugin_create ();

    assert_int_equal (flux_plugin_register (p, "me", handlers), 0);
    assert_string_equal (flux_plugin_get_name (p), "me");
    assert_int_equal (flux_plugin_call (p, "a.one", NULL), 1);
    assert_string_equal (one, "a.one");
    assert_null (any);
    assert_int_equal (flux_plugin_call (p, "a.two", NULL), 1);
    assert_string_equal (any, "a.two");
    assert_int_equal (flux_plugin_call (p, "b", NULL), 0);
    assert_int_equal (flux_plugin_call (p, "a.fail", NULL), -1);
    assert_true (flux_plugin_match_handler (p, "a.two") == record_cb);
    assert_int_equal (flux_plugin_remove_handler (p, "a.*"), 0);
    assert_int_equal (flux_plugin_add_handler (p, "a.one", NULL, NULL), 0);
    assert_int_equal (flux_plugin_call (p, "a.one", NULL), 0);
    assert_errno (flux_plugin_call (p, NULL, NULL) < 0, EINVAL);
    flux_plugin_destroy (p);
}

static void test_args (void **state)
{
    flux_plugin_arg_t *args = flux_plugin_arg_create ();
    const char *s;
    char *json;
    int i, j;

    assert_errno (flux_plugin_arg_get (args, 0, &json) < 0, ENOENT);
    assert_string_equal (flux_plugin_arg_strerror (args),
                         "No args currently set");
    assert_int_equal (flux_plugin_arg_unpack (args, FLUX_PLUGIN_ARG_IN,
                                              "{s:i}", "a", &i), -1);
    assert_int_equal (flux_plugin_arg_pack (args, FLUX_PLUGIN_ARG_IN,
                                            "{s:i s:s}", "a", 1, "b", "x"), 0);
    // added to
    assert_int_equal (flux_plugin_arg_set (args, FLUX_PLUGIN_ARG_IN,
                                           "{\"c\":2}"), 0);
    assert_int_equal (flux_plugin_arg_unpack (args, FLUX_PLUGIN_ARG_IN,
                                              "{s:i s:s s:i}",
                                              "a", &i,
                                              "b", &s,
                                              "c", &j), 0);
    assert_true (i == 1 && j == 2 && !strcmp (s, "x"));
    // replaced
    assert_int_equal (flux_plugin_arg_set (args, FLUX_PLUGIN_ARG_REPLACE,
                                           "{\"d\":3}"), 0);
    assert_int_equal (flux_plugin_arg_get (args, FLUX_PLUGIN_ARG_IN, &json), 0);
    assert_string_equal (json, "{\"d\":3}");
    free (json);
    // out is another
    assert_int_equal (flux_plugin_arg_pack (args, FLUX_PLUGIN_ARG_OUT,
                                            "{s:i}", "o", 4), 0);
    assert_int_equal (flux_plugin_arg_unpack (args, FLUX_PLUGIN_ARG_OUT,
                                              "{s:i}", "o", &i), 0);
    assert_int_equal (i, 4);
    assert_int_equal (flux_plugin_arg_unpack (args, FLUX_PLUGIN_ARG_IN,
                                              "{s:i}", "o", &i), -1);
    assert_string_not_equal (flux_plugin_arg_strerror (args), "");
    assert_int_equal (flux_plugin_arg_set (args, 0, "nonsense"), -1);
    flux_plugin_arg_destroy (args);
}

static void test_load (void **state)
{
    flux_plugin_t *p = flux_plugin_create ();
    flux_plugin_arg_t *args = flux_plugin_arg_create ();
    int n;

    assert_errno (flux_plugin_load_dso (p, "/nosuch.so") < 0, ENOENT);
    assert_string_not_equal (flux_plugin_strerror (p), "");
    assert_int_equal (flux_plugin_load_dso (p, "./testplugin.so"), 0);
    assert_string_equal (flux_plugin_get_name (p), "test");
    assert_string_equal (flux_plugin_get_path (p), "./testplugin.so");
    flux_plugin_arg_pack (args, FLUX_PLUGIN_ARG_IN, "{s:i}", "n", 1);
    assert_int_equal (flux_plugin_call (p, "test.add", args), 1);
    assert_int_equal (flux_plugin_arg_unpack (args, FLUX_PLUGIN_ARG_OUT,
                                              "{s:i}", "n", &n), 0);
    assert_int_equal (n, 2);
    flux_plugin_arg_destroy (args);
    flux_plugin_destroy (p);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_properties),
        cmocka_unit_test (test_handlers),
        cmocka_unit_test (test_args),
        cmocka_unit_test (test_load),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
