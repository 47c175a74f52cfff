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

#include "libdws/tell/waiting.h"
#include "base/ctx.h"
#include "facts/jobs.h"

struct command;

/* Called with the result of a command; 'job' is NULL if it is not known any
 * more.
 */
typedef void (*command_f)(struct dws_ctx *ctx, struct job *job,
                          const struct command *cmd, json_t *report);

/* A command that was sent and has no result yet.
 */
struct command {
    uint64_t seq;
    uint64_t jobid;
    unsigned int generation;    // of the job when it was sent
    command_f cb;               // called with the result
    const void *arg;            // the caller's own
    int index;                  // likewise
    bool is_query;              // agent_query()
    json_t *workflow;           // in the result, for 'cb', or NULL
    flux_t *h;
    const flux_msg_t *request;  // or else: to be answered with the result
};

struct agent *agent_create (struct dws_ctx *ctx);
void agent_destroy (struct agent *agent);

/* True when an agent is attached and has sent its snapshot.
 */
bool agent_ready (const struct agent *agent);

/* Send a command for 'job'. 'command' has all keys but seq; the reference is
 * taken over, and NULL fails with ENOMEM. 'cb' is called with the result,
 * unless the agent is lost before, and finds 'arg' and 'index' in struct
 * command. If the agent has to repeat the command, the job's owner sees why.
 */
int agent_send (struct agent *agent,
                struct job *job,
                command_f cb,
                const void *arg,
                int index,
                json_t *command);

/* The same for a query, on which no action of the job depends. 'job' may be
 * NULL.
 */
int agent_query (struct agent *agent,
                 struct job *job,
                 command_f cb,
                 json_t *command);

/* Can Kubernetes be reached?
 */
enum dws_link agent_link (const struct agent *agent);

/* Send a command whose result is the answer to 'request': a response with the
 * 'objects' of the result if it has any, else an empty one, or the API server's error.
 * Takes over 'command' in the same way. Returns 0, or -1 with a text and errno EAGAIN
 * when there is no agent, or EBUSY when 'most' requests of that user wait already;
 * nothing is answered then.
 */
int agent_forward (struct agent *agent,
                   const flux_msg_t *request,
                   json_t *command,
                   size_t most,
                   dws_error_t *error);

/* The errno of an API server's answer with this HTTP status.
 */
int agent_result_errno (int status);

/* The release of the attached agent; NULL if there is none, or it does not say.
 */
const char *agent_release (const struct agent *agent);

/* For dws.status: a new object. Only the owner of the instance sees why the API server
 * cannot be reached.
 */
json_t *agent_status (const struct agent *agent, bool owner);

void agent_attach_cb (flux_t *h, flux_msg_handler_t *mh,
                      const flux_msg_t *msg, void *arg);
void agent_report_cb (flux_t *h, flux_msg_handler_t *mh,
                      const flux_msg_t *msg, void *arg);

/* The part of the configuration that the agent uses (dws_config_agent()) has
 * changed: the agent attaches again.
 */
void agent_reconfigure (struct agent *agent);

/* The sender of 'msg' has gone.
 */
void agent_disconnect (struct agent *agent, const flux_msg_t *msg);

#endif /* !DWS_AGENT_H */
