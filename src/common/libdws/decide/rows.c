/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See rows_private.h.
 */

#include <stddef.h>
#include <stdio.h>

#include "libdws/directive/command.h"
#include "rows_private.h"

/* Is there a workflow?
 */

/* Only a get by name can tell: watches and lists show only workflows with our label, and
 * a list may be older than the workflow.
 */
void row_look (struct view *v)
{
    wait_for (v, "the workflow to be read by its name");
    act (v, DWS_ACT_LOOK);
}

/* The way to the job's start
 */

void row_create (struct view *v)
{
    wait_for (v, v->job->awaits ? v->job->awaits
                                : "the workflow to be created");
    if (v->job->refusal)
        fail (v, NULL, "%s", v->job->refusal);
    else
        act (v, DWS_ACT_CREATE);
}

void row_offer (struct view *v)
{
    if (may_offer (v))
        offer (v);
}

/* Report lagging nodes to the job before anything else: a module that restarts between
 * two steps cannot tell which nodes the job knows of. The property badrabbit keeps jobs
 * from nodes whose rabbit is known to be down: only other nodes are drained.
 */
static bool have_notified (struct view *v)
{
    if (!v->wf->notified) {
        act (v, DWS_ACT_NOTIFY);
        return false;
    }
    if (v->wf->state != DWS_STATE_PROPOSAL && !v->wf->drained)
        act (v, DWS_ACT_DRAIN);
    return true;
}

/* Leave the nodes that lag out of Computes.
 */
static void leave_out (struct view *v)
{
    if (have_notified (v))
        act (v, DWS_ACT_EXCLUDE);
}

/* Leave Computes as it is once there are mounts: when it changes NNF assigns the
 * allocations of a rabbit anew, and nodes with a mount would get those of others.
 */
static void waive (struct view *v)
{
    if (have_notified (v))
        act (v, DWS_ACT_FORCE_READY);
}

/* The layout has found rabbits down, and their nodes may be left out. Returns
 * false while Computes still has these nodes.
 */
static bool settle_down (struct view *v)
{
    if (v->wf->lag_state != v->wf->state || v->wf->lagging_count == 0
        || v->wf->excluded)
        return true;
    wait_for (v, "the nodes of rabbits that are down to be left out");
    leave_out (v);
    return false;
}

void row_place (struct view *v)
{
    bool complete;

    if (v->job->refusal) {
        fail (v, NULL, "%s", v->job->refusal);
        return;
    }
    complete = have_breakdowns (v);
    complete &= have_hosts (v);
    if (!v->wf->computes) {
        wait_for (v, "the Computes object");
        complete = false;
    }
    if (!complete || !settle_down (v))
        return;
    if (v->wf->servers_written && v->wf->computes_written) {
        desire (v, DWS_STATE_SETUP);
        return;
    }
    wait_for (v, v->job->awaits ? v->job->awaits
                                : "the servers and computes to be written");
    if (!v->wf->servers_written)
        act (v, DWS_ACT_SERVERS);
    if (!v->wf->computes_written)
        act (v, DWS_ACT_COMPUTES);
}

/* A state is ready, maybe without a forceReady: DWS takes a change of Computes up
 * by itself, and a node may mount in the last moment. Returns false if nodes are
 * just being left out.
 */
static bool settle_left_out (struct view *v)
{
    if (under_way (v, DWS_ACT_EXCLUDE) || under_way (v, DWS_ACT_FORCE_READY)) {
        wait_for (v, "the nodes that failed to be left out");
        return false;
    }
    return true;
}

void row_next (struct view *v)
{
    if (!settle_left_out (v) || !have_computes (v))
        return;
    save_timing (v);
    desire (v, v->wf->desired + 1);
}

/* True when the nodes or rabbits that lag in this state have been read. Asks to
 * read them otherwise.
 */
static bool have_lagging (struct view *v)
{
    if (v->wf->lag_state == v->wf->state)
        return true;
    wait_for (v, "a list of the nodes that lag behind");
    act (v, v->wf->state == DWS_STATE_SETUP ? DWS_ACT_ALLOCATIONS
                                            : DWS_ACT_MOUNTS);
    return false;
}

/* A workflow that is forced ready lacks the variables of all file systems after the
 * one that NNF waited for: read their paths from the mounts.
 */
static bool have_places (struct view *v)
{
    return !v->wf->force_ready || v->wf->mounts < 2 || have_lagging (v);
}

void row_release_prolog (struct view *v)
{
    /* Containers are told which nodes there are on each rabbit. */
    if (!settle_left_out (v) || (v->wf->containers && !have_hosts (v))
        || !have_places (v))
        return;
    wait_for (v, "the prolog to be released");
    save_timing (v);
    act (v, DWS_ACT_PROLOG_REMOVE);
}

/* The state takes too long. If the job can do without the nodes that are to
 * blame, go on without them. Returns false if the job has to fail.
 */
static bool go_on_without (struct view *v)
{
    const struct dws_workflow *wf = v->wf;

    /* In a state that DWS has not taken up nothing lags, and a forceReady
     * would be lost. */
    if (v->job->failure_tolerance <= 0 || wf->state != wf->desired
        || v->job->phase != DWS_PHASE_PROLOG)
        return false;
    if (wf->force_ready) {
        wait_for (v, "the workflow to go on without the nodes that failed");
        return true;
    }
    if (!have_hosts (v) || !have_lagging (v))
        return true;
    if (wf->lagging_count == 0
        || wf->lagging_count > (size_t)v->job->failure_tolerance
        || (wf->shared && wf->state == DWS_STATE_SETUP))
        return false;
    wait_for (v, "the nodes that failed to be left out");
    if (wf->state == DWS_STATE_SETUP && !wf->excluded)
        leave_out (v);
    else
        waive (v);
    return true;
}

/* NNF mounts and unmounts on the nodes of Computes. If somebody deletes that object
 * or edits its nodes, NNF waits for ever, in Teardown without a message. DWS makes
 * Computes in Proposal alone. In a state that lasts, with nothing else to do, read
 * the object now and then.
 */
#define COMPUTES_FIRST 10.
#define COMPUTES_AGAIN 60.

static bool needs_computes (const struct dws_workflow *wf)
{
    if (wf->deleting)
        return wf->state >= DWS_STATE_PRERUN;
    return wf->state == wf->desired
        && ((wf->state == DWS_STATE_SETUP && !wf->data_first)
            || wf->state == DWS_STATE_PRERUN || wf->state == DWS_STATE_POSTRUN
            || wf->state == DWS_STATE_TEARDOWN);
}

static void keep_computes (struct view *v)
{
    const struct dws_workflow *wf = v->wf;
    bool known = v->job->directives || v->job->released || v->job->abandoned;

    if (!known || v->job->phase < DWS_PHASE_PROLOG || v->out->count > 0
        || !wf->computes || !needs_computes (wf)
        || !expired (v, wf->t_desired, COMPUTES_FIRST)
        || (wf->t_computes > 0.
            && !expired (v, wf->t_computes, COMPUTES_AGAIN)))
        return;
    act (v, v->job->hosts ? DWS_ACT_REPAIR : DWS_ACT_HOSTS);
}

void row_set_up (struct view *v)
{
    wait_for (v, "the file systems to be created");
    if (expired (v, v->wf->t_desired, v->policy->setup_timeout)
        && !go_on_without (v))
        fail_late (v, "creating file systems took longer than %gs",
                   v->policy->setup_timeout);
    keep_computes (v);
}

static void limit_mounting (struct view *v)
{
    wait_for (v, "the file systems to be mounted");
    if (expired (v, v->wf->t_desired, v->policy->prerun_timeout)
        && !go_on_without (v))
        fail_late (v, "mounting file systems took longer than %gs",
                   v->policy->prerun_timeout);
}

void row_mount (struct view *v)
{
    limit_mounting (v);
    keep_computes (v);
    keep_touching (v);
}

/* Trouble
 */

/* Teardown deletes movements and containers.
 */
static bool have_movements (struct view *v)
{
    bool logs = v->wf->containers && v->policy->container_log_bytes > 0;

    if ((v->policy->save_datamovements <= 0 && !logs)
        || v->wf->state < DWS_STATE_DATAIN
        || v->wf->movements)
        return true;
    wait_for (v, "a record of data movements and containers");
    act (v, DWS_ACT_MOVEMENTS);
    return false;
}

/* Teardown destroys a persistent file system. A job that has not run must not destroy
 * one, so its workflow is deleted without Teardown.
 */
static bool spares (struct view *v)
{
    return v->wf->destroys && !v->job->run_started
        && v->wf->desired < DWS_STATE_POSTRUN;
}

/* The job has got an exception in its epilog, by a second flux cancel or flux rabbit
 * release --hurry: report the data that is therefore not copied out.
 */
static void tell_skipped (struct view *v)
{
    const struct dws_workflow *wf = v->wf;
    json_t *copies;
    json_t *copy;
    size_t index;
    char text[512] = "";
    size_t len = 0;

    if (!v->job->teardown || !v->job->run_started
        || v->job->phase != DWS_PHASE_EPILOG || v->job->raised
        || !(v->job->commands & DWS_COMMAND_COPY_OUT) || !v->job->directives
        || (wf->state == DWS_STATE_DATAOUT && wf->ready))
        return;
    copies = dws_commands_copied_out (v->job->directives);
    json_array_foreach (copies, index, copy) {
        if (len < sizeof (text))
            len += snprintf (text + len, sizeof (text) - len, "%s%s",
                             index > 0 ? ", " : "", json_string_value (copy));
    }
    json_decref (copies);
    fail (v, NULL, "stage-out was ended by an exception, and this is not copied "
          "out: %s", text);
    if (v->out->count > 0)
        v->out->list[v->out->count - 1].severity = 1;
}

void row_tear_down (struct view *v)
{
    tell_skipped (v);
    wait_for (v, "the workflow to be torn down");
    if (spares (v)) {
        act (v, DWS_ACT_DELETE);
        return;
    }
    /* Record the loss of data before the workflow is gone. */
    if (under_way (v, DWS_ACT_REPORT) || asks_for (v, DWS_ACT_REPORT))
        return;
    /* An orphan's job has no KVS directory that is known to be its own. */
    if (v->job->directives || v->job->released) {
        if (!have_movements (v))
            return;
        save_last (v);
    }
    act (v, DWS_ACT_TEARDOWN);
}

/* A transient condition does not stop the clock of the state itself.
 */
void row_transient (struct view *v)
{
    bool mounting = v->wf->state == DWS_STATE_PRERUN;

    if (v->wf->state == DWS_STATE_SETUP)
        row_set_up (v);
    else if (mounting)
        limit_mounting (v);
    if (v->out->count > 0)
        return;
    wait_for (v, v->wf->message);
    if (transient_expired (v) && !(mounting && go_on_without (v)))
        fail_transient (v);
    keep_computes (v);
}

/* The limits of the states are those of the prolog, and no node can be left out of a
 * job that runs.
 */
void row_transient_run (struct view *v)
{
    wait_for (v, v->wf->message);
    if (transient_expired (v))
        fail_transient (v);
}

void row_start_over (struct view *v)
{
    wait_for (v, "a workflow that cannot be used to be torn down");
    act (v, spares (v) ? DWS_ACT_DELETE : DWS_ACT_TEARDOWN);
}

/* Retry once after NNF's own race. A workflow that makes or destroys persistent
 * storage is not torn down for that: NNF may have done half of it.
 */
void row_fail_setup (struct view *v)
{
    const unsigned int persistent = DWS_COMMAND_CREATE_PERSISTENT
                                    | DWS_COMMAND_DESTROY_PERSISTENT;

    if (v->wf->outdated && !v->job->remade && !(v->job->commands & persistent))
        row_start_over (v);
    else
        fail_message (v);
}

/* Only the answer to the request to create a workflow tells whether this one belongs
 * to another job.
 */
void row_replace (struct view *v)
{
    if (under_way (v, DWS_ACT_CREATE))
        wait_for (v, "the workflow to be created");
    else
        row_start_over (v);
}

void row_let_go (struct view *v)
{
    wait_for (v, "the workflow to be deleted");
    drop_finalizer (v);
    keep_computes (v);
}

/* From the job's end on
 */

void row_release_epilog (struct view *v)
{
    wait_for (v, "the epilog to be released");
    act (v, DWS_ACT_EPILOG_REMOVE);
}

/* When unmounting is given up, the nodes that still have mounts cannot be used.
 */
static void give_up_unmounting (struct view *v)
{
    if (!have_lagging (v))
        return;
    fail_late (v, "unmounting took longer than %gs, skipping data movement",
               v->policy->postrun_timeout);
    if (v->wf->lagging_count > 0 && !v->wf->drained)
        act (v, DWS_ACT_DRAIN);
    row_tear_down (v);
}

void row_unmount (struct view *v)
{
    const struct dws_policy *policy = v->policy;
    bool unmounting = v->wf->desired == DWS_STATE_POSTRUN;
    const char *what = unmounting ? "unmounting" : "data movement";
    bool mounts_late = unmounting
        && expired (v, v->wf->t_desired, policy->postrun_timeout);
    double begin = unmounting ? v->job->t_epilog : stage_out_begin (v);
    bool late = !mounts_late && expired (v, begin, policy->teardown_after);

    wait_for (v, unmounting ? "the file systems to be unmounted" : what);
    if (unmounting) {
        enum waived waived = pass_waived (v);

        if (waived == WAIVED_TEAR_DOWN)
            row_tear_down (v);
        if (waived != WAIVED_NONE)
            return;
    }
    else if (v->wf->retry)
        act (v, DWS_ACT_RETRY);
    if (mounts_late) {
        give_up_unmounting (v);
        return;
    }
    if (late)
        fail_late (v, unmounting ? "unmounting took longer than %gs, skipping it"
                                 : "data movement took longer than %gs,"
                                   " skipping it",
                   policy->teardown_after);
    else if (transient_expired (v)) {
        if (keep_failed (v))
            return;
        fail_transient (v);
    }
    else {
        keep_computes (v);
        keep_touching (v);
        return;
    }
    row_tear_down (v);
}

void row_give_up (struct view *v)
{
    if (keep_failed (v))
        return;
    fail_message (v);
    row_tear_down (v);
}

/* Somebody else has deleted the workflow before all data was moved.
 */
void row_lose (struct view *v)
{
    const struct dws_workflow *wf = v->wf;

    if (v->job->reported || (wf->state == DWS_STATE_DATAOUT && wf->ready))
        row_let_go (v);
    else
        fail (v, NULL, "the workflow was deleted in %s",
              dws_state_name (wf->state));
}

void row_begin_teardown (struct view *v)
{
    wait_for (v, "the workflow to be torn down");
    if (v->wf->state == DWS_STATE_TEARDOWN || v->wf->deleting)
        drop_finalizer (v);
    keep_waived (v);
    keep_computes (v);
}

/* Teardown has failed: DWS retries, and the epilog waits. If a persistent file system
 * cannot be destroyed because other jobs use it, the epilog ends and DWS goes on alone:
 * no node has to wait for those jobs.
 */
void row_fail_teardown (struct view *v)
{
    row_begin_teardown (v);
    fail_message (v);
    if (v->wf->destroys && v->job->raised)
        act (v, DWS_ACT_EPILOG_REMOVE);
}

void row_remove_workflow (struct view *v)
{
    wait_for (v, "the workflow to be deleted");
    drop_finalizer (v);
    if (!v->wf->deleting)
        act (v, DWS_ACT_DELETE);
}

void row_finish (struct view *v)
{
    row_remove_workflow (v);
    save_timing (v);
}

void row_end (struct view *v)
{
    row_finish (v);
    /* Let the job go when its timings can be read. */
    if ((v->job->saved & DWS_SAVED (DWS_STATE_TEARDOWN))
        && !under_way (v, DWS_ACT_SAVE))
        row_release_epilog (v);
}

/* The job ended while the plugin was away, without an epilog: Flux allocates its nodes
 * to other jobs although they have mounts. Returns true when no other job can be placed
 * on these nodes.
 */
static bool have_kept_nodes (struct view *v)
{
    if (v->wf->kept)
        return true;
    if (!have_mounted (v))
        return false;
    if (v->wf->lagging_count == 0)
        return true;
    wait_for (v, "the nodes that are still mounted to be drained");
    act (v, DWS_ACT_KEEP_NODES);
    return false;
}

void row_fetch (struct view *v)
{
    if (have_kept_nodes (v))
        row_next (v);
}

void row_fetch_unmount (struct view *v)
{
    if (have_kept_nodes (v))
        row_unmount (v);
}

void row_fetch_fail (struct view *v)
{
    fail_message (v);
    if (have_kept_nodes (v))
        row_tear_down (v);
}

/* Undrain nodes that have no mount any more.
 */
void row_undrain (struct view *v)
{
    wait_for (v, "the nodes to be undrained");
    act (v, DWS_ACT_UNDRAIN);
}

/* The next action for the workflow of a job that is gone depends on how the job
 * ended, and this process may not have seen that.
 */
void row_recall (struct view *v)
{
    wait_for (v, "the eventlog of a job that is gone");
    act (v, DWS_ACT_RECALL);
}

/* A workflow whose data has been moved can go at once. Any other waits: its job may
 * still turn up.
 */
void row_orphan (struct view *v)
{
    const struct dws_workflow *wf = v->wf;
    bool moved = wf->desired == DWS_STATE_DATAOUT && wf->state == wf->desired
                 && wf->ready;

    if (!moved && !expired (v, v->job->t_gone, v->policy->orphan_grace)) {
        wait_for (v, "the job of an orphan workflow to turn up");
        return;
    }
    if (moved && v->job->released && !make_good (v))
        return;
    row_tear_down (v);
}
