/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of withheld.c: the record in the KVS of what is held (DWS_KEY_HELD), and
 * what sched-rabbit is told.
 */

#include "libdws/test/util.h"
#include "libutil/names.h"
#include "base/calls.h"
#include "base/commits.h"
#include "sched/scheduler.h"
#include "sched/withheld.h"

#define ID 7

static struct {
    const char *scheduler;
    bool deaf;                  // requests to the scheduler cannot be sent
    json_t *saved;              // DWS_KEY_HELD
    int told;
    struct job *job;
} w;

const char *scheduler_name (const struct scheduler *sched)
{
    return w.scheduler;
}

bool scheduler_is_fluxion (const struct scheduler *sched)
{
    return w.scheduler && !strcmp (w.scheduler, "fluxion");
}

bool scheduler_sought (const struct scheduler *sched)
{
    return true;
}

bool scheduler_knows (const struct scheduler *sched, unsigned int version)
{
    return true;
}

int commits_save (struct dws_ctx *ctx, const char *key, json_t *value)
{
    assert_string_equal (key, DWS_KEY_HELD);
    json_decref (w.saved);
    w.saved = json_deep_copy (value);
    return 0;
}

int calls_add (struct dws_ctx *ctx, flux_future_t *f, uint64_t jobid, int kind,
               call_f cb)
{
    if (!f)
        return -1;
    w.told++;
    flux_future_destroy (f);
    return 0;
}

flux_future_t *flux_rpc_pack (flux_t *h, const char *topic, uint32_t nodeid,
                              int flags, const char *fmt, ...)
{
    assert_string_equal (topic, "sched-rabbit.hold");
    if (w.deaf) {
        errno = EAGAIN;
        return NULL;
    }
    return flux_future_create (NULL, NULL);
}

void jobs_each (struct jobs *jobs, void (*cb)(struct job *job, void *arg),
                void *arg)
{
    cb (w.job, arg);
}

void jobs_changed (struct job *job)
{
}

bool job_torn_down (const struct job *job)
{
    return false;
}

struct fixture {
    struct dws_ctx ctx;
    struct dws_job facts;
    struct dws_workflow wf;
    struct job job;
};

/* A job in its epilog that has 1 GiB of a rabbit.
 */
static void begin (struct fixture *t, const char *scheduler)
{
    json_t *layout = J ("[{'servers': {'name': 'a', 'namespace': 'default'},"
                        " 'allocationSets': [{'label': 'xfs', 'allocationSize':"
                        " 1073741824, 'storage': [{'name': 'r0',"
                        " 'allocationCount': 1}]}]}]");

    *t = (struct fixture){ .facts = { .id = ID, .phase = DWS_PHASE_EPILOG } };
    t->wf.desired = DWS_STATE_DATAOUT;
    t->job = (struct job){ .ctx = &t->ctx, .facts = &t->facts, .wf = &t->wf };
    w.scheduler = scheduler;
    w.deaf = false;
    w.told = 0;
    w.job = &t->job;
    t->ctx.space = space_create ();
    assert_int_equal (space_claim (t->ctx.space, &t->job.claim, layout), 0);
    json_decref (layout);
}

static void end (struct fixture *t)
{
    space_free (t->ctx.space, &t->job.claim, true);
    free (t->job.claim.rabbits);
    space_destroy (t->ctx.space);
    json_decref (w.saved);
    w.saved = NULL;
}

static void test_hold (void **state)
{
    struct fixture t;

    begin (&t, "sched-rabbit");
    assert_true (withheld_needed (&t.job));
    flux_future_destroy (withheld_tell (&t.job));
    assert_false (withheld_needed (&t.job));
    assert_json (w.saved, "{'7': {'r0': 1073741824}}");
    withheld_end (&t.job);
    assert_json (w.saved, "{}");
    assert_int_equal (w.told, 1);
    withheld_end (&t.job);              // once
    assert_int_equal (w.told, 1);
    end (&t);
}

/* sched-rabbit does not get the hold, or answers with an error, and the storage is free
 * before the next try: the record must not stay.
 */
static void test_untold (void **state)
{
    for (int sent = 0; sent < 2; sent++) {
        struct fixture t;
        flux_future_t *f;

        begin (&t, "sched-rabbit");
        w.deaf = !sent;
        if ((f = withheld_tell (&t.job)))
            space_withhold_failed (&t.job.claim);
        assert_int_equal (f != NULL, sent);
        flux_future_destroy (f);
        assert_true (withheld_needed (&t.job));
        assert_json (w.saved, "{'7': {'r0': 1073741824}}");
        w.deaf = false;
        withheld_end (&t.job);
        assert_json (w.saved, "{}");
        assert_int_equal (w.told, 1);
        end (&t);
    }
}

/* Under another scheduler the record is for a sched-rabbit to come.
 */
static void test_alone (void **state)
{
    struct fixture t;

    begin (&t, NULL);
    assert_false (withheld_needed (&t.job));
    withheld_left (&t.job);
    assert_json (w.saved, "{'7': {'r0': 1073741824}}");
    withheld_end (&t.job);
    assert_json (w.saved, "{}");
    assert_int_equal (w.told, 0);
    end (&t);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_hold),
        cmocka_unit_test (test_untold),
        cmocka_unit_test (test_alone),
    };

    return cmocka_run_group_tests (tests, NULL, NULL);
}
