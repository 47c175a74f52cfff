/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * A model of Flux, DWS and the network around dws_reconcile(), small enough
 * to visit all of its states.
 */

#ifndef TEST_MODEL_H
#define TEST_MODEL_H

#include "libdws/decide/reconcile_private.h"

/* What the module knows of a workflow, or what there is of it. Bytes without
 * padding, so that two can be compared as memory.
 */
struct model_workflow {
    uint8_t exists;
    uint8_t desired;
    uint8_t state;
    uint8_t ready;
    uint8_t status;
    uint8_t deleting;
    uint8_t finalizer;
    uint8_t breakdowns;     // known: read; real: there
    uint8_t servers;        // written
    uint8_t computes;
    uint8_t force;
    uint8_t other;          // made for another job that had its id
    uint8_t waived;         // a node that the job does without is in Computes
    uint8_t failed;         // its stage-out has, and that is noted
    uint8_t retry;          // it is to be tried again
    uint8_t data_first;     // made to have the data before there are nodes
    uint8_t hidden;         // it has lost its label: no watch shows it
    uint8_t doubted;        // known: a watch or a list says that it is gone
    uint8_t outdated;       // failed for Servers that NNF had not seen yet
};

#define MODEL_QUEUE 8
#define MODEL_MASK 5

struct model {
    uint8_t phase;
    uint8_t known;          // the module knows the job, not only the workflow
    uint8_t absent;         // and that there is no workflow
    uint8_t ran;
    uint8_t exception;
    uint8_t teardown;
    uint8_t abandoned;
    uint8_t raised;
    uint8_t refusal;
    uint8_t hosts;
    uint8_t saved;          // the timing of Teardown
    uint8_t want;           // of the DESIRE in flight
    uint8_t tolerance;      // of node failures
    uint8_t patient;        // with data on the move, but not with the prolog
    uint8_t lag;            // read in this state: hosts that lag + 1
    uint8_t missing;        // they lack mounts
    uint8_t excluded;
    uint8_t left_out;       // the job does without them
    uint8_t only_waived;    // read: they alone are not unmounted
    uint8_t shrunk;         // Computes is without those that were waived
    uint8_t notified;       // the module has told the job of them
    uint8_t noted;          // which the eventlog has
    uint8_t allocated;      // read: rabbits hold allocations
    uint8_t drained;
    uint8_t disabled;
    uint8_t barred;         // the scheduler knows that
    uint8_t same;           // the workflow known is the one there is
    uint8_t hand;           // somebody has interfered by hand
    uint8_t queue[MODEL_QUEUE]; // commands on the workflow, kind + 1
    uint8_t late;           // the epilog has timed out: the eventlog has it
    uint8_t maybe;          // the plugin has drained the job's nodes
    uint8_t unmount;        // the nodes are released then
    uint8_t keeps;          // a stage-out that has failed can be tried again
    uint8_t mild;           // the exception under way does not fail the job
    uint8_t recorded;       // the list of losses is up to date
    uint8_t recording;      // what is being written to it, enum in model_private.h
    uint8_t current_record; // and is the case still
    uint8_t listed;         // what that list has: a loss
    uint8_t let_go;         // the epilog has ended: the eventlog has it
    uint8_t released;       // the module knows that
    uint8_t alone;          // it ran and has had no epilog: the eventlog has it
    uint8_t stranded;       // the module knows that
    uint8_t kept;           // its nodes were drained
    uint8_t undrained;      // and were undrained
    uint8_t reported;       // that data was lost is on record
    uint8_t recalled;       // the eventlog was read
    uint8_t progress;       // read in this state, enum in model_private.h
    uint8_t lost;           // somebody has deleted Computes
    uint8_t looked;         // the module has looked for it in this state
    uint8_t touched;        // it has touched Computes at the last of the moments
    uint8_t spoilt;         // nobody makes again what the workflow needs
    uint8_t asks;           // it is to have its data before it has nodes
    uint8_t data_first;     // enum dws_first: its jobspec
    uint8_t want_first;     // of the RESOURCE_UPDATE in flight
    uint8_t make_first;     // of the CREATE in flight
    uint8_t no_room;        // there is no room for that
    uint8_t remade;         // its workflow was made anew for one that is outdated
    uint8_t contended;       // it has that, and idle nodes are kept from it
    uint8_t busy[MODEL_MASK];   // a bit mask, low byte first
    uint8_t stale[MODEL_MASK];  // of these, for an earlier workflow
    struct model_workflow real;
    struct model_workflow seen;
};

/* Called with each state that a step leads to.
 */
typedef void (*model_f)(const struct model *m, void *arg);

/* Why an invariant does not hold, NULL if all do.
 */
struct model_check {
    int skip;               // row that is left out, or -1
    const char *failure;
    struct model end;       // where a job got stuck
};

/* How the world behaves while a job is followed to its end.
 */
enum model_world {
    WORLD_WELL,             // everything works
    WORLD_STUCK,            // no state with a time limit ever completes
    WORLD_TRANSIENT,        // none but Teardown leaves TransientCondition
    WORLD_MOVING,           // data moves for longer than allowed, and arrives
    WORLD_COUNT,
};

/* A job that ran and whose stage-out may fail, which is kept then.
 */
struct model model_start_kept (int unmount);

struct model model_start (int tolerance, int patient, int unmount);

/* A job that is to have its data before it has nodes.
 */
struct model model_start_first (int tolerance, int unmount);

/* Flux has crashed, forgotten a job, and given its id to a new one.
 */
struct model model_start_again (int unmount);

/* All that can happen next, faults included.
 */
void model_steps (const struct model *m, struct model_check *check,
                  model_f cb, void *arg);

/* What happens next without faults. Returns false if nothing does.
 */
bool model_settle (struct model *m, enum model_world world,
                   struct model_check *check);

/* True if the job is over and nothing is left of it.
 */
bool model_over (const struct model *m);

#endif /* !TEST_MODEL_H */
