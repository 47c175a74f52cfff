/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of facts.c: eventlogs, whole, cut off, doubled and backwards.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "../facts.h"

/* The ordinary course, with others' holds in between, and what is known
 * after each event.
 */
static const struct {
    const char *name;
    const char *context;
    flux_job_state_t state;
    const char *phase;
    bool depend;
    bool prolog;
    bool epilog;
} course[] = {
    { "submit", "{'userid':1}", FLUX_JOB_STATE_NEW, "depend", 0, 0, 0 },
    { "validate", NULL, FLUX_JOB_STATE_DEPEND, "depend", 0, 0, 0 },
    { "dependency-add", "{'description':'begin-time=1'}",
      FLUX_JOB_STATE_DEPEND, "depend", 0, 0, 0 },
    { "dependency-add", "{'description':'dws-create'}",
      FLUX_JOB_STATE_DEPEND, "depend", 1, 0, 0 },
    { "jobspec-update", "{'attributes.system.dw':[]}",
      FLUX_JOB_STATE_DEPEND, "depend", 1, 0, 0 },
    { "jobspec-update", "{'resources':[]}",
      FLUX_JOB_STATE_DEPEND, "depend", 1, 0, 0 },
    { "dependency-remove", "{'description':'begin-time=1'}",
      FLUX_JOB_STATE_DEPEND, "depend", 1, 0, 0 },
    { "dependency-remove", "{'description':'dws-create'}",
      FLUX_JOB_STATE_DEPEND, "pending", 0, 0, 0 },
    { "depend", NULL, FLUX_JOB_STATE_PRIORITY, "pending", 0, 0, 0 },
    { "priority", "{'priority':16}", FLUX_JOB_STATE_SCHED, "pending", 0, 0, 0 },
    { "alloc", NULL, FLUX_JOB_STATE_RUN, "running", 0, 0, 0 },
    { "prolog-start", "{'description':'job-manager.prolog'}",
      FLUX_JOB_STATE_RUN, "running", 0, 0, 0 },
    { "prolog-start", "{'description':'dws-setup'}",
      FLUX_JOB_STATE_RUN, "prolog", 0, 1, 0 },
    { "prolog-finish", "{'description':'job-manager.prolog','status':0}",
      FLUX_JOB_STATE_RUN, "prolog", 0, 1, 0 },
    { "dws_environment", "{'variables':{}}",
      FLUX_JOB_STATE_RUN, "prolog", 0, 1, 0 },
    { "prolog-finish", "{'description':'dws-setup','status':0}",
      FLUX_JOB_STATE_RUN, "running", 0, 0, 0 },
    { "start", NULL, FLUX_JOB_STATE_RUN, "running", 0, 0, 0 },
    { "finish", "{'status':0}", FLUX_JOB_STATE_CLEANUP, "epilog", 0, 0, 0 },
    { "epilog-start", "{'description':'job-manager.epilog'}",
      FLUX_JOB_STATE_CLEANUP, "epilog", 0, 0, 0 },
    { "epilog-start", "{'description':'dws-epilog'}",
      FLUX_JOB_STATE_CLEANUP, "epilog", 0, 0, 1 },
    { "epilog-finish", "{'description':'job-manager.epilog','status':0}",
      FLUX_JOB_STATE_CLEANUP, "epilog", 0, 0, 1 },
    { "epilog-finish", "{'description':'dws-epilog','status':0}",
      FLUX_JOB_STATE_CLEANUP, NULL, 0, 0, 0 },
    { "free", NULL, FLUX_JOB_STATE_CLEANUP, NULL, 0, 0, 0 },
    { "clean", NULL, FLUX_JOB_STATE_INACTIVE, NULL, 0, 0, 0 },
};

#define COURSE_LENGTH (sizeof (course) / sizeof (course[0]))

static json_t *entry (double timestamp, const char *name, const char *context)
{
    char buf[256];
    json_t *o = NULL;

    if (context) {
        snprintf (buf, sizeof (buf), "%s", context);
        for (char *s = buf; *s; s++) {
            if (*s == '\'')
                *s = '"';
        }
        o = json_loads (buf, 0, NULL);
        assert_non_null (o);
    }
    o = json_pack ("{s:f s:s s:o*}",
                   "timestamp", timestamp,
                   "name", name,
                   "context", o);
    assert_non_null (o);
    return o;
}

static void apply (struct jobtap_facts *facts, size_t i)
{
    json_t *o = entry (100 + i, course[i].name, course[i].context);

    assert_int_equal (jobtap_facts_apply (facts, o), 0);
    json_decref (o);
}

static void check (const struct jobtap_facts *facts, size_t i)
{
    const char *phase = jobtap_facts_phase (facts, course[i].state);

    assert_int_equal (jobtap_facts_depend_held (facts), course[i].depend);
    assert_int_equal (jobtap_facts_prolog_held (facts), course[i].prolog);
    assert_int_equal (jobtap_facts_epilog_held (facts), course[i].epilog);
    if (course[i].phase)
        assert_string_equal (phase, course[i].phase);
    else
        assert_null (phase);
}

static void test_course (void **state)
{
    struct jobtap_facts facts = { 0 };

    for (size_t i = 0; i < COURSE_LENGTH; i++) {
        apply (&facts, i);
        check (&facts, i);
    }
    assert_true (facts.t_epilog == 119);
    assert_true (facts.run_started && facts.run_finished);
    assert_true (facts.depend_removed && facts.environment_posted);
    assert_false (facts.exception || jobtap_facts_abandoned (&facts));
    jobtap_facts_clear (&facts);
}

/* A part is read back from the log, a part was seen live, in any order and
 * more than once: the facts are the same.
 */
static void test_any_order (void **state)
{
    for (size_t length = 1; length <= COURSE_LENGTH; length++) {
        for (size_t first = 0; first < length; first++) {
            struct jobtap_facts facts = { 0 };

            for (size_t i = length; i > first; i--)
                apply (&facts, i - 1);
            for (size_t i = 0; i < length; i++)
                apply (&facts, i);
            check (&facts, length - 1);
            jobtap_facts_clear (&facts);
        }
    }
}

static void test_array (void **state)
{
    struct jobtap_facts facts = { 0 };
    json_t *log = json_array ();

    for (size_t i = 0; i < COURSE_LENGTH; i++)
        json_array_append_new (log,
                               entry (i, course[i].name, course[i].context));
    assert_int_equal (jobtap_facts_apply_all (&facts, log), 0);
    check (&facts, COURSE_LENGTH - 1);
    json_array_append_new (log, json_integer (1));
    errno = 0;
    assert_int_equal (jobtap_facts_apply_all (&facts, log), -1);
    assert_int_equal (errno, EPROTO);
    json_decref (log);
    log = json_object ();
    assert_int_equal (jobtap_facts_apply_all (&facts, log), -1);
    json_decref (log);
    jobtap_facts_clear (&facts);
}

static void check_raised (const struct jobtap_facts *facts, bool cut_short,
                          bool abandoned)
{
    assert_int_equal (jobtap_facts_cut_short (facts), cut_short);
    assert_int_equal (jobtap_facts_abandoned (facts), abandoned);
}

/* 'seen' happens, then the eventlog is read.
 */
static void check_log (json_t *seen, json_t *log, bool cut_short, bool abandoned)
{
    struct jobtap_facts facts = { .owner = 100 };

    if (seen)
        assert_int_equal (jobtap_facts_apply (&facts, seen), 0);
    assert_int_equal (jobtap_facts_apply_all (&facts, log), 0);
    check_raised (&facts, cut_short, abandoned);
    json_decref (log);
    jobtap_facts_clear (&facts);
}

static void test_exception (void **state)
{
    static const struct {
        const char *context;
        bool exception;
        bool abandoned;
    } table[] = {
        { "{'type':'cancel','severity':0}", true, false },
        { "{'type':'note','severity':4}", false, false },
        { "{'type':'dws-epilog-timeout','severity':1,'userid':100}",
          false, false },
        { "{'type':'dws-epilog-timeout','severity':0,'userid':100}",
          true, true },
        /* a guest, and nobody */
        { "{'type':'dws-epilog-timeout','severity':0,'userid':42}",
          true, false },
        { "{'type':'dws-epilog-timeout','severity':0}", true, false },
        { "{'type':'cancel'}", false, false },
        { "{'severity':0}", false, false },
        { NULL, false, false },
    };

    for (size_t i = 0; i < sizeof (table) / sizeof (table[0]); i++) {
        bool exception = table[i].exception;
        bool abandoned = table[i].abandoned;
        struct jobtap_facts facts = { .owner = 100 };
        json_t *before = entry (3, "exception", table[i].context);
        json_t *start = entry (2, "epilog-start", "{'description':'dws-epilog'}");
        json_t *after = entry (1, "exception", table[i].context);

        /* As they happen. The clock is set back all the time. */
        assert_int_equal (jobtap_facts_apply (&facts, before), 0);
        assert_int_equal (facts.exception, exception);
        assert_int_equal (jobtap_facts_apply (&facts, start), 0);
        check_raised (&facts, false, false);
        assert_int_equal (jobtap_facts_apply (&facts, after), 0);
        check_raised (&facts, exception, abandoned);

        /* in an eventlog, some of which was seen before */
        check_log (NULL, json_pack ("[O,O]", before, start), false, false);
        check_log (NULL, json_pack ("[O,O]", start, after), exception, abandoned);
        check_log (start, json_pack ("[O,O]", before, start), false, false);
        check_log (before, json_pack ("[O,O]", before, start), false, false);
        check_log (after, json_pack ("[O,O]", before, start), exception,
                   abandoned);
        check_log (after, json_pack ("[O]", before), false, false);
        json_decref (before);
        json_decref (start);
        json_decref (after);
    }
}

/* Other plugins start prologs and epilogs before ours is seen to begin, and raise
 * exceptions: that is not yet our prolog, and not yet our epilog.
 */
static void test_others_come_first (void **state)
{
    static const struct {
        const char *name;
        const char *context;
    } theirs[] = {
        { "prolog-start", "{'description':'site'}" },
        { "prolog-finish", "{'description':'site','status':0}" },
        { "start", NULL },
        { "exception", "{'type':'site','severity':0,'userid':100}" },
        { "exception", "{'type':'dws-epilog-timeout','severity':0,'userid':100}" },
        { "finish", "{'status':0}" },
        { "epilog-start", "{'description':'site'}" },
        { "epilog-finish", "{'description':'site','status':0}" },
    };
    struct jobtap_facts facts = { .owner = 100 };
    json_t *o;

    facts.posted.prolog = facts.posted.epilog = true;
    for (size_t i = 0; i < sizeof (theirs) / sizeof (theirs[0]); i++) {
        o = entry (10 + i, theirs[i].name, theirs[i].context);
        assert_int_equal (jobtap_facts_apply (&facts, o), 0);
        json_decref (o);
        assert_true (jobtap_facts_prolog_held (&facts));
        assert_true (jobtap_facts_epilog_held (&facts));
        assert_false (jobtap_facts_epilog_due (&facts));
        assert_false (jobtap_facts_in_epilog (&facts));
        assert_false (jobtap_facts_cut_short (&facts));
        assert_false (jobtap_facts_abandoned (&facts));
        assert_true (facts.t_prolog == 0. && facts.t_epilog == 0.);
    }
    o = entry (30, "epilog-start", "{'description':'dws-epilog'}");
    assert_int_equal (jobtap_facts_apply (&facts, o), 0);
    json_decref (o);
    assert_true (jobtap_facts_in_epilog (&facts));
    assert_true (facts.t_epilog == 30.);
    assert_false (jobtap_facts_cut_short (&facts));
    assert_false (jobtap_facts_abandoned (&facts));
    facts.posted.epilog_end = true;
    assert_false (jobtap_facts_in_epilog (&facts));
    assert_null (jobtap_facts_phase (&facts, FLUX_JOB_STATE_CLEANUP));
    jobtap_facts_clear (&facts);
}

/* Tasks go on for a while after an exception.
 */
static void test_killed (void **state)
{
    struct jobtap_facts facts = { .depend_added = true,
                               .depend_removed = true,
                               .prolog_started = true,
                               .prolog_finished = true,
                               .run_started = true,
                               .exception = true };

    assert_string_equal (jobtap_facts_phase (&facts, FLUX_JOB_STATE_CLEANUP),
                         "running");
    facts.run_finished = true;
    assert_string_equal (jobtap_facts_phase (&facts, FLUX_JOB_STATE_CLEANUP),
                         "epilog");
}

static bool waits_after (struct jobtap_facts *facts, const char *name,
                         const char *context)
{
    json_t *o = entry (1, name, context);

    assert_int_equal (jobtap_facts_apply (facts, o), 0);
    json_decref (o);
    return jobtap_facts_waits (facts);
}

/* Other dependencies than ours hold a job, and an urgency of 0.
 */
static void test_waits (void **state)
{
    static const char *ours = "{'description':'dws-create'}";
    static const char *theirs = "{'description':'begin-time=1'}";
    static const char *more = "{'description':'after=1'}";
    struct jobtap_facts facts = { 0 };

    assert_false (waits_after (&facts, "submit", "{'urgency':16}"));
    assert_false (waits_after (&facts, "dependency-add", ours));
    assert_true (waits_after (&facts, "dependency-add", theirs));
    assert_true (waits_after (&facts, "dependency-remove", ours));
    assert_true (waits_after (&facts, "dependency-add", more));
    assert_true (waits_after (&facts, "dependency-remove", more));
    assert_false (waits_after (&facts, "dependency-remove", theirs));
    /* seen again, in the eventlog */
    assert_false (waits_after (&facts, "dependency-add", theirs));
    assert_true (waits_after (&facts, "urgency", "{'urgency':0}"));
    assert_false (waits_after (&facts, "urgency", "{'urgency':31}"));
    jobtap_facts_clear (&facts);
}

/* An exception while Flux starts the tasks: the epilog is due when Flux has let go of the
 * nodes. A prolog that still runs, of whatever plugin, keeps Flux from starting them.
 * 'seen' happens before the eventlog is read.
 */
static void test_starting (void **state)
{
    static const struct {
        const char *name;
        const char *context;
    } events[] = {
        { "alloc", NULL },
        { "prolog-start", "{'description':'site'}" },
        { "prolog-start", "{'description':'dws-setup'}" },
        { "prolog-finish", "{'description':'dws-setup','status':0}" },
        { "prolog-finish", "{'description':'site','status':0}" },
        { "start", NULL },
    };
    size_t count = sizeof (events) / sizeof (events[0]);

    /* The exception comes after so many events. */
    for (size_t at = 0; at <= count; at++) {
        bool due = at != 1 && at < count - 1;   // no nodes, or a prolog that runs
        json_t *log = json_array ();
        json_t *o;

        for (size_t i = 0; i <= count; i++) {
            if (i == at) {
                o = entry (100.5 + i, "exception", "{'type':'x','severity':0}");
                json_array_append_new (log, o);
            }
            if (i < at || (i < count
                           && !strcmp (events[i].name, "prolog-finish"))) {
                o = entry (101 + i, events[i].name, events[i].context);
                json_array_append_new (log, o);
            }
        }
        /* As they happen, or from some of them on, and then all in the eventlog. */
        for (size_t seen = 0; seen <= json_array_size (log); seen++) {
            struct jobtap_facts facts = { 0 };

            for (size_t i = seen; i < json_array_size (log); i++) {
                o = json_array_get (log, i);
                assert_int_equal (jobtap_facts_apply (&facts, o), 0);
            }
            if (seen > 0)
                assert_int_equal (jobtap_facts_apply_all (&facts, log), 0);
            assert_int_equal (jobtap_facts_epilog_due (&facts), due);
            if (!due)
                assert_string_equal (
                    jobtap_facts_phase (&facts, FLUX_JOB_STATE_CLEANUP),
                    "running");
            o = entry (200, "release", "{'ranks':'all','final':true}");
            assert_int_equal (jobtap_facts_apply (&facts, o), 0);
            json_decref (o);
            assert_true (jobtap_facts_epilog_due (&facts));
            jobtap_facts_clear (&facts);
        }
        json_decref (log);
    }
}

/* Tasks that are lost do not finish, but their nodes are released.
 */
static void test_lost (void **state)
{
    struct jobtap_facts facts = { .run_started = true, .exception = true };
    json_t *o = entry (1, "release", "{'ranks':'0','final':false}");

    assert_int_equal (jobtap_facts_apply (&facts, o), 0);
    json_decref (o);
    assert_false (jobtap_facts_epilog_due (&facts));
    o = entry (2, "release", "{'ranks':'all','final':true}");
    assert_int_equal (jobtap_facts_apply (&facts, o), 0);
    json_decref (o);
    assert_true (jobtap_facts_epilog_due (&facts));
    o = entry (3, "epilog-start", "{'description':'dws-rebuild'}");
    assert_int_equal (jobtap_facts_apply (&facts, o), 0);
    json_decref (o);
    assert_int_equal (jobtap_facts_rebuilds (&facts), 1);
    assert_true (jobtap_facts_epilog_due (&facts));
    o = entry (4, "epilog-finish", "{'description':'dws-rebuild','status':0}");
    assert_int_equal (jobtap_facts_apply (&facts, o), 0);
    json_decref (o);
    assert_int_equal (jobtap_facts_rebuilds (&facts), 0);
    assert_false (facts.epilog_finished);
    jobtap_facts_clear (&facts);
}

/* Each load of the plugin may begin one, whatever became of those before it. Events are
 * seen as they happen and in the eventlog, in any order.
 */
static void test_rebuilds (void **state)
{
    static const struct {
        double timestamp;
        const char *name;
        size_t open;
    } table[] = {
        { 1., "epilog-start", 1 },
        { 2., "epilog-finish", 0 },
        { 3., "epilog-start", 1 },
        { 3., "epilog-start", 1 },
        { 4., "epilog-start", 2 },
        { 1., "epilog-start", 2 },
        { 5., "epilog-finish", 1 },
        { 2., "epilog-finish", 1 },
        { 6., "epilog-finish", 0 },
    };
    struct jobtap_facts facts = { 0 };

    for (size_t i = 0; i < sizeof (table) / sizeof (table[0]); i++) {
        json_t *o = entry (table[i].timestamp, table[i].name,
                           "{'description':'dws-rebuild'}");

        assert_int_equal (jobtap_facts_apply (&facts, o), 0);
        json_decref (o);
        assert_int_equal (jobtap_facts_rebuilds (&facts), table[i].open);
    }
    jobtap_facts_clear (&facts);
}

/* What is said of the end of a job with these entries
 */
static void check_ending (json_t *entries, const char *run, const char *late)
{
    struct jobtap_ending ending;

    jobtap_ending_read (&ending, entries);
    assert_string_equal (ending.run, run);
    assert_string_equal (ending.late, late);
    json_decref (entries);
}

static void test_ending (void **state)
{
    const char *epilog = "{'description':'dws-epilog'}";

    check_ending (json_array (), "it has not started", "");
    check_ending (json_pack ("[o,o]", entry (1, "start", "{}"),
                             entry (2, "finish", "{'status':0}")), "", "");
    check_ending (json_pack ("[o,o]", entry (1, "start", "{}"),
                             entry (2, "finish", "{'status':512}")),
                  "a task ended with exit code 2", "");
    check_ending (json_pack ("[o,o,o]", entry (1, "start", "{}"),
                             entry (2, "exception",
                                    "{'type':'cancel','severity':0,'note':''}"),
                             entry (3, "finish", "{'status':9}")),
                  "cancel", "");
    check_ending (json_pack ("[o,o]", entry (1, "start", "{}"),
                             entry (2, "finish", "{'status':9}")),
                  "a task was killed by signal 9", "");
    check_ending (json_pack ("[o,o,o,o]", entry (1, "start", "{}"),
                             entry (2, "epilog-start", epilog),
                             entry (3, "exception",
                                    "{'type':'x','severity':1,'note':'y'}"),
                             entry (4, "exception",
                                    "{'type':'z','severity':0,'note':'full'}")),
                  "", "z: full");
    check_ending (json_pack ("[o]", entry (1, "exception",
                                           "{'type':'a','severity':0}")),
                  "a", "");
}

/* What other plugins have updated is still there after a reload.
 */
static void test_constraints (void **state)
{
    const char *site = "{'attributes.system.constraints':{'hostlist':['a']}}";
    const char *ours = "{'resources':[],'attributes.system.constraints':{'and':[]}}";
    const char *end = "{'description':'dws-create'}";
    json_t *log = json_array ();
    const char *host;

    assert_null (jobtap_constraints_read (log));
    json_array_append_new (log, entry (1, "jobspec-update", "{'resources':[]}"));
    json_array_append_new (log, entry (2, "dependency-remove",
                                       "{'description':'site'}"));
    json_array_append_new (log, entry (3, "jobspec-update", ours));
    json_array_append_new (log, entry (4, "dependency-remove", end));
    assert_null (jobtap_constraints_read (log));
    json_array_insert_new (log, 0, entry (0, "jobspec-update", site));
    json_array_append_new (log, entry (5, "jobspec-update", ours));
    assert_int_equal (json_unpack (jobtap_constraints_read (log), "{s:[s]}",
                                   "hostlist", &host), 0);
    assert_string_equal (host, "a");
    json_decref (log);
}

static void test_malformed (void **state)
{
    static const char *table[] = {
        "{}",
        "[]",
        "{\"name\":\"start\"}",
        "{\"timestamp\":1.0}",
        "{\"timestamp\":\"1\",\"name\":\"start\"}",
    };

    for (size_t i = 0; i < sizeof (table) / sizeof (table[0]); i++) {
        struct jobtap_facts facts = { 0 };
        struct jobtap_facts none = { 0 };
        json_t *o = json_loads (table[i], 0, NULL);

        assert_non_null (o);
        errno = 0;
        assert_int_equal (jobtap_facts_apply (&facts, o), -1);
        assert_int_equal (errno, EPROTO);
        assert_memory_equal (&facts, &none, sizeof (facts));
        json_decref (o);
    }
}

/* An update of before the tasks started is not the one that adds the time of the prolog.
 */
static void test_prolonged (void **state)
{
    static const char *update = "{'expiration':4000.5}";
    struct jobtap_facts facts = { 0 };
    json_t *events[] = {
        entry (1, "resource-update", update),
        entry (2.5, "start", NULL),
        entry (3, "resource-update", update),
    };

    for (size_t i = 0; i < 3; i++) {
        assert_int_equal (jobtap_facts_apply (&facts, events[i]), 0);
        json_decref (events[i]);
        assert_int_equal (facts.prolonged, i == 2);
    }
    assert_true (facts.t_start == 2.5);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_course),
        cmocka_unit_test (test_any_order),
        cmocka_unit_test (test_array),
        cmocka_unit_test (test_exception),
        cmocka_unit_test (test_others_come_first),
        cmocka_unit_test (test_killed),
        cmocka_unit_test (test_waits),
        cmocka_unit_test (test_starting),
        cmocka_unit_test (test_lost),
        cmocka_unit_test (test_rebuilds),
        cmocka_unit_test (test_ending),
        cmocka_unit_test (test_constraints),
        cmocka_unit_test (test_prolonged),
        cmocka_unit_test (test_malformed),
    };

    cmocka_set_message_output (CM_OUTPUT_TAP);
    return cmocka_run_group_tests (tests, NULL, NULL);
}
