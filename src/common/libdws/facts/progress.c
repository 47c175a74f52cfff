/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See progress.h.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libdws/util/hosts.h"
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

/* Bytes per second in a text like "1.5 GiB/s", 0 if it is none.
 */
static double parse_rate (const char *s)
{
    static const char *const units = "KMGTPE";
    const char *unit;
    char *end;
    double rate = strtod (s, &end);

    if (end == s || !(rate > 0.))
        return 0.;
    end += strspn (end, " ");
    if (*end && (unit = strchr (units, *end))) {
        double base = end[1] == 'i' ? 1024. : 1000.;

        for (; unit >= units; unit--)
            rate *= base;
        end += end[1] == 'i' ? 2 : 1;
    }
    return strcmp (end, "B/s") == 0 ? rate : 0.;
}

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

static void add_movement (json_t *movement, struct dws_progress *p,
                          double *percent)
{
    const char *state = "";
    const char *status = "";
    const char *rate = "";
    json_int_t files = 0;
    double done = 0.;

    json_unpack (movement, "{s:{s?s s?s s?{s?F s?s s?I}}}",
                 "status",
                   "state", &state,
                   "status", &status,
                   "commandStatus",
                     "progress", &done,
                     "rate", &rate,
                     "files", &files);
    p->movements++;
    if (files > 0)
        p->files += files;
    if (strcmp (state, "Finished") != 0) {
        p->rate += parse_rate (rate);
        *percent += done < 0. ? 0. : done > 100. ? 100. : done;
        return;
    }
    p->movements_done++;
    *percent += 100.;
    if (*status && strcmp (status, "Success") != 0 && !*p->failure)
        set_failure (movement, status, p);
}

void dws_progress_movements (json_t *movements,
                             enum dws_state state,
                             struct dws_progress *p)
{
    double percent = 0.;
    json_t *movement;
    size_t index;

    *p = (struct dws_progress){ .state = state };
    json_array_foreach (movements, index, movement) {
        if (is_of_state (movement, state))
            add_movement (movement, p, &percent);
    }
    if (p->movements > 0)
        p->percent = percent / p->movements;
}
