/* SPDX-License-Identifier: LGPL-3.0-only */
/* test_conf.c - configuration objects. */

#include <unistd.h>

#include "test.h"

static void test_object (void **state)
{
    flux_conf_t *conf = flux_conf_pack ("{s:{s:i}}", "a", "b", 1);
    flux_error_t error;
    const char *s;
    int i;

    assert_errno (flux_conf_pack (NULL) == NULL, EINVAL);
    assert_int_equal (flux_conf_unpack (conf, NULL, "{s:{s:i}}",
                                        "a", "b", &i), 0);
    assert_int_equal (i, 1);
    assert_errno (flux_conf_unpack (conf, &error, "{s:s}", "a", &s) < 0,
                  EINVAL);
    assert_string_not_equal (error.text, "");
    flux_conf_decref (conf);
}

static void test_parse (void **state)
{
    char path[] = "/tmp/test_conf.XXXXXX.json";
    int fd = mkstemps (path, 5);
    flux_error_t error;
    flux_conf_t *conf;
    int i;

    assert_int_equal (write (fd, "{\"a\":7}", 7), 7);
    close (fd);
    assert_non_null (conf = flux_conf_parse (path, &error));
    assert_int_equal (flux_conf_unpack (conf, &error, "{s:i}", "a", &i), 0);
    assert_int_equal (i, 7);
    flux_conf_decref (conf);
    unlink (path);
    assert_errno (flux_conf_parse (path, &error) == NULL, ENOENT);
    assert_string_not_equal (error.text, "");
    assert_errno (flux_conf_parse (NULL, &error) == NULL, EINVAL);
}

static void write_file (const char *dir, const char *name, const char *text)
{
    char path[256];
    FILE *f;

    snprintf (path, sizeof (path), "%s/%s", dir, name);
    assert_non_null (f = fopen (path, "w"));
    assert_true (fputs (text, f) >= 0);
    assert_int_equal (fclose (f), 0);
}

static void test_toml (void **state)
{
    char dir[] = "/tmp/test_conf.XXXXXX";
    const char *files[] = { "1.toml", "2.toml", "0.json" };
    flux_conf_t *conf;
    flux_error_t error;
    char path[256];
    int x, y;

    // a directory's TOML files
    assert_non_null (mkdtemp (dir));
    write_file (dir, files[0], "[a]\nx = 3\ny = 3\n");
    write_file (dir, files[1], "[a]\ny = 4\n");
    write_file (dir, files[2], "{\"b\":1}");
    assert_non_null (conf = flux_conf_parse (dir, &error));
    assert_int_equal (flux_conf_unpack (conf, &error, "{s:{s:i s:i !} !}", "a",
                                        "x", &x, "y", &y), 0);
    assert_int_equal (x, 3);
    assert_int_equal (y, 4);
    flux_conf_decref (conf);

    // the line at fault
    write_file (dir, files[1], "a = 1\nb = \n");
    assert_errno (flux_conf_parse (dir, &error) == NULL, EINVAL);
    assert_non_null (strstr (error.text, "/2.toml:2: "));
    for (int i = 0; i < 3; i++) {
        snprintf (path, sizeof (path), "%s/%s", dir, files[i]);
        assert_int_equal (unlink (path), 0);
    }
    assert_int_equal (rmdir (dir), 0);
}

static void test_handle (void **state)
{
    flux_t *h = flux_open ("loop://", 0);
    flux_conf_t *conf = flux_conf_pack ("{s:i}", "a", 1);
    int i;

    assert_errno (flux_conf_unpack (flux_get_conf (h), NULL, "{s:i}",
                                    "a", &i) < 0, EINVAL);
    assert_int_equal (flux_set_conf_new (h, conf), 0);
    assert_ptr_equal (flux_get_conf (h), conf);
    flux_close (h);
    assert_errno (flux_conf_builtin_get ("nosuch", FLUX_CONF_AUTO) == NULL,
                  EINVAL);
    assert_non_null (flux_conf_builtin_get ("jobtap_pluginpath",
                                            FLUX_CONF_INSTALLED));
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_object),
        cmocka_unit_test (test_parse),
        cmocka_unit_test (test_toml),
        cmocka_unit_test (test_handle),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
