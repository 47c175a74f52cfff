/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of drivers.c: entries as the controllers of NNF write them.
 */

#include "libdws/facts/drivers.h"
#include "libdws/facts/workflow.h"
#include "libdws/test/util.h"

#define ENTRY(state, status, more) \
    "{'dwdIndex': 0, 'watchState': '" state "', 'completed': false," \
    " 'status': '" status "'" more "}"
#define SAYS(message, error) \
    ", 'message': '" message "', 'error': '" error "'"
#define STATUS(state, message, drivers) \
    "{'state': '" state "', 'message': '" message "'," \
    " 'drivers': [" drivers "]}"

static const struct {
    const char *status;
    const char *text;
    bool trouble;
    const char *silent;
} tab[] = {
    { "{}", "", false, NULL },
    { "5", "", false, NULL },
    { STATUS ("Setup", "m", "{}, 5"), "m", false, NULL },
    { STATUS ("Setup", "DW Directive 12: m", ""), "m", false, NULL },
    { STATUS ("Setup", "DW Directive one: m", ""), "DW Directive one: m",
      false, NULL },
    /* the message is empty, and the text in the error alone */
    { STATUS ("Proposal", "DW Directive 0: Internal error: ",
              ENTRY ("Proposal", "Error",
                     SAYS ("Internal error: ",
                           "internal error: the administrator must configure"
                           " the user container TLS secret for the system."))),
      "Internal error: the administrator must configure the user container TLS"
      " secret for the system.", true, NULL },
    { STATUS ("Proposal", "",
              ENTRY ("Proposal", "Error", SAYS ("", "wlm error: it"))),
      "WLM error: it", true, NULL },
    { STATUS ("Proposal", "",
              ENTRY ("Proposal", "Error", SAYS ("", "plain"))),
      "plain", true, NULL },
    /* both say the same */
    { STATUS ("Proposal", "DW Directive 1: User error: gone",
              ENTRY ("Proposal", "Running", "") ","
              ENTRY ("Proposal", "Error",
                     SAYS ("User error: gone", "user error: gone"))),
      "User error: gone", true, NULL },
    /* the error says which argument */
    { STATUS ("Proposal", "DW Directive 0: User error: not found",
              ENTRY ("Proposal", "Error",
                     SAYS ("User error: not found",
                           "user error: Invalid source argument: x:"
                           " not found"))),
      "User error: Invalid source argument: x: not found", true, NULL },
    /* the error says whose a file system is */
    { STATUS ("Proposal", "DW Directive 0: User error: User ID does not match",
              ENTRY ("Proposal", "Error",
                     SAYS ("User error: User ID does not match",
                           "user error: existing persistent storage user ID 7"
                           " does not match user ID 8"))),
      "User error: User ID does not match", true, NULL },
    /* the error says something else */
    { STATUS ("PreRun", "DW Directive 0: Internal error: unable to mount",
              ENTRY ("Setup", "Completed", SAYS ("x", "y")) ","
              ENTRY ("PreRun", "Running",
                     SAYS ("Internal error: unable to mount",
                           "internal error: namespaces n9 not found")) ","
              ENTRY ("PostRun", "Pending", "")),
      "Internal error: unable to mount (namespaces n9 not found)", true, NULL },
    /* a rabbit that does not answer, and what is known of another driver */
    { STATUS ("Setup", "DW Directive 0: allocation set not ready",
              ENTRY ("Setup", "Running",
                     ", 'message': 'allocation set not ready'") ","
              ENTRY ("Setup", "TransientCondition",
                     SAYS ("Internal error: could not allocate storage",
                           "internal error: storage resource error:"
                           " default/g-0: Node: rabbit-2: NnfNodeBlockStorage"
                           " has not been reconciled after 300 seconds"))),
      "Internal error: could not allocate storage (rabbit-2:"
      " NnfNodeBlockStorage has not been reconciled after 300 seconds)",
      true, "rabbit-2" },
    /* the message names the rabbit, the error tells of each drive */
    { STATUS ("Setup", "m",
              ENTRY ("Setup", "Error",
                     SAYS ("WLM error: r1: insufficient capacity available",
                           "wlm error: storage resource error: d/f: Node: r1:"
                           " unable to allocate: Error 406"))),
      "WLM error: r1: insufficient capacity available", true, NULL },
    /* what is waited for is no trouble */
    { STATUS ("Setup", "DW Directive 0: allocation set not ready",
              ENTRY ("Setup", "Running",
                     ", 'message': 'allocation set not ready'")),
      "allocation set not ready", false, NULL },
    /* an error of a state that was forced, and one that was mended */
    { STATUS ("PreRun", "DW Directive 0: pending mount",
              ENTRY ("Setup", "Error",
                     SAYS ("WLM error: small",
                           "wlm error: Node: r: x has not been reconciled"
                           " after 1 seconds")) ","
              "{'watchState': 'PreRun', 'completed': true, 'status':"
              " 'Completed', 'error': 'Node: r: x has not been reconciled after"
              " 1 seconds'},"
              ENTRY ("PreRun", "Running", ", 'message': 'pending mount'")),
      "pending mount", false, NULL },
};

static const char *state_of (json_t *status)
{
    const char *s = json_string_value (json_object_get (status, "state"));

    return s ? s : "";
}

static char *text_of (json_t *status)
{
    json_t *message = json_object_get (status, "message");
    char buf[DWS_DRIVERS_TEXT_SIZE];

    return strdup (dws_drivers_text (json_object_get (status, "drivers"),
                                     state_of (status),
                                     json_string_value (message), buf));
}

static void test_drivers (void **state)
{
    for (size_t i = 0; i < sizeof (tab) / sizeof (tab[0]); i++) {
        json_t *status = J (tab[i].status);
        json_t *drivers = json_object_get (status, "drivers");
        const char *in = state_of (status);
        char *text = text_of (status);
        char rabbit[DWS_RABBIT_SIZE];
        const char *silent = dws_drivers_silent (drivers, in, rabbit);

        assert_non_null (text);
        assert_string_equal (text, tab[i].text);
        assert_int_equal (dws_drivers_trouble (drivers, in), tab[i].trouble);
        assert_int_equal (silent != NULL, tab[i].silent != NULL);
        if (silent)
            assert_string_equal (silent, tab[i].silent);
        free (text);
        json_decref (status);
    }
}

/* They are cut between two characters.
 */
static void check_cut (const char *message, const char *error,
                       const char *part)
{
    json_t *status = json_pack ("{s:s s:[{s:s s:s s:s s:s}]}",
                                "state", "Setup",
                                "drivers",
                                  "watchState", "Setup",
                                  "status", "Error",
                                  "message", message,
                                  "error", error);
    char *text = text_of (status);
    json_t *s = json_string (text);

    assert_non_null (s);
    if (!text || !part) {
        fail ();
        return;
    }
    assert_contains (text, "...");
    assert_contains (text, part);
    assert_true (strlen (text) < 500);
    json_decref (s);
    free (text);
    json_decref (status);
}

static void test_long_texts (void **state)
{
    char buf[2002] = "x";

    for (size_t i = 1; i + 3 <= sizeof (buf); i += 2)
        memcpy (buf + i, "\xc3\xa9", 3);
    /* Characters of two bytes begin at even and at odd places. */
    for (const char *large = buf; large < buf + 2; large++) {
        check_cut ("User error: no", large, "User error: no (");
        check_cut (large, "user error: why", " (why)");
        check_cut (large, large, "...");
    }
}

/* What the API server does not take is not taken at the next try.
 */
static void test_refused (void **state)
{
    static const struct {
        const char *error;
        bool refused;
    } tab[] = {
        { "admission webhook \"vpersistentstorageinstance.kb.io\" denied the"
          " request: Spec.DWDirective: Forbidden: field is immutable", true },
        { "could not create: PersistentStorageInstance.x \"pp-\" is invalid:"
          " metadata.name: Invalid value", true },
        { "Servers.x \"a\" is invalid: metadata.resourceVersion: Invalid value:"
          " 0", false },
        { "failed calling webhook \"x.kb.io\": connection refused", false },
        { "the argument is invalid: x", false },
        { "", false },
    };

    for (size_t i = 0; i < sizeof (tab) / sizeof (tab[0]); i++) {
        json_t *entries = json_array ();
        json_t *entry = J ("{'watchState': 'Proposal', 'completed': false,"
                           " 'status': 'Running'}");

        json_object_set_new (entry, "error", json_string (tab[i].error));
        json_array_append_new (entries, entry);
        assert_int_equal (dws_drivers_refused (entries, "Proposal"),
                          tab[i].refused);
        assert_false (dws_drivers_refused (entries, "Setup"));
        json_decref (entries);
    }
}

/* DWS has summed up an Error that the driver has got over since.
 */
static void test_recovered (void **state)
{
    static const struct {
        const char *drivers;
        enum dws_status status;
    } tab[] = {
        { "[{'watchState': 'Proposal', 'completed': false, 'status': 'Running',"
          "  'message': 'status pending'}]", DWS_STATUS_DRIVERWAIT },
        { "[{'watchState': 'Proposal', 'completed': false, 'status': 'Running'},"
          " {'watchState': 'Proposal', 'completed': false, 'status': 'Error'}]",
          DWS_STATUS_ERROR },
        { "[{'watchState': 'Proposal', 'completed': true, 'status': 'Completed'},"
          " {'watchState': 'Setup', 'completed': false, 'status': 'Pending'}]",
          DWS_STATUS_ERROR },
        { "[]", DWS_STATUS_ERROR },
        /* one that says nothing */
        { "[{'watchState': 'Proposal', 'completed': false, 'status': 'Running'}]",
          DWS_STATUS_ERROR },
    };

    for (size_t i = 0; i < sizeof (tab) / sizeof (tab[0]); i++) {
        json_t *o = J ("{'name': 'fluxjob-1', 'namespace': 'default',"
                       " 'label': 'me', 'desired': 'Proposal',"
                       " 'state': 'Proposal', 'status': 'Error',"
                       " 'message': 'DW Directive 0: status pending'}");
        struct dws_workflow *wf;

        json_object_set_new (o, "drivers", J (tab[i].drivers));
        assert_non_null (wf = dws_workflow_decode (o, "me", NULL));
        assert_int_equal (wf->status, tab[i].status);
        dws_workflow_destroy (wf);
        json_decref (o);
    }
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_drivers),
        cmocka_unit_test (test_refused),
        cmocka_unit_test (test_recovered),
        cmocka_unit_test (test_long_texts),
    };

    return cmocka_run_group_tests_name ("drivers", tests, NULL, NULL);
}
