/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of waived.c, with two jobs.
 */

#include "libdws/test/util.h"
#include "facts/jobs.h"
#include "health/waived.h"

struct two {
    struct job job[2];
    struct dws_job facts[2];
    struct dws_workflow wf[2];
};

static struct two *world;

void jobs_each (struct jobs *jobs, void (*cb)(struct job *job, void *arg),
                void *arg)
{
    for (int i = 0; i < 2; i++)
        cb (&world->job[i], arg);
}

/* The first one does without nodes and is being unmounted, the second one runs on
 * other nodes.
 */
static void setup (struct two *w)
{
    memset (w, 0, sizeof (*w));
    for (int i = 0; i < 2; i++) {
        w->job[i].facts = &w->facts[i];
        w->job[i].wf = &w->wf[i];
        w->wf[i].mounts = 1;
    }
    w->facts[0].phase = DWS_PHASE_EPILOG;
    w->facts[0].hosts = "node[0-3]";
    w->wf[0].waived = "node[0-1]";
    w->wf[0].desired = w->wf[0].state = w->wf[0].lag_state = DWS_STATE_POSTRUN;
    w->wf[0].unmount = DWS_UNMOUNT_WAIVED;
    w->facts[1].phase = DWS_PHASE_RUNNING;
    w->facts[1].hosts = "node[4-5]";
    w->wf[1].desired = w->wf[1].state = DWS_STATE_PRERUN;
    w->wf[1].ready = true;
    world = w;
}

static void check (const char *want)
{
    struct dws_ctx ctx = { 0 };
    json_t *nodes = waived_nodes (&ctx);

    assert_json (nodes, want);
    json_decref (nodes);
}

static void test_when (void **state)
{
    struct two w;

    setup (&w);
    check ("{'node0': true, 'node1': true}");
    w.wf[0].unmount = DWS_UNMOUNT_BUSY;
    check ("{}");
    /* what is not known yet, after a restart or in a new state */
    w.wf[0].lag_state = DWS_STATE_NONE;
    check ("{'node0': null, 'node1': null}");
    w.wf[0].desired = DWS_STATE_TEARDOWN;
    check ("{'node0': null, 'node1': null}");
    /* as long as the job runs they are like others */
    w.wf[0].desired = w.wf[0].state = DWS_STATE_PRERUN;
    check ("{}");
    w.job[0].wf = NULL;
    check ("{}");
}

/* One that another job uses is waited for.
 */
static void test_others (void **state)
{
    struct two w;

    setup (&w);
    w.facts[1].hosts = "node[1-2]";
    check ("{'node0': true}");
    w.wf[1].waived = "node1";
    check ("{'node0': true, 'node1': true}");
    w.wf[1].waived = NULL;
    w.wf[1].mounts = 0;
    check ("{'node0': true, 'node1': true}");
    w.wf[1].mounts = 1;
    w.wf[1].desired = w.wf[1].state = DWS_STATE_SETUP;
    check ("{'node0': true, 'node1': true}");
    /* it may be that it is, or it is no more */
    w.wf[1].desired = w.wf[1].state = DWS_STATE_POSTRUN;
    w.wf[1].ready = false;
    check ("{'node0': true}");
    w.facts[1].hosts = NULL;
    check ("{'node0': null, 'node1': null}");
    w.facts[1].phase = DWS_PHASE_GONE;
    check ("{'node0': true, 'node1': true}");
    w.facts[1].phase = DWS_PHASE_EPILOG;
    w.wf[1].ready = true;
    check ("{'node0': true, 'node1': true}");
    w.wf[1].desired = DWS_STATE_DATAOUT;
    check ("{'node0': true, 'node1': true}");
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_when),
        cmocka_unit_test (test_others),
    };

    return cmocka_run_group_tests_name ("waived", tests, NULL, NULL);
}
