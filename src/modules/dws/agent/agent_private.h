/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * What agent.c, which sends commands, and reports.c, which takes what comes back,
 * have in common.
 */

#ifndef DWS_AGENT_PRIVATE_H
#define DWS_AGENT_PRIVATE_H

#include "agent/agent.h"
#include "agent/outbox.h"
#include "base/idmap.h"

struct agent {
    struct dws_ctx *ctx;
    const flux_msg_t *request;  // of the attached agent, or NULL
    bool ready;
    bool listing;               // in the middle of a snapshot
    bool listing_servers;       // of these
    bool reachable;             // the API server, as the agent sees it
    char *trouble;              // why not, or NULL
    uint64_t seq;
    struct idmap *commands;     // seq -> struct command
    struct outbox *outbox;      // those that are to be sent
    json_t *stats;              // what the agent counts, or NULL
    char *release;              // of the agent, or NULL
};

void command_destroy (void *value);

#endif /* !DWS_AGENT_PRIVATE_H */
