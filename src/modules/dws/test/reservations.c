/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of reservations.c: what others have been promised, and when that is known. The test
 * answers for the KVS.
 */

#include "libdws/directive/command.h"
#include "libdws/test/util.h"
#include "act/reservations.h"
#include "act/kvs.h"
#include "base/calls.h"
#include "facts/config.h"
#include "facts/jobs.h"
#include "test/moments.h"

#define URI "interthread://given"
#define MAPPING \
    "{'computes': {'node0': 'r0'}," \
    " 'rabbits': {'r0': {'capacity': 107374182400, 'hostlist': 'node0'}}}"

/* As Fluxion writes it, with an ssd of 10 GiB.
 */
#define R10 \
    "{'version': 1, 'execution': {'R_lite': [{'rank': '0'," \
    "  'children': {'core': '0'}}], 'nodelist': ['node0'], 'starttime': 7.0}," \
    " 'scheduling': {'graph': {'nodes': [" \
    "  {'metadata': {'type': 'node', 'name': 'node0'," \
    "   'paths': {'containment': '/c/ch0/node0'}}}," \
    "  {'metadata': {'type': 'ssd', 'name': 'ssd0', 'size': 10," \
    "   'paths': {'containment': '/c/ch0/ssd0'}}}]}}}"
#define GIB10 "{'r0': 10737418240}"

#define JOBS 4

static struct world {
    flux_t *other;
    struct dws_config config;
    struct dws_ctx ctx;
    struct job jobs[JOBS];
    struct dws_job facts[JOBS];
    struct dws_workflow workflows[JOBS];
    flux_future_t *lookups[JOBS];
    int recalled;               // how often that was told
} w;

void jobs_each (struct jobs *jobs, void (*cb)(struct job *job, void *arg),
                void *arg)
{
    for (int i = 0; i < JOBS; i++)
        cb (&w.jobs[i], arg);
}

struct job *jobs_find (struct jobs *jobs, uint64_t id)
{
    return id < JOBS ? &w.jobs[id] : NULL;
}

const char *job_label (const struct job *job, char buf[JOB_LABEL_SIZE])
{
    return "job";
}

bool job_torn_down (const struct job *job)
{
    return false;
}

flux_future_t *kvs_lookup_job (flux_t *h, uint64_t id, const char *name)
{
    assert_string_equal (name, "R");
    assert_null (w.lookups[id]);
    assert_non_null (w.lookups[id] = flux_future_create (NULL, NULL));
    flux_future_set_flux (w.lookups[id], h);
    return w.lookups[id];
}

json_t *kvs_lookup_R_get (flux_future_t *f)
{
    const void *text;

    return flux_future_get (f, &text) == 0 ? J (text) : NULL;
}

static void jobs_recalled (struct dws_ctx *ctx)
{
    w.recalled++;
}

static const struct dws_events events = { .jobs_recalled = jobs_recalled };

static void setup (void)
{
    json_t *mapping = J (MAPPING);

    memset (&w, 0, sizeof (w));
    assert_non_null (w.config.topology = dws_topology_create (mapping, NULL));
    json_decref (mapping);
    assert_non_null (w.other = flux_open (URI, 0));
    assert_non_null (w.ctx.h = flux_open (URI, 0));
    w.ctx.config = &w.config;
    w.ctx.events = &events;
    assert_non_null (w.ctx.calls = calls_create ());
    for (int i = 0; i < JOBS; i++) {
        w.jobs[i].ctx = &w.ctx;
        w.jobs[i].facts = &w.facts[i];
        w.jobs[i].wf = &w.workflows[i];
        w.facts[i].id = i;
        w.facts[i].phase = DWS_PHASE_DEPEND;
        w.facts[i].commands = DWS_COMMAND_JOBDW;
    }
}

static void teardown (void)
{
    for (int i = 0; i < JOBS; i++) {
        dws_bytes_clear (&w.jobs[i].reserved);
        json_decref (w.jobs[i].ssds);
        dws_bytes_clear (&w.jobs[i].claim.bytes);
        free (w.facts[i].hosts);
    }
    calls_destroy (w.ctx.calls);
    flux_close (w.ctx.h);
    flux_close (w.other);
    dws_topology_destroy (w.config.topology);
}

/* The KVS has this for R of a job, or NULL: nothing.
 */
static void answer (int i, const char *R)
{
    assert_non_null (w.lookups[i]);
    if (R)
        flux_future_fulfill (w.lookups[i], (void *)R, NULL);
    else
        flux_future_fulfill_error (w.lookups[i], ENOENT, NULL);
    w.lookups[i] = NULL;
    for (int n = 0; n < 3; n++)
        assert_true (flux_reactor_run (flux_get_reactor (w.ctx.h),
                                       FLUX_REACTOR_NOWAIT) >= 0);
}

/* A job with nodes that has not taken what it was given, and whose R has not been read,
 * may have been given anything.
 */
static void test_known (void **state)
{
    static char hosts[] = "node0";

    setup ();
    assert_true (reservations_known (&w.ctx));
    w.facts[2].phase = DWS_PHASE_PROLOG;
    assert_false (reservations_known (&w.ctx));
    w.facts[2].commands = DWS_COMMAND_CREATE_PERSISTENT;
    assert_false (reservations_known (&w.ctx));
    w.facts[2].commands = DWS_COMMAND_PERSISTENTDW;
    assert_true (reservations_known (&w.ctx));
    w.facts[2].commands = DWS_COMMAND_JOBDW;
    w.facts[2].hosts = hosts;
    assert_true (reservations_known (&w.ctx));
    w.facts[2].hosts = NULL;
    w.jobs[2].claim.bytes = BYTES ("{'r0': 1}");
    assert_true (reservations_known (&w.ctx));
    dws_bytes_clear (&w.jobs[2].claim.bytes);
    w.facts[2].phase = DWS_PHASE_RUNNING;
    assert_true (reservations_known (&w.ctx));
    teardown ();
}

/* After a start that is so until all answers are there, whatever they are.
 */
static void test_recall (void **state)
{
    setup ();
    w.facts[1].phase = DWS_PHASE_PROLOG;
    w.facts[2].phase = DWS_PHASE_RUNNING;
    w.facts[3].phase = DWS_PHASE_PROLOG;
    reservations_recall (&w.ctx);
    assert_null (w.lookups[0]);
    assert_false (reservations_known (&w.ctx));
    answer (1, R10);
    assert_bytes (&w.jobs[1].reserved, GIB10);
    assert_json (w.jobs[1].ssds, "{'/c/ch0/ssd0': true}");
    assert_string_equal (w.facts[1].hosts, "node0");
    assert_true (w.jobs[1].t_alloc == 7.);
    answer (3, NULL);
    assert_int_equal (w.recalled, 0);
    w.facts[3].phase = DWS_PHASE_EPILOG;
    assert_false (reservations_known (&w.ctx));
    answer (2, R10);
    assert_int_equal (w.recalled, 1);
    assert_true (reservations_known (&w.ctx));

    reservations_recall (&w.ctx);              // what is known is not read again
    assert_null (w.lookups[1]);
    assert_null (w.lookups[2]);
    assert_int_equal (w.recalled, 1);
    answer (3, R10);
    assert_int_equal (w.recalled, 2);
    reservations_recall (&w.ctx);
    assert_int_equal (w.recalled, 3);
    teardown ();
}

/* A job that is gone had its nodes once: only its ssds may still be set down.
 */
static void test_recall_gone (void **state)
{
    setup ();
    w.facts[1].phase = DWS_PHASE_GONE;
    w.facts[2].phase = DWS_PHASE_GONE;
    w.jobs[2].wf = NULL;
    reservations_recall (&w.ctx);
    assert_null (w.lookups[2]);
    answer (1, R10);
    assert_false (w.jobs[1].R_read);
    assert_int_equal (w.jobs[1].reserved.count, 0);
    assert_null (w.facts[1].hosts);
    assert_json (w.jobs[1].ssds, "{'/c/ch0/ssd0': true}");
    assert_int_equal (w.recalled, 1);
    teardown ();
}

static void assert_promised (int i, const char *want)
{
    struct dws_bytes bytes = BYTES ("{'r0': 1}");

    reservations_add (&w.jobs[i], &bytes);
    assert_bytes (&bytes, want);
    dws_bytes_clear (&bytes);
}

/* What R of a job says is promised to that job until it has taken it.
 */
static void test_promised (void **state)
{
    setup ();
    for (int i = 1; i < JOBS; i++) {
        w.facts[i].phase = DWS_PHASE_PROLOG;
        w.jobs[i].reserved = BYTES ("{'r0': 10, 'r1': 100}");
    }
    assert_promised (0, "{'r0': 31, 'r1': 300}");
    assert_promised (1, "{'r0': 21, 'r1': 200}");
    w.jobs[2].claim.bytes = BYTES ("{'r0': 10}");
    assert_promised (1, "{'r0': 11, 'r1': 100}");
    w.facts[3].phase = DWS_PHASE_RUNNING;
    assert_promised (1, "{'r0': 1}");
    teardown ();
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_known),
        cmocka_unit_test (test_recall),
        cmocka_unit_test (test_recall_gone),
        cmocka_unit_test (test_promised),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
