/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The context that the parts of the module share. Each part owns its own
 * struct; the context owns the parts. module.c creates and destroys it.
 */

#ifndef DWS_CTX_H
#define DWS_CTX_H

#include <stdbool.h>
#include <flux/core.h>

#include "base/events.h"

struct dws_config;
struct aborts;
struct agent;
struct annotate;
struct calls;
struct commits;
struct writeback;
struct expire;
struct groups;
struct health;
struct idmap;
struct withheld;
struct jobs;
struct leases;
struct losses;
struct notices;
struct persistent;
struct pool;
struct profiles;
struct queued;
struct scheduler;
struct space;
struct pace;
struct transients;
struct storages;
struct suspects;
struct sweeps;
struct sync;
struct systemstatus;
struct timeline;
struct tokens;
struct totals;
struct errorlog;
struct waitlist;
struct users;
struct worker;

/* The slots of a job (facts/slots.h), each named after the part that fills it. They are
 * destroyed in this order: unwritten records are written, for a late job into SLOT_LATE;
 * jobs that leave a line change texts of others, which SLOT_ANNOTATE lists.
 */
enum slot {
    SLOT_TRANSIENT,
    SLOT_EXPLAIN,
    SLOT_WAITLIST,
    SLOT_QUERIES = SLOT_WAITLIST,       // those before it end with the agent
    SLOT_TOTALS,
    SLOT_LEASES,
    SLOT_OVERDUE,
    SLOT_POOL,
    SLOT_WRITEBACK,
    SLOT_LATE,
    SLOT_CONSTRAINT,
    SLOT_CONTENTION,
    SLOT_ACTIONS,
    SLOT_ANNOTATE,
    SLOT_COUNT,
};

struct dws_ctx {
    flux_t *h;
    char *instance;             // value of the label on our workflows
    const struct dws_events *events;    // connected by module.c
    flux_msg_handler_t **handlers;
    bool ending;                // the parts are being destroyed

    struct commits *commits;    // to the KVS
    struct calls *calls;        // pending RPCs
    struct worker *worker;      // calls that block
    struct idmap *requests;     // pending requests of users
    struct timeline *timeline;  // of deadlines

    struct dws_config *config;
    struct jobs *jobs;
    struct space *space;        // the ledger of rabbits
    bool early;                 // data-first jobs exist, or did: their storage is
                                //  in no reservation
    int recalling;              // jobs whose R is being read (act/reservations.h)
    struct waitlist *waitlist;  // jobs that wait for storage of others
    struct totals *totals;      // sums for limits, and jobs that wait for them
    struct storages *storages;  // Storage objects of rabbits
    struct persistent *persistent;  // file systems that outlive jobs
    struct leases *leases;      // when they expire
    struct sweeps *sweeps;      // workflows that destroy them
    struct sync *sync;          // reads all jobs from the plugin

    struct agent *agent;        // the way to Kubernetes
    flux_watcher_t *overdue;    // doubts workflows without progress
    struct transients *transients;      // since when workflows are in
                                        //  TransientCondition

    struct scheduler *scheduler;        // sends it the state of rabbits
    struct withheld *withheld;  // storage that it must not allocate
    struct pool *pool;          // nodes, as the scheduler sees them

    struct systemstatus *systemstatus;  // the object by which DWS knows nodes
    struct suspects *suspects;  // rabbits whose controller is silent
    struct health *health;      // state of nodes and rabbits

    struct annotate *annotate;  // annotations of jobs
    struct queued *queued;      // why jobs have no nodes yet
    struct losses *losses;      // data that was not staged out
    struct notices *notices;    // messages to users
    struct tokens *tokens;      // requests of job shells
    struct profiles *profiles;  // requests for NNF's profiles

    struct pace *touches;       // optional changes of Computes
    flux_watcher_t *contention; // jobs whose data keeps others from idle nodes
    struct writeback *writeback;    // unwritten records of jobs
    struct aborts *aborts;      // pending requests dws.abort
    struct expire *expire;      // destroys expired file systems
    struct groups *groups;      // groups of users
    struct users *users;        // requests for their names
    struct errorlog *errorlog;  // rate-limited log lines
};

#endif /* !DWS_CTX_H */
