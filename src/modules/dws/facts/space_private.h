/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The ledger, for space.c and what goes by its sums.
 */

#ifndef DWS_SPACE_PRIVATE_H
#define DWS_SPACE_PRIVATE_H

#include "facts/space.h"

/* A Servers object, or what will be one.
 */
struct space_entry {
    char *key;                  // namespace/name
    char *workflow;             // its workflow, NULL: persistent storage
    char *persistent;           // its name, NULL: storage of a workflow
    struct dws_bytes bytes;
    json_t *keys;               // {RABBIT: {KEY: true}}
    struct claim *claim;        // of its job, NULL: none
    bool seen;                  // the object exists in Kubernetes
    bool released;              // given up by its job: belongs to no job
    bool settled;               // settled as SPACE_OF_NOBODY
    bool listed;                // in the latest list of objects
    struct space_entry *next;
    struct space_entry *prev;
    struct space_entry *namesake;   // the next with the same name 'persistent'
    struct space_entry **group;     // its list: of the claim, or of struct space
    struct space_entry *group_next;
    struct space_entry *group_prev;
};

/* A ledger can have ten thousand entries, and a change concerns one of them or those
 * of one job, or persistent storage of one name. To find these without a walk over all,
 * each entry is also in the list of its claim, in 'unsettled' or in 'others', and in
 * the list of its namesakes.
 */
struct space {
    struct dws_bytes used;      // the sum of all
    struct dws_bytes outside;   // the sum of entries without a job
    json_t *withheld;           // job id -> bytes of the claim
    json_t *freed;              // space_freed()
    void *tree;                 // of entries, by key
    void *named;                // of the first entry of each name 'persistent'
    struct space_entry *list;
    struct space_entry *unsettled;  // entries without a job, not settled yet
    struct space_entry *others;
    bool known;
};

#endif /* !DWS_SPACE_PRIVATE_H */
