/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See abort.h.
 */

#include <errno.h>
#include <stdlib.h>
#include <flux/hostlist.h>

#include "libdws/util/lists.h"
#include "libutil/errno_safe.h"
#include "libutil/safelog.h"
#include "act/abort.h"
#include "agent/agent.h"
#include "base/requests.h"
#include "facts/sync.h"
#include "sched/withheld.h"
#include "sched/scheduler.h"

struct request {
    const flux_msg_t *msg;
    uint64_t jobid;
    struct request *next;
};

struct aborts {
    struct dws_ctx *ctx;
    struct request *list;
};

static void respond (struct aborts *aborts, const flux_msg_t *msg, int errnum)
{
    flux_t *h = aborts->ctx->h;
    const char *errstr = errnum == EAGAIN
                         ? "which nodes are mounted is not known" : NULL;
    int rc = errnum ? flux_respond_error (h, msg, errnum, errstr)
                    : flux_respond (h, msg, NULL);

    if (rc < 0)
        safe_log_error (h, "error responding to dws.abort");
}

/* Answer the requests about 'job', or all requests if that is NULL.
 */
static void answer (struct aborts *aborts, const struct job *job, int errnum)
{
    struct request **p = &aborts->list;

    while (*p) {
        struct request *r = *p;

        if (job && r->jobid != job->facts->id) {
            p = &r->next;
            continue;
        }
        *p = r->next;
        respond (aborts, r->msg, errnum);
        flux_msg_decref (r->msg);
        free (r);
    }
}

static bool is_secured (const struct job *job)
{
    return !(job->facts->busy & DWS_BUSY (DWS_ACT_DRAIN))
        && dws_nodes_secured (job->facts, job->wf)
        && dws_rabbits_secured (job->wf);
}

/* Is the scheduler certain not to allocate storage of these rabbits (a
 * hostlist)?
 */
static bool are_barred (struct dws_ctx *ctx, const char *rabbits)
{
    struct hostlist *hl = dws_hostlist_decode (rabbits);
    bool barred = hl != NULL;
    const char *rabbit;

    for (rabbit = hl ? hostlist_first (hl) : NULL; rabbit && barred;
         rabbit = hostlist_next (hl))
        barred = scheduler_bars (ctx->scheduler, rabbit);
    hostlist_destroy (hl);
    return barred;
}

static bool awaits_scheduler (const struct job *job)
{
    return job->facts->abandoned && job->wf && job->wf->disabled
        && !job->wf->barred;
}

static void look_at_rabbits (struct job *job, void *arg)
{
    if (awaits_scheduler (job)
        && are_barred (job->ctx, job->wf->allocated)) {
        job->wf->barred = true;
        jobs_changed (job);
    }
}

void aborts_see_scheduler (struct aborts *aborts)
{
    jobs_each (aborts->ctx->jobs, look_at_rabbits, NULL);
}

/* A job in phase gone has ended already, so its request is answered at once.
 */
void aborts_add (struct aborts *aborts, const flux_msg_t *msg, struct job *job)
{
    struct dws_ctx *ctx = aborts->ctx;
    const flux_msg_t *kept;
    struct request *r;

    if (job)
        withheld_abandoned (job);
    if (job && job->facts->phase == DWS_PHASE_GONE)
        respond (aborts, msg, 0);
    else if (!agent_ready (ctx->agent) || !sync_done (ctx->sync))
        respond (aborts, msg, EAGAIN);
    else if (!job || is_secured (job))
        respond (aborts, msg, 0);
    else if (!(kept = requests_keep (ctx->requests, msg, REQUESTS_WAITING,
                                     NULL)))
        respond (aborts, msg, errno);
    else if (!(r = calloc (1, sizeof (*r)))) {
        respond (aborts, msg, ENOMEM);
        flux_msg_decref (kept);
    }
    else {
        r->msg = kept;
        r->jobid = job->facts->id;
        r->next = aborts->list;
        aborts->list = r;
    }
}

void aborts_see_job (struct aborts *aborts, struct job *job)
{
    if (awaits_scheduler (job) && are_barred (job->ctx, job->wf->allocated))
        job->wf->barred = true;
    if (aborts->list && is_secured (job))
        answer (aborts, job, 0);
}

void aborts_forget_job (struct aborts *aborts, const struct job *job)
{
    answer (aborts, job, 0);
}

void aborts_failed (struct aborts *aborts, const struct job *job)
{
    ERRNO_SAFE_BLOCK;

    answer (aborts, job, errno);
}

void aborts_agent_lost (struct aborts *aborts)
{
    answer (aborts, NULL, EAGAIN);
}

struct aborts *aborts_create (struct dws_ctx *ctx)
{
    struct aborts *aborts;

    if ((aborts = calloc (1, sizeof (*aborts))))
        aborts->ctx = ctx;
    return aborts;
}

void aborts_destroy (struct aborts *aborts)
{
    if (aborts) {
        ERRNO_SAFE_BLOCK;
        answer (aborts, NULL, ENOSYS);
        free (aborts);
    }
}
