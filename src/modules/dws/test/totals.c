/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of totals.c and accounts.c.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libdws/config/config.h"
#include "libdws/directive/command.h"
#include "libdws/test/util.h"
#include "facts/jobs.h"
#include "facts/persistent.h"
#include "facts/space.h"
#include "facts/totals.h"

#define GIB (INT64_C (1) << 30)
#define MANY 20000

struct world {
    struct dws_ctx ctx;
    struct dws_config config;
    struct job *jobs;
    size_t count;
    bool known;                 // space
    json_int_t kept;            // bytes of persistent storage 'keep' of user 1
    size_t decided;             // how often a job was woken
    struct job *woken;          // the last one
};

#define BROKEN_DOWN \
    "[{'metadata': {'name': 'w-0'}, 'status': {'ready': true," \
    " 'storage': {'reference': {'name': 'w-0', 'namespace': 'd'}," \
    " 'allocationSets': [{'allocationStrategy': 'AllocatePerCompute'," \
    " 'label': 'xfs', 'minimumCapacity': 5368709120}]}}}]"

static struct world *current;

void jobs_changed (struct job *job)
{
    current->decided++;
    current->woken = job;
    totals_see_job (current->ctx.totals, job);
}

void jobs_each (struct jobs *jobs, void (*cb)(struct job *job, void *arg),
                void *arg)
{
    for (size_t i = 0; i < current->count; i++)
        cb (&current->jobs[i], arg);
}

bool job_torn_down (const struct job *job)
{
    return job->wf && job->wf->state == DWS_STATE_TEARDOWN && job->wf->ready;
}

bool space_known (const struct space *space)
{
    return current->known;
}

void persistent_each (const struct persistent *p, const struct space *space,
                      persistent_f visit, void *arg)
{
    if (current->kept > 0)
        visit (1, current->kept, arg);
}

/* So many jobs of user 1 in DEPEND, that ask for 4 GiB each.
 */
static void setup (struct world *w, size_t count, const char *rules)
{
    json_t *table = J (rules);
    dws_error_t e;

    memset (w, 0, sizeof (*w));
    current = w;
    w->known = true;
    w->count = count;
    w->ctx.config = &w->config;
    w->ctx.jobs = (struct jobs *)w;
    w->config.storage_limits = dws_limits_create (table, &e);
    json_decref (table);
    assert_non_null (w->config.storage_limits);
    assert_non_null (w->jobs = calloc (count, sizeof (w->jobs[0])));
    assert_non_null (w->ctx.totals = totals_create (&w->ctx));
    for (size_t i = 0; i < count; i++) {
        struct dws_job *facts = calloc (1, sizeof (*facts));

        assert_non_null (facts);
        facts->id = 10 + i;
        facts->userid = 1;
        facts->commands = DWS_COMMAND_JOBDW;
        facts->directives = D ("['#DW jobdw type=xfs capacity=4GiB"
                               " name=a']");
        facts->resources = strdup ("[{\"type\": \"node\", \"count\": 1}]");
        w->jobs[i].ctx = &w->ctx;
        w->jobs[i].facts = facts;
    }
}

static void teardown (struct world *w)
{
    totals_destroy (w->ctx.totals);
    for (size_t i = 0; i < w->count; i++) {
        assert_null (job_slot (&w->jobs[i], SLOT_TOTALS));
        dws_job_destroy (w->jobs[i].facts);
    }
    free (w->jobs);
    dws_limits_destroy (w->config.storage_limits);
}

static void see (struct world *w, size_t i)
{
    totals_see_job (w->ctx.totals, &w->jobs[i]);
}

/* What act/limits.c does.
 */
static bool admit (struct world *w, size_t i)
{
    struct job *job = &w->jobs[i];
    struct dws_subject subject = { .userid = job->facts->userid,
                                   .user = "u", .bank = job->facts->bank,
                                   .queue = job->facts->queue };
    struct dws_applying applying;

    if (totals_rules (job))
        return totals_admit (w->ctx.totals, job);
    assert_true (dws_limits_find (w->config.storage_limits, &subject,
                                  &applying));
    totals_set_rules (job, &applying);
    return totals_admit (w->ctx.totals, job);
}

static void end (struct world *w, size_t i)
{
    w->jobs[i].facts->phase = DWS_PHASE_EPILOG;
    see (w, i);
}

/* The first submitted is the first, whoever is looked at first.
 */
static void test_order (void **state)
{
    struct world w;

    setup (&w, 4, "{'a': {'total': '8GiB'}}");
    for (size_t i = 4; i-- > 0;)
        see (&w, i);
    assert_false (admit (&w, 3));
    assert_false (admit (&w, 2));
    assert_true (admit (&w, 0));
    assert_true (admit (&w, 1));
    assert_ptr_equal (w.woken, &w.jobs[2]);
    assert_false (admit (&w, 2));
    assert_contains (w.jobs[2].facts->awaits, "8 GiB of the 8 GiB");
    assert_contains (w.jobs[2].facts->awaits, "by 2 jobs (rabbit.limits.a");
    w.woken = NULL;
    end (&w, 0);
    assert_ptr_equal (w.woken, &w.jobs[2]);
    assert_true (admit (&w, 2));
    assert_null (w.jobs[2].facts->awaits);
    assert_ptr_equal (w.woken, &w.jobs[3]);
    teardown (&w);
}

/* A cancelled job makes way; one that was let in by an earlier module counts.
 */
static void test_facts (void **state)
{
    struct dws_workflow wf = { .state = DWS_STATE_PRERUN };
    struct world w;

    setup (&w, 3, "{'a': {'total': '4GiB'}}");
    w.jobs[0].facts->phase = DWS_PHASE_RUNNING;
    w.jobs[0].wf = &wf;
    for (size_t i = 0; i < 3; i++)
        see (&w, i);
    assert_false (admit (&w, 1));
    assert_false (admit (&w, 2));
    w.jobs[1].facts->exception = true;
    see (&w, 1);
    assert_null (w.jobs[1].facts->awaits);
    assert_ptr_equal (w.woken, &w.jobs[2]);
    assert_false (admit (&w, 2));
    wf.state = DWS_STATE_TEARDOWN;
    see (&w, 0);
    assert_false (admit (&w, 2));
    wf.ready = true;
    see (&w, 0);
    assert_true (admit (&w, 2));
    w.jobs[0].wf = NULL;
    teardown (&w);
}

/* Who waits for its user does not hold up its bank.
 */
static void test_bank (void **state)
{
    struct world w;

    setup (&w, 3, "{'u': {'total': '4GiB'},"
                  " 'b': {'total': '8GiB', 'per': 'bank'}}");
    for (size_t i = 0; i < 3; i++)
        w.jobs[i].facts->bank = strdup ("physics");
    w.jobs[2].facts->userid = 2;
    for (size_t i = 0; i < 3; i++)
        see (&w, i);
    assert_true (admit (&w, 0));
    assert_false (admit (&w, 2));
    assert_contains (w.jobs[2].facts->awaits, "bank physics");
    assert_false (admit (&w, 1));
    assert_contains (w.jobs[1].facts->awaits, "rabbit.limits.u");
    assert_ptr_equal (w.woken, &w.jobs[2]);
    assert_true (admit (&w, 2));
    end (&w, 0);
    assert_true (admit (&w, 1));
    teardown (&w);
}

/* Persistent storage counts once: for the job that makes it, then for its owner.
 */
static void test_persistent (void **state)
{
    struct world w;

    setup (&w, 2, "{'a': {'total': '8GiB'}}");
    w.jobs[0].facts->commands = DWS_COMMAND_CREATE_PERSISTENT;
    dws_directives_destroy (w.jobs[0].facts->directives);
    w.jobs[0].facts->directives = D ("['#DW create_persistent type=xfs"
                                     " capacity=4GiB name=keep']");
    see (&w, 0);
    see (&w, 1);
    w.known = false;
    assert_false (admit (&w, 0));
    assert_contains (w.jobs[0].facts->awaits, "to be known");
    w.known = true;
    totals_space_known (w.ctx.totals);
    assert_ptr_equal (w.woken, &w.jobs[0]);
    assert_true (admit (&w, 0));
    w.kept = 8 * GIB;
    totals_see_space (w.ctx.totals);
    end (&w, 0);
    assert_false (admit (&w, 1));
    assert_contains (w.jobs[1].facts->awaits,
                     "0 jobs and 1 persistent file system");
    w.woken = NULL;
    w.kept = 0;
    totals_see_space (w.ctx.totals);
    assert_ptr_equal (w.woken, &w.jobs[1]);
    assert_true (admit (&w, 1));
    teardown (&w);
}

/* NNF adds to what a job has been let in with: that job is let in once more, in the
 * order of all, and has what it had meanwhile no longer.
 */
static void test_again (void **state)
{
    struct dws_workflow wf[2] = {
        { .state = DWS_STATE_PROPOSAL, .desired = DWS_STATE_PROPOSAL },
        { .state = DWS_STATE_PROPOSAL, .desired = DWS_STATE_PROPOSAL },
    };
    json_t *objects = J (BROKEN_DOWN);
    struct world w;

    setup (&w, 3, "{'a': {'total': '9GiB'}}");
    for (size_t i = 0; i < 3; i++)
        see (&w, i);
    assert_true (admit (&w, 0));
    assert_true (admit (&w, 1));
    assert_false (admit (&w, 2));
    for (size_t i = 0; i < 2; i++) {
        w.jobs[i].wf = &wf[i];
        see (&w, i);
        assert_true (admit (&w, i));
    }
    for (size_t i = 2; i-- > 0;) {
        wf[i].breakdowns = dws_breakdowns_create (objects, NULL);
        see (&w, i);
    }
    assert_false (admit (&w, 1));
    assert_true (admit (&w, 0));
    assert_false (admit (&w, 1));
    assert_contains (w.jobs[1].facts->awaits, "4 GiB, and 1 GiB of NNF's own: "
                     "5 GiB of the 9 GiB");
    assert_false (admit (&w, 2));
    w.jobs[0].wf = NULL;
    end (&w, 0);
    assert_ptr_equal (w.woken, &w.jobs[1]);
    assert_true (admit (&w, 1));
    assert_true (admit (&w, 2));
    w.jobs[1].wf = NULL;
    for (size_t i = 0; i < 2; i++)
        dws_breakdowns_destroy (wf[i].breakdowns);
    json_decref (objects);
    teardown (&w);
}

/* Banks whose names differ by the least do not share a limit.
 */
static void test_banks (void **state)
{
    struct world w;

    setup (&w, 3, "{'b': {'total': '4GiB', 'per': 'bank'}}");
    for (size_t i = 0; i < 3; i++) {
        const char name[] = { (char)('b' + (i == 0) - (i == 2)), '\0' };

        w.jobs[i].facts->bank = strdup (name);
        see (&w, i);
        assert_true (admit (&w, i));
    }
    teardown (&w);
}

/* A job that waits goes by the rule of the queue and the bank that it has now.
 */
static void test_moved (void **state)
{
    struct world w;

    setup (&w, 2, "{'a': {'queue': 'a', 'total': '5GiB'},"
                  " 'b': {'queue': 'b', 'total': '6GiB'}}");
    for (size_t i = 0; i < 2; i++) {
        w.jobs[i].facts->queue = strdup ("a");
        see (&w, i);
    }
    assert_true (admit (&w, 0));
    assert_false (admit (&w, 1));
    assert_non_null (strstr (w.jobs[1].facts->awaits, "rabbit.limits.a.total"));

    free (w.jobs[1].facts->queue);
    w.jobs[1].facts->queue = strdup ("b");
    see (&w, 1);
    assert_null (w.jobs[1].facts->awaits);
    assert_null (totals_rules (&w.jobs[1]));
    assert_false (admit (&w, 1));
    assert_non_null (strstr (w.jobs[1].facts->awaits, "rabbit.limits.b.total"));

    w.jobs[1].facts->bank = strdup ("physics");
    see (&w, 1);
    assert_null (totals_rules (&w.jobs[1]));
    assert_false (admit (&w, 1));

    free (w.jobs[1].facts->queue);
    w.jobs[1].facts->queue = NULL;
    see (&w, 1);
    assert_true (admit (&w, 1));
    teardown (&w);
}

/* Each job that ends wakes one that waits, and no more.
 */
static void test_many (void **state)
{
    struct world w;

    setup (&w, MANY, "{'a': {'total': '4GiB'}}");
    for (size_t i = MANY; i-- > 0;)
        see (&w, i);
    for (size_t i = MANY; i-- > 0;)
        assert_true (admit (&w, i) == (i == 0));
    w.decided = 0;
    for (size_t i = 1; i < MANY; i++) {
        end (&w, i - 1);
        assert_ptr_equal (w.woken, &w.jobs[i]);
        assert_true (admit (&w, i));
        assert_true (i + 1 == MANY || !admit (&w, i + 1));
    }
    assert_true (w.decided <= 3 * MANY);
    teardown (&w);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_order),
        cmocka_unit_test (test_facts),
        cmocka_unit_test (test_bank),
        cmocka_unit_test (test_banks),
        cmocka_unit_test (test_persistent),
        cmocka_unit_test (test_again),
        cmocka_unit_test (test_moved),
        cmocka_unit_test (test_many),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
