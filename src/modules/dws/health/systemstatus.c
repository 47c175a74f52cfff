/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See systemstatus.h. At most one command is under way; later changes go with
 * the next one.
 */

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "libutil/errno_safe.h"
#include "libutil/safelog.h"
#include "agent/agent.h"
#include "agent/commands.h"
#include "base/timeline.h"
#include "base/timer.h"
#include "facts/config.h"
#include "health/systemstatus.h"

#define KIND "systemstatuses"
#define NAME "default"
#define NOT_FOUND 404

/* DWS unmounts nothing on a node that is Disabled. A node therefore counts as Disabled
 * only when it has been offline for this time without a break (s): nodes may come up
 * slowly when Flux starts.
 */
#define OFFLINE_GRACE 60.

struct systemstatus {
    struct dws_ctx *ctx;
    const struct dws_nodes *nodes;  // borrowed, NULL: not yet known
    json_t *stuck;                  // borrowed
    json_t *known;                  // data.nodes, NULL: not read
    json_t *since;                  // see struct dws_absence
    flux_watcher_t *grace;          // the next one ends
    bool busy;                      // a command is under way
    bool absent;                    // no object, or no permission for it
    bool dirty;
};

static void update_systemstatus (struct systemstatus *status);

/* Without SystemStatus DWS works, but its unmounts wait for nodes that are
 * down.
 */
static void systemstatus_refused (struct systemstatus *status, json_t *report)
{
    int code = 0;
    const char *message = "";

    (void)json_unpack (report, "{s?i s?s}", "status", &code,
                       "message", &message);
    safe_log (status->ctx->h, code == NOT_FOUND ? LOG_INFO : LOG_ERR,
              "SystemStatus is not kept: %s", message);
    status->absent = true;
}

static void systemstatus_result_cb (struct dws_ctx *ctx, struct job *job,
                                    const struct command *cmd, json_t *report)
{
    struct systemstatus *status = ctx->systemstatus;
    json_t *nodes = NULL;
    int ok = 0;

    status->busy = false;
    (void)json_unpack (report, "{s?b s?{s?{s?o}}}", "ok", &ok,
                       "object", "data", "nodes", &nodes);
    if (!ok) {
        systemstatus_refused (status, report);
        return;
    }
    json_decref (status->known);
    status->known = nodes ? json_incref (nodes) : json_object ();
    update_systemstatus (status);
}

static void send_systemstatus (struct systemstatus *status, json_t *command)
{
    if (agent_query (status->ctx->agent, NULL, systemstatus_result_cb,
                     command) == 0)
        status->busy = true;
    else if (errno != EAGAIN)
        safe_log_error (status->ctx->h, "SystemStatus");
}

static void await_grace (struct systemstatus *status,
                         const struct dws_absence *absence)
{
    flux_watcher_stop (status->grace);
    if (isinf (absence->due))
        return;
    flux_timer_watcher_reset (status->grace, absence->due - absence->now, 0.);
    flux_watcher_start (status->grace);
}

static void update_systemstatus (struct systemstatus *status)
{
    struct dws_absence absence = {
        .since = status->since,
        .grace = OFFLINE_GRACE,
        .now = monotonic_now (),
    };
    dws_error_t error;
    json_t *changes;

    if (!status->dirty || !status->nodes || !status->known || status->busy
        || status->absent)
        return;
    if (!(changes = dws_health_systemstatus (status->nodes,
                                             status->ctx->config->topology,
                                             status->known,
                                             status->stuck,
                                             &absence,
                                             &error))) {
        safe_log (status->ctx->h, LOG_ERR, "SystemStatus: %s", error.text);
        return;
    }
    await_grace (status, &absence);
    if (json_object_size (changes) == 0) {
        status->dirty = false;
        json_decref (changes);
        return;
    }
    send_systemstatus (status,
                       command_create_with ("patch", KIND, DWS_NAMESPACE, NAME,
                                            "patch",
                                            json_pack ("{s:{s:o}}", "data",
                                                       "nodes", changes)));
}

static void grace_cb (flux_reactor_t *r, flux_watcher_t *w, int revents,
                      void *arg)
{
    struct systemstatus *status = arg;

    status->dirty = true;
    update_systemstatus (status);
}

void systemstatus_start (struct systemstatus *status)
{
    json_decref (status->known);
    status->known = NULL;
    status->absent = false;
    status->dirty = true;
    status->busy = false;
    send_systemstatus (status, command_create ("get", KIND, DWS_NAMESPACE,
                                               NAME));
}

void systemstatus_update (struct systemstatus *status,
                          const struct dws_nodes *nodes,
                          json_t *stuck)
{
    status->nodes = nodes;
    status->stuck = stuck;
    status->dirty = true;
    update_systemstatus (status);
}

void systemstatus_learn (struct systemstatus *status,
                         const struct dws_nodes *nodes)
{
    double now = monotonic_now ();

    status->nodes = NULL;
    if (dws_health_absent (status->since, nodes, now) < 0)
        safe_log_error (status->ctx->h, "SystemStatus");
}

bool systemstatus_settled (const struct systemstatus *status)
{
    return status->absent || (!status->dirty && !status->busy);
}

struct systemstatus *systemstatus_create (struct dws_ctx *ctx)
{
    struct systemstatus *status;

    if (!(status = calloc (1, sizeof (*status))))
        return NULL;
    status->ctx = ctx;
    if (!(status->since = json_object ())
        || !(status->grace = timer_make (ctx->h, grace_cb, status))) {
        systemstatus_destroy (status);
        errno = ENOMEM;
        return NULL;
    }
    return status;
}

void systemstatus_destroy (struct systemstatus *status)
{
    if (status) {
        ERRNO_SAFE_BLOCK;
        flux_watcher_destroy (status->grace);
        json_decref (status->since);
        json_decref (status->known);
        free (status);
    }
}
