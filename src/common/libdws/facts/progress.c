/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See progress.h.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libdws/util/hosts.h"
#include "copied.h"
#include "mounts.h"
#include "progress.h"
#include "servers.h"

#define INITIATOR "dm.cray.hpe.com/initiator"

int dws_progress_mounts (json_t *clientmounts,
                         enum dws_state state,
                         struct dws_progress *p)
{
    bool mounting = state <= DWS_STATE_PRERUN;
    char *all;
    char *behind = NULL;
    int rc = -1;

    /* No mount is in the state "": that gives all nodes. */
    if ((all = dws_mounts_lagging (clientmounts, "", NULL))
        && (behind = dws_mounts_lagging (clientmounts,
                                         mounting ? "mounted" : "unmounted",
                                         NULL))) {
        *p = (struct dws_progress){ .state = state };
        p->hosts = dws_hosts_count (all);
        p->hosts_done = p->hosts - dws_hosts_count (behind);
        rc = 0;
    }
    free (all);
    free (behind);
    return rc;
}

int dws_progress_servers (json_t *servers, struct dws_progress *p)
{
    char *behind;

    if (!(behind = dws_servers_unready (servers, NULL)))
        return -1;
    *p = (struct dws_progress){ .state = DWS_STATE_SETUP };
    if (strlen (behind) < sizeof (p->behind))
        strcpy (p->behind, behind);
    free (behind);
    return 0;
}

static bool is_of_state (json_t *movement, enum dws_state state)
{
    const char *initiator = "";

    json_unpack (movement, "{s:{s:{s:s}}}",
                 "metadata", "labels", INITIATOR, &initiator);
    return !strcmp (initiator, state == DWS_STATE_DATAIN ? "copy_in"
                                                         : "copy_out");
}

/* The sum over the movements of one state.
 */
struct sum {
    double percent;             // of each
    double bytes;
    double total;               // bytes that there are to move, as far as known
    bool all_sized;             // all of them are known
    bool all_timed;             // those that run say how long they will
};

static void set_failure (json_t *movement, const char *word,
                         struct dws_progress *p)
{
    const char *name = "";
    const char *message = "";
    const char *last = "";

    json_unpack (movement, "{s:{s:s} s:{s?s s?{s?s}}}",
                 "metadata",
                   "name", &name,
                 "status",
                   "message", &message,
                   "commandStatus",
                     "lastMessage", &last);
    if (!*message)
        message = last;
    if (snprintf (p->failure, sizeof (p->failure), "%s (%s)%s%s",
                  word, name, *message ? ": " : "", message)
        >= (int)sizeof (p->failure))
        dws_trim_utf8 (p->failure, sizeof (p->failure) - 1);
}

static void add_size (const struct dws_copied *copied, struct sum *sum)
{
    if (copied->bytes <= 0. || copied->percent < 1.) {
        sum->all_sized = false;
        return;
    }
    sum->bytes += copied->bytes;
    sum->total += copied->bytes * 100. / copied->percent;
}

static void add_movement (json_t *movement, struct dws_progress *p,
                          struct sum *sum)
{
    const char *state = "";
    const char *status = "";
    json_int_t files = 0;
    struct dws_copied copied;

    dws_copied_read (json_object_get (movement, "status"), &copied);
    json_unpack (movement, "{s:{s?s s?s s?{s?I}}}",
                 "status",
                   "state", &state,
                   "status", &status,
                   "commandStatus",
                     "files", &files);
    p->movements++;
    if (files > 0)
        p->files += files;
    sum->percent += copied.percent;
    add_size (&copied, sum);
    if (strcmp (state, "Finished") != 0) {
        p->rate += copied.rate;
        if (copied.left <= 0.)
            sum->all_timed = false;
        if (copied.left > p->left)
            p->left = copied.left;
        return;
    }
    p->movements_done++;
    if (*status && strcmp (status, "Success") != 0 && !*p->failure)
        set_failure (movement, status, p);
}

void dws_progress_movements (json_t *movements,
                             enum dws_state state,
                             struct dws_progress *p)
{
    struct sum sum = { .all_sized = true, .all_timed = true };
    json_t *movement;
    size_t index;

    *p = (struct dws_progress){ .state = state };
    json_array_foreach (movements, index, movement) {
        if (is_of_state (movement, state))
            add_movement (movement, p, &sum);
    }
    if (!sum.all_timed)
        p->left = 0.;
    if (sum.all_sized && sum.total > 0.)
        p->percent = 100. * sum.bytes / sum.total;
    else if (p->movements > 0)
        p->percent = sum.percent / p->movements;
}
