/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * What the parts of the module share. Each part owns its own struct; the
 * context owns the parts and is made and taken apart in module.c.
 */

#ifndef DWS_CTX_H
#define DWS_CTX_H

#include <stdbool.h>
#include <jansson.h>
#include <flux/core.h>

struct dws_config;
struct jobs;
struct agent;
struct sync;
struct calls;
struct commits;
struct annotate;
struct persistent;
struct losses;
struct tokens;
struct scheduler;
struct systemstatus;
struct health;
struct groups;
struct troubles;

struct dws_ctx {
    flux_t *h;
    char *instance;             // value of the label on our workflows
    struct dws_config *config;
    struct commits *commits;    // to the KVS
    struct calls *calls;        // RPCs that wait for their response
    struct jobs *jobs;          // the facts
    json_t *used;               // bytes that the jobs hold, by rabbit
    bool used_known;            // also by those from before this start
    struct agent *agent;        // the way to Kubernetes
    struct annotate *annotate;  // what users see of it
    struct groups *groups;      // those of users
    struct losses *losses;      // what was not staged out
    struct persistent *persistent;  // file systems that outlive jobs
    struct tokens *tokens;      // what the shells of jobs ask for
    struct scheduler *scheduler;        // what it knows of rabbits
    json_t *held;               // what it is told not to give away, by job
    bool holds_due;             // a scheduler has to hear of all of them
    struct systemstatus *systemstatus;  // what DWS knows of nodes
    struct health *health;      // what is known of both
    struct troubles *troubles;  // what fails, and how often
    struct sync *sync;          // the way to learn the jobs from nothing
    flux_msg_handler_t **handlers;
};

#endif /* !DWS_CTX_H */
