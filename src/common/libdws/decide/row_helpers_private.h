/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Helpers of the rows of dws_reconcile()'s table: the facts as one argument, and
 * how to ask for actions and say what is waited for.
 */

#ifndef LIBDWS_ROW_HELPERS_PRIVATE_H
#define LIBDWS_ROW_HELPERS_PRIVATE_H

#include "reconcile.h"

struct view {
    const struct dws_job *job;
    const struct dws_workflow *wf;
    const struct dws_policy *policy;
    double now;
    struct dws_actions *out;
};

bool under_way (struct view *v, enum dws_action_kind kind);

/* Among the actions asked for so far.
 */
bool asks_for (struct view *v, enum dws_action_kind kind);

/* Ask for an action, unless it is under way or comes too late. Returns what
 * to fill in, or NULL.
 */
struct dws_action *act (struct view *v, enum dws_action_kind kind);

void wait_for (struct view *v, const char *reason);

/* True when 'timeout' seconds have passed since 'start'. Asks to be called
 * again at that time otherwise.
 */
bool expired (struct view *v, double start, double timeout);

/* The job's nodes: false if they have to be read first, which a module that has
 * just started has to do.
 */
bool have_hosts (struct view *v);

/* Have the breakdowns been read, if there are any? Asks to read them otherwise.
 */
bool have_breakdowns (struct view *v);

/* Is it known which nodes have mounts? A list read before the job started names the
 * nodes that lack them, and does not count. have_mounted() asks for a new one then.
 */
bool know_mounted (const struct dws_workflow *wf);
bool have_mounted (struct view *v);

/* Save the timing of the state that was reached, or the last of the workflow
 * before its Teardown. Several may be under way.
 */
void save_timing (struct view *v);
void save_last (struct view *v);

void desire (struct view *v, enum dws_state state);
void drop_finalizer (struct view *v);

/* The job cannot go on. Say so, once. 'type' may be NULL: by the job's phase.
 */
void fail (struct view *v, const char *type, const char *fmt, ...)
    __attribute__ ((format (printf, 3, 4)));

/* The state has taken longer than 'limit' seconds, which 'fmt' has to print: fail the
 * job with the message of DWS.
 */
void fail_late (struct view *v, const char *fmt, double limit)
    __attribute__ ((format (printf, 2, 0)));

/* The job cannot go on, for the reason that the workflow in Error gives.
 */
void fail_message (struct view *v);

/* Has the workflow been in TransientCondition for too long, and the failure for
 * that.
 */
bool transient_expired (struct view *v);
void fail_transient (struct view *v);

/* May the job be let into the queue: not refused, and its breakdowns read? Fails a
 * refused job; else asks to save the timing, and to read the breakdowns.
 */
bool may_offer (struct view *v);

/* adopt() takes over a workflow that is not ours yet (adopt.c). keep_label() restores the
 * lost label of one of ours, whatever else is done.
 */
void adopt (struct view *v);
void keep_label (struct view *v);

#endif /* !LIBDWS_ROW_HELPERS_PRIVATE_H */
