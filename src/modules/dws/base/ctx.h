/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * What the parts of the module share. Each part owns its own struct; the
 * context owns the parts and is made and taken apart in module.c.
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
struct drafts;
struct expire;
struct groups;
struct health;
struct withheld;
struct jobs;
struct leases;
struct losses;
struct notices;
struct persistent;
struct pool;
struct profiles;
struct queued;
struct requests;
struct scheduler;
struct space;
struct overdue;
struct pace;
struct stamps;
struct storages;
struct suspects;
struct sweeps;
struct sync;
struct systemstatus;
struct timeline;
struct tokens;
struct totals;
struct troubles;
struct waitlist;
struct users;
struct worker;

struct dws_ctx {
    flux_t *h;
    char *instance;             // value of the label on our workflows
    const struct dws_events *events;    // who hears of what
    flux_msg_handler_t **handlers;
    bool ending;                // the parts are being destroyed

    struct commits *commits;    // to the KVS
    struct calls *calls;        // RPCs that wait for their response
    struct worker *worker;      // calls that block
    struct requests *requests;  // of users, that wait for an answer
    struct timeline *timeline;  // what deadlines are on

    struct dws_config *config;
    struct jobs *jobs;
    struct space *space;        // who holds what on rabbits
    bool early;                 // there are, or were, jobs with storage and no
                                //  nodes yet: the scheduler did not give it
    int recalling;              // jobs whose R is being read (act/reservations.h)
    struct waitlist *waitlist;  // jobs that wait for what others have there
    struct totals *totals;      // jobs that wait for limits
    struct storages *storages;  // what Kubernetes says of rabbits
    struct persistent *persistent;  // file systems that outlive jobs
    struct leases *leases;      // when they expire
    struct sweeps *sweeps;      // what destroys them then
    struct sync *sync;          // the way to learn the jobs from nothing

    struct agent *agent;        // the way to Kubernetes
    struct overdue *overdue;    // asks what a watch does not tell
    struct stamps *stamps;      // dates of what has none there

    struct scheduler *scheduler;        // what it knows of rabbits
    struct withheld *withheld;  // what it is told not to give away
    struct pool *pool;          // the nodes, as it sees them

    struct systemstatus *systemstatus;  // what DWS knows of nodes
    struct suspects *suspects;  // rabbits that may be dead
    struct health *health;      // what is known of nodes and rabbits

    struct annotate *annotate;  // what users see of their jobs
    struct queued *queued;      // why jobs have no nodes yet
    struct losses *losses;      // what was not staged out
    struct notices *notices;    // what users are to be told of
    struct tokens *tokens;      // what the shells of jobs ask for
    struct profiles *profiles;  // requests for those of NNF

    struct pace *touches;       // changes of Computes that can be left out
    struct contention *contention;  // jobs whose data keeps others from idle nodes
    struct drafts *drafts;      // records of jobs that are not written yet
    struct aborts *aborts;      // of dws.abort, without an answer yet
    struct expire *expire;      // of persistent file systems
    struct groups *groups;      // those of users
    struct users *users;        // requests for their names
    struct troubles *troubles;  // what fails, and how often
};

#endif /* !DWS_CTX_H */
