/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of tally.c: after any changes it says what a walk over the jobs
 * would.
 */

#include <stdlib.h>
#include <string.h>

#include "libdws/test/util.h"
#include "facts/jobs.h"
#include "facts/tally.h"

#define JOBS 50

struct world {
    struct tally tally;
    struct job jobs[JOBS];
    struct dws_job facts[JOBS];
    struct dws_workflow workflows[JOBS];
};

static void change (struct world *w, int i)
{
    struct job *job = &w->jobs[i];
    struct dws_workflow *wf = &w->workflows[i];

    job->facts = &w->facts[i];
    job->facts->phase = rand () % (DWS_PHASE_GONE + 1);
    wf->state = rand () % (DWS_STATE_TEARDOWN + 1);
    wf->desired = rand () % (DWS_STATE_TEARDOWN + 1);
    wf->ready = rand () % 2;
    wf->t_desired = rand () % 100;
    job->wf = rand () % 4 ? wf : NULL;
}

static void expect_same (const struct world *w)
{
    struct counts counts = { 0 };
    const struct job *oldest = NULL;
    int mounting = 0;

    for (int i = 0; i < JOBS; i++) {
        const struct job *job = &w->jobs[i];
        const struct dws_workflow *wf = job->wf;

        if (!job->counted.job)
            continue;
        counts.jobs++;
        counts.phases[job->facts->phase]++;
        if (!wf) {
            if (job->facts->phase <= DWS_PHASE_PROLOG)
                counts.unmade++;
            continue;
        }
        counts.workflows++;
        counts.states[wf->state]++;
        if ((!wf->ready || wf->state != wf->desired) && wf->t_desired > 0.
            && (!oldest || wf->t_desired < oldest->wf->t_desired))
            oldest = job;
        if ((!wf->ready || wf->state != wf->desired) && wf->t_desired > 0.
            && (wf->state == DWS_STATE_PRERUN || wf->state == DWS_STATE_POSTRUN))
            mounting++;
    }
    assert_int_equal (w->tally.mounting, mounting);
    assert_memory_equal (&w->tally.counts, &counts, sizeof (counts));
    if (oldest)
        assert_true (tally_oldest (&w->tally)->wf->t_desired
                     == oldest->wf->t_desired);
    else
        assert_null (tally_oldest (&w->tally));
}

static void test_same_as_a_walk (void **state)
{
    struct world *w = calloc (1, sizeof (*w));

    assert_non_null (w);
    expect_same (w);
    srand (1);
    for (int i = 0; i < 20000; i++) {
        int which = rand () % JOBS;

        if (rand () % 5 == 0)
            tally_remove (&w->tally, &w->jobs[which]);
        else {
            change (w, which);
            tally_update (&w->tally, &w->jobs[which]);
        }
        expect_same (w);
    }
    for (int i = 0; i < JOBS; i++)
        tally_remove (&w->tally, &w->jobs[i]);
    expect_same (w);
    assert_int_equal (w->tally.counts.jobs, 0);
    free (w);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_same_as_a_walk),
    };

    return cmocka_run_group_tests (tests, NULL, NULL);
}
