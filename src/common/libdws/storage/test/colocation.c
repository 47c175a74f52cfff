/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of colocation.c: what is exclusive among all that is on a rabbit,
 * from the breakdown that says so by way of Servers to the next job.
 */

#include "libdws/storage/allocation.h"
#include "libdws/storage/colocation.h"
#include "libdws/storage/test/with.h"
#include "libdws/test/util.h"

#define G5 "5368709120"
#define EXCLUSIVE(key) "'colocation': [{'type': 'exclusive', 'key': '" key "'}]"
#define SET(strategy, label, constraints) \
    "{'allocationStrategy': 'Allocate" strategy "', 'label': '" label "'," \
    " 'minimumCapacity': " G5 ", 'constraints': {" constraints "}}"
#define BREAKDOWN(servers, sets) \
    "{'metadata': {'name': 'b'}, 'status': {'ready': true, 'storage':" \
    " {'reference': {'name': '" servers "', 'namespace': 'default'}," \
    " 'allocationSets': [" sets "]}}}"
#define MGT SET ("SingleServer", "mgt", EXCLUSIVE ("m"))

/* What another has: "RABBIT": keys.
 */
#define HELD_IN(space, servers, rabbits) \
    "[{'servers': {'name': '" servers "', 'namespace': '" space "'}," \
    " 'holder': 'job f1', 'rabbits': {" rabbits "}}]"
#define HELD(servers, rabbits) HELD_IN ("default", servers, rabbits)

static json_t *lay_out (const char *sets, const char *nodes, const char *rivals,
                        dws_error_t *error)
{
    struct dws_allocation_opts opts = { .rivals = J (rivals) };
    json_t *breakdowns = J (sets);
    json_t *n = J (nodes);
    json_t *result = WITH_BREAKDOWNS (breakdowns, error,
                                      dws_allocation_sets (bd, n, &opts,
                                                           error));

    json_decref (opts.rivals);
    json_decref (breakdowns);
    json_decref (n);
    return result;
}

/* The patch of Servers says which sets are exclusive, and by that what it keeps
 * from others can be told, wherever it is read again.
 */
static void test_written (void **state)
{
    static const char sets[] = "[" BREAKDOWN ("w-0", MGT ", "
        SET ("AcrossServers", "ost", "'count': 2") ", "
        SET ("AcrossServers", "mdt", "'count': 1, 'colocation':"
             " [{'type': 'exclusive', 'key': ''},"
             "  {'type': 'exclusive', 'key': 'k'}]")) "]";
    dws_error_t error;
    json_t *result = lay_out (sets, "{'a': 1, 'b': 2}", NULL, &error);
    json_t *patch;
    json_t *taken;

    assert_non_null (result);
    assert_non_null (patch = dws_allocation_patch (json_array_get (result, 0)));
    assert_json (json_object_get (patch, "metadata"),
                 "{'annotations': {'flux-framework.org/colocation':"
                 " '{\\\"mdt\\\":[\\\"\\\",\\\"k\\\"],\\\"mgt\\\":[\\\"m\\\"]}'}}");
    assert_non_null (taken = dws_colocation_taken (patch, &error));
    assert_json (taken, "{'b': {'': true, 'k': true, 'm': true}}");
    json_decref (taken);
    json_decref (patch);
    json_decref (result);
}

static void test_not_exclusive (void **state)
{
    dws_error_t error;
    json_t *entry;
    json_t *patch;
    json_t *result = lay_out ("[" BREAKDOWN ("w-0", SET ("PerCompute", "xfs",
                                                        "")) "]",
                              "{'a': 1}", NULL, &error);

    assert_non_null (result);
    assert_non_null (patch = dws_allocation_patch (json_array_get (result, 0)));
    assert_int_equal (json_object_size (patch), 1);
    json_decref (patch);
    json_decref (result);
    entry = json_object ();
    assert_null (dws_allocation_patch (entry));
    assert_int_equal (errno, EINVAL);
    json_decref (entry);
}

#define META(text) \
    "'metadata': {'annotations': {'flux-framework.org/colocation': '" text "'}}"
#define K "{\\\"mgt\\\": [\\\"m\\\"], \\\"mdt\\\": [\\\"d\\\", 5]}"
#define SPEC \
    "'spec': {'allocationSets': [{'label': 'mgt', 'allocationSize': " G5 "," \
    " 'storage': [{'name': 'a', 'allocationCount': 1}]}," \
    " {'label': 'mdt', 'allocationSize': " G5 ", 'storage':" \
    " [{'name': 'a', 'allocationCount': 1}, {'name': 'b'," \
    " 'allocationCount': 1}]}, {'label': 'ost', 'allocationSize': " G5 "," \
    " 'storage': [{'name': 'c', 'allocationCount': 1}]}]}"
#define STATUS(ready, mgt, a, b) \
    "'status': {'ready': " ready ", 'allocationSets': [{'storage':" \
    " {'a': {'allocationSize': " mgt "}}}, {'storage':" \
    " {'a': {'allocationSize': " a "}, 'b': {'allocationSize': " b "}}}]}"
#define ALL "{'a': {'m': true, 'd': true}, 'b': {'d': true}}"

/* It keeps them for as long as it names rabbits. What others have written does not
 * say: a management target is one all the same.
 */
static void test_taken (void **state)
{
    static const struct {
        const char *servers;
        const char *want;
    } table[] = {
        { "5", "{}" },
        { "{}", "{}" },
        { "{" META (K) "}", "{}" },
        { "{" META (K) ", " SPEC "}", ALL },
        { "{" META (K) ", " SPEC ", " STATUS ("false", "0", "0", "0") "}",
          ALL },
        { "{" META (K) ", " SPEC ", " STATUS ("true", "0", "0", "0") "}",
          ALL },
        { "{" META ("[]") ", " SPEC "}", "{}" },
        { "{" META ("{\\\"mgt\\\": \\\"m\\\"}") ", " SPEC "}", "{}" },
        { "{" META ("mgt") ", " SPEC "}", "{'a': {'lustre-mgt': true}}" },
        { "{" SPEC "}", "{'a': {'lustre-mgt': true}}" },
        { "{'spec': {'allocationSets': [{'label': 'mgtmdt', 'storage':"
          " [{'name': 'c', 'allocationCount': 1},"
          "  {'name': 'd', 'allocationCount': 0}, 5]}, 5]}}",
          "{'c': {'lustre-mgt': true}}" },
    };

    for (size_t i = 0; i < sizeof (table) / sizeof (table[0]); i++) {
        dws_error_t error;
        json_t *servers = J (table[i].servers);
        json_t *taken = dws_colocation_taken (servers, &error);

        assert_non_null (taken);
        assert_json (taken, table[i].want);
        json_decref (taken);
        json_decref (servers);
    }
}

/* Where an allocation of set "mgt" goes, or why it goes nowhere.
 */
static void test_others (void **state)
{
    static const struct {
        const char *sets;
        const char *rivals;
        const char *rabbit;
        const char *text;
    } table[] = {
        { MGT, NULL, "b", NULL },
        { MGT, HELD ("x-0", "'b': {'m': true}"), "a", NULL },
        { SET ("SingleServer", "mgt",
               "'colocation': {'type': 'exclusive', 'key': 'm'}"),
          HELD ("x-0", "'b': {'m': true}"), "a", NULL },
        // other keys, and a set without one, do not matter
        { MGT, HELD ("x-0", "'b': {'k': true}"), "b", NULL },
        { SET ("SingleServer", "mgt", ""), HELD ("x-0", "'b': {'m': true}"),
          "b", NULL },
        // nor does what the job itself has written before
        { MGT, HELD ("w-0", "'b': {'m': true}"), "b", NULL },
        // Servers of the same name in another namespace belong to another job
        { MGT, HELD_IN ("other", "w-0", "'b': {'m': true}"), "a", NULL },
        { MGT, HELD ("x-0", "'a': {'m': true}, 'b': {'m': true}"), NULL,
          "set mgt: 1 allocation of 5 GiB (exclusive, one a rabbit) on 0 of 2"
          " rabbits: 0 fit; a has exclusive 'm' of job f1" },
        { SET ("AcrossServers", "mgt", "'count': 2, " EXCLUSIVE ("m")),
          HELD ("x-0", "'b': {'m': true}"), NULL,
          "on 1 of 2 rabbits: 1 fit; b has exclusive 'm' of job f1" },
        { SET ("PerServer", "mgt", EXCLUSIVE ("")),
          HELD ("x-0", "'b': {'': true}"), NULL,
          "needs storage on rabbit b, which has exclusive '' of job f1" },
        { SET ("AcrossServers", "mgt", EXCLUSIVE ("m")),
          HELD ("x-0", "'b': {'m': true}"), "a", NULL },
        // what is malformed does not matter either
        { MGT, "[5, {'rabbits': {'b': {'m': true}}}, {'holder': 'x'}]", "b",
          NULL },
    };

    for (size_t i = 0; i < sizeof (table) / sizeof (table[0]); i++) {
        char sets[1024];
        dws_error_t error = { "" };
        const char *rabbit = NULL;
        json_t *result;

        snprintf (sets, sizeof (sets), "[" BREAKDOWN ("w-0", "%s") "]",
                  table[i].sets);
        result = lay_out (sets, "{'a': 1, 'b': 2}", table[i].rivals, &error);
        if (!table[i].rabbit) {
            assert_null (result);
            assert_int_equal (errno, ENOSPC);
            if (!strstr (error.text, table[i].text))
                fail_msg ("row %zu: %s", i, error.text);
            continue;
        }
        if (!result)
            fail_msg ("row %zu: %s", i, error.text);
        assert_int_equal (json_unpack (result, "[{s:[{s:[{s:s}]}]}]",
                                       "allocationSets", "storage",
                                       "name", &rabbit), 0);
        assert_string_equal (rabbit, table[i].rabbit);
        json_decref (result);
    }
}

#define ENTRY(holder, rabbits, more) \
    "{'holder': '" holder "', 'rabbits': {" rabbits "}" more "}"
#define LASTING ", 'lasting': true"

/* What may be there for ever can be looked at alone, and each is named.
 */
static void test_lasting (void **state)
{
    static const char rivals[] = "["
        ENTRY ("job f1", "'b': {'m': true}", "") ","
        ENTRY ("job f2", "'b': {'m': true}, 'a': {'m': true}",
               ", 'waits': true") ","
        ENTRY ("storage p", "'b': {'m': true, 'x': true}", LASTING) "]";
    static const struct {
        const char *rivals;
        const char *nodes;
        bool lasting;
        const char *text;       // NULL: nobody
        bool fits;
    } table[] = {
        { rivals, "{'b': 1}", false,
          "exclusive 'm' on b, which job f1 has", false },
        { rivals, "{'a': 1}", false,
          "exclusive 'm' on a, which job f2 is to get first", false },
        { rivals, "{'b': 1}", true,
          "exclusive 'm' on b, which storage p has", false },
        { rivals, "{'a': 1}", true, NULL, true },
        { rivals, "{'c': 1}", false, NULL, true },
        { rivals, "{'a': 1, 'b': 1}", true,
          "exclusive 'm' on b, which storage p has", true },
        { HELD ("w-0", "'a': {'m': true}"), "{'a': 1}", false, NULL, true },
        { NULL, "{'a': 1}", false, NULL, true },
    };

    for (size_t i = 0; i < sizeof (table) / sizeof (table[0]); i++) {
        struct dws_allocation_opts opts = {
            .rivals = table[i].rivals ? J (table[i].rivals) : NULL,
            .lasting = table[i].lasting,
        };
        dws_error_t error;
        json_t *breakdowns = J ("[" BREAKDOWN ("w-0", MGT) "]");
        json_t *nodes = J (table[i].nodes);
        char *text = WITH_BREAKDOWNS (breakdowns, &error,
                                      dws_colocation_holder (bd, nodes, opts.rivals,
                                                             table[i].lasting));
        json_t *sets = WITH_BREAKDOWNS (breakdowns, &error,
                                        dws_allocation_sets (bd, nodes, &opts,
                                                             &error));

        if ((sets != NULL) != table[i].fits)
            fail_msg ("row %zu: %s", i, sets ? "fits" : error.text);
        if (table[i].text) {
            assert_non_null (text);
            assert_string_equal (text, table[i].text);
        }
        else
            assert_null (text);
        free (text);
        json_decref (sets);
        json_decref (nodes);
        json_decref (breakdowns);
        json_decref (opts.rivals);
    }
}

static void test_wanted (void **state)
{
    static const struct {
        const char *breakdowns;
        const char *want;       // NULL: it is not ready
    } table[] = {
        { "[]", "{}" },
        // existing storage is used: there is nothing to lay out
        { "[{'metadata': {'name': 'b'}, 'status': {'ready': true}}]", "{}" },
        { "[" BREAKDOWN ("w-0", SET ("PerCompute", "xfs", "")) "]", "{}" },
        { "[" BREAKDOWN ("w-0", MGT ", " SET ("AcrossServers", "mdt",
                                              EXCLUSIVE (""))) ","
              BREAKDOWN ("w-1", MGT) "]", "{'m': true, '': true}" },
        { "[{'metadata': {'name': 'b'}, 'status': {'ready': false}}]", NULL },
    };

    for (size_t i = 0; i < sizeof (table) / sizeof (table[0]); i++) {
        dws_error_t error;
        json_t *breakdowns = J (table[i].breakdowns);
        json_t *wanted = WITH_BREAKDOWNS (breakdowns, &error,
                                          dws_colocation_wanted (bd));

        if (table[i].want)
            assert_json (wanted, table[i].want);
        else {
            assert_null (wanted);
            assert_int_equal (errno, EAGAIN);
        }
        json_decref (wanted);
        json_decref (breakdowns);
    }
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_written),
        cmocka_unit_test (test_not_exclusive),
        cmocka_unit_test (test_taken),
        cmocka_unit_test (test_others),
        cmocka_unit_test (test_lasting),
        cmocka_unit_test (test_wanted),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
