/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See scheduler_private.h.
 */

#include <errno.h>

#include "libdws/health/fluxion.h"
#include "libutil/safelog.h"
#include "base/retry.h"
#include "sched/scheduler_private.h"

void sched_forget_graph (struct scheduler *sched)
{
    dws_fluxion_destroy (sched->fx);
    sched->fx = NULL;
    json_decref (sched->queue);
    sched->queue = NULL;
    sched->next = 0;
}

void sched_push_news (struct scheduler *sched)
{
    if (sched->current && sched->rabbits && !sched->failed)
        sched->current->backend->push (sched);
}

void sched_push_later (struct scheduler *sched)
{
    sched->failed = true;
    sched->dirty = true;
    sched_forget_graph (sched);
    if (sched->under_way == 0)
        retry_later (sched->current->retry);
}

void sched_begin_telling (struct scheduler *sched)
{
    json_decref (sched->telling);
    sched->telling = json_incref (sched->rabbits);
}

void sched_heard (struct scheduler *sched)
{
    json_decref (sched->heard);
    sched->heard = sched->telling;
    sched->telling = NULL;
    sched->ctx->events->scheduler_acknowledged (sched->ctx);
}

bool sched_take_response (const struct call *call, flux_future_t *f,
                          struct scheduler *sched, const char *what)
{
    if (call->kind != sched->generation)
        return false;
    sched->under_way--;
    if (flux_future_get (f, NULL) < 0) {
        if (!sched->failed)
            safe_log (call->ctx->h, LOG_ERR, "%s: %s: %s",
                      sched->current->backend->name, what,
                      future_strerror (f, errno));
        sched_push_later (sched);
        return false;
    }
    if (sched->failed) {
        if (sched->under_way == 0)
            retry_later (sched->current->retry);
        return false;
    }
    return true;
}

bool sched_ask (struct scheduler *sched, flux_future_t *f, call_f cb)
{
    if (calls_add (sched->ctx, f, 0, sched->generation, cb) < 0) {
        safe_log_error (sched->ctx->h, "%s", sched->current->backend->name);
        sched_push_later (sched);
        return false;
    }
    sched->under_way++;
    return true;
}
