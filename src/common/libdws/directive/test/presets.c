/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of presets.c.
 */

#include "libdws/directive/directive.h"
#include "libdws/directive/presets.h"
#include "libdws/test/util.h"

static const char *values_text =
    "{'UID': '1000', 'JOBID': '99', 'BANK': 'a b'}";

static const struct {
    const char *preset;
    const char *want;           // JSON; one that has an error: a part of that
} table[] = {
    { "'plain'", "'plain'" },
    { "'$JOBID/$UID'", "'99/1000'" },
    { "'${UID}_x$JOBID'", "'1000_x99'" },
    { "'a$$b$$UID'", "'a$b$UID'" },
    { "'$DW_JOB_x/o ${DW_JOB_y}/$JOBID'", "'$DW_JOB_x/o ${DW_JOB_y}/99'" },
    { "['$JOBID', 'b', '$UID']", "['99', 'b', '1000']" },
    { "'$QUEUE'", "!$QUEUE: the job has none" },
    { "'/lus/$USER'", "!$USER: the job has none" },
    { "'$BANK'", "!$BANK: 'a b' is not one word" },
    { "['x', '$HOME']", "!$HOME is not a variable" },
    { "'$'", "!'$': a '$' begins the name" },
    { "'$(id)'", "!a '$' begins the name" },
    { "'${UID'", "!'${UID': a '$' begins the name" },
    { "'${}'", "!a '$' begins the name" },
    { "7", "7" },
};

static void test_bind (void **state)
{
    json_t *values = J (values_text);

    for (size_t i = 0; i < sizeof (table) / sizeof (table[0]); i++) {
        char text[256];
        json_t *presets;
        json_t *bound;
        json_t *o;

        snprintf (text, sizeof (text), "{'p': %s}", table[i].preset);
        presets = J (text);
        bound = dws_presets_bind (presets, values, NULL);
        assert_non_null (bound);
        o = json_object_get (bound, "p");
        if (table[i].want[0] == '!')
            assert_contains (json_string_value (json_object_get (o, "error")),
                             table[i].want + 1);
        else {
            snprintf (text, sizeof (text), "{'p': %s}", table[i].want);
            assert_json (bound, text);
        }
        json_decref (bound);
        json_decref (presets);
    }
    assert_null (dws_presets_bind (NULL, values, NULL));
    json_decref (values);
}

/* The name of a user is a word, too.
 */
static void test_user (void **state)
{
    static const struct {
        const char *name;
        const char *want;
    } names[] = {
        { "ann", "/lus/ann/x" },
        { "Ann.B-1@lab", "/lus/Ann.B-1@lab/x" },
        { "ann b", "!$USER: 'ann b' is not one word" },
        { "a$UID", "!$USER: 'a$UID' is not one word" },
        { "", "!$USER: '' is not one word" },
    };

    for (size_t i = 0; i < sizeof (names) / sizeof (names[0]); i++) {
        json_t *presets = J ("{'p': '/lus/${USER}/x'}");
        json_t *values = json_pack ("{s:s}", "USER", names[i].name);
        json_t *bound = dws_presets_bind (presets, values, NULL);
        json_t *o = json_object_get (bound, "p");

        if (names[i].want[0] == '!')
            assert_contains (json_string_value (json_object_get (o, "error")),
                             names[i].want + 1);
        else
            assert_string_equal (json_string_value (o), names[i].want);
        json_decref (bound);
        json_decref (values);
        json_decref (presets);
    }
}

/* Only who uses it is refused.
 */
static void test_parse (void **state)
{
    json_t *presets = J ("{'good': '#DW jobdw type=xfs capacity=1GiB name=n$UID',"
                         " 'bad': '#DW jobdw type=$QUEUE'}");
    json_t *values = J (values_text);
    json_t *bound = dws_presets_bind (presets, values, NULL);
    json_t *good = json_string ("good");
    json_t *bad = json_string ("bad");
    struct dws_directives *dirs;
    dws_error_t e = { "" };

    dirs = dws_directives_parse (good, bound, NULL, &e);
    assert_non_null (dirs);
    assert_string_equal (dws_directives_arg (dirs, 0, "name"), "n1000");
    dws_directives_destroy (dirs);
    assert_null (dws_directives_parse (bad, bound, NULL, &e));
    assert_contains (e.text, "(preset 'bad'): $QUEUE: the job has none");
    json_decref (good);
    json_decref (bad);
    json_decref (bound);
    json_decref (values);
    json_decref (presets);
}

static const struct {
    const char *presets;
    const char *want;           // NULL: all is well
} checks[] = {
    { "{'a': '#DW jobdw type=xfs capacity=1GiB name=na$UID$JOBID'}", NULL },
    { "{'a': '#DW jobdw type=xfs capacity=1GiB name=$N'}",
      "a: $N is not a variable" },
    { "{'a': '#DW jobdw tpye=xfs name=$UID'}", "a: #DW directive 1" },
};

static void test_check (void **state)
{
    for (size_t i = 0; i < sizeof (checks) / sizeof (checks[0]); i++) {
        json_t *presets = J (checks[i].presets);
        dws_error_t e = { "" };
        int rc = dws_presets_check (presets, &e);

        if (checks[i].want) {
            assert_int_equal (rc, -1);
            assert_int_equal (errno, EINVAL);
            assert_contains (e.text, checks[i].want);
        }
        else if (rc < 0)
            fail_msg ("row %zu: %s", i, e.text);
        json_decref (presets);
    }
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_bind),
        cmocka_unit_test (test_user),
        cmocka_unit_test (test_parse),
        cmocka_unit_test (test_check),
    };

    return cmocka_run_group_tests_name ("presets", tests, NULL, NULL);
}
