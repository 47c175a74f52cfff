/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Callbacks by which parts of the module notify parts in later layers, whose
 * headers they must not include. module.c connects them.
 */

#ifndef DWS_EVENTS_H
#define DWS_EVENTS_H

#include <stdint.h>

struct dws_ctx;
struct dws_actions;
struct job;

/* No member may be NULL.
 */
struct dws_events {
    /* dws_reconcile() has decided on actions for a job: execute them. */
    void (*decided)(struct job *job, const struct dws_actions *actions);

    /* A job has changed, maybe also the text that its owner sees. */
    void (*job_changed)(struct job *job);

    /* A client asks for this one job, and will read its records in the KVS
     * next. */
    void (*job_asked)(struct job *job);

    /* A job's workflow is gone; the job's record still has it. */
    void (*workflow_gone)(struct job *job);

    /* The record of a job is about to be destroyed. */
    void (*job_forgotten)(struct job *job);

    /* The jobtap plugin has reported all jobs. */
    void (*jobs_listed)(struct dws_ctx *ctx);

    /* An agent has attached and reported all workflows; the agent is gone. */
    void (*agent_ready)(struct dws_ctx *ctx);
    void (*agent_lost)(struct dws_ctx *ctx);

    /* The wall clock was set: leases may be due. */
    void (*clock_set)(struct dws_ctx *ctx);

    /* The link to Kubernetes is up, or down. */
    void (*link_changed)(struct dws_ctx *ctx);

    /* Storage objects have changed. */
    void (*storages_changed)(struct dws_ctx *ctx);

    /* The claims of jobs from before this start have become known. */
    void (*space_known)(struct dws_ctx *ctx);

    /* The reservations of running jobs have been read (act/reservations.h). */
    void (*jobs_recalled)(struct dws_ctx *ctx);

    /* Space on a rabbit was taken or freed. */
    void (*space_changed)(struct dws_ctx *ctx);

    /* Persistent file systems or their leases have changed. */
    void (*leases_changed)(struct dws_ctx *ctx);

    /* An expired persistent file system was destroyed. */
    void (*file_system_destroyed)(struct dws_ctx *ctx, const char *name,
                                  int64_t userid);

    /* A scheduler was loaded, and has no state of rabbits yet. */
    void (*scheduler_arrived)(struct dws_ctx *ctx);

    /* The scheduler has acknowledged all updates, or none is loaded. */
    void (*scheduler_acknowledged)(struct dws_ctx *ctx);

    /* A job leaves and its storage stays: Fluxion must set its ssds down first. */
    void (*job_leaves)(struct job *job);
};

#endif /* !DWS_EVENTS_H */
