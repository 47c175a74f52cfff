/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See tally.h.
 */

#include <string.h>

#include "facts/jobs.h"
#include "facts/tally.h"

static bool is_mounting (const struct counted *c)
{
    return c->state == DWS_STATE_PRERUN || c->state == DWS_STATE_POSTRUN;
}

static void unlink_late (struct tally *tally, struct job *job)
{
    struct counted *c = &job->counted;

    if (c->prev)
        c->prev->counted.next = c->next;
    else
        tally->late = c->next;
    if (c->next)
        c->next->counted.prev = c->prev;
    tally->mounting -= is_mounting (c);
}

static void link_late (struct tally *tally, struct job *job)
{
    struct counted *c = &job->counted;

    c->prev = NULL;
    if ((c->next = tally->late))
        c->next->counted.prev = job;
    tally->late = job;
    tally->mounting += is_mounting (c);
}

void counts_add (struct counts *counts, const struct counted *c, int by)
{
    counts->jobs += by;
    counts->phases[c->phase] += by;
    if (c->workflow) {
        counts->workflows += by;
        counts->states[c->state] += by;
    }
    else if (c->phase <= DWS_PHASE_PROLOG)
        counts->unmade += by;
}

void tally_remove (struct tally *tally, struct job *job)
{
    struct counted *c = &job->counted;

    if (!c->job)
        return;
    counts_add (&tally->counts, c, -1);
    if (c->late)
        unlink_late (tally, job);
    memset (c, 0, sizeof (*c));
}

void tally_update (struct tally *tally, struct job *job)
{
    struct counted *c = &job->counted;
    const struct dws_workflow *wf = job->wf;

    tally_remove (tally, job);
    c->job = true;
    c->phase = job->facts->phase;
    if (wf) {
        c->workflow = true;
        c->state = wf->state;
        c->since = wf->t_desired;
        c->late = !(wf->ready && wf->state == wf->desired) && c->since > 0.;
    }
    counts_add (&tally->counts, c, 1);
    if (c->late)
        link_late (tally, job);
}

struct job *tally_oldest (const struct tally *tally)
{
    struct job *oldest = tally->late;

    for (struct job *job = oldest; job; job = job->counted.next) {
        if (job->counted.since < oldest->counted.since)
            oldest = job;
    }
    return oldest;
}
