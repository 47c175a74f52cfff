/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See workflow.h. decode.c makes the record.
 */

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/errno_safe.h"
#include "libdws/util/hosts.h"
#include "workflow.h"

#define NAME_PREFIX "fluxjob-"
#define SUFFIX_LENGTH 8

/* An error counts once it lasts so long (s): passing errors were seen to last up to 0.2 s.
 */
#define PASSING 5.

static const char *state_names[] = {
    [DWS_STATE_NONE] = "",
    [DWS_STATE_PROPOSAL] = "Proposal",
    [DWS_STATE_SETUP] = "Setup",
    [DWS_STATE_DATAIN] = "DataIn",
    [DWS_STATE_PRERUN] = "PreRun",
    [DWS_STATE_POSTRUN] = "PostRun",
    [DWS_STATE_DATAOUT] = "DataOut",
    [DWS_STATE_TEARDOWN] = "Teardown",
};

static const char *status_names[] = {
    [DWS_STATUS_NONE] = "",
    [DWS_STATUS_DRIVERWAIT] = "DriverWait",
    [DWS_STATUS_TRANSIENT] = "TransientCondition",
    [DWS_STATUS_COMPLETED] = "Completed",
    [DWS_STATUS_ERROR] = "Error",
};

#define COUNT(a) (sizeof (a) / sizeof ((a)[0]))

const char *dws_state_name (enum dws_state state)
{
    return (size_t)state < COUNT (state_names) ? state_names[state] : "";
}

enum dws_state dws_state_parse (const char *s, size_t len)
{
    for (int i = DWS_STATE_PROPOSAL; i <= DWS_STATE_TEARDOWN; i++) {
        if (strlen (state_names[i]) == len && !strncmp (state_names[i], s, len))
            return i;
    }
    return DWS_STATE_NONE;
}

const char *dws_status_name (enum dws_status status)
{
    return (size_t)status < COUNT (status_names) ? status_names[status] : "";
}

const char *dws_workflow_name (uint64_t jobid, const char *instance,
                               char buf[DWS_NAME_SIZE])
{
    snprintf (buf, DWS_NAME_SIZE, NAME_PREFIX "%" PRIu64 "%s%.*s", jobid,
              instance ? "-" : "", SUFFIX_LENGTH, instance ? instance : "");
    return buf;
}

uint64_t dws_workflow_jobid (const char *name)
{
    const char *digits = name + strlen (NAME_PREFIX);
    char *rest;
    uint64_t id;

    /* Only the one spelling: no sign, no leading zero, no overflow. */
    if (strncmp (name, NAME_PREFIX, strlen (NAME_PREFIX)) != 0
        || *digits < '1' || *digits > '9')
        return 0;
    errno = 0;
    id = strtoull (digits, &rest, 10);
    if (errno != 0)
        return 0;
    if (*rest == '-') {
        /* The index in the name of a breakdown is shorter. */
        if (strspn (++rest, "0123456789abcdef") != SUFFIX_LENGTH)
            return 0;
        rest += SUFFIX_LENGTH;
    }
    return *rest == '\0' ? id : 0;
}

void dws_workflow_destroy (struct dws_workflow *wf)
{
    if (wf) {
        ERRNO_SAFE_BLOCK;
        free (wf->places);
        free (wf->lagging);
        free (wf->allocated);
        dws_breakdowns_destroy (wf->breakdowns);
        free (wf);
    }
}

const char *dws_workflow_stamp (const struct dws_workflow *wf, double since,
                                char buf[DWS_STAMP_SIZE])
{
    snprintf (buf, DWS_STAMP_SIZE, "%s %.3f", dws_state_name (wf->state),
              since);
    return buf;
}

bool dws_workflow_is_stamped (const struct dws_workflow *wf, double since)
{
    return wf->stamp_state == wf->state && fabs (wf->stamped - since) < 0.01;
}

static void inherit_lag (struct dws_workflow *wf, struct dws_workflow *old)
{
    wf->lag_state = old->lag_state;
    wf->lag_missing = old->lag_missing;
    wf->t_lag = old->t_lag;
    wf->unmount = old->unmount;
    wf->places = old->places;
    old->places = NULL;
    wf->lagging = old->lagging;
    old->lagging = NULL;
    wf->lagging_count = old->lagging_count;
    wf->shared = old->shared;
    wf->notified = old->notified;
    wf->excluded = old->excluded;
    wf->drained = old->drained;
}

int dws_workflow_set_lagging (struct dws_workflow *wf,
                              const char *hosts,
                              bool shared,
                              dws_error_t *error)
{
    char *lagging;
    bool same;

    if (!(lagging = dws_hosts_join (hosts, wf->failed, error)))
        return -1;
    same = wf->lag_state == wf->state && wf->lagging
           && !strcmp (wf->lagging, lagging);
    free (wf->lagging);
    wf->lagging = lagging;
    /* The text also names hosts that failed before, but the workflow waits for nothing
     * if no others are left. */
    wf->lagging_count = *hosts ? dws_hosts_count (lagging) : 0;
    wf->shared = shared;
    wf->lag_state = wf->state;
    if (!same) {
        wf->notified = false;
        wf->excluded = false;
        wf->drained = false;
    }
    return 0;
}

void dws_workflow_set_progress (struct dws_workflow *wf,
                                int progress,
                                double bytes,
                                double now)
{
    /* The first reading has no earlier one to compare with: count it as progress. */
    wf->advancing = progress >= 0
        && (wf->t_progress <= 0. || progress > wf->progress
            || bytes > wf->moved);
    wf->progress = progress;
    wf->moved = bytes;
    wf->t_progress = now;
}

bool dws_workflow_troubled (const struct dws_workflow *wf, double now)
{
    return wf->status == DWS_STATUS_ERROR
        || (wf->t_trouble > 0. && now - wf->t_trouble >= PASSING);
}

/* When its state was asked for, and reached.
 */
static void inherit_begin (struct dws_workflow *wf,
                           const struct dws_workflow *old,
                           double now)
{
    if (old && old->desired == wf->desired && old->t_desired > 0.)
        wf->t_desired = old->t_desired;
    /* desiredStateChange is that of the state before until DWS acts. */
    else if (old || wf->state != wf->desired)
        wf->t_desired = now;
    if (old && wf->ready)
        wf->t_ready = old->ready && old->state == wf->state && old->t_ready > 0.
                      ? old->t_ready : now;
}

void dws_workflow_inherit (struct dws_workflow *wf,
                           struct dws_workflow *old,
                           double now)
{
    bool same = old && old->uid && wf->uid && !strcmp (old->uid, wf->uid);

    if (same) {
        /* Breakdowns are large: keep them only while storage is chosen. */
        if (old->breakdown_count == wf->breakdown_count
            && wf->desired <= DWS_STATE_PROPOSAL) {
            wf->breakdowns = old->breakdowns;
            old->breakdowns = NULL;
        }
        wf->made = old->made;
        wf->outdated |= old->outdated;
        wf->servers_written = old->servers_written;
        wf->computes_written = old->computes_written;
        wf->spoilt = old->spoilt;
        wf->movements = old->movements;
        if (!strcmp (wf->message, old->message)) {
            wf->recorded = old->recorded;
            wf->recording = old->recording;
        }
        wf->allocated = old->allocated;
        old->allocated = NULL;
        wf->disabled = old->disabled;
        wf->barred = old->barred;
        wf->kept = old->kept;
        wf->undrained = old->undrained;
        if (old->lag_state == wf->state)
            inherit_lag (wf, old);
        if (old->state == wf->state)
            wf->t_seen = old->t_seen;
        if (old->state == wf->state && old->desired == wf->desired) {
            wf->t_computes = old->t_computes;
            wf->t_touched = old->t_touched;
            wf->t_progress = old->t_progress;
            wf->progress = old->progress;
            wf->moved = old->moved;
            wf->advancing = old->advancing;
        }
    }
    if (wf->t_seen == 0.)
        wf->t_seen = now;
    if (wf->status == DWS_STATUS_TRANSIENT) {
        if (same && old->state == wf->state && old->t_transient > 0.)
            wf->t_transient = old->t_transient;
        else if (!old && wf->stamp_state == wf->state && wf->t_stamp > 0.
                 && wf->t_stamp < now)
            wf->t_transient = wf->t_stamp;
        else
            wf->t_transient = now;
    }
    if (wf->trouble) {
        if (same && old->state == wf->state && old->t_trouble > 0.)
            wf->t_trouble = old->t_trouble;
        else
            wf->t_trouble = now;
    }
    inherit_begin (wf, same ? old : NULL, now);
}
