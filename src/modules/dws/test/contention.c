/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of contention.c: which data is given back for others, seen at two looks.
 */

#include "libdws/directive/command.h"
#include "libdws/storage/data_first.h"
#include "libdws/test/util.h"
#include "act/action.h"
#include "act/contention.h"
#include "facts/config.h"
#include "facts/jobs.h"
#include "facts/space.h"
#include "facts/storages.h"
#include "sched/pool.h"
#include "tell/queued.h"
#include "test/timers.h"

#define URI "interthread://contention"
#define LOOK 10.

/* Two rabbits of 100 GiB with two nodes each.
 */
#define MAPPING \
    "{'computes': {'a1': 'r1', 'a2': 'r1', 'b1': 'r2', 'b2': 'r2'}," \
    " 'rabbits': {'r1': {'capacity': 107374182400, 'hostlist': 'a[1-2]'}," \
    "             'r2': {'capacity': 107374182400, 'hostlist': 'b[1-2]'}}}"
#define NODES(allocated) \
    "{'all': {'version': 1, 'execution': {" \
    "  'R_lite': [{'rank': '0-3', 'children': {'core': '0'}}]," \
    "  'nodelist': ['a[1-2],b[1-2]']}}," \
    " 'allocated': {'version': 1, 'execution': {'R_lite': []," \
    "  'nodelist': [" allocated "]}}," \
    " 'down': {'version': 1, 'execution': {'R_lite': [], 'nodelist': []}}}"
#define GIB60(name) \
    "[{'servers': {'name': '" name "'}, 'allocationSets': [{'label': 'xfs'," \
    "  'allocationSize': 64424509440, 'storage': [{'name': 'r1'," \
    "  'allocationCount': 1}]}]}]"
#define RESOURCES(nodes) \
    "[{\"type\":\"node\",\"count\":" nodes ",\"with\":[{\"type\":\"slot\"," \
    "\"label\":\"task\",\"count\":1,\"with\":[{\"type\":\"core\",\"count\":1}]}]}]"

enum {
    DATA,                       // has its data at r1, and waits for two nodes
    OTHER,
    JOBS = 152,
};

static struct world {
    flux_t *other;
    struct dws_config config;
    struct dws_ctx ctx;
    struct job jobs[JOBS];
    struct dws_job facts[JOBS];
    struct dws_workflow workflows[JOBS];
    struct dws_pool *nodes;
    flux_watcher_t *timer;
    int count;                  // jobs that there are
    int asked;                  // how often the scheduler was
    int changed;                // how often something was new of DATA
} w;

void jobs_each (struct jobs *jobs, void (*cb)(struct job *job, void *arg),
                void *arg)
{
    for (int i = 0; i < w.count; i++)
        cb (&w.jobs[i], arg);
}

void jobs_changed (struct job *job)
{
    assert_ptr_equal (job, &w.jobs[DATA]);
    w.changed++;
}

const char *job_label (const struct job *job, char buf[JOB_LABEL_SIZE])
{
    return "job";
}

void pool_ask (struct pool *pool, pool_f cb)
{
    w.asked++;
    cb (&w.ctx, w.nodes);
}

bool queued_is_stopped (const struct queued *queued, const struct job *job)
{
    return job->facts->queue && !strcmp (job->facts->queue, "stopped");
}

static void set_nodes (const char *text)
{
    json_t *status = J (text);

    dws_pool_destroy (w.nodes);
    assert_non_null (w.nodes = dws_pool_create (status, NULL));
    json_decref (status);
}

static void setup (void)
{
    json_t *mapping = J (MAPPING);
    json_t *layout = J (GIB60 ("s"));
    struct job *data = &w.jobs[DATA];

    memset (&w, 0, sizeof (w));
    timers_count = 0;
    assert_non_null (w.config.topology = dws_topology_create (mapping, NULL));
    assert_non_null (w.other = flux_open (URI, 0));
    assert_non_null (w.ctx.h = flux_open (URI, 0));
    /* flux_log() would ask a broker. */
    assert_int_equal (flux_attr_set_cacheonly (w.ctx.h, "rank", "0"), 0);
    w.ctx.config = &w.config;
    assert_non_null (w.ctx.storages = storages_create ());
    assert_non_null (w.ctx.space = space_create ());
    for (int i = 0; i < JOBS; i++) {
        w.jobs[i].ctx = &w.ctx;
        w.jobs[i].facts = &w.facts[i];
        w.jobs[i].wf = &w.workflows[i];
        w.facts[i].phase = DWS_PHASE_PENDING;
        w.facts[i].commands = DWS_COMMAND_JOBDW;
        w.facts[i].resources = RESOURCES ("2");
    }
    w.count = OTHER + 1;
    w.facts[DATA].data_first = DWS_FIRST_YES;
    w.workflows[DATA].data_first = true;
    w.workflows[DATA].desired = DWS_STATE_DATAIN;
    w.workflows[DATA].ready = true;
    assert_int_equal (space_claim (w.ctx.space, &data->claim, layout), 0);
    set_nodes (NODES (""));
    assert_non_null (w.ctx.contention = contention_create (&w.ctx));
    w.timer = timers[0].w;
    json_decref (layout);
    json_decref (mapping);
}

static void teardown (void)
{
    flux_watcher_destroy (w.ctx.contention);
    for (int i = 0; i < JOBS; i++) {
        space_free (w.ctx.space, &w.jobs[i].claim, true);
        job_slots_clear (&w.jobs[i]);
    }
    dws_bytes_clear (&w.jobs[OTHER].reserved);
    dws_pool_destroy (w.nodes);
    space_destroy (w.ctx.space);
    storages_destroy (w.ctx.storages);
    flux_close (w.ctx.h);
    flux_close (w.other);
    dws_topology_destroy (w.config.topology);
}

static bool look (void)
{
    timer_fire (w.timer, LOOK);
    return w.facts[DATA].contended;
}

/* At the first look nodes may be on their way to a job.
 */
static bool look_twice (void)
{
    assert_false (look ());
    return look ();
}

/* It is one at the second look, and as long as that lasts: nodes that are given to
 * somebody end it.
 */
static void test_looks (void **state)
{
    setup ();
    assert_false (look ());
    assert_int_equal (w.changed, 0);
    assert_true (look ());
    assert_true (look ());
    assert_int_equal (w.changed, 1);
    set_nodes (NODES ("'a1'"));
    assert_false (look ());
    assert_int_equal (w.changed, 2);
    set_nodes (NODES (""));
    assert_true (look_twice ());
    assert_int_equal (w.asked, 6);
    teardown ();
}

/* The nodes that the job waits for are those next to its data.
 */
static void test_its_nodes (void **state)
{
    setup ();
    set_nodes (NODES ("'a1'"));
    assert_false (look_twice ());
    teardown ();
    setup ();
    set_nodes (NODES ("'b[1-2]'"));
    assert_true (look_twice ());
    teardown ();
}

/* Nobody is kept from idle nodes, or not by that data.
 */
static void test_no_rival (void **state)
{
    for (int how = 0; how < 7; how++) {
        setup ();
        switch (how) {
            case 0:
                w.facts[OTHER].commands = DWS_COMMAND_COPY_OUT;
                break;
            case 1:
                w.facts[OTHER].waits = true;
                break;
            case 2:
                w.facts[OTHER].phase = DWS_PHASE_DEPEND;
                break;
            case 3:
                w.facts[OTHER].resources = RESOURCES ("5");
                break;
            case 4:                     // it is as far
                w.facts[OTHER].data_first = DWS_FIRST_YES;
                w.workflows[OTHER] = w.workflows[DATA];
                break;
            case 5:
                w.facts[OTHER].resources = "[]";
                break;
            case 6:
                w.facts[OTHER].queue = "stopped";
                break;
        }
        assert_false (look_twice ());
        assert_int_equal (w.changed, 0);
        assert_int_equal (w.asked, 2);
        teardown ();
    }
}

/* What many jobs ask for is not read at one look: until it is, that is too much.
 */
static void test_many (void **state)
{
    setup ();
    w.count = JOBS;
    for (int i = OTHER; i < JOBS - 1; i++)
        w.facts[i].resources = RESOURCES ("5");
    assert_false (look_twice ());
    assert_true (look ());
    teardown ();
}

/* While no job has data and no nodes the scheduler is left alone.
 */
static void test_no_data (void **state)
{
    for (int how = 0; how < 4; how++) {
        setup ();
        switch (how) {
            case 0:
                w.facts[DATA].phase = DWS_PHASE_PROLOG;
                break;
            case 1:
                w.facts[DATA].data_first = DWS_FIRST_NO;
                break;
            case 2:
                w.workflows[DATA].ready = false;
                break;
            case 3:
                w.workflows[DATA].desired = DWS_STATE_SETUP;
                break;
        }
        assert_false (look_twice ());
        assert_int_equal (w.asked, 0);
        teardown ();
    }
}

/* The other one has nodes, and the scheduler has given it what the data lies on.
 */
static void setup_wanted (const char *reserved)
{
    setup ();
    set_nodes (NODES ("'a[1-2],b[1-2]'"));
    w.facts[OTHER].phase = DWS_PHASE_PROLOG;
    w.jobs[OTHER].reserved = BYTES (reserved);
}

/* Since when it waits for room (act/servers.c).
 */
static void set_down (double t)
{
    struct act_job *own = job_slot_make (&w.jobs[OTHER], SLOT_ACTIONS,
                                         sizeof (*own), slot_free);

    assert_non_null (own);
    own->t_down = t;
}

#define HALF "{'r1': 53687091200}"      // 50 GiB

static void test_wanted (void **state)
{
    static char text[] = "job 1 has it for itself";

    /* It waits for what others have there for themselves. */
    setup_wanted ("{'r1': 1}");
    w.facts[OTHER].awaits = text;
    assert_true (look_twice ());
    w.facts[OTHER].awaits = NULL;
    assert_false (look ());
    teardown ();

    /* It waits for room, and has no text for that. */
    setup_wanted (HALF);
    set_down (1.);
    assert_true (look_twice ());
    set_down (0.);
    assert_false (look ());
    teardown ();
}

static void test_not_wanted (void **state)
{
    static char text[] = "job 1 has it for itself";

    for (int how = 0; how < 5; how++) {
        json_t *layout = J (GIB60 ("other"));

        setup_wanted (how == 1 ? "{'r1': 42949672960}"       // 40 GiB: they are there
                      : how == 2 ? "{'r2': 53687091200}" : HALF);
        set_down (1.);
        switch (how) {
            case 0:                     // it is on its way
                set_down (0.);
                break;
            case 2:
                w.facts[OTHER].awaits = text;
                break;
            case 3:                     // it has storage
                assert_int_equal (space_claim (w.ctx.space,
                                               &w.jobs[OTHER].claim, layout), 0);
                break;
            case 4:
                w.facts[OTHER].phase = DWS_PHASE_EPILOG;
                break;
        }
        assert_false (look_twice ());
        json_decref (layout);
        teardown ();
    }
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_looks),
        cmocka_unit_test (test_its_nodes),
        cmocka_unit_test (test_no_rival),
        cmocka_unit_test (test_many),
        cmocka_unit_test (test_no_data),
        cmocka_unit_test (test_wanted),
        cmocka_unit_test (test_not_wanted),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
