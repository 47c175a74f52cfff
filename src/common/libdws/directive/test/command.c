/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of command.c.
 */

#include <math.h>

#include "libdws/directive/command.h"
#include "libdws/test/util.h"

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

    for (size_t i = 0; i < sizeof (tab) / sizeof (tab[0]); i++)
        assert_int_equal (dws_command (tab[i].directive), tab[i].command);
}

static void test_commands (void **state)
{
    json_t *o = J ("['#DW jobdw name=a',"
                   " '#DW copy_in source=\\\"#DW container\\\"',"
                   " 5, '#DW jobdw name=b', 'container']");

    assert_int_equal (dws_commands (o),
                      DWS_COMMAND_JOBDW | DWS_COMMAND_COPY_IN);
    json_decref (o);
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
        json_t *o = json_pack ("[s]", tab[i].directive);
        double lifetime = 5.;
        json_t *array = dws_commands_for_dws (o, &lifetime);

        assert_true (lifetime == tab[i].lifetime);
        assert_json (array, tab[i].for_dws);
        json_decref (array);
        json_decref (o);
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
    json_t *o = J ("['#DW jobdw name=a', '#DW jobdw name=b']");
    json_t *same = json_deep_copy (o);

    assert_true (dws_commands_hash (o) == dws_commands_hash (same));
    json_decref (same);
    for (size_t i = 0; i < sizeof (other) / sizeof (other[0]); i++) {
        json_t *p = J (other[i]);

        assert_true (dws_commands_hash (o) != dws_commands_hash (p));
        json_decref (p);
    }
    json_decref (o);
    assert_true (dws_commands_hash (NULL) == dws_commands_hash (NULL));
}

static void test_arg (void **state)
{
    static const struct {
        const char *directive;
        const char *name;
    } tab[] = {
        { "#DW persistentdw name=keep", "keep" },
        { "#DW persistentdw name=keep profile=x", "keep" },
        { "#DW persistentdw rename=x name=much-too-long", "much-to" },
        { "#DW persistentdw name", "" },
        { "#DW persistentdw requires=x", "" },
        { "#DW name=keep", "" },
        { "#DW", "" },
    };
    char buf[8];

    for (size_t i = 0; i < sizeof (tab) / sizeof (tab[0]); i++) {
        const char *s = dws_command_arg (tab[i].directive, "name", buf,
                                         sizeof (buf));

        assert_string_equal (s ? s : "", tab[i].name);
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
