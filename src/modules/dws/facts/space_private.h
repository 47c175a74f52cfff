/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The ledger, for space.c and what goes by its sums.
 */

#ifndef DWS_SPACE_PRIVATE_H
#define DWS_SPACE_PRIVATE_H

#include "facts/space.h"

/* A Servers object, or what will be one.
 */
struct holding {
    char *key;                  // namespace/name
    char *workflow;             // that it goes with, NULL: persistent storage
    char *persistent;           // whose it is, NULL: of a workflow
    json_t *bytes;              // by rabbit
    json_t *keys;               // {RABBIT: {KEY: true}}
    struct claim *claim;        // of the job that has it, NULL: of none
    bool seen;                  // Kubernetes has it
    bool released;              // the job has given it up: it is nobody's
    bool settled;               // it was found to be nobody's
    bool listed;                // it is in the latest list
    struct holding *next;
    struct holding *prev;
    struct holding **group;     // of its claim, or one of those below
    struct holding *group_next;
    struct holding *group_prev;
};

/* There may be ten thousand holdings, and a change is about one of them or one job's:
 * they are also in a list for each claim, and of those that no job has in one of two.
 */
struct space {
    json_t *used;               // the sum of all
    json_t *outside;            // the sum of what no job has
    json_t *held;               // job id -> what the claim is
    json_t *freed;              // space_freed()
    void *tree;                 // of holdings, by key
    struct holding *list;
    struct holding *unsettled;  // nobody's yet, to be asked for
    struct holding *others;
    bool known;
};

#endif /* !DWS_SPACE_PRIVATE_H */
