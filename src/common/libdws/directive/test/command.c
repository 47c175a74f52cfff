/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of command.c.
 */

#include <math.h>

#include "libdws/directive/command.h"
#include "libdws/test/util.h"

static struct dws_directives *read_one (const char *directive)
{
    json_t *texts = json_pack ("[s]", directive);
    struct dws_directives *dirs = dws_directives_read (texts);

    assert_non_null (dirs);
    assert_string_equal (dws_directives_text (dirs, 0), directive);
    json_decref (texts);
    return dirs;
}

static void test_command (void **state)
{
    static const struct {
        const char *directive;
        unsigned int command;
    } tab[] = {
        { "#DW jobdw type=xfs capacity=1GiB name=aa", DWS_COMMAND_JOBDW },
        { "#DW jobdw", DWS_COMMAND_JOBDW },
        { "#DW persistentdw name=aa", DWS_COMMAND_PERSISTENTDW },
        { "#DW create_persistent name=aa", DWS_COMMAND_CREATE_PERSISTENT },
        { "#DW destroy_persistent name=aa", DWS_COMMAND_DESTROY_PERSISTENT },
        { "#DW copy_in source=/a", DWS_COMMAND_COPY_IN },
        { "#DW copy_out source=/a", DWS_COMMAND_COPY_OUT },
        { "#DW container name=aa", DWS_COMMAND_CONTAINER },
        { "#DW  create_persistent\tname=aa", DWS_COMMAND_CREATE_PERSISTENT },
        { "#DW jobdws name=aa", 0 },
        { "#DW job", 0 },
        { "#DW other name=jobdw", 0 },
        { "#DW", 0 },
        { "jobdw", 0 },
        { "#BB jobdw", 0 },
        { "", 0 },
    };

    for (size_t i = 0; i < sizeof (tab) / sizeof (tab[0]); i++) {
        struct dws_directives *dirs = read_one (tab[i].directive);

        assert_int_equal (dws_command (dirs, 0), tab[i].command);
        assert_int_equal (dws_command (dirs, 1), 0);
        dws_directives_destroy (dirs);
    }
}

static void test_commands (void **state)
{
    struct dws_directives *dirs
        = D ("['#DW jobdw name=a', '#DW copy_in source=\\\"#DW container\\\"',"
             " 5, '#DW jobdw name=b', 'container']");

    assert_int_equal (dws_commands (dirs),
                      DWS_COMMAND_JOBDW | DWS_COMMAND_COPY_IN);
    assert_int_equal (dws_directives_count (dirs), 5);
    dws_directives_destroy (dirs);
    assert_int_equal (dws_commands (NULL), 0);
}

static void test_lifetime (void **state)
{
    static const struct {
        const char *directive;
        double lifetime;
        const char *for_dws;
    } tab[] = {
        { "#DW create_persistent type=xfs name=aa expires=30d", 30 * 86400.,
          "['#DW create_persistent type=xfs name=aa']" },
        { "#DW create_persistent expires=90m name=aa", 5400.,
          "['#DW create_persistent name=aa']" },
        { "#DW create_persistent name=aa expires=inf", INFINITY,
          "['#DW create_persistent name=aa']" },
        { "#DW create_persistent name=aa", -1.,
          "['#DW create_persistent name=aa']" },
        /* What is not ours is for DWS to judge. */
        { "#DW create_persistent name=aa expires=", -1.,
          "['#DW create_persistent name=aa expires=']" },
        { "#DW create_persistent name=aa expires=0", -1.,
          "['#DW create_persistent name=aa expires=0']" },
        { "#DW create_persistent name=aa expires=-1d", -1.,
          "['#DW create_persistent name=aa expires=-1d']" },
        { "#DW create_persistent name=aa expires=2w", -1.,
          "['#DW create_persistent name=aa expires=2w']" },
        { "#DW jobdw name=aa expires=30d", -1.,
          "['#DW jobdw name=aa expires=30d']" },
    };

    for (size_t i = 0; i < sizeof (tab) / sizeof (tab[0]); i++) {
        struct dws_directives *dirs = read_one (tab[i].directive);
        double lifetime = 5.;
        json_t *array;

        assert_int_equal (dws_commands_take_lifetime (dirs, &lifetime), 0);
        assert_true (lifetime == tab[i].lifetime);
        array = dws_directives_encode (dirs);
        assert_json (array, tab[i].for_dws);
        json_decref (array);
        dws_directives_destroy (dirs);
    }
}

static void test_hash (void **state)
{
    static const char *other[] = {
        "['#DW jobdw name=a', '#DW jobdw name=c']",
        "['#DW jobdw name=b', '#DW jobdw name=a']",
        "['#DW jobdw name=a#DW jobdw name=b']",
        "['#DW jobdw name=a']",
        "[]",
    };
    struct dws_directives *dirs = D ("['#DW jobdw name=a', '#DW jobdw name=b']");
    struct dws_directives *same = D ("['#DW jobdw name=a', '#DW jobdw name=b']");

    assert_true (dws_commands_hash (dirs) == dws_commands_hash (same));
    dws_directives_destroy (same);
    for (size_t i = 0; i < sizeof (other) / sizeof (other[0]); i++) {
        struct dws_directives *p = D (other[i]);

        assert_true (dws_commands_hash (dirs) != dws_commands_hash (p));
        dws_directives_destroy (p);
    }
    dws_directives_destroy (dirs);
    assert_true (dws_commands_hash (NULL) == dws_commands_hash (NULL));
}

/* "-" is none.
 */
static void test_arg (void **state)
{
    static const struct {
        const char *directive;
        const char *name;
        const char *persistent;
    } tab[] = {
        { "#DW persistentdw name=keep", "keep", "keep" },
        { "#DW destroy_persistent name=keep profile=x", "keep", "keep" },
        { "#DW create_persistent type=xfs name=a-b capacity=1GiB", "a-b", "a-b" },
        { "#DW jobdw type=xfs capacity=1GiB name=keep", "keep", "-" },
        { "#DW persistentdw rename=x name=very-long", "very-long", "very-long" },
        { "#DW persistentdw name", "", "" },
        { "#DW persistentdw name=", "", "" },
        { "#DW persistentdw requires=x", "-", "-" },
        { "#DW name=keep", "-", "-" },
        { "#BB persistentdw name=keep", "-", "-" },
        { "#DW", "-", "-" },
    };

    for (size_t i = 0; i < sizeof (tab) / sizeof (tab[0]); i++) {
        struct dws_directives *dirs = read_one (tab[i].directive);
        const char *name = dws_directives_arg (dirs, 0, "name");
        const char *persistent = dws_command_persistent (dirs, 0);

        assert_string_equal (name ? name : "-", tab[i].name);
        assert_string_equal (persistent ? persistent : "-", tab[i].persistent);
        dws_directives_destroy (dirs);
    }
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_command),
        cmocka_unit_test (test_commands),
        cmocka_unit_test (test_lifetime),
        cmocka_unit_test (test_hash),
        cmocka_unit_test (test_arg),
    };

    return cmocka_run_group_tests_name ("command", tests, NULL, NULL);
}
