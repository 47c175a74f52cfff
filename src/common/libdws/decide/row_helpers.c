/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See row_helpers_private.h.
 */

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "row_helpers_private.h"

#define BY_AGENT true
#define BY_FLUX false
#define ACTION(KIND, ident, name, by) [DWS_ACT_##KIND] = { name, BY_##by },

static const struct {
    const char *name;
    bool needs_agent;
} actions[DWS_ACT_COUNT] = {
    DWS_ACTIONS (ACTION)
};

const char *dws_action_name (enum dws_action_kind kind)
{
    return (size_t)kind < DWS_ACT_COUNT ? actions[kind].name : "";
}

bool dws_action_needs_agent (enum dws_action_kind kind)
{
    return (size_t)kind < DWS_ACT_COUNT && actions[kind].needs_agent;
}

bool dws_is_data_first (const struct dws_job *job, const struct dws_workflow *wf)
{
    return wf && wf->data_first && job->data_first != DWS_FIRST_NO;
}

bool under_way (struct view *v, enum dws_action_kind kind)
{
    return (v->job->busy & DWS_BUSY (kind)) != 0;
}

bool asks_for (struct view *v, enum dws_action_kind kind)
{
    for (size_t i = 0; i < v->out->count; i++) {
        if (v->out->list[i].kind == kind)
            return true;
    }
    return false;
}

static struct dws_action *append_action (struct view *v,
                                         enum dws_action_kind kind)
{
    /* No row comes near the limit: the tests visit all of them. */
    struct dws_action *a = &v->out->list[v->out->count++];

    memset (a, 0, sizeof (*a));
    a->kind = kind;
    return a;
}

/* A step forward that arrives after Teardown was asked for, and before DWS has
 * taken that up, would undo it.
 */
static bool comes_too_late (struct view *v, enum dws_action_kind kind)
{
    return (kind == DWS_ACT_DESIRE || kind == DWS_ACT_PROLOG_REMOVE)
        && under_way (v, DWS_ACT_TEARDOWN);
}

struct dws_action *act (struct view *v, enum dws_action_kind kind)
{
    if (under_way (v, kind) || comes_too_late (v, kind))
        return NULL;
    return append_action (v, kind);
}

void wait_for (struct view *v, const char *reason)
{
    v->out->reason = reason;
}

bool expired (struct view *v, double start, double timeout)
{
    double when = start + timeout;

    if (timeout < 0. || start <= 0.)
        return false;
    if (v->now >= when)
        return true;
    if (v->out->wake == 0. || when < v->out->wake)
        v->out->wake = when;
    return false;
}

bool have_hosts (struct view *v)
{
    if (v->job->hosts)
        return true;
    wait_for (v, "the resource set");
    act (v, DWS_ACT_HOSTS);
    return false;
}

bool have_breakdowns (struct view *v)
{
    if (v->wf->breakdowns || v->wf->breakdown_count == 0)
        return true;
    wait_for (v, "the directive breakdowns");
    act (v, DWS_ACT_BREAKDOWNS);
    return false;
}

bool know_mounted (const struct dws_workflow *wf)
{
    return wf->lag_state == wf->state && !wf->lag_missing;
}

bool have_mounted (struct view *v)
{
    if (know_mounted (v->wf))
        return true;
    wait_for (v, "a list of the nodes that are still mounted");
    act (v, DWS_ACT_MOUNTS);
    return false;
}

static void ask_to_save (struct view *v, uint32_t bit, bool whole)
{
    struct dws_action *a;

    if ((v->job->saved & bit))
        return;
    a = append_action (v, DWS_ACT_SAVE);
    a->state = v->wf->state;
    a->bit = bit;
    a->whole = whole;
}

void save_timing (struct view *v)
{
    ask_to_save (v, DWS_SAVED (v->wf->state),
                 v->wf->state == DWS_STATE_PROPOSAL);
}

void save_last (struct view *v)
{
    ask_to_save (v, DWS_SAVED_LAST, true);
}

void desire (struct view *v, enum dws_state state)
{
    struct dws_action *a;

    if ((a = act (v, DWS_ACT_DESIRE)))
        a->state = state;
    wait_for (v, "the workflow to take up its next state");
}

void drop_finalizer (struct view *v)
{
    if (v->wf->finalizer)
        act (v, DWS_ACT_FINALIZER);
}

static const char *exception_type (enum dws_phase phase)
{
    switch (phase) {
        case DWS_PHASE_DEPEND:
        case DWS_PHASE_PENDING:
            return DWS_EXCEPTION_CREATE;
        case DWS_PHASE_PROLOG:
            return DWS_EXCEPTION_SETUP;
        case DWS_PHASE_RUNNING:
            return DWS_EXCEPTION_RUN;
        default:
            return DWS_EXCEPTION_EPILOG;
    }
}

void fail (struct view *v, const char *type, const char *fmt, ...)
{
    const struct dws_job *job = v->job;
    enum dws_action_kind kind = DWS_ACT_RAISE;
    struct dws_action *a;
    dws_error_t text;
    char buf[1024];
    va_list ap;

    wait_for (v, "the job to end after an exception");
    if (job->released) {
        wait_for (v, "the loss of data to be recorded");
        kind = DWS_ACT_REPORT;
    }
    else if (job->phase == DWS_PHASE_DEPEND)
        kind = DWS_ACT_REJECT;
    if ((job->released ? job->reported : job->raised)
        || !(a = act (v, kind)))
        return;
    va_start (ap, fmt);
    vsnprintf (buf, sizeof (buf), fmt, ap);
    va_end (ap);
    dws_error (&text, 0, "%s", buf);
    strcpy (a->text, text.text);    // as large, and zero beyond the end
    a->type = type ? type : exception_type (job->phase);
}

/* The message belongs to wf->state: leave it out if DWS has not begun wf->desired.
 */
void fail_late (struct view *v, const char *fmt, double limit)
{
    const struct dws_workflow *wf = v->wf;
    dws_error_t text;

    dws_error (&text, 0, fmt, limit);
    if (wf->state != wf->desired)
        fail (v, DWS_EXCEPTION_TIMEOUT, "%s: DWS has not begun with %s", text.text,
              dws_state_name (wf->desired));
    else
        fail (v, DWS_EXCEPTION_TIMEOUT, "%s%s%s", text.text,
              *wf->message ? ": " : "", wf->message);
}

void fail_message (struct view *v)
{
    fail (v, NULL, "workflow error in %s: %s",
          dws_state_name (v->wf->state), v->wf->message);
}

bool transient_expired (struct view *v)
{
    return v->wf->status == DWS_STATUS_TRANSIENT
        && expired (v, v->wf->t_transient, v->policy->tc_timeout);
}

void fail_transient (struct view *v)
{
    fail (v, NULL, "workflow in TransientCondition for longer than %gs: %s",
          v->policy->tc_timeout, v->wf->message);
}

bool may_offer (struct view *v)
{
    if (v->job->refusal) {
        fail (v, NULL, "%s", v->job->refusal);
        return false;
    }
    save_timing (v);
    return have_breakdowns (v);
}
