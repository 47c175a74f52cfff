/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of reconcile.c: single decisions while all goes well or is given
 * up, their texts and times; faults.c has those about faults that are mended.
 * That they add up is shown by explore.c.
 */

#include "libdws/directive/command.h"
#include "facts.h"

/* The table of the design, row by row.
 */
static const struct {
    enum dws_phase phase;
    enum dws_state state;       // NONE: there is no workflow
    bool ready;
    const char *actions;
} course[] = {
    { DWS_PHASE_DEPEND, DWS_STATE_NONE, false, "create" },
    { DWS_PHASE_DEPEND, DWS_STATE_PROPOSAL, false, "" },
    { DWS_PHASE_DEPEND, DWS_STATE_PROPOSAL, true, "save resource-update" },
    { DWS_PHASE_PENDING, DWS_STATE_NONE, false, "create" },
    { DWS_PHASE_PENDING, DWS_STATE_PROPOSAL, true, "" },
    { DWS_PHASE_PROLOG, DWS_STATE_NONE, false, "create" },
    { DWS_PHASE_PROLOG, DWS_STATE_PROPOSAL, false, "" },
    { DWS_PHASE_PROLOG, DWS_STATE_PROPOSAL, true, "servers computes" },
    { DWS_PHASE_PROLOG, DWS_STATE_SETUP, false, "" },
    { DWS_PHASE_PROLOG, DWS_STATE_SETUP, true, "save desire" },
    { DWS_PHASE_PROLOG, DWS_STATE_DATAIN, true, "save desire" },
    { DWS_PHASE_PROLOG, DWS_STATE_PRERUN, false, "" },
    { DWS_PHASE_PROLOG, DWS_STATE_PRERUN, true, "save prolog-remove" },
    { DWS_PHASE_RUNNING, DWS_STATE_PRERUN, true, "" },
    { DWS_PHASE_RUNNING, DWS_STATE_NONE, true, "" },
    { DWS_PHASE_EPILOG, DWS_STATE_PRERUN, true, "save desire" },
    { DWS_PHASE_EPILOG, DWS_STATE_POSTRUN, false, "" },
    { DWS_PHASE_EPILOG, DWS_STATE_POSTRUN, true, "save desire" },
    { DWS_PHASE_EPILOG, DWS_STATE_DATAOUT, true, "save teardown" },
    { DWS_PHASE_EPILOG, DWS_STATE_TEARDOWN, false, "finalizer" },
    { DWS_PHASE_EPILOG, DWS_STATE_TEARDOWN, true, "finalizer delete save" },
    { DWS_PHASE_EPILOG, DWS_STATE_NONE, false, "epilog-remove" },
    { DWS_PHASE_GONE, DWS_STATE_NONE, false, "" },
    { DWS_PHASE_GONE, DWS_STATE_PRERUN, true, "save teardown" },
    { DWS_PHASE_GONE, DWS_STATE_TEARDOWN, true, "finalizer delete" },
};

static void test_course (void **state)
{
    for (size_t i = 0; i < sizeof (course) / sizeof (course[0]); i++) {
        struct facts f = facts (course[i].phase, course[i].state,
                                course[i].ready);
        if (course[i].state == DWS_STATE_NONE)
            f.wf.name = NULL;
        f.job.recalled = true;
        assert_string_equal (decide (&f, 1001.), course[i].actions);
        assert_non_null (f.out.reason);
        for (size_t j = 0; j < f.out.count; j++) {
            if (f.out.list[j].kind == DWS_ACT_DESIRE)
                assert_int_equal (f.out.list[j].state, course[i].state + 1);
        }
    }
}

static void test_cancelled (void **state)
{
    for (int s = DWS_STATE_PROPOSAL; s < DWS_STATE_TEARDOWN; s++) {
        for (int ready = 0; ready < 2; ready++) {
            struct facts f = facts (DWS_PHASE_EPILOG, s, ready);

            f.job.run_started = false;
            assert_string_equal (decide (&f, 1001.), "save teardown");
            f.job.busy = DWS_BUSY (DWS_ACT_TEARDOWN);
            f.job.saved = DWS_SAVED_LAST;
            assert_string_equal (decide (&f, 1001.), "");
            f.wf.name = NULL;
            assert_string_equal (decide (&f, 1001.), "epilog-remove");
        }
    }
}

/* A job that has run, and gets an exception in its epilog.
 */
static void test_skipped (void **state)
{
    struct dws_directives *directives
        = D ("['#DW copy_out source=$DW_JOB_a/x destination=/lus/x',"
             " '#DW copy_out source=$DW_JOB_a/y destination=/lus/y']");

    for (int s = DWS_STATE_PRERUN; s < DWS_STATE_TEARDOWN; s++) {
        struct facts f = facts (DWS_PHASE_EPILOG, s, false);

        f.job.exception = true;
        f.job.teardown = true;
        f.job.directives = directives;
        assert_string_equal (decide (&f, 1001.), "save teardown");
        f.job.commands = DWS_COMMAND_COPY_OUT;
        assert_string_equal (decide (&f, 1001.), "raise save teardown");
        assert_string_equal (f.out.list[0].type, "dws-epilog");
        assert_int_equal (f.out.list[0].severity, 1);
        assert_non_null (strstr (f.out.list[0].text, "not copied out: "
                                 "$DW_JOB_a/x -> /lus/x, $DW_JOB_a/y -> /lus/y"));
        f.job.raised = true;
        assert_string_equal (decide (&f, 1001.), "save teardown");
        f.job.raised = false;
        f.wf.ready = true;
        assert_string_equal (decide (&f, 1001.), s == DWS_STATE_DATAOUT
                             ? "save teardown" : "raise save teardown");
    }
    dws_directives_destroy (directives);
}

/* The old state's readiness says nothing about the new desired state.
 */
static void test_not_taken_up (void **state)
{
    struct facts f = facts (DWS_PHASE_PROLOG, DWS_STATE_DATAIN, true);

    f.wf.desired = DWS_STATE_PRERUN;
    assert_string_equal (decide (&f, 1001.), "");
    f.wf.status = DWS_STATUS_ERROR;
    assert_string_equal (decide (&f, 1001.), "");
}

static void test_steps_of_setup (void **state)
{
    struct facts f = facts (DWS_PHASE_PROLOG, DWS_STATE_PROPOSAL, true);

    f.wf.breakdown_count = 1;
    f.job.hosts = NULL;
    assert_string_equal (decide (&f, 1001.), "breakdowns hosts");
    f.job.busy = DWS_BUSY (DWS_ACT_HOSTS);
    assert_string_equal (decide (&f, 1001.), "breakdowns");
    f.job.busy = 0;
    f.job.hosts = "node0";
    f.wf.breakdowns = no_breakdowns ();
    f.wf.computes = NULL;
    assert_string_equal (decide (&f, 1001.), "");
    f.wf.computes = "fluxjob-1";
    f.wf.servers_written = true;
    assert_string_equal (decide (&f, 1001.), "computes");
    f.wf.computes_written = true;
    assert_string_equal (decide (&f, 1001.), "desire");
    assert_int_equal (f.out.list[0].state, DWS_STATE_SETUP);
}

/* A job in depend neither uses nor keeps what was made for another one.
 */
static void test_anothers (void **state)
{
    struct facts f = facts (DWS_PHASE_DEPEND, DWS_STATE_PROPOSAL, true);

    f.wf.userid = 1;
    assert_string_equal (decide (&f, 1001.), "teardown");
    f.wf.made = true;
    assert_string_equal (decide (&f, 1001.), "save resource-update");
    f.wf.made = false;
    f.wf.userid = 0;
    f.wf.directives_hash = 1;
    assert_string_equal (decide (&f, 1001.), "teardown");
    f.job.busy = DWS_BUSY (DWS_ACT_CREATE);
    assert_string_equal (decide (&f, 1001.), "");
    f.job.busy = 0;
    f.wf.destroys = true;
    assert_string_equal (decide (&f, 1001.), "delete");
    f.wf.deleting = true;
    assert_string_equal (decide (&f, 1001.), "finalizer");
    f.wf.deleting = false;
    f.wf.status = DWS_STATUS_ERROR;
    f.wf.ready = false;
    assert_string_equal (decide (&f, 1001.), "delete");
    f.wf.desired = f.wf.state = DWS_STATE_TEARDOWN;
    f.wf.status = DWS_STATUS_COMPLETED;
    f.wf.ready = true;
    assert_string_equal (decide (&f, 1001.), "finalizer delete");
    /* by then it is its own */
    f = facts (DWS_PHASE_PENDING, DWS_STATE_PROPOSAL, true);
    f.wf.userid = 1;
    assert_string_equal (decide (&f, 1001.), "");
}

static void test_record_before_release (void **state)
{
    struct facts f = facts (DWS_PHASE_EPILOG, DWS_STATE_TEARDOWN, true);

    f.wf.deleting = true;
    f.wf.finalizer = false;
    assert_string_equal (decide (&f, 1001.), "save");
    f.job.saved = f.out.list[0].bit;
    f.job.busy = DWS_BUSY (DWS_ACT_SAVE);
    assert_string_equal (decide (&f, 1001.), "");
    f.job.busy = 0;
    assert_string_equal (decide (&f, 1001.), "epilog-remove");
}

static void test_refusal (void **state)
{
    struct facts f = facts (DWS_PHASE_DEPEND, DWS_STATE_NONE, false);

    f.wf.name = NULL;
    f.job.refusal = "no such directive";
    assert_string_equal (decide (&f, 1001.), "reject");
    assert_string_equal (f.out.list[0].text, "no such directive");
    f.job.exception = true;
    assert_string_equal (decide (&f, 1001.), "");
    f.job.exception = false;
    f.job.phase = DWS_PHASE_PROLOG;
    assert_string_equal (decide (&f, 1001.), "raise");
    check_raise (&f, "dws-setup", "no such directive");
}

/* A job that waits for what others have tries again whenever it is asked, and says
 * what that is.
 */
static void test_awaits (void **state)
{
    struct facts f = facts (DWS_PHASE_PROLOG, DWS_STATE_PROPOSAL, true);

    f.job.saved = ~0U;
    f.job.awaits = "exclusive 'k' on rabbit0, which job f1 has";
    f.wf.breakdowns = no_breakdowns ();
    f.wf.computes_written = true;
    assert_string_equal (decide (&f, 1001.), "servers");
    assert_string_equal (f.out.reason, f.job.awaits);
    assert_string_equal (decide (&f, 90000.), "servers");
    f.job.exception = true;
    assert_string_equal (decide (&f, 1001.), "");
    assert_string_equal (f.out.reason,
                         "the job to end after an exception");
}

static void test_error (void **state)
{
    static const struct {
        enum dws_phase phase;
        enum dws_state state;
        const char *actions;
        const char *type;
    } tab[] = {
        { DWS_PHASE_DEPEND, DWS_STATE_PROPOSAL, "reject", "dws-create" },
        { DWS_PHASE_PENDING, DWS_STATE_PROPOSAL, "raise", "dws-create" },
        { DWS_PHASE_PROLOG, DWS_STATE_SETUP, "raise", "dws-setup" },
        { DWS_PHASE_PROLOG, DWS_STATE_DATAIN, "raise", "dws-setup" },
        { DWS_PHASE_PROLOG, DWS_STATE_PRERUN, "raise", "dws-setup" },
        { DWS_PHASE_RUNNING, DWS_STATE_PRERUN, "raise", "dws-run" },
        { DWS_PHASE_EPILOG, DWS_STATE_POSTRUN, "raise save teardown",
          "dws-epilog" },
        { DWS_PHASE_EPILOG, DWS_STATE_DATAOUT, "raise save teardown",
          "dws-epilog" },
    };

    for (size_t i = 0; i < sizeof (tab) / sizeof (tab[0]); i++) {
        struct facts f = facts (tab[i].phase, tab[i].state, false);
        f.wf.status = DWS_STATUS_ERROR;
        assert_string_equal (decide (&f, 1001.), tab[i].actions);
        check_raise (&f, tab[i].type, "the driver's words");
        f.job.raised = true;
        f.job.exception = true;
        f.job.saved = DWS_SAVED_LAST;
        assert_string_equal (decide (&f, 1001.),
                             tab[i].phase == DWS_PHASE_EPILOG ? "teardown"
                                                              : "");
    }
}

/* A text that does not fit is cut between characters.
 */
static void test_long_message (void **state)
{
    struct facts f = facts (DWS_PHASE_PROLOG, DWS_STATE_SETUP, false);
    char message[2000];

    for (size_t i = 0; i < sizeof (message) - 2; i += 2)
        memcpy (message + i, "\xc3\xa9", 3);
    f.wf.message = message;
    f.wf.status = DWS_STATUS_ERROR;
    assert_string_equal (decide (&f, 1001.), "raise");
    json_t *o = json_string (f.out.list[0].text);
    assert_non_null (o);
    json_decref (o);
}

/* state, when its deadline is, and what then happens
 */
static void test_timeouts (void **state)
{
    static const struct {
        enum dws_phase phase;
        enum dws_state state;
        double deadline;
        const char *actions;
        const char *text;
    } tab[] = {
        { DWS_PHASE_PROLOG, DWS_STATE_SETUP, 1020., "raise",
          "creating file systems took longer than 20s" },
        { DWS_PHASE_PROLOG, DWS_STATE_PRERUN, 1030., "raise",
          "mounting file systems took longer than 30s" },
        { DWS_PHASE_EPILOG, DWS_STATE_POSTRUN, 1040.,
          "raise drain save teardown",
          "unmounting took longer than 40s, skipping data movement" },
        { DWS_PHASE_EPILOG, DWS_STATE_DATAOUT, 1050., "raise save teardown",
          "data movement took longer than 50s, skipping it" },
    };
    struct facts f;

    for (size_t i = 0; i < sizeof (tab) / sizeof (tab[0]); i++) {
        f = facts (tab[i].phase, tab[i].state, false);
        f.job.t_epilog = 1000.;
        f.wf.computes = NULL;       // for which there is another time
        f.wf.lag_state = f.wf.state;
        f.wf.lagging_count = 1;
        assert_string_equal (decide (&f, 1001.), "");
        assert_true (f.out.wake == tab[i].deadline);
        assert_string_equal (decide (&f, tab[i].deadline), tab[i].actions);
        check_raise (&f, "dws-timeout", tab[i].text);
        assert_null (strstr (f.out.list[0].text, "not ready"));
        assert_true (f.out.wake == 0.);
        f.wf.t_desired = 0.;
        f.job.t_epilog = 0.;
        assert_string_equal (decide (&f, 1E9), "");
    }
    f = facts (DWS_PHASE_EPILOG, DWS_STATE_DATAOUT, false);
    f.job.t_epilog = 1000.;     // PostRun has had its part of the time
    f.wf.t_desired = 1035.;
    assert_string_equal (decide (&f, 1050.), "raise save teardown");
}

/* DWS's own words are told with it, if they are about that state.
 */
static void test_timeout_words (void **state)
{
    struct facts f = facts (DWS_PHASE_PROLOG, DWS_STATE_SETUP, false);

    f.wf.message = "allocation set not ready";
    assert_string_equal (decide (&f, 1020.), "raise");
    check_raise (&f, "dws-timeout", "longer than 20s: allocation set not ready");
    f.wf.state = DWS_STATE_PROPOSAL;
    assert_string_equal (decide (&f, 1020.), "raise");
    check_raise (&f, "dws-timeout", "longer than 20s");
    assert_null (strstr (f.out.list[0].text, "not ready"));
}

/* The prolog may take 300 s. Data that is staged in is looked at from 270 s on, and
 * for as long as it gets on.
 */
static void test_prolog_limit (void **state)
{
    struct facts f = facts (DWS_PHASE_PROLOG, DWS_STATE_DATAIN, false);

    f.job.t_prolog = 900.;
    assert_string_equal (decide (&f, 1169.), "");
    assert_true (f.out.wake == 1170.);
    assert_string_equal (decide (&f, 1170.), "progress");
    dws_workflow_set_progress (&f.wf, 20, 0., 1171.);
    assert_string_equal (decide (&f, 1200.), "");
    assert_string_equal (decide (&f, 1201.), "progress");
    dws_workflow_set_progress (&f.wf, 21, 0., 1202.);
    assert_string_equal (decide (&f, 1203.), "");
    assert_string_equal (f.out.reason, "data that is on the move still");
    /* also by bytes, which are less than one percent */
    dws_workflow_set_progress (&f.wf, 21, 1e9, 1233.);
    assert_string_equal (decide (&f, 1234.), "");
    dws_workflow_set_progress (&f.wf, 21, 1e9, 1264.);
    assert_string_equal (decide (&f, 1265.), "raise");
    check_raise (&f, "dws-timeout", "does not get on: the driver's words");
    /* it has arrived */
    f.wf.ready = true;
    assert_string_equal (decide (&f, 1265.), "save desire");
    /* mounting has 300 s more, from when it begins */
    f = facts (DWS_PHASE_PROLOG, DWS_STATE_PRERUN, false);
    f.policy = &(struct dws_policy) { .prolog_timeout = 300.,
                                      .prerun_timeout = -1. };
    f.job.t_prolog = 600.;
    assert_string_equal (decide (&f, 1299.), "repair");
    assert_string_equal (decide (&f, 1300.), "raise");
    check_raise (&f, "dws-timeout", "not mounted within 300s: the job waited for"
                 " nodes to mount them: the driver's words");
    f.wf.ready = true;
    assert_string_equal (decide (&f, 1300.), "save prolog-remove");
    /* but not if it began in time */
    f.wf.ready = false;
    f.job.t_prolog = 900.;
    assert_string_equal (decide (&f, 1200.), "raise");
    /* NNF tells the progress every 5 s */
    f = facts (DWS_PHASE_PROLOG, DWS_STATE_DATAIN, false);
    f.policy = &(struct dws_policy) { .prolog_timeout = 20. };
    f.job.t_prolog = 1000.;
    assert_string_equal (decide (&f, 1010.), "progress");
    dws_workflow_set_progress (&f.wf, 20, 0., 1011.);
    assert_string_equal (decide (&f, 1020.), "");
    assert_string_equal (decide (&f, 1021.), "progress");
    dws_workflow_set_progress (&f.wf, 20, 0., 1022.);
    assert_string_equal (decide (&f, 1022.), "raise");
    check_raise (&f, "dws-timeout", "does not get on");
    /* in any other state */
    f = facts (DWS_PHASE_PROLOG, DWS_STATE_PROPOSAL, true);
    f.job.t_prolog = 900.;
    assert_string_equal (decide (&f, 1200.), "raise");
    check_raise (&f, "dws-timeout", "the job waited for rabbits to be given to it");
    f.job.awaits = "rabbit0, which job f1 has";
    assert_string_equal (decide (&f, 1200.), "raise");
    check_raise (&f, "dws-timeout", "the job waited for rabbit0, which job f1 has");
    f.job.awaits = NULL;
    f.wf.desired = DWS_STATE_SETUP;
    assert_string_equal (decide (&f, 1200.), "raise");
    check_raise (&f, "dws-timeout", "the job waited for DWS to begin");
    f.wf.name = NULL;
    assert_string_equal (decide (&f, 1200.), "raise");
    check_raise (&f, "dws-timeout", "no workflow within 300s: the job waited for"
                 " one to be made");
}

static void test_transient (void **state)
{
    struct facts f = facts (DWS_PHASE_PROLOG, DWS_STATE_DATAIN, false);

    f.wf.status = DWS_STATUS_TRANSIENT;
    f.wf.t_transient = 1005.;
    assert_string_equal (decide (&f, 1006.), "");
    assert_true (f.out.wake == 1015.);
    assert_string_equal (f.out.reason, "the driver's words");
    assert_string_equal (decide (&f, 1015.), "raise");
    check_raise (&f, "dws-setup", "TransientCondition");
    /* The state's own clock goes on. */
    f = facts (DWS_PHASE_PROLOG, DWS_STATE_SETUP, false);
    f.wf.status = DWS_STATUS_TRANSIENT;
    f.wf.t_transient = 1019.;
    assert_string_equal (decide (&f, 1020.), "raise");
    check_raise (&f, "dws-timeout", "file systems");
}

/* Storage that a running job had, and that does not come back.
 */
static void test_transient_run (void **state)
{
    struct facts f = facts (DWS_PHASE_RUNNING, DWS_STATE_PRERUN, false);
    struct dws_policy own = *f.policy;

    f.policy = &own;
    own.prerun_timeout = 1.;            // is that of the prolog
    assert_string_equal (decide (&f, 9999.), "");
    f.wf.status = DWS_STATUS_TRANSIENT;
    f.wf.t_transient = 1005.;
    assert_string_equal (decide (&f, 1006.), "");
    assert_true (f.out.wake == 1015.);
    assert_string_equal (f.out.reason, "the driver's words");
    assert_string_equal (decide (&f, 1015.), "raise");
    check_raise (&f, "dws-run", "TransientCondition for longer than 10s");
    f.job.raised = true;
    assert_string_equal (decide (&f, 1016.), "");
    f.job.raised = false;
    own.tc_timeout = -1.;
    assert_string_equal (decide (&f, 9999.), "");
}

static void test_orphan_grace (void **state)
{
    struct facts f = facts (DWS_PHASE_GONE, DWS_STATE_PROPOSAL, true);

    f.job.directives = NULL;
    f.job.t_gone = 1000.;
    assert_string_equal (decide (&f, 1001.), "recall");
    f.job.recalled = true;
    assert_string_equal (decide (&f, 1001.), "");
    assert_true (f.out.wake == 1060.);
    assert_string_equal (decide (&f, 1060.), "teardown");
}

static void test_invalid (void **state)
{
    struct facts f = facts (DWS_PHASE_DEPEND, DWS_STATE_NONE, false);

    errno = 0;
    assert_int_equal (dws_reconcile (NULL, NULL, &policy, 0., &f.out), -1);
    assert_int_equal (errno, EINVAL);
    assert_int_equal (dws_reconcile (&f.job, NULL, NULL, 0., &f.out), -1);
    assert_int_equal (dws_reconcile (&f.job, NULL, &policy, 0., NULL), -1);
    for (int i = 0; i < DWS_ACT_COUNT; i++)
        assert_string_not_equal (dws_action_name (i), "");
}

/* Teardown deletes the data movements: they are recorded before it.
 */
static void test_movements (void **state)
{
    struct facts f = facts (DWS_PHASE_EPILOG, DWS_STATE_DATAOUT, true);
    struct dws_policy saving = policy;

    saving.save_datamovements = 5;
    assert_int_equal (dws_reconcile (&f.job, &f.wf, &saving, 1., &f.out), 0);
    assert_int_equal (f.out.count, 1);
    assert_int_equal (f.out.list[0].kind, DWS_ACT_MOVEMENTS);
    f.wf.movements = true;
    assert_int_equal (dws_reconcile (&f.job, &f.wf, &saving, 1., &f.out), 0);
    assert_int_equal (f.out.list[f.out.count - 1].kind, DWS_ACT_TEARDOWN);
    f = facts (DWS_PHASE_EPILOG, DWS_STATE_SETUP, true);
    f.job.run_started = false;
    assert_int_equal (dws_reconcile (&f.job, &f.wf, &saving, 1., &f.out), 0);
    assert_int_equal (f.out.list[f.out.count - 1].kind, DWS_ACT_TEARDOWN);
}

/* A job that has not run does not destroy what it was to destroy.
 */
static void test_destroy (void **state)
{
    struct facts f = facts (DWS_PHASE_EPILOG, DWS_STATE_PROPOSAL, true);

    f.wf.destroys = true;
    f.job.run_started = false;
    assert_int_equal (dws_reconcile (&f.job, &f.wf, &policy, 1., &f.out), 0);
    assert_int_equal (f.out.count, 1);
    assert_int_equal (f.out.list[0].kind, DWS_ACT_DELETE);
    f = facts (DWS_PHASE_EPILOG, DWS_STATE_DATAOUT, true);
    f.wf.destroys = true;
    assert_int_equal (dws_reconcile (&f.job, &f.wf, &policy, 1., &f.out), 0);
    assert_int_equal (f.out.list[f.out.count - 1].kind, DWS_ACT_TEARDOWN);
    /* one that is in use is left to the controllers when that was said */
    f = facts (DWS_PHASE_EPILOG, DWS_STATE_TEARDOWN, false);
    f.wf.destroys = true;
    f.wf.status = DWS_STATUS_ERROR;
    assert_int_equal (dws_reconcile (&f.job, &f.wf, &policy, 1., &f.out), 0);
    assert_int_equal (f.out.list[f.out.count - 1].kind, DWS_ACT_RAISE);
    f.job.raised = true;
    assert_int_equal (dws_reconcile (&f.job, &f.wf, &policy, 1., &f.out), 0);
    assert_int_equal (f.out.list[f.out.count - 1].kind,
                      DWS_ACT_EPILOG_REMOVE);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_course),
        cmocka_unit_test (test_cancelled),
        cmocka_unit_test (test_skipped),
        cmocka_unit_test (test_not_taken_up),
        cmocka_unit_test (test_steps_of_setup),
        cmocka_unit_test (test_anothers),
        cmocka_unit_test (test_record_before_release),
        cmocka_unit_test (test_refusal),
        cmocka_unit_test (test_awaits),
        cmocka_unit_test (test_error),
        cmocka_unit_test (test_long_message),
        cmocka_unit_test (test_timeouts),
        cmocka_unit_test (test_timeout_words),
        cmocka_unit_test (test_prolog_limit),
        cmocka_unit_test (test_transient),
        cmocka_unit_test (test_transient_run),
        cmocka_unit_test (test_orphan_grace),
        cmocka_unit_test (test_movements),
        cmocka_unit_test (test_destroy),
        cmocka_unit_test (test_invalid),
    };

    return cmocka_run_group_tests_name ("reconcile", tests, NULL, NULL);
}
