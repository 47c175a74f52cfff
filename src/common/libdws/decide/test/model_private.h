/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * What the parts of the model share: model_module.c stands for the module, model.c for
 * everything around it, model_steps.c for what can happen, model_check.c for what must
 * not.
 */

#ifndef TEST_MODEL_PRIVATE_H
#define TEST_MODEL_PRIVATE_H

#include <string.h>

#include "model.h"

/* Times: before any time limit, when mounts are looked at, after all limits, and when
 * what has been read then has to be read anew.
 */
#define EARLY 1.
#define SOON 5.
#define LATE 1000.
#define LATER 3000.
#define SLOW 900.

#define BIT(kind) DWS_BUSY (kind)

/* Requests to the job manager and the KVS.
 */
#define CALLS (BIT (DWS_ACT_RESOURCE_UPDATE) | BIT (DWS_ACT_REJECT) \
               | BIT (DWS_ACT_HOSTS) | BIT (DWS_ACT_PROLOG_REMOVE) \
               | BIT (DWS_ACT_EPILOG_REMOVE) | BIT (DWS_ACT_RAISE) \
               | BIT (DWS_ACT_SAVE) | BIT (DWS_ACT_RECALL) \
               | BIT (DWS_ACT_REPORT) | BIT (DWS_ACT_UNDRAIN))

/* Commands on other objects than the workflow: they overtake each other.
 */
#define SIDE (BIT (DWS_ACT_BREAKDOWNS) | BIT (DWS_ACT_SERVERS) \
              | BIT (DWS_ACT_COMPUTES) | BIT (DWS_ACT_MOUNTS) \
              | BIT (DWS_ACT_ALLOCATIONS) | BIT (DWS_ACT_EXCLUDE) \
              | BIT (DWS_ACT_PROGRESS))

/* What 'progress' of the model says: not read, or how it was.
 */
enum {
    PROGRESS_UNREAD,
    PROGRESS_MADE,
    PROGRESS_NONE,
};

/* What 'recording' says.
 */
enum {
    RECORD_NONE,
    RECORD_LOST,
    RECORD_KEPT,
    RECORD_GOOD,
};

static inline uint64_t get_mask (const uint8_t mask[MODEL_MASK])
{
    uint64_t bits = 0;

    for (int i = 0; i < MODEL_MASK; i++)
        bits |= (uint64_t)mask[i] << (8 * i);
    return bits;
}

static inline void set_mask (uint8_t mask[MODEL_MASK], uint64_t bits)
{
    for (int i = 0; i < MODEL_MASK; i++)
        mask[i] = bits >> (8 * i) & 0xff;
}

static inline uint64_t get_busy (const struct model *m)
{
    return get_mask (m->busy);
}

static inline void set_busy (struct model *m, uint64_t busy)
{
    set_mask (m->busy, busy);
}

static inline bool is_busy (const struct model *m, int kind)
{
    return (get_busy (m) & BIT (kind)) != 0;
}

/* Of the module: ask dws_reconcile() what to do, check that, begin to do it.
 * Returns false if there is nothing to do.
 */
bool model_decide (struct model *m, double now, struct model_check *check);

/* What must be so at an action, and whatever comes of it in this state. What is not is
 * noted in 'check'.
 */
void model_check_action (const struct model *m, const struct dws_action *a, double now,
                         struct model_check *check);
void model_check_duties (const struct model *m, double now,
                         struct model_check *check);
void model_fail (struct model_check *check, const char *why);

/* Of the world: each is one event. The module sees what is: by the workflow's name, in
 * the answer to a command, as a watch shows it, or in a list.
 */
void model_read (struct model *m);
void model_learn (struct model *m);
void model_list (struct model *m);
void model_end_phase (struct model *m);         // CLEANUP begins
void model_time_out (struct model *m);          // the epilog does
void model_abandon (struct model *m, struct model_check *check);
void model_drain (struct model *m);
void model_run_call (struct model *m, int kind);
void model_run_side (struct model *m, int kind, int lagging);
void model_run_down (struct model *m);
void model_run_command (struct model *m, int kind, struct model_check *check);
int model_pop (struct model *m);                // the next command, no effect
void model_restart_agent (struct model *m);
void model_restart_module (struct model *m);
void model_remove_real (struct model *m);
bool model_control (struct model *m, enum model_world world);

/* Have the mounted nodes been drained, as dws_nodes_secured() has it? And may another
 * job get one all the same?
 */
bool model_secured (const struct model *m);
bool model_exposed (const struct model *m);

/* Is it, or may it be, mounted on the job's nodes?
 */
bool model_mounted (const struct model_workflow *wf);

/* May the scheduler place a job on a rabbit that is still taken?
 */
bool model_unbarred (const struct model *m);

bool model_arrived (const struct model_workflow *wf);
bool model_reached (const struct model_workflow *wf, int state);    // and it is ready
bool model_has_timeout (int state);
bool model_accepts (const struct model_workflow *wf, int state);
bool model_loses (const struct model *m);       // its Computes, maybe

#endif /* !TEST_MODEL_PRIVATE_H */
