/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of reconcile.c: single decisions, their texts and times. That
 * they add up is shown by explore.c.
 */

#include "libdws/decide/reconcile.h"
#include "libdws/test/util.h"

static const struct dws_policy policy = {
    .tc_timeout = 10.,
    .setup_timeout = 20.,
    .prerun_timeout = 30.,
    .postrun_timeout = 40.,
    .teardown_after = 50.,
    .datamovement_grace = -1.,
    .orphan_grace = 60.,
};

/* A job and a workflow in some state, which a test then changes.
 */
struct facts {
    struct dws_job job;
    struct dws_workflow wf;
    struct dws_actions out;
    const struct dws_policy *policy;
};

static struct facts facts (enum dws_phase phase, enum dws_state state,
                           bool ready)
{
    struct facts f;

    memset (&f, 0, sizeof (f));
    f.job.id = 1;
    f.job.phase = phase;
    f.job.directives = "[]";
    f.job.hosts = "node0";
    f.job.run_started = phase >= DWS_PHASE_RUNNING;
    f.job.t_gone = phase == DWS_PHASE_GONE ? 1. : 0.;
    f.wf.name = "fluxjob-1";
    f.wf.desired = state;
    f.wf.state = state;
    f.wf.ready = ready;
    f.wf.status = ready ? DWS_STATUS_COMPLETED : DWS_STATUS_DRIVERWAIT;
    f.wf.message = "the driver's words";
    f.wf.computes = "fluxjob-1";
    f.wf.finalizer = true;
    f.wf.t_desired = 1000.;
    f.policy = &policy;
    return f;
}

/* The names of the actions, joined by blanks.
 */
static const char *decide (struct facts *f, double now)
{
    static char buf[256];

    assert_int_equal (dws_reconcile (&f->job, f->wf.name ? &f->wf : NULL,
                                     f->policy, now, &f->out), 0);
    buf[0] = '\0';
    for (size_t i = 0; i < f->out.count; i++) {
        if (i > 0)
            strcat (buf, " ");
        strcat (buf, dws_action_name (f->out.list[i].kind));
    }
    return buf;
}

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
    }
}

static void test_cancelled (void **state)
{
    for (int s = DWS_STATE_PROPOSAL; s < DWS_STATE_TEARDOWN; s++) {
        struct facts f = facts (DWS_PHASE_EPILOG, s, false);
        f.job.run_started = false;
        assert_string_equal (decide (&f, 1001.), "save teardown");
        f.job.busy = DWS_BUSY (DWS_ACT_TEARDOWN);
        f.job.saved = DWS_SAVED_LAST;
        assert_string_equal (decide (&f, 1001.), "");
    }
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
    f.wf.breakdowns = "[]";
    f.wf.computes = NULL;
    assert_string_equal (decide (&f, 1001.), "");
    f.wf.computes = "fluxjob-1";
    f.wf.servers_written = true;
    assert_string_equal (decide (&f, 1001.), "computes");
    f.wf.computes_written = true;
    assert_string_equal (decide (&f, 1001.), "desire");
    assert_int_equal (f.out.list[0].state, DWS_STATE_SETUP);
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

static void check_raise (struct facts *f, const char *type, const char *text)
{
    const struct dws_action *a = &f->out.list[0];

    assert_true (f->out.count >= 1);
    assert_int_equal (a->severity, 0);
    assert_string_equal (a->type, type);
    assert_non_null (strstr (a->text, text));
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
    } tab[] = {
        { DWS_PHASE_PROLOG, DWS_STATE_SETUP, 1020., "raise" },
        { DWS_PHASE_PROLOG, DWS_STATE_PRERUN, 1030., "raise" },
        { DWS_PHASE_EPILOG, DWS_STATE_POSTRUN, 1040.,
          "raise drain save teardown" },
        { DWS_PHASE_EPILOG, DWS_STATE_DATAOUT, 1050., "raise save teardown" },
    };

    for (size_t i = 0; i < sizeof (tab) / sizeof (tab[0]); i++) {
        struct facts f = facts (tab[i].phase, tab[i].state, false);
        f.job.t_epilog = 1000.;
        f.wf.computes = NULL;       // for which there is another time
        f.wf.lag_state = f.wf.state;
        f.wf.lagging_count = 1;
        assert_string_equal (decide (&f, 1001.), "");
        assert_true (f.out.wake == tab[i].deadline);
        assert_string_equal (decide (&f, tab[i].deadline), tab[i].actions);
        check_raise (&f, "dws-timeout", "took longer than");
        assert_null (strstr (f.out.list[0].text, "not ready"));
        assert_true (f.out.wake == 0.);
        f.wf.t_desired = 0.;
        f.job.t_epilog = 0.;
        assert_string_equal (decide (&f, 1E9), "");
    }
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

/* The limit is 1050: from then on every 10 s, and until 1150 at most.
 */
static void test_datamovement_grace (void **state)
{
    struct facts f = facts (DWS_PHASE_EPILOG, DWS_STATE_DATAOUT, false);
    struct dws_policy patient = policy;

    patient.datamovement_grace = 100.;
    f.policy = &patient;
    f.job.t_epilog = 1000.;
    assert_string_equal (decide (&f, 1049.), "");
    assert_string_equal (decide (&f, 1050.), "progress");
    assert_true (f.out.wake == 1150.);
    dws_workflow_set_progress (&f.wf, 20, 1051.);
    assert_string_equal (decide (&f, 1052.), "");
    assert_string_equal (f.out.reason, "data that is on the move still");
    assert_true (f.out.wake == 1061.);
    assert_string_equal (decide (&f, 1061.), "progress");
    dws_workflow_set_progress (&f.wf, 21, 1061.);
    assert_string_equal (decide (&f, 1062.), "");
    f.wf.status = DWS_STATUS_TRANSIENT;
    f.wf.t_transient = 1040.;
    assert_string_equal (decide (&f, 1062.), "raise save teardown");
    check_raise (&f, "dws-timeout", "data movement took longer than");
    f.wf.status = DWS_STATUS_DRIVERWAIT;
    assert_string_equal (decide (&f, 1150.), "raise save teardown");
    check_raise (&f, "dws-timeout", "data movement took longer than");
    /* no further than it was */
    dws_workflow_set_progress (&f.wf, 21, 1072.);
    assert_string_equal (decide (&f, 1073.), "raise save teardown");
    /* nothing is on its way */
    f.wf.t_progress = 0.;
    dws_workflow_set_progress (&f.wf, -1, 1072.);
    assert_string_equal (decide (&f, 1073.), "raise save teardown");
}

/* Data that the job itself has set moving is waited for in PostRun.
 */
static void test_grace_in_postrun (void **state)
{
    struct facts f = facts (DWS_PHASE_EPILOG, DWS_STATE_POSTRUN, false);
    struct dws_policy patient = policy;

    patient.datamovement_grace = 100.;
    f.policy = &patient;
    f.job.t_epilog = 1000.;
    assert_string_equal (decide (&f, 1040.), "progress");
    dws_workflow_set_progress (&f.wf, 20, 1041.);
    assert_string_equal (decide (&f, 1042.), "");
    dws_workflow_set_progress (&f.wf, 20, 1051.);
    assert_string_equal (decide (&f, 1052.), "mounts");
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

/* The mounts that are left are looked for before unmounting is given up.
 */
static void test_unmount_timeout (void **state)
{
    struct facts f = facts (DWS_PHASE_EPILOG, DWS_STATE_POSTRUN, false);

    assert_string_equal (decide (&f, 1040.), "mounts");
    f.wf.lag_state = DWS_STATE_POSTRUN;
    assert_string_equal (decide (&f, 1040.), "raise save teardown");
}

static void test_failure_tolerance (void **state)
{
    static const enum dws_state states[] = {
        DWS_STATE_SETUP, DWS_STATE_PRERUN
    };

    for (size_t i = 0; i < 2; i++) {
        struct facts f = facts (DWS_PHASE_PROLOG, states[i], false);
        f.job.failure_tolerance = 2;
        f.wf.computes = NULL;       // which is not what keeps it waiting
        assert_string_equal (decide (&f, 1030.),
                             i == 0 ? "allocations" : "mounts");
        f.wf.lag_state = states[i];
        f.wf.lagging = "node[0-1]";
        f.wf.lagging_count = 2;
        assert_string_equal (decide (&f, 1030.), "notify");
        f.wf.told = true;
        assert_string_equal (decide (&f, 1030.), "drain exclude");
        f.wf.drained = true;
        assert_string_equal (decide (&f, 1030.), "exclude");
        f.wf.excluded = true;
        assert_string_equal (decide (&f, 1030.), "force-ready");
        f.wf.force_ready = true;
        assert_string_equal (decide (&f, 1030.), "");
        f.wf.force_ready = false;
        f.wf.lagging_count = 3;
        assert_string_equal (decide (&f, 1030.), "raise");
        f.wf.lagging_count = 0;
        assert_string_equal (decide (&f, 1030.), "raise");
        /* A file system that spans rabbits needs all of them. */
        f.wf.lagging_count = 2;
        f.wf.shared = true;
        assert_string_equal (decide (&f, 1030.),
                             i == 0 ? "raise" : "force-ready");
    }
}

/* A state may get ready because nodes were left out of Computes, before it was
 * told to.
 */
static void test_ready_without_nodes (void **state)
{
    struct facts f = facts (DWS_PHASE_PROLOG, DWS_STATE_PRERUN, true);

    f.job.failure_tolerance = 1;
    f.wf.lag_state = DWS_STATE_PRERUN;
    f.wf.lagging = "node0";
    f.wf.lagging_count = 1;
    assert_string_equal (decide (&f, 1030.), "save prolog-remove");
    f.job.busy = DWS_BUSY (DWS_ACT_EXCLUDE);
    assert_string_equal (decide (&f, 1030.), "");
    f.job.busy = 0;
    f.wf.excluded = true;
    assert_string_equal (decide (&f, 1030.), "save prolog-remove");

    f = facts (DWS_PHASE_PROLOG, DWS_STATE_SETUP, true);
    f.wf.excluded = true;
    f.wf.lag_state = DWS_STATE_SETUP;
    f.wf.lagging = "node0";
    f.wf.lagging_count = 1;
    assert_string_equal (decide (&f, 1030.), "save desire");
}

/* Nodes of a rabbit that is down when storage is to be made are left out before
 * anything is written for it.
 */
static void test_down (void **state)
{
    struct facts f = facts (DWS_PHASE_PROLOG, DWS_STATE_PROPOSAL, true);

    f.wf.servers_written = false;
    f.wf.computes_written = true;
    assert_string_equal (decide (&f, 1030.), "servers");
    f.wf.lag_state = DWS_STATE_PROPOSAL;
    f.wf.lagging = "node0";
    f.wf.lagging_count = 1;
    assert_string_equal (decide (&f, 1030.), "notify");
    f.wf.told = true;
    assert_string_equal (decide (&f, 1030.), "exclude");
    f.job.busy = DWS_BUSY (DWS_ACT_EXCLUDE);
    assert_string_equal (decide (&f, 1030.), "");
    f.job.busy = 0;
    f.wf.excluded = true;
    assert_string_equal (decide (&f, 1030.), "servers");
    f.wf.servers_written = true;
    assert_string_equal (decide (&f, 1030.), "desire");
}

/* A mount that does not get done is the usual transient condition in PreRun.
 */
static void test_tolerant_transient (void **state)
{
    struct facts f = facts (DWS_PHASE_PROLOG, DWS_STATE_PRERUN, false);

    f.job.failure_tolerance = 1;
    f.wf.status = DWS_STATUS_TRANSIENT;
    f.wf.t_transient = 1000.;
    assert_string_equal (decide (&f, 1009.), "");
    assert_string_equal (decide (&f, 1010.), "mounts");
}

static void test_abandoned (void **state)
{
    struct facts f = facts (DWS_PHASE_EPILOG, DWS_STATE_POSTRUN, false);

    f.job.abandoned = true;
    f.job.exception = true;
    f.job.saved = DWS_SAVED_LAST;
    assert_string_equal (decide (&f, 1001.), "mounts allocations teardown");
    f.job.busy = DWS_BUSY (DWS_ACT_TEARDOWN);
    f.wf.lag_state = DWS_STATE_POSTRUN;
    f.wf.lagging_count = 1;
    f.wf.allocated = "rabbit0";
    assert_string_equal (decide (&f, 1001.), "drain disable");
    f.wf.drained = true;
    f.wf.disabled = true;
    assert_string_equal (decide (&f, 1001.), "");
    f.wf.allocated = "";
    f.wf.disabled = false;
    assert_string_equal (decide (&f, 1001.), "");
}

/* Computes is looked for in states that last and need it, from time to time.
 */
static void test_mend (void **state)
{
    static const struct {
        enum dws_phase phase;
        enum dws_state state;
        const char *actions;
    } cases[] = {
        { DWS_PHASE_PROLOG, DWS_STATE_SETUP, "" },
        { DWS_PHASE_PROLOG, DWS_STATE_PRERUN, "mend" },
        { DWS_PHASE_EPILOG, DWS_STATE_POSTRUN, "mend" },
        { DWS_PHASE_EPILOG, DWS_STATE_DATAOUT, "" },
        { DWS_PHASE_EPILOG, DWS_STATE_TEARDOWN, "mend" },
        { DWS_PHASE_GONE, DWS_STATE_TEARDOWN, "mend" },
    };
    struct facts f;

    for (size_t i = 0; i < sizeof (cases) / sizeof (cases[0]); i++) {
        f = facts (cases[i].phase, cases[i].state, false);
        f.wf.finalizer = false;
        f.job.recalled = true;
        assert_string_equal (decide (&f, 1009.), "");
        assert_string_equal (decide (&f, 1011.), cases[i].actions);
        f.wf.t_computes = 1011.;
        assert_string_equal (decide (&f, 1012.), "");
        f.wf.status = DWS_STATUS_TRANSIENT;
        f.wf.t_transient = 1012.;
        assert_string_equal (decide (&f, 1012.), "");
        f.wf.t_computes = 900.;
        assert_string_equal (decide (&f, 1012.), cases[i].actions);
        f.job.hosts = NULL;
        assert_string_equal (decide (&f, 1012.),
                             *cases[i].actions ? "hosts" : "");
        f.wf.computes = NULL;
        assert_string_equal (decide (&f, 1012.), "");
    }
    /* of somebody who is not known any more; one who was let go */
    f = facts (DWS_PHASE_GONE, DWS_STATE_TEARDOWN, false);
    f.wf.finalizer = false;
    f.job.directives = NULL;
    f.job.recalled = true;
    assert_string_equal (decide (&f, 1011.), "");
    f.job.released = true;
    assert_string_equal (decide (&f, 1011.), "mend");
    /* somebody deletes the workflow as well */
    f = facts (DWS_PHASE_EPILOG, DWS_STATE_PRERUN, false);
    f.wf.deleting = true;
    f.wf.finalizer = false;
    assert_string_equal (decide (&f, 1011.), "mend");
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

/* A job has ended without an epilog. Its nodes are kept from others until they
 * are not mounted any more, its data is moved, and what is not is reported.
 */
static void test_stranded (void **state)
{
    struct facts f = facts (DWS_PHASE_GONE, DWS_STATE_PRERUN, true);

    f.job.directives = NULL;
    f.job.recalled = true;
    f.job.released = true;
    f.job.stranded = true;
    assert_string_equal (decide (&f, 1001.), "mounts");
    f.wf.lag_state = DWS_STATE_PRERUN;
    f.wf.lagging_count = 2;
    assert_string_equal (decide (&f, 1001.), "keep-nodes");
    f.wf.kept = true;
    assert_string_equal (decide (&f, 1001.), "save desire");
    assert_int_equal (f.out.list[1].state, DWS_STATE_POSTRUN);
    f.wf.desired = f.wf.state = DWS_STATE_POSTRUN;
    f.wf.ready = false;
    f.wf.status = DWS_STATUS_DRIVERWAIT;
    assert_string_equal (decide (&f, 1001.), "");
    f.wf.kept = false;      // after a restart
    assert_string_equal (decide (&f, 1001.), "mounts");
    f.wf.status = DWS_STATUS_ERROR;
    assert_string_equal (decide (&f, 1001.), "report mounts");
    f.wf.ready = true;
    assert_string_equal (decide (&f, 1001.), "report mounts");
    f.wf.status = DWS_STATUS_COMPLETED;
    assert_string_equal (decide (&f, 1001.), "give-nodes");
    f.wf.given = true;
    assert_string_equal (decide (&f, 1001.), "save desire");
    assert_int_equal (f.out.list[1].state, DWS_STATE_DATAOUT);
    f.wf.given = false;
    f.wf.desired = f.wf.state = DWS_STATE_TEARDOWN;
    assert_string_equal (decide (&f, 1001.), "give-nodes");
    f.wf.given = true;
    assert_string_equal (decide (&f, 1001.), "finalizer delete save");
}

/* Before the workflow got to PreRun nothing was mounted.
 */
static void test_stranded_early (void **state)
{
    struct facts f = facts (DWS_PHASE_GONE, DWS_STATE_PROPOSAL, true);

    f.job.directives = NULL;
    f.job.recalled = true;
    f.job.released = true;
    f.job.stranded = true;
    assert_string_equal (decide (&f, 1001.), "save teardown");
}

/* A module that has just started does not know the nodes of a job in its prolog.
 */
static void test_hosts_unknown (void **state)
{
    struct facts f = facts (DWS_PHASE_PROLOG, DWS_STATE_PRERUN, false);

    f.job.hosts = NULL;
    f.job.failure_tolerance = 1;
    assert_string_equal (decide (&f, 1031.), "hosts");
    f.wf.desired = f.wf.state = DWS_STATE_SETUP;
    assert_string_equal (decide (&f, 1031.), "hosts");
    f.job.hosts = "node0";
    assert_string_equal (decide (&f, 1031.), "allocations");
    f = facts (DWS_PHASE_PROLOG, DWS_STATE_PRERUN, true);
    f.job.hosts = NULL;
    assert_string_equal (decide (&f, 1001.), "save prolog-remove");
    f.wf.containers = true;
    assert_string_equal (decide (&f, 1001.), "hosts");
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_course),
        cmocka_unit_test (test_cancelled),
        cmocka_unit_test (test_not_taken_up),
        cmocka_unit_test (test_steps_of_setup),
        cmocka_unit_test (test_record_before_release),
        cmocka_unit_test (test_refusal),
        cmocka_unit_test (test_error),
        cmocka_unit_test (test_long_message),
        cmocka_unit_test (test_timeouts),
        cmocka_unit_test (test_timeout_words),
        cmocka_unit_test (test_datamovement_grace),
        cmocka_unit_test (test_grace_in_postrun),
        cmocka_unit_test (test_transient),
        cmocka_unit_test (test_orphan_grace),
        cmocka_unit_test (test_unmount_timeout),
        cmocka_unit_test (test_failure_tolerance),
        cmocka_unit_test (test_ready_without_nodes),
        cmocka_unit_test (test_down),
        cmocka_unit_test (test_tolerant_transient),
        cmocka_unit_test (test_abandoned),
        cmocka_unit_test (test_movements),
        cmocka_unit_test (test_destroy),
        cmocka_unit_test (test_mend),
        cmocka_unit_test (test_invalid),
        cmocka_unit_test (test_stranded),
        cmocka_unit_test (test_stranded_early),
        cmocka_unit_test (test_hosts_unknown),
    };

    return cmocka_run_group_tests_name ("reconcile", tests, NULL, NULL);
}
