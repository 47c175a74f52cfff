/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of health.c, with the test at the other end of the handle in the
 * resource module's place: when it is asked, and when again.
 */

#include "libdws/test/util.h"
#include "agent/agent.h"
#include "base/calls.h"
#include "facts/config.h"
#include "facts/jobs.h"
#include "facts/space.h"
#include "facts/storages.h"
#include "facts/sync.h"
#include "health/health.h"
#include "health/systemstatus.h"
#include "health/waived.h"
#include "sched/scheduler.h"
#include "test/timers.h"
#include "test/moments.h"

#define URI "interthread://health"
#define MAPPING \
    "{'computes': {'node0': 'r0', 'node1': 'r0'}," \
    " 'rabbits': {'r0': {'capacity': 1000, 'hostlist': 'node[0-1]'}}}"
#define LOST_1 \
    "[{'metadata': {'name': 'r0'}, 'status': {'status': 'Ready'," \
    "  'capacity': 1000, 'access': {'computes': [" \
    "    {'name': 'node0', 'status': 'Ready'}," \
    "    {'name': 'node1', 'status': 'Offline'}]}}}]"
#define NODES(drain) \
    "{'R': {'version': 1, 'execution': {'R_lite': [{'rank': '0-1'," \
    "   'children': {'core': '0'}}], 'nodelist': ['node[0-1]']}}," \
    " 'drain': {" drain "}}"

void scheduler_start (struct scheduler *sched)
{
}

void scheduler_tell (struct scheduler *sched, const struct dws_health *health,
                     unsigned int version)
{
}

bool withheld_kept (const struct job *job)
{
    return false;
}

unsigned int withheld_version (const struct withheld *withheld)
{
    return 0;
}

static const char *scheduler;

const char *scheduler_name (const struct scheduler *sched)
{
    return scheduler;
}

bool scheduler_is_fluxion (const struct scheduler *sched)
{
    return scheduler && !strcmp (scheduler, "fluxion");
}

bool scheduler_settled (const struct scheduler *sched)
{
    return true;
}

void systemstatus_start (struct systemstatus *status)
{
}

void systemstatus_learn (struct systemstatus *status,
                         const struct dws_nodes *nodes)
{
}

void systemstatus_update (struct systemstatus *status,
                          const struct dws_nodes *nodes, json_t *stuck)
{
}

bool systemstatus_settled (const struct systemstatus *status)
{
    return true;
}

json_t *waived_nodes (struct dws_ctx *ctx)
{
    return json_object ();
}

static bool known;              // all jobs and workflows are
static struct job *job77;
static int decisions;           // about that job

bool agent_ready (const struct agent *agent)
{
    return known;
}

static uint64_t looked_for;     // the job of that workflow

void jobs_look_for (struct jobs *jobs, uint64_t id)
{
    looked_for = id;
}

static bool plugin;

bool sync_alive (const struct sync *sync)
{
    return plugin;
}

bool sync_done (const struct sync *sync)
{
    return known;
}

struct job *jobs_find (struct jobs *jobs, uint64_t id)
{
    assert_int_equal (id, 77);
    return job77;
}

void jobs_each (struct jobs *jobs, void (*cb)(struct job *job, void *arg),
                void *arg)
{
    if (job77)
        cb (job77, arg);
}

void jobs_changed (struct job *job)
{
    assert_ptr_equal (job, job77);
    decisions++;
}

struct world {
    flux_t *resource;
    struct dws_config config;
    struct dws_ctx ctx;
    flux_watcher_t *retry;
    int errors;                 // in the log
};

static void setup (struct world *w)
{
    json_t *mapping = J (MAPPING);
    json_t *storages = J (LOST_1);

    memset (w, 0, sizeof (*w));
    timers_count = 0;
    w->config.drain_compute_nodes = true;
    w->config.topology = dws_topology_create (mapping, NULL);
    assert_non_null (w->config.topology);
    json_decref (mapping);
    w->ctx.config = &w->config;
    assert_non_null (w->resource = flux_open (URI, 0));
    assert_non_null (w->ctx.h = flux_open (URI, 0));
    /* flux_log() would ask a broker. */
    assert_int_equal (flux_attr_set_cacheonly (w->ctx.h, "rank", "0"), 0);
    assert_non_null (w->ctx.calls = calls_create ());
    assert_non_null (w->ctx.storages = storages_create ());
    assert_non_null (w->ctx.space = space_create ());
    space_set_known (w->ctx.space);
    assert_int_equal (storages_list (w->ctx.storages, storages), 0);
    json_decref (storages);
    assert_non_null (w->ctx.health = health_create (&w->ctx));
    w->retry = timers[0].w;
    health_start (w->ctx.health);
}

static void teardown (struct world *w)
{
    health_destroy (w->ctx.health);
    storages_destroy (w->ctx.storages);
    space_destroy (w->ctx.space);
    calls_destroy (w->ctx.calls);
    flux_close (w->ctx.h);
    flux_close (w->resource);
    dws_topology_destroy (w->config.topology);
}

static void turn (struct world *w)
{
    for (int i = 0; i < 4; i++)
        assert_true (flux_reactor_run (flux_get_reactor (w->ctx.h),
                                       FLUX_REACTOR_NOWAIT) >= 0);
}

/* A line of the log begins with "<" and its priority; Flux has the severity in the
 * upper bits.
 */
static void count_error (struct world *w, const flux_msg_t *msg)
{
    const void *line;
    size_t size;
    int priority = -1;

    assert_int_equal (flux_msg_get_payload (msg, &line, &size), 0);
    (void)sscanf (line, "<%d>", &priority);
    assert_true (priority >= 0);
    if (priority >> 3 <= LOG_ERR)
        w->errors++;
}

/* The next request, which has to be this one.
 */
static flux_msg_t *next (struct world *w)
{
    flux_msg_t *msg;
    const char *topic;

    turn (w);
    while ((msg = flux_recv (w->resource, FLUX_MATCH_REQUEST,
                             FLUX_O_NONBLOCK))) {
        assert_int_equal (flux_msg_get_topic (msg, &topic), 0);
        if (!strncmp (topic, "resource.", 9)
            || !strcmp (topic, "job-manager.dws.nodes"))
            break;
        if (!strcmp (topic, "log.append"))
            count_error (w, msg);
        flux_msg_destroy (msg);
    }
    return msg;
}

static flux_msg_t *expect (struct world *w, const char *want)
{
    flux_msg_t *msg = next (w);
    const char *topic;

    assert_non_null (msg);
    assert_int_equal (flux_msg_get_topic (msg, &topic), 0);
    assert_string_equal (topic, want);
    return msg;
}

/* Answer, and forget the request.
 */
static void answer (struct world *w, flux_msg_t *msg, const char *text)
{
    json_t *o = J (text);

    assert_int_equal (flux_respond_pack (w->resource, msg, "O", o), 0);
    json_decref (o);
    flux_msg_destroy (msg);
}

static void refuse (struct world *w, flux_msg_t *msg, int errnum)
{
    assert_int_equal (flux_respond_error (w->resource, msg, errnum, NULL), 0);
    flux_msg_destroy (msg);
}

static flux_msg_t *expect_drain (struct world *w, const char *want)
{
    flux_msg_t *msg = expect (w, "resource.drain");
    const char *targets;

    assert_int_equal (flux_request_unpack (msg, NULL, "{s:s}",
                                           "targets", &targets), 0);
    assert_string_equal (targets, want);
    return msg;
}

static bool is_settled (struct world *w)
{
    json_t *status = health_status (w->ctx.health);
    bool settled = json_is_true (json_object_get (status, "settled"));

    json_decref (status);
    return settled;
}

/* A drain that is refused is asked for again, but not at once.
 */
static void test_drain_refused (void **state)
{
    struct world w;

    setup (&w);
    answer (&w, expect (&w, "resource.journal"), "{'events': []}");
    answer (&w, expect (&w, "resource.status"), NODES (""));
    for (int i = 0; i < 3; i++) {
        refuse (&w, expect_drain (&w, "node1"), EPERM);
        assert_null (next (&w));
        timer_fire (w.retry, 5.);
        answer (&w, expect (&w, "resource.status"), NODES (""));
    }
    answer (&w, expect_drain (&w, "node1"), "{}");
    answer (&w, expect (&w, "resource.status"),
            NODES ("'1': {'timestamp': 1.0, 'reason': '" DWS_DRAIN_LINK "'}"));
    assert_null (next (&w));
    assert_true (is_settled (&w));
    teardown (&w);
}

/* Or when something else happens to the nodes, for which the journal says so;
 * its events may come while the timer runs.
 */
static void test_drain_and_event (void **state)
{
    struct world w;
    flux_msg_t *journal;

    setup (&w);
    journal = expect (&w, "resource.journal");
    answer (&w, flux_msg_copy (journal, true), "{'events': []}");
    answer (&w, expect (&w, "resource.status"), NODES (""));
    for (int i = 0; i < 2; i++) {
        refuse (&w, expect_drain (&w, "node1"), EPERM);
        assert_null (next (&w));
        answer (&w, flux_msg_copy (journal, true), "{'events': [{}]}");
        answer (&w, expect (&w, "resource.status"), NODES (""));
    }
    answer (&w, expect_drain (&w, "node1"), "{}");
    refuse (&w, journal, ENOSYS);
    refuse (&w, expect (&w, "resource.status"), ENOSYS);
    assert_null (next (&w));
    timer_fire (w.retry, 0.1);
    flux_msg_destroy (expect (&w, "resource.journal"));
    teardown (&w);
}

/* While Flux starts the resource module may not know its nodes yet. That it does not is
 * an error when it is asked again, as the journal then has told of something.
 */
static void test_too_early (void **state)
{
    struct world w;
    flux_msg_t *journal;

    setup (&w);
    journal = expect (&w, "resource.journal");
    answer (&w, flux_msg_copy (journal, true), "{'events': []}");
    for (int i = 0; i < 3; i++) {
        refuse (&w, expect (&w, "resource.status"), ENOENT);
        assert_null (next (&w));
        assert_int_equal (w.errors, i);
        answer (&w, flux_msg_copy (journal, true), "{'events': [{}]}");
    }
    answer (&w, expect (&w, "resource.status"), NODES (""));
    flux_msg_destroy (journal);
    teardown (&w);
}

/* The journal is asked for again later each time, up to a limit.
 */
static void test_journal (void **state)
{
    static const double delays[] = { .1, .2, .4, .8, 1.6, 3.2, 5., 5. };
    struct world w;

    setup (&w);
    for (size_t i = 0; i < sizeof (delays) / sizeof (delays[0]); i++) {
        refuse (&w, expect (&w, "resource.journal"), ENOSYS);
        assert_null (next (&w));
        timer_fire (w.retry, delays[i]);
    }
    answer (&w, expect (&w, "resource.journal"), "{'events': []}");
    flux_msg_destroy (expect (&w, "resource.status"));
    assert_false (is_settled (&w));
    teardown (&w);
}

/* However many events come while the nodes are asked for, they are asked for
 * once more.
 */
static void test_flood (void **state)
{
    struct world w;
    flux_msg_t *journal;
    flux_msg_t *status;

    setup (&w);
    w.config.drain_compute_nodes = false;
    journal = expect (&w, "resource.journal");
    answer (&w, flux_msg_copy (journal, true), "{'events': []}");
    status = expect (&w, "resource.status");
    for (int i = 0; i < 5; i++)
        answer (&w, flux_msg_copy (journal, true), "{'events': [{}]}");
    assert_null (next (&w));
    answer (&w, status, NODES (""));
    answer (&w, expect (&w, "resource.status"), NODES (""));
    assert_null (next (&w));
    assert_true (is_settled (&w));
    flux_msg_destroy (journal);
    teardown (&w);
}

#define MAYBE_0 \
    "'0': {'timestamp': 1.0, 'reason': '" DWS_DRAIN_MAYBE " fluxjob-77'}"

/* The plugin has drained nodes. Whether they are clean is found out anew; when there is
 * no workflow any more they are, but not before it has been looked for by its name.
 */
static void test_maybe (void **state)
{
    struct dws_workflow wf = { .undrained = true };
    struct dws_job facts = { .id = 77 };
    struct job job = { .facts = &facts, .wf = &wf };
    struct world w;
    flux_msg_t *msg;
    const char *targets;

    setup (&w);
    w.config.drain_compute_nodes = false;
    job77 = &job;
    known = true;
    decisions = 0;
    answer (&w, expect (&w, "resource.journal"), "{'events': []}");
    answer (&w, expect (&w, "resource.status"), NODES (MAYBE_0));
    assert_null (next (&w));
    assert_int_equal (decisions, 1);
    assert_false (wf.undrained);

    job.wf = NULL;
    known = false;
    health_see_job (w.ctx.health, &job);
    assert_null (next (&w));
    known = true;
    health_agent_attached (w.ctx.health);
    assert_null (next (&w));
    job77 = NULL;
    looked_for = 0;
    health_agent_attached (w.ctx.health);
    assert_null (next (&w));
    assert_int_equal (looked_for, 77);
    facts.absent = true;
    health_see_job (w.ctx.health, &job);
    msg = expect (&w, "resource.undrain");
    assert_int_equal (flux_request_unpack (msg, NULL, "{s:s}",
                                           "targets", &targets), 0);
    assert_string_equal (targets, "0");
    health_see_job (w.ctx.health, &job);
    assert_null (next (&w));
    answer (&w, msg, "{}");
    answer (&w, expect (&w, "resource.status"), NODES (""));
    assert_null (next (&w));
    assert_int_equal (decisions, 1);
    job77 = NULL;
    known = false;
    teardown (&w);
}

static void expect_up (struct world *w, const char *text)
{
    flux_msg_t *msg = expect (w, "job-manager.dws.nodes");
    const char *payload;

    assert_int_equal (flux_msg_get_string (msg, &payload), 0);
    assert_string_equal (payload, text);
    answer (w, msg, "{}");
}

/* The plugin is told how many nodes are up, and how many there are, once: when it is
 * there, when the number changes, when the scheduler is one that need not know, and when the plugin comes again.
 */
static void test_nodes_up (void **state)
{
    struct world w;
    flux_msg_t *journal;

    setup (&w);
    w.config.drain_compute_nodes = false;
    journal = expect (&w, "resource.journal");
    answer (&w, flux_msg_copy (journal, true), "{'events': []}");
    answer (&w, expect (&w, "resource.status"), NODES (""));
    assert_null (next (&w));
    plugin = true;
    health_plugin_arrived (w.ctx.health);
    expect_up (&w, "{\"up\":2,\"all\":2}");
    scheduler = "fluxion";
    health_changed (w.ctx.health);
    assert_null (next (&w));
    answer (&w, journal, "{'events': [{}]}");
    answer (&w, expect (&w, "resource.status"),
            NODES ("'1': {'timestamp': 1.0, 'reason': ''}"));
    expect_up (&w, "{\"up\":1,\"all\":2}");
    scheduler = "sched-rabbit";
    health_changed (w.ctx.health);
    expect_up (&w, "{}");
    health_plugin_arrived (w.ctx.health);
    expect_up (&w, "{}");
    scheduler = NULL;
    health_changed (w.ctx.health);
    expect_up (&w, "{\"up\":1,\"all\":2}");
    plugin = false;
    teardown (&w);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_drain_refused), 
        cmocka_unit_test (test_drain_and_event),
        cmocka_unit_test (test_too_early),
        cmocka_unit_test (test_journal),
        cmocka_unit_test (test_flood),
        cmocka_unit_test (test_maybe),
        cmocka_unit_test (test_nodes_up),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
