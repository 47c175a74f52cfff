/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * How many jobs there are in each phase, and workflows in each state, so that
 * dws.status need not look at every job.
 */

#ifndef DWS_TALLY_H
#define DWS_TALLY_H

#include <stdbool.h>

#include "libdws/decide/reconcile.h"
#include "libdws/facts/workflow.h"

struct job;

struct counts {
    int jobs;
    int workflows;
    int unmade;                 // jobs whose workflow is to be created
    int phases[DWS_PHASE_GONE + 1];
    int states[DWS_STATE_TEARDOWN + 1];
};

struct tally {
    struct counts counts;
    struct job *late;           // jobs whose workflow is late
    int mounting;               // late jobs in PreRun or PostRun
    int remade;                 // outdated workflows that were replaced while their
                                //  jobs went on: NNF had failed them because of a
                                //  stale copy of Servers
};

/* How a job is counted at present: in which phase and state. Part of struct
 * job.
 */
struct counted {
    bool job;
    bool workflow;
    bool late;
    enum dws_phase phase;
    enum dws_state state;
    double since;               // late since then (s since the epoch)
    struct job *prev;           // in the list of late jobs
    struct job *next;
};

/* Add a job 'by' times to the counts of its phase and state.
 */
void counts_add (struct counts *counts, const struct counted *c, int by);

/* Count a job in its present phase and state, or not any more.
 */
void tally_update (struct tally *tally, struct job *job);
void tally_remove (struct tally *tally, struct job *job);

/* The job whose workflow is late for the longest time; NULL: none is.
 */
struct job *tally_oldest (const struct tally *tally);

#endif /* !DWS_TALLY_H */
