/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * What parts of the module tell parts in later layers, which they do not know:
 * module.c says who hears of what.
 */

#ifndef DWS_EVENTS_H
#define DWS_EVENTS_H

#include <stdint.h>

struct dws_ctx;
struct dws_actions;
struct job;

/* All members have to be set.
 */
struct dws_events {
    /* dws_reconcile() has said what to do for a job: do that. */
    void (*decided)(struct job *job, const struct dws_actions *actions);

    /* What a job's owner is shown of it may have changed. */
    void (*job_changed)(struct job *job);

    /* Somebody looks at this one job: next at its records in the KVS. */
    void (*job_asked)(struct job *job);

    /* A job's workflow is not there any more; its record still is. */
    void (*workflow_gone)(struct job *job);

    /* The record of a job is destroyed next. */
    void (*job_forgotten)(struct job *job);

    /* The jobtap plugin has told of all jobs. */
    void (*jobs_listed)(struct dws_ctx *ctx);

    /* An agent has attached and told of all workflows; the agent has gone. */
    void (*agent_ready)(struct dws_ctx *ctx);
    void (*agent_lost)(struct dws_ctx *ctx);

    /* Somebody has set the wall clock: dates may have come. */
    void (*clock_set)(struct dws_ctx *ctx);

    /* Kubernetes can be reached, or not any more. */
    void (*link_changed)(struct dws_ctx *ctx);

    /* Storage objects have changed. */
    void (*storages_changed)(struct dws_ctx *ctx);

    /* What jobs of before this start hold on rabbits has become known. */
    void (*space_known)(struct dws_ctx *ctx);

    /* What running jobs have been given has been read (act/reservations.h). */
    void (*jobs_recalled)(struct dws_ctx *ctx);

    /* Somebody has taken space on a rabbit, or given it back. */
    void (*space_changed)(struct dws_ctx *ctx);

    /* What is known of persistent file systems, or of when they expire, has changed. */
    void (*leases_changed)(struct dws_ctx *ctx);

    /* A persistent file system has expired, and is destroyed. */
    void (*file_system_destroyed)(struct dws_ctx *ctx, const char *name,
                                  int64_t userid);

    /* A scheduler was loaded, which knows of nothing. */
    void (*scheduler_arrived)(struct dws_ctx *ctx);

    /* It has been told all; or there is none. */
    void (*scheduler_told)(struct dws_ctx *ctx);

    /* A job is let go next, and its storage stays: Fluxion has to hear of it. */
    void (*job_leaves)(struct job *job);
};

#endif /* !DWS_EVENTS_H */
