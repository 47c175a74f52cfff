/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of reconcile.c: single decisions about nodes and rabbits that fail,
 * objects that somebody deletes, and jobs that end without an epilog.
 */

#include "libdws/directive/command.h"
#include "facts.h"

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
        f.wf.notified = true;
        /* where there are mounts Computes stays as it is */
        assert_string_equal (decide (&f, 1030.),
                             i == 0 ? "drain exclude" : "drain force-ready");
        f.wf.drained = true;
        assert_string_equal (decide (&f, 1030.),
                             i == 0 ? "exclude" : "force-ready");
        f.wf.excluded = i == 0;
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
        if (i == 0)
            continue;
        /* A condition that lasts is as good a reason as the limit. */
        f.wf.status = DWS_STATUS_TRANSIENT;
        f.wf.t_transient = 1005.;
        assert_string_equal (decide (&f, 1014.), "");
        assert_string_equal (decide (&f, 1015.), "force-ready");
    }
}

/* A state may get ready because nodes were left out of Computes, before it was
 * told to. Whether it was told to is waited for: nodes are waived with that.
 */
static void test_ready_without_nodes (void **state)
{
    struct facts f = facts (DWS_PHASE_PROLOG, DWS_STATE_PRERUN, true);

    f.job.failure_tolerance = 1;
    f.wf.lag_state = DWS_STATE_PRERUN;
    f.wf.lagging = "node0";
    f.wf.lagging_count = 1;
    assert_string_equal (decide (&f, 1030.), "save prolog-remove");
    f.job.busy = DWS_BUSY (DWS_ACT_FORCE_READY);
    assert_string_equal (decide (&f, 1030.), "");
    f.job.busy = 0;
    f.wf.force_ready = true;
    assert_string_equal (decide (&f, 1030.), "save prolog-remove");
    /* after a restart: where the second file system is */
    f.wf.mounts = 2;
    assert_string_equal (decide (&f, 1030.), "save prolog-remove");
    f.wf.lag_state = DWS_STATE_NONE;
    assert_string_equal (decide (&f, 1030.), "mounts");
    f.wf.force_ready = false;
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
    f.wf.notified = true;
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
/* NNF fails a workflow in Setup for Servers that its cache has not seen yet: that is
 * tried again, once.
 */
static void test_outdated (void **state)
{
    struct facts f = facts (DWS_PHASE_PROLOG, DWS_STATE_SETUP, false);

    f.wf.status = DWS_STATUS_ERROR;
    f.wf.outdated = true;
    assert_string_equal (decide (&f, 1000.), "teardown");
    f.job.remade = true;
    assert_string_equal (decide (&f, 1000.), "raise");
    f.job.remade = false;
    f.job.commands = DWS_COMMAND_JOBDW | DWS_COMMAND_CREATE_PERSISTENT;
    assert_string_equal (decide (&f, 1000.), "raise");
    f.job.commands = DWS_COMMAND_JOBDW;
    f.wf.outdated = false;
    assert_string_equal (decide (&f, 1000.), "raise");
    f = facts (DWS_PHASE_DEPEND, DWS_STATE_SETUP, false);
    f.job.data_first = DWS_FIRST_YES;
    f.wf.data_first = true;
    f.wf.status = DWS_STATUS_ERROR;
    f.wf.outdated = true;
    assert_string_equal (decide (&f, 1000.), "teardown");
}

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
    assert_false (dws_nodes_secured (&f.job, &f.wf));
    f.job.busy = DWS_BUSY (DWS_ACT_TEARDOWN);
    f.wf.lag_state = DWS_STATE_POSTRUN;
    f.wf.lagging_count = 1;
    f.wf.allocated = "rabbit0";
    assert_string_equal (decide (&f, 1001.), "drain disable");
    assert_false (dws_nodes_secured (&f.job, &f.wf));
    f.wf.drained = true;
    f.wf.disabled = true;
    assert_string_equal (decide (&f, 1001.), "");
    assert_true (dws_nodes_secured (&f.job, &f.wf));
    assert_false (dws_rabbits_secured (&f.wf));
    f.wf.barred = true;
    assert_string_equal (decide (&f, 1001.), "undrain");
    assert_true (dws_rabbits_secured (&f.wf));
    f.wf.undrained = true;
    assert_string_equal (decide (&f, 1001.), "");
    f.wf.allocated = "";
    f.wf.disabled = false;
    f.wf.barred = false;
    assert_true (dws_rabbits_secured (&f.wf));
    assert_string_equal (decide (&f, 1001.), "");
}

/* Its workflow may be deleted before the scheduler knows of the rabbits: then nothing is
 * left there.
 */
static void test_abandoned_unbarred (void **state)
{
    struct facts f = facts (DWS_PHASE_EPILOG, DWS_STATE_POSTRUN, false);

    f.job.abandoned = true;
    f.job.saved = DWS_SAVED_LAST;
    f.wf.finalizer = true;
    f.wf.deleting = true;
    f.wf.lag_state = DWS_STATE_POSTRUN;
    assert_false (dws_rabbits_secured (&f.wf));
    f.wf.allocated = "rabbit0";
    assert_string_equal (decide (&f, 1001.), "disable finalizer");
    f.wf.ready = true;
    f.wf.state = f.wf.desired = DWS_STATE_TEARDOWN;
    assert_true (dws_rabbits_secured (&f.wf));
    assert_true (dws_rabbits_secured (NULL));
}

/* Before it is known which nodes are mounted the workflow stays.
 */
static void test_abandoned_in_teardown (void **state)
{
    struct facts f = facts (DWS_PHASE_EPILOG, DWS_STATE_TEARDOWN, false);

    f.job.abandoned = true;
    f.wf.finalizer = true;
    f.wf.allocated = "";
    assert_string_equal (decide (&f, 1001.), "mounts");
    f.wf.deleting = true;
    assert_string_equal (decide (&f, 1001.), "mounts");
    f.wf.lag_state = DWS_STATE_TEARDOWN;
    assert_string_equal (decide (&f, 1001.), "undrain");
    f.wf.undrained = true;
    assert_string_equal (decide (&f, 1001.), "finalizer");
    f.wf.deleting = false;
    assert_string_equal (decide (&f, 1001.), "finalizer");
    /* then none is mounted */
    f.wf.lag_state = DWS_STATE_NONE;
    f.wf.undrained = false;
    f.wf.ready = true;
    assert_string_equal (decide (&f, 1001.), "undrain");
    f.wf.undrained = true;
    assert_string_equal (decide (&f, 1001.), "finalizer delete");
}

/* While it is not known whether there is a workflow, all that is done is to read it by
 * its name: nodes may be mounted.
 */
static void test_doubted (void **state)
{
    static const enum dws_phase phases[] = {
        DWS_PHASE_DEPEND, DWS_PHASE_PENDING, DWS_PHASE_PROLOG,
        DWS_PHASE_RUNNING, DWS_PHASE_EPILOG, DWS_PHASE_GONE,
    };

    for (size_t i = 0; i < sizeof (phases) / sizeof (phases[0]); i++) {
        for (int to = DWS_STATE_PROPOSAL; to <= DWS_STATE_TEARDOWN; to++) {
            struct facts f = facts (phases[i], to, true);

            f.wf.doubted = true;
            f.wf.unlabelled = true;
            assert_string_equal (decide (&f, 1001.), "look");
            f.job.busy = DWS_BUSY (DWS_ACT_LOOK);
            assert_string_equal (decide (&f, 1001.), "");
            assert_string_equal (f.out.reason,
                                 "the workflow to be read by its name");
            f.job.busy = 0;
            f.wf.name = NULL;
            f.job.absent = false;
            assert_string_equal (decide (&f, 1001.), "look");
            assert_false (dws_nodes_secured (&f.job, NULL));
        }
    }
}

/* One that has lost its label gets it back, besides what is to be done.
 */
static void test_unlabelled (void **state)
{
    struct facts f = facts (DWS_PHASE_RUNNING, DWS_STATE_PRERUN, true);

    f.wf.unlabelled = true;
    assert_string_equal (decide (&f, 1001.), "adopt");
    f.job.busy = DWS_BUSY (DWS_ACT_ADOPT);
    assert_string_equal (decide (&f, 1001.), "");
    f = facts (DWS_PHASE_EPILOG, DWS_STATE_PRERUN, true);
    f.wf.unlabelled = true;
    assert_string_equal (decide (&f, 1001.), "save desire adopt");
}

/* What is known of mounts from the job's start is who lacks them. Before PreRun there
 * are none, unless it is on its way.
 */
static void test_abandoned_early (void **state)
{
    struct facts f = facts (DWS_PHASE_EPILOG, DWS_STATE_PRERUN, true);

    f.job.abandoned = true;
    f.wf.lag_state = DWS_STATE_PRERUN;
    f.wf.lagging = "node0";
    f.wf.lagging_count = 1;
    f.wf.drained = true;
    f.wf.lag_missing = true;
    assert_false (dws_nodes_secured (&f.job, &f.wf));
    f.wf.lag_missing = false;
    assert_true (dws_nodes_secured (&f.job, &f.wf));

    f = facts (DWS_PHASE_EPILOG, DWS_STATE_DATAIN, true);
    f.job.abandoned = true;
    assert_true (dws_nodes_secured (&f.job, &f.wf));
    f.job.busy = DWS_BUSY (DWS_ACT_DESIRE);
    assert_false (dws_nodes_secured (&f.job, &f.wf));
    f.job.busy = 0;
    f.wf.desired = DWS_STATE_PRERUN;
    assert_false (dws_nodes_secured (&f.job, &f.wf));
    f.wf.allocated = "";
    f.wf.deleting = true;
    f.wf.finalizer = true;
    assert_true (dws_nodes_secured (&f.job, &f.wf));
    assert_string_equal (decide (&f, 1001.), "undrain");
    f.wf.undrained = true;
    assert_string_equal (decide (&f, 1001.), "finalizer");
    f.wf.deleting = false;
    f.wf.desired = DWS_STATE_TEARDOWN;
    assert_true (dws_nodes_secured (&f.job, &f.wf));
    assert_true (dws_nodes_secured (&f.job, NULL));
}

/* Computes is looked for in states that last and need it, from time to time.
 */
static void test_repair (void **state)
{
    static const struct {
        enum dws_phase phase;
        enum dws_state state;
        const char *actions;
    } cases[] = {
        { DWS_PHASE_PROLOG, DWS_STATE_PROPOSAL, "" },
        { DWS_PHASE_PROLOG, DWS_STATE_SETUP, "repair" },
        { DWS_PHASE_PROLOG, DWS_STATE_DATAIN, "" },
        { DWS_PHASE_PROLOG, DWS_STATE_PRERUN, "repair" },
        { DWS_PHASE_EPILOG, DWS_STATE_POSTRUN, "repair" },
        { DWS_PHASE_EPILOG, DWS_STATE_DATAOUT, "" },
        { DWS_PHASE_EPILOG, DWS_STATE_TEARDOWN, "repair" },
        { DWS_PHASE_GONE, DWS_STATE_TEARDOWN, "repair" },
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
    assert_string_equal (decide (&f, 1011.), "repair");
    /* somebody deletes the workflow as well */
    f = facts (DWS_PHASE_EPILOG, DWS_STATE_PRERUN, false);
    f.wf.deleting = true;
    f.wf.finalizer = false;
    assert_string_equal (decide (&f, 1011.), "repair");
}

/* NNF, which looks at devices every two seconds, is made to look at moments after the
 * workflow has got to PreRun and PostRun, at 1000 here.
 */
static void test_touch (void **state)
{
    static const struct {
        enum dws_phase phase;
        enum dws_state state;
        const char *actions;
    } cases[] = {
        { DWS_PHASE_PROLOG, DWS_STATE_SETUP, "" },
        { DWS_PHASE_PROLOG, DWS_STATE_DATAIN, "" },
        { DWS_PHASE_PROLOG, DWS_STATE_PRERUN, "touch" },
        { DWS_PHASE_EPILOG, DWS_STATE_POSTRUN, "touch" },
        { DWS_PHASE_EPILOG, DWS_STATE_DATAOUT, "" },
        { DWS_PHASE_EPILOG, DWS_STATE_TEARDOWN, "" },
    };
    static const double moments[] = { 1000.25, 1000.5, 1001., 1002., 1004. };
    struct facts f;

    for (size_t i = 0; i < sizeof (cases) / sizeof (cases[0]); i++) {
        const char *actions = cases[i].actions;

        f = facts (cases[i].phase, cases[i].state, false);
        f.wf.finalizer = false;
        f.wf.mounts = 1;
        f.wf.t_seen = 1000.;
        assert_string_equal (decide (&f, 1000.125), "");
        for (size_t j = 0; j < sizeof (moments) / sizeof (moments[0]); j++) {
            double next = j + 1 < sizeof (moments) / sizeof (moments[0])
                          ? moments[j + 1] : 1010.;

            /* nobody decides anew when it is done */
            assert_string_equal (decide (&f, moments[j]), actions);
            assert_true (!*actions || (f.out.wake > 0. && f.out.wake <= next));
            f.wf.t_touched = moments[j];
            assert_string_equal (decide (&f, moments[j]), "");
        }
        assert_string_equal (decide (&f, 1005.9), "");
        /* by a module that has just started; and not for ever */
        f.wf.t_touched = 0.;
        assert_string_equal (decide (&f, 1005.9), actions);
        assert_string_equal (decide (&f, 1006.), "");
        f.job.hosts = NULL;
        assert_string_equal (decide (&f, 1005.), *actions ? "hosts" : "");
    }
}

static void test_no_touch (void **state)
{
    struct facts f = facts (DWS_PHASE_PROLOG, DWS_STATE_PRERUN, false);

    f.wf.mounts = 1;
    f.wf.t_seen = 1000.;
    assert_string_equal (decide (&f, 1001.), "touch");
    f.wf.state = DWS_STATE_DATAIN;
    assert_string_equal (decide (&f, 1001.), "");
    f.wf.state = DWS_STATE_PRERUN;
    f.wf.status = DWS_STATUS_TRANSIENT;
    f.wf.t_transient = 1000.;
    assert_string_equal (decide (&f, 1001.), "");
    f.wf.status = DWS_STATUS_DRIVERWAIT;
    f.job.hosts = "node[1-64]";
    assert_string_equal (decide (&f, 1001.), "touch");
    f.job.hosts = "node[1-65]";
    assert_string_equal (decide (&f, 1001.), "");
    f.job.hosts = "node1";
    f.wf.mounts = 0;            // containers alone
    assert_string_equal (decide (&f, 1001.), "");
    f.wf.mounts = 1;
    f.wf.computes = NULL;
    assert_string_equal (decide (&f, 1001.), "");
}

/* What the workflow needs is gone for good: all of it is made anew, and the job stays
 * where it is.
 */
static void test_spoilt (void **state)
{
    static const enum dws_phase phases[] = {
        DWS_PHASE_DEPEND, DWS_PHASE_PENDING, DWS_PHASE_PROLOG,
    };

    for (size_t i = 0; i < sizeof (phases) / sizeof (phases[0]); i++) {
        struct facts f = facts (phases[i], DWS_STATE_PROPOSAL, true);

        f.wf.spoilt = true;
        assert_string_equal (decide (&f, 1001.), "teardown");
        f.wf.desired = f.wf.state = DWS_STATE_TEARDOWN;
        assert_string_equal (decide (&f, 1001.), "finalizer delete");
        f.wf.name = NULL;
        assert_string_equal (decide (&f, 1001.), "create");
    }
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
    f.wf.lag_missing = true;    // from its start
    assert_string_equal (decide (&f, 1001.), "mounts");
    f.wf.lag_missing = false;
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
    assert_string_equal (decide (&f, 1001.), "undrain");
    f.wf.undrained = true;
    assert_string_equal (decide (&f, 1001.), "save desire");
    assert_int_equal (f.out.list[1].state, DWS_STATE_DATAOUT);
    f.wf.undrained = false;
    f.wf.desired = f.wf.state = DWS_STATE_TEARDOWN;
    assert_string_equal (decide (&f, 1001.), "undrain");
    f.wf.undrained = true;
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

/* The mounts are looked at some time after PostRun has begun, and then from time to
 * time, until none but nodes that the job does without are left.
 */
static void test_waived (void **state)
{
    struct facts f = facts (DWS_PHASE_EPILOG, DWS_STATE_POSTRUN, false);

    f.wf.waived = f.wf.failed = "node0";
    assert_string_equal (decide (&f, 1001.), "");
    assert_true (f.out.wake == 1002.);
    assert_string_equal (decide (&f, 1002.), "mounts");
    f.wf.lag_state = DWS_STATE_POSTRUN;
    f.wf.lagging = "node[0-1]";
    f.wf.lagging_count = 2;
    f.wf.t_lag = 1002.;
    f.wf.unmount = DWS_UNMOUNT_BUSY;
    assert_string_equal (decide (&f, 1006.), "");
    assert_true (f.out.wake == 1007.);
    assert_string_equal (decide (&f, 1007.), "mounts");
    f.wf.t_lag = 1007.;
    f.wf.unmount = DWS_UNMOUNT_WAIVED;
    assert_string_equal (decide (&f, 1008.), "keep-nodes");
    f.wf.kept = true;
    assert_string_equal (decide (&f, 1008.), "exclude");
    f.job.hosts = NULL;
    assert_string_equal (decide (&f, 1008.), "hosts");
    f.job.hosts = "node[0-1]";
    f.wf.excluded = true;
    assert_string_equal (decide (&f, 1008.), "");
    /* without a word from DWS of what it is about nothing is known */
    f.wf.state = DWS_STATE_PRERUN;
    f.wf.excluded = false;
    assert_string_equal (decide (&f, 1008.), "");
    f.wf.state = DWS_STATE_POSTRUN;
    f.wf.waived = NULL;
    assert_string_equal (decide (&f, 1008.), "");
}

/* Computes must not change as long as other nodes have mounts of another file
 * system. One that has never answered is waited for as long as there is data to be
 * moved.
 */
static void test_waived_before_others (void **state)
{
    struct facts f = facts (DWS_PHASE_EPILOG, DWS_STATE_POSTRUN, false);

    f.wf.waived = f.wf.failed = "node0";
    f.wf.lag_state = DWS_STATE_POSTRUN;
    f.wf.t_lag = 1002.;
    f.wf.unmount = DWS_UNMOUNT_FIRST;
    assert_string_equal (decide (&f, 1003.), "keep-nodes");
    f.wf.kept = true;
    assert_string_equal (decide (&f, 1003.), "");
    assert_string_equal (decide (&f, 1007.), "mounts");
    f.wf.unmount = DWS_UNMOUNT_DEAF;
    f.wf.moves = true;
    assert_string_equal (decide (&f, 1003.), "");
    f.wf.moves = false;
    assert_string_equal (decide (&f, 1003.), "save teardown");
    /* there it is drained and looked at, no more */
    f = facts (DWS_PHASE_EPILOG, DWS_STATE_TEARDOWN, false);
    f.wf.finalizer = false;
    f.wf.waived = f.wf.failed = "node0";
    assert_string_equal (decide (&f, 1003.), "mounts");
    f.wf.lag_state = DWS_STATE_TEARDOWN;
    f.wf.t_lag = 1003.;
    f.wf.unmount = DWS_UNMOUNT_WAIVED;
    assert_string_equal (decide (&f, 1003.), "keep-nodes");
    f.wf.kept = true;
    assert_string_equal (decide (&f, 1009.), "");
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
        cmocka_unit_test (test_unmount_timeout),
        cmocka_unit_test (test_failure_tolerance),
        cmocka_unit_test (test_ready_without_nodes),
        cmocka_unit_test (test_down),
        cmocka_unit_test (test_outdated),
        cmocka_unit_test (test_tolerant_transient),
        cmocka_unit_test (test_abandoned),
        cmocka_unit_test (test_abandoned_unbarred),
        cmocka_unit_test (test_abandoned_in_teardown),
        cmocka_unit_test (test_abandoned_early),
        cmocka_unit_test (test_doubted),
        cmocka_unit_test (test_unlabelled),
        cmocka_unit_test (test_repair),
        cmocka_unit_test (test_touch),
        cmocka_unit_test (test_no_touch),
        cmocka_unit_test (test_spoilt),
        cmocka_unit_test (test_stranded),
        cmocka_unit_test (test_stranded_early),
        cmocka_unit_test (test_waived),
        cmocka_unit_test (test_waived_before_others),
        cmocka_unit_test (test_hosts_unknown),
    };

    return cmocka_run_group_tests_name ("faults", tests, NULL, NULL);
}
