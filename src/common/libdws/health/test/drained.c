/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of drained.c.
 */

#include <errno.h>
#include <stdlib.h>

#include "libdws/health/drained.h"
#include "libdws/test/util.h"

/* The ranks are not in the order of the names.
 */
#define STATUS(drain) \
    "{'R': {'version': 1, 'execution': {'R_lite': [" \
    " {'rank': '0', 'children': {'core': '0'}}," \
    " {'rank': '1-3', 'children': {'core': '0'}}]," \
    " 'nodelist': ['login', 'node[2,0-1]']}}, 'drain': {" drain "}}"
#define DRAINS \
    "'0': {'timestamp': 1.0, 'reason': 'a fan'}," \
    "'1,3': {'timestamp': 1.0, 'reason': 'ours'}," \
    "'2': {'timestamp': 1.0, 'reason': 'ours, too'}"

static void check (const char *drain, const char *hosts, const char *in,
                   const char *out)
{
    json_t *o = J (drain);
    char *a;
    char *b;
    dws_error_t error;

    if (dws_drained_for (o, "ours", hosts, &a, &b, &error) < 0)
        fail_msg ("%s", error.text);
    assert_string_equal (a, in);
    assert_string_equal (b, out);
    free (a);
    free (b);
    json_decref (o);
}

static void test_drained (void **state)
{
    check (STATUS (DRAINS), "", "", "1,3");
    check (STATUS (DRAINS), "node1", "3", "1");
    check (STATUS (DRAINS), "node[0-2],elsewhere", "1,3", "");
    check (STATUS (DRAINS), "node0", "", "1,3");
    check (STATUS (""), "node0", "", "");
    check (STATUS ("'1': {'timestamp': 1.0}"), "node2", "", "");
}

static void check_failure (const char *status, const char *hosts, int errnum)
{
    json_t *o = J (status);
    char *a;
    char *b;
    dws_error_t error;

    errno = 0;
    assert_int_equal (dws_drained_for (o, "ours", hosts, &a, &b, &error), -1);
    assert_int_equal (errno, errnum);
    assert_null (a);
    assert_null (b);
    json_decref (o);
}

static void test_malformed (void **state)
{
    check_failure ("{}", "", EPROTO);
    check_failure (STATUS ("'x': {'timestamp': 1.0, 'reason': 'ours'}"), "",
                   EPROTO);
    check_failure (STATUS (DRAINS), "node[", EINVAL);
    check_failure ("{'R': {}, 'drain': {}}", "", EINVAL);
}

static void check_maybe (const char *status, const char *expected)
{
    json_t *o = J (status);
    json_t *want = J (expected);
    json_t *got;
    dws_error_t error;

    if (!(got = dws_drained_maybe (o, &error)))
        fail_msg ("%s", error.text);
    if (!json_equal (got, want))
        fail_msg ("%s", json_dumps (got, 0));
    json_decref (got);
    json_decref (want);
    json_decref (o);
}

#define MAYBE(ranks, job) \
    "'" ranks "': {'timestamp': 1.0," \
    " 'reason': 'rabbit: may be mounted by " job "'}"

static void test_maybe (void **state)
{
    dws_error_t error;

    check_maybe ("{}", "{}");
    check_maybe (STATUS (DRAINS), "{}");
    check_maybe (STATUS (MAYBE ("0,2", "fluxjob-77") ","
                         MAYBE ("1", "fluxjob-5") ","
                         MAYBE ("3", "fluxjob-77")),
                 "{'77': '0,2,3', '5': '1'}");
    check_maybe (STATUS (MAYBE ("0", "somebody") "," MAYBE ("1", "")), "{}");
    check_maybe (STATUS ("'1': {'timestamp': 1.0, 'reason':"
                         " 'rabbit: may be mounted by-and-by'}"), "{}");
    // as long as ours, and an admin's
    check_maybe (STATUS ("'1': {'timestamp': 1.0, 'reason':"
                         " 'an admin has set it aside fluxjob-5'}"), "{}");
    check_maybe (STATUS ("'1': {'timestamp': 1.0}"), "{}");
    errno = 0;
    assert_null (dws_drained_maybe (NULL, &error));
    assert_int_equal (errno, EPROTO);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_drained),
        cmocka_unit_test (test_malformed),
        cmocka_unit_test (test_maybe),
    };

    return cmocka_run_group_tests_name ("drained", tests, NULL, NULL);
}
