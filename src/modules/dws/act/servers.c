/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Places a job's storage: lays it out on the rabbits of the nodes in R
 * (Servers), and lists the nodes that mount it (Computes).
 */

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "libdws/storage/allocation.h"
#include "libdws/util/jsontext.h"
#include "libutil/errno_safe.h"
#include "libutil/safelog.h"
#include "act/action.h"
#include "act/writeback.h"
#include "act/failures.h"
#include "act/data_first.h"
#include "act/reservations.h"
#include "act/kvs.h"
#include "act/limits.h"
#include "act/constraint.h"
#include "act/storage.h"
#include "agent/commands.h"
#include "base/timeline.h"
#include "facts/config.h"
#include "facts/persistent.h"
#include "facts/waitlist.h"
#include "sched/withheld.h"

/* R
 */

static void R_read_cb (const struct call *call, flux_future_t *f)
{
    struct job *job = act_job (call);
    dws_error_t error;
    json_t *R;

    if (!job)
        return;
    if (!(R = kvs_lookup_R_get (f))) {
        act_end (job, call, f, "R", false);
        return;
    }
    if (dws_job_set_R (job->facts, R, &error) < 0)
        act_refuse (job, error.text);
    reservations_learn_R (job, R);
    json_decref (R);
    act_end (job, call, f, "R", true);
}

static int run_hosts (struct job *job, const struct dws_action *wanted)
{
    return act_call (job, &action_hosts,
                     kvs_lookup_job (job->ctx->h, job->facts->id, "R"),
                     R_read_cb);
}

const struct action action_hosts = {
    .kind = DWS_ACT_HOSTS,
    .run = run_hosts,
};

/* Servers
 */

static int send_servers (struct job *job, json_t *sets)
{
    json_t *entry;
    size_t index;

    json_array_foreach (sets, index, entry) {
        const char *name;
        const char *namespace = DWS_NAMESPACE;
        json_t *patch;

        if (json_unpack (entry, "{s:{s:s s?s}}",
                         "servers", "name", &name,
                         "namespace", &namespace) < 0) {
            errno = EPROTO;
            return -1;
        }
        patch = dws_allocation_patch (entry);
        if (act_send (job, &action_servers, index,
                      command_create_with ("patch", "servers", namespace,
                                           name, "patch", patch)) < 0)
            return -1;
    }
    return 0;
}

/* Seconds left to wait. The obstacle to a layout, such as a rabbit that is down or
 * full, may soon pass, so the job waits for tc_timeout. The time begins anew after a
 * restart of the module.
 */
static double time_left_of (struct job *job, double limit)
{
    struct act_job *own = act_own (job);
    double now = monotonic_now ();

    if (own->t_down == 0.)
        own->t_down = now;
    return limit < 0. ? HUGE_VAL : own->t_down + limit - now;
}

static double time_left (struct job *job)
{
    return time_left_of (job, job->ctx->config->policy.tc_timeout);
}

static bool may_wait (struct job *job)
{
    return time_left (job) > 0.;
}

/* Seconds left to wait for room. With unbound or data-first storage others may have
 * taken the job's room just before the scheduler learned of it, so space_timeout holds.
 */
static double time_for_room (struct job *job)
{
    const struct dws_config *config = job->ctx->config;

    return time_left_of (job, storage_anywhere (job) || job->ctx->early
                              ? config->space_timeout
                              : config->policy.tc_timeout);
}

static bool fits (struct job *job, json_t *nodes, const struct rivals *rivals,
                  enum layout_state state, dws_error_t *error)
{
    json_t *sets = storage_layout (job, nodes, rivals, state, error);
    bool found = sets != NULL;

    json_decref (sets);
    return found;
}

/* Wait if exclusive keys of others prevent the layout. The job waits without a time
 * limit for keys of jobs, and as long as for a rabbit that is down for keys that may
 * stay for ever. The waitlist wakes the job when a key is freed (waitlist.h);
 * LOOK_AGAIN (s) covers other changes, such as a rabbit that is up again. Returns as
 * run() does, or 1 if keys are not the reason.
 */
#define LOOK_AGAIN 60.
#define LOOK_UNMOUNTED 1.

static int wait_turn (struct job *job, json_t *nodes,
                      const struct rivals *rivals)
{
    dws_error_t error = { "" };
    bool queued = fits (job, nodes, rivals, LAYOUT_LASTING, &error);
    double left = LOOK_AGAIN;
    char *text;
    int rc;

    if (!queued && !fits (job, nodes, rivals, LAYOUT_SHARED, NULL))
        return 1;
    if (queued)
        act_own (job)->t_down = 0.;
    else if ((left = time_left (job)) <= 0.)
        return act_refuse (job, error.text);
    if (!(text = storage_rival (job, nodes, rivals, !queued))) {
        errno = ENOMEM;
        return -1;
    }
    rc = waitlist_wait (job->ctx->waitlist, job, rivals->wanted, nodes, queued,
                        text);
    ERRNO_SAFE (free (text));
    jobs_wake (job, left < LOOK_AGAIN ? left : LOOK_AGAIN);
    job->ctx->events->job_changed (job);
    return rc;
}

/* Give up data first for this job: it gets nodes first, like other jobs.
 */
static int nodes_first (struct job *job, const char *why)
{
    char label[JOB_LABEL_SIZE];

    safe_log (job->ctx->h, LOG_INFO, "%s: gets its nodes before its data: %s",
              job_label (job, label), why);
    withheld_end (job);
    job->facts->no_room = true;
    act_own (job)->t_down = 0.;
    waitlist_leave (job);
    jobs_changed (job);
    return 0;
}

/* Wait for room on any rabbits, as 'text' says to the owner. The job holds no storage
 * meanwhile; jobs get room in the order in which they got their nodes. Returns as run()
 * does.
 */
static int wait_room (struct job *job, const char *text)
{
    double left = time_for_room (job);
    char *awaits;
    int rc;

    if (left <= 0. && job->facts->phase == DWS_PHASE_DEPEND)
        return nodes_first (job, text);
    if (left <= 0.)
        return act_refuse (job, text);
    if (asprintf (&awaits, "room on rabbits: %s", text) < 0) {
        errno = ENOMEM;
        return -1;
    }
    withheld_end (job);
    rc = waitlist_wait_room (job->ctx->waitlist, job, awaits);
    ERRNO_SAFE (free (awaits));
    jobs_wake (job, left < LOOK_AGAIN ? left : LOOK_AGAIN);
    job->ctx->events->job_changed (job);
    return rc;
}

struct search {
    const struct job *job;
    struct job *first;
};

/* Count a job whose breakdowns are not read yet as one that wants room.
 */
static void find_first (struct job *other, void *arg)
{
    struct search *search = arg;

    if (waitlist_room_before (other, search->first ? search->first : search->job)
        && (!other->wf->breakdowns || storage_unbound (other)
            || other->facts->phase == DWS_PHASE_DEPEND))
        search->first = other;
}

/* Wait if another job gets room first. Returns as run() does, or 1 if no job does.
 */
static int wait_behind (struct job *job)
{
    struct search search = { .job = job };
    char label[JOB_LABEL_SIZE];
    dws_error_t error;
    struct job *first;

    jobs_each (job->ctx->jobs, find_first, &search);
    if (!(first = search.first))
        return 1;
    dws_error (&error, ENOSPC, "job %s is to get it first",
               job_label (first, label));
    return wait_room (job, error.text);
}

/* The layout failed with errno. Returns as run() does.
 */
static int no_layout (struct job *job, json_t *nodes,
                      const struct rivals *rivals, const char *text)
{
    int saved_errno = errno;
    int rc;

    if ((errno == ENOSPC || errno == EHOSTDOWN)
        && json_array_size (rivals->list) > 0) {
        if ((rc = wait_turn (job, nodes, rivals)) <= 0)
            return rc;
        errno = saved_errno;
    }
    if (errno == ENOSPC && storage_unbound (job)
        && fits (job, nodes, rivals, LAYOUT_EVER, NULL))
        return wait_room (job, text);
    errno = saved_errno;
    ERRNO_SAFE (waitlist_leave (job));
    if ((errno == EHOSTDOWN && may_wait (job))
        || (errno == ENOSPC && fits (job, nodes, rivals, LAYOUT_EMPTY, NULL)
            && time_for_room (job) > 0.)) {
        errno = EAGAIN;
        return -1;
    }
    if (saved_errno == EHOSTDOWN && failures_leave_out (job)) {
        act_own (job)->t_down = 0.;
        return 0;
    }
    errno = saved_errno;
    return errno == EINVAL || errno == ENOSPC || errno == EHOSTDOWN
           ? act_refuse (job, text) : -1;
}

static int nothing_to_write (struct job *job)
{
    job->wf->servers_written = true;
    jobs_changed (job);
    return 0;
}

/* Wait until the file system to be destroyed is unused: as long as for a rabbit that is
 * down, longer if all its users are ending. Returns as run() does, or 1 if it can be
 * destroyed.
 */
static int wait_unused (struct job *job)
{
    dws_error_t error;
    bool ending;

    if (persistent_unused (job->ctx->persistent, job, &ending, &error) == 0) {
        act_own (job)->t_down = 0.;
        return 1;
    }
    if (ending || may_wait (job)) {
        errno = EAGAIN;
        return -1;
    }
    return act_refuse (job, error.text);
}

/* Wait until no other job has an xfs file system that the job uses. The job holds
 * nothing meanwhile, so deadlock cannot occur. Returns as run() does, or 1 if there is
 * none.
 */
static int wait_unmounted (struct job *job)
{
    dws_error_t error;
    int rc;

    if (persistent_unmounted (job->ctx->persistent, job, &error) == 0)
        return 1;
    rc = waitlist_wait (job->ctx->waitlist, job, NULL, NULL, false, error.text);
    jobs_wake (job, LOOK_UNMOUNTED);
    job->ctx->events->job_changed (job);
    return rc;
}

/* Empty the job's claim and compute a layout. Fails as dws_allocation_sets() does.
 */
static json_t *lay_out (struct job *job, json_t **nodes,
                        struct rivals *rivals, dws_error_t *error)
{
    struct space *space = job->ctx->space;
    bool again = space_has_keys (space, &job->claim);
    json_t *sets = NULL;

    space_free (space, &job->claim, true);
    if ((*nodes = storage_nodes (job, error))
        && storage_rivals (job, *nodes, again, rivals, error) == 0)
        sets = storage_layout (job, *nodes, rivals, LAYOUT_NOW, error);
    if (again && !sets)
        ERRNO_SAFE (job->ctx->events->space_changed (job->ctx));
    return sets;
}

/* Claim the bytes of the layout and write Servers. Returns as run() does.
 */
static int take (struct job *job, json_t *nodes, json_t *sets)
{
    dws_error_t error;
    char *rabbits;

    act_own (job)->t_down = 0.;
    (void)space_claim (job->ctx->space, &job->claim, sets);
    waitlist_leave (job);
    withheld_claimed (job);
    if (storage_anywhere (job))
        job->ctx->events->space_changed (job->ctx);
    if ((rabbits = dws_allocation_rabbits (nodes, &job->claim.bytes, &error))) {
        writeback_memo (job, "rabbits", rabbits);
        free (rabbits);
    }
    if (json_array_size (sets) == 0)
        return nothing_to_write (job);
    return send_servers (job, sets);
}

/* Has all of the job's storage been written, maybe before this start of the module?
 */
static bool is_reserved (const struct job *job)
{
    const struct act_job *own = act_own (job);
    json_t *servers;
    size_t index;

    json_array_foreach (own->servers, index, servers) {
        json_t *sets = NULL;

        (void)json_unpack (servers, "{s:{s:o}}", "spec", "allocationSets",
                           &sets);
        if (json_array_size (sets) == 0)
            return false;
    }
    return json_array_size (own->servers) > 0;
}

/* Keep the layout in the form of Servers objects, which replaces 'servers'
 * once it is written.
 */
static void note_sent (struct job *job, json_t *sets)
{
    struct act_job *own = act_own (job);
    json_t *entry;
    size_t index;

    json_decref (own->sent);
    own->sent = json_array ();
    json_array_foreach (sets, index, entry)
        (void)json_array_append_new (own->sent,
                                     json_pack ("{s:O s:{s:O}}",
                                                "metadata",
                                                json_object_get (entry,
                                                                 "servers"),
                                                "spec", "allocationSets",
                                                json_object_get (
                                                    entry, "allocationSets")));
}

/* The layout of a data-first job failed with errno. Wait if the storage fits on
 * empty rabbits; otherwise the job gets nodes first.
 */
static int no_reserve (struct job *job, const char *text)
{
    json_t *nodes;

    if (errno != ENOSPC && errno != EHOSTDOWN)
        return errno == ENOMEM ? -1 : nodes_first (job, text);
    if (!(nodes = storage_data_first_nodes (job, true, NULL)))
        return nodes_first (job, text);
    json_decref (nodes);
    return wait_room (job, text);
}

/* Lay out the storage of a data-first job. Its nodes are chosen next to it
 * later.
 */
static int run_reserve (struct job *job)
{
    struct rivals rivals = { 0 };
    dws_error_t error = { "" };
    json_t *nodes;
    json_t *sets = NULL;
    int rc;

    if (is_reserved (job))
        return nothing_to_write (job);
    if (limits_check (job, &error) < 0)
        return act_refuse (job, error.text);
    if ((rc = wait_behind (job)) <= 0)
        return rc;
    if (!reservations_known (job->ctx)) {
        errno = EAGAIN;
        return -1;
    }
    space_free (job->ctx->space, &job->claim, true);
    if ((nodes = storage_data_first_nodes (job, false, &error))
        && storage_rivals (job, nodes, false, &rivals, &error) == 0)
        sets = storage_layout (job, nodes, &rivals, LAYOUT_NOW, &error);
    if (sets) {
        note_sent (job, sets);
        rc = take (job, nodes, sets);
    }
    else
        rc = no_reserve (job, error.text);
    ERRNO_SAFE (rivals_clear (&rivals));
    ERRNO_SAFE (json_decref (nodes));
    ERRNO_SAFE (json_decref (sets));
    return rc;
}

/* Lay the storage out. A job gets its exclusive keys on all rabbits at once, here, and
 * holds none while it waits, so deadlock cannot occur.
 */
static int run_servers (struct job *job, const struct dws_action *wanted)
{
    struct rivals rivals = { 0 };
    dws_error_t error = { "" };
    json_t *nodes = NULL;
    json_t *sets;
    int rc;

    if (job->wf->destroys && (rc = wait_unused (job)) <= 0)
        return rc;
    if (!job->wf->breakdowns)       // none of the directives has storage
        return nothing_to_write (job);
    if ((rc = wait_unmounted (job)) <= 0)
        return rc;
    if (!space_known (job->ctx->space)) {
        errno = EAGAIN;
        return -1;
    }
    if (job->facts->phase == DWS_PHASE_DEPEND)
        return run_reserve (job);
    if (storage_unbound (job) && (rc = wait_behind (job)) <= 0)
        return rc;
    if ((sets = lay_out (job, &nodes, &rivals, &error)))
        rc = take (job, nodes, sets);
    else
        rc = no_layout (job, nodes, &rivals, error.text);
    ERRNO_SAFE (rivals_clear (&rivals));
    ERRNO_SAFE (json_decref (nodes));
    ERRNO_SAFE (json_decref (sets));
    return rc;
}

/* The layout of a data-first job also needs the pool of idle nodes (data_first_ready()).
 */
static bool servers_ready (struct job *job)
{
    return limits_ready (job) && constraint_ready (job) && data_first_ready (job);
}

/* Servers or Computes were deleted. DWS creates them again while the workflow is in
 * Proposal, so repeat the write; after MISSING_MAX failures in a row replace the
 * workflow.
 */
#define MISSING_MAX 3

static bool note_missing (struct job *job, const struct result *result)
{
    char label[JOB_LABEL_SIZE];

    if (result->status == 404 && result->current && job->wf
        && ++act_own (job)->missing >= MISSING_MAX) {
        safe_log (job->ctx->h, LOG_NOTICE, "%s: %s, and the workflow is made "
                  "anew", job_label (job, label), result->message);
        act_own (job)->missing = 0;
        job->wf->spoilt = true;
    }
    return false;
}

static bool servers_done (struct job *job)
{
    struct act_job *own = act_own (job);

    own->missing = 0;
    job->wf->servers_written = true;
    if (own->sent) {
        json_decref (own->servers);
        own->servers = own->sent;
        own->sent = NULL;
    }
    return true;
}

const struct action action_servers = {
    .kind = DWS_ACT_SERVERS,
    .ready = servers_ready,
    .run = run_servers,
    .failed = note_missing,
    .done = servers_done,
};

/* Computes
 */

static int run_computes (struct job *job, const struct dws_action *wanted)
{
    return storage_send_computes (job, &action_computes, 0);
}

static bool computes_done (struct job *job)
{
    act_own (job)->missing = 0;
    job->wf->computes_written = true;
    return true;
}

const struct action action_computes = {
    .kind = DWS_ACT_COMPUTES,
    .run = run_computes,
    .failed = note_missing,
    .done = computes_done,
};
