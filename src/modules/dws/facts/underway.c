/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See underway.h.
 */

#include "facts/underway.h"

static int count_asked (const struct underway *u, int kind)
{
    return u->kinds[kind].asked[WAY_AGENT] + u->kinds[kind].asked[WAY_FLUX];
}

/* A kind is busy while an answer is lacking or the kind waits for its retry.
 */
static void set_busy (const struct underway *u, struct dws_job *facts,
                      int kind)
{
    if (count_asked (u, kind) > 0 || u->kinds[kind].failed)
        facts->busy |= DWS_BUSY (kind);
    else
        facts->busy &= ~DWS_BUSY (kind);
}

void underway_begin (struct underway *u, struct dws_job *facts,
                     enum dws_action_kind kind, enum way way)
{
    u->kinds[kind].asked[way]++;
    set_busy (u, facts, kind);
}

bool underway_end (struct underway *u, struct dws_job *facts,
                   enum dws_action_kind kind, enum way way, bool ok)
{
    if (u->kinds[kind].asked[way] > 0)
        u->kinds[kind].asked[way]--;
    if (!ok)
        u->kinds[kind].failed = true;
    set_busy (u, facts, kind);
    return !(facts->busy & DWS_BUSY (kind));
}

bool underway_is_last (const struct underway *u, enum dws_action_kind kind)
{
    return count_asked (u, kind) == 1 && !u->kinds[kind].failed;
}

bool underway_any (const struct underway *u)
{
    for (int kind = 0; kind < DWS_ACT_COUNT; kind++) {
        if (count_asked (u, kind) > 0)
            return true;
    }
    return false;
}

bool underway_repeat (struct underway *u, struct dws_job *facts)
{
    bool more = false;

    for (int kind = 0; kind < DWS_ACT_COUNT; kind++) {
        if (!u->kinds[kind].failed)
            continue;
        if (count_asked (u, kind) > 0) {
            more = true;
            continue;
        }
        u->kinds[kind].failed = false;
        set_busy (u, facts, kind);
    }
    return more;
}

void underway_save (struct underway *u, struct dws_job *facts, uint32_t bit)
{
    facts->saved |= bit;
}

void underway_read_begin (struct underway *u, uint32_t bit)
{
    u->reading |= bit;
}

bool underway_read_end (struct underway *u, uint32_t bit)
{
    bool wanted = (u->reading & bit) != 0;

    u->reading &= ~bit;
    return wanted;
}

void underway_agent_lost (struct underway *u, struct dws_job *facts)
{
    for (int kind = 0; kind < DWS_ACT_COUNT; kind++) {
        u->kinds[kind].asked[WAY_AGENT] = 0;
        if (dws_action_needs_agent (kind))
            u->kinds[kind].failed = false;
        set_busy (u, facts, kind);
    }
    facts->saved &= ~u->reading;
    u->reading = 0;
}

void underway_workflow_gone (struct underway *u, struct dws_job *facts)
{
    u->reading = 0;
    facts->saved = 0;
}
