/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * struct agent, shared by agent.c, which sends commands, and reports.c, which takes in
 * reports.
 */

#ifndef DWS_AGENT_PRIVATE_H
#define DWS_AGENT_PRIVATE_H

#include "libutil/idmap.h"
#include "agent/agent.h"
#include "agent/outbox.h"

struct agent {
    struct dws_ctx *ctx;
    const flux_msg_t *request;  // of the attached agent, or NULL
    bool ready;
    bool listing;               // in the middle of a snapshot
    bool listing_servers;       // in the middle of its Servers objects
    bool reachable;             // the API server, as the agent sees it
    char *trouble;              // why not, or NULL
    uint64_t seq;
    struct idmap *commands;     // seq -> struct command
    struct outbox *outbox;      // commands to be sent
    json_t *stats;              // counters of the agent, or NULL
    char *release;              // of the agent, or NULL
};

void command_destroy (void *value);

#endif /* !DWS_AGENT_PRIVATE_H */
