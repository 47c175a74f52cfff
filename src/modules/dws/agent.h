/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The module's side of the protocol with the agent (doc/protocol.md): one
 * stream of commands to it, batches of reports from it.
 */

#ifndef DWS_AGENT_H
#define DWS_AGENT_H

#include <stdbool.h>
#include <jansson.h>
#include <flux/core.h>

#include "libdws/reconcile.h"
#include "libdws/waiting.h"
#include "ctx.h"
#include "jobs.h"

struct command;

/* Called with the result of a query; 'job' is NULL if it is not known any
 * more.
 */
typedef void (*query_f)(struct dws_ctx *ctx, struct job *job,
                        const struct command *cmd, json_t *report);

/* A command that was sent and has no result yet.
 */
struct command {
    uint64_t seq;
    uint64_t jobid;
    unsigned int generation;    // of the job when it was sent
    enum dws_action_kind kind;
    int index;                  // which one of several of that kind
    query_f query;              // or else: who wants the result
    flux_t *h;
    const flux_msg_t *request;  // or else: to be answered with it
};

struct agent *agent_create (struct dws_ctx *ctx);
void agent_destroy (struct agent *agent);

/* True when an agent is attached and has sent its snapshot.
 */
bool agent_ready (const struct agent *agent);

/* Send a command for 'job'. 'command' has all keys but seq; the reference is
 * taken over, and NULL fails with ENOMEM. The result goes to actions_result().
 */
int agent_send (struct agent *agent,
                struct job *job,
                enum dws_action_kind kind,
                int index,
                json_t *command);

/* The same for one that dws_reconcile() knows nothing of: it is lost with the
 * agent, and 'query' is then not called. 'job' may be NULL.
 */
int agent_query (struct agent *agent,
                 struct job *job,
                 query_f query,
                 json_t *command);

/* Can Kubernetes be reached?
 */
enum dws_link agent_link (const struct agent *agent);

/* Send a command whose result is the answer to 'request': an empty response,
 * or the API server's error. Takes over 'command' in the same way. Returns 0,
 * or -1 with errno EAGAIN when there is no agent; nothing is answered then.
 */
int agent_forward (struct agent *agent,
                   const flux_msg_t *request,
                   json_t *command);

/* The known Storage objects by name: borrowed.
 */
json_t *agent_storages_by_name (const struct agent *agent);

/* The known Storage objects as a new array, NULL if none are known.
 */
json_t *agent_storages (const struct agent *agent);

/* For dws.status: a new object.
 */
json_t *agent_status (const struct agent *agent);

void agent_attach_cb (flux_t *h, flux_msg_handler_t *mh,
                      const flux_msg_t *msg, void *arg);
void agent_report_cb (flux_t *h, flux_msg_handler_t *mh,
                      const flux_msg_t *msg, void *arg);

/* What the agent goes by (dws_config_agent) has changed: it attaches again.
 */
void agent_reconfigure (struct agent *agent);

/* The sender of 'msg' has gone.
 */
void agent_disconnect (struct agent *agent, const flux_msg_t *msg);

#endif /* !DWS_AGENT_H */
