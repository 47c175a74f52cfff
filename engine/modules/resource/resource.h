/* SPDX-License-Identifier: LGPL-3.0-only */
/* resource.h - what the files of the resource module share.
 */
#ifndef SOLO_RESOURCE_H
#define SOLO_RESOURCE_H

#include <jansson.h>
#include <stdbool.h>
#include <flux/core.h>
#include <flux/hostlist.h>
#include <flux/idset.h>

#include "common/respond.h"

struct node {
    bool drained;
    double drain_time;
    char *drain_reason;         // or NULL
    bool offline;
    bool excluded;
};

struct resource {
    flux_t *h;
    json_t *R;
    unsigned int size;
    unsigned int max_size;      // what the instance was started with
    struct hostlist *hosts;     // by rank
    struct node *nodes;
    json_t *eventlog;           // array of all entries
    struct flux_msglist *acquirers;
    struct flux_msglist *journals;
    struct flux_msglist *status_requests;
    flux_future_t *status_rpc;
    bool mute;
    flux_msg_handler_t **handlers;
};

/* rset.c: sets of nodes and their R
 */

/* Idset or hostlist to ranks.  Fails with EINVAL.
 */
struct idset *targets_decode (struct resource *ctx,
                              const char *targets,
                              flux_error_t *error);
/* The hosts of some ranks as a hostlist; the caller frees it.
 */
char *hosts_encode (struct resource *ctx, const struct idset *ranks);

/* Ranks for which 'test' holds.
 */
typedef bool (*node_test_f)(const struct node *node);
struct idset *nodes_select (struct resource *ctx, node_test_f test);
bool node_is_up (const struct node *node);
bool node_is_down (const struct node *node);
bool node_is_excluded (const struct node *node);
bool node_is_online (const struct node *node);
bool node_is_offline (const struct node *node);

/* R with only these ranks, without the "scheduling" key if 'thin'.
 */
json_t *R_select (struct resource *ctx, const struct idset *ranks, bool thin);
/* Give R of a job the properties that its ranks have.
 */
json_t *R_with_properties (struct resource *ctx, json_t *R);

/* inventory.c: where R comes from
 */

/* From the file R in 'dir' or, if that is NULL, from the KVS.
 */
int inventory_load (struct resource *ctx, const char *dir);

/* drain.c: drain and undrain
 */
extern const struct flux_msg_handler_spec drain_htab[];
/* {RANKS: {"timestamp": T, "reason": S}}
 */
json_t *drain_info (struct resource *ctx);
/* Apply a drain or undrain event from the eventlog.
 */
void drain_replay (struct resource *ctx,
                   const char *name,
                   double timestamp,
                   json_t *context);

/* acquire.c: what the scheduler gets
 */
extern const struct flux_msg_handler_spec acquire_htab[];
/* Tell the scheduler what has come up or gone down.
 */
void acquire_update (struct resource *ctx);

/* resource.c
 */

/* Set o[key] to the idset in text, "" if it is empty.
 */
void set_idset (json_t *o, const char *key, const struct idset *ids);

/* Write an event to resource.eventlog and wait until that is safe.
 * 'context' is taken over.
 */
int event_post (struct resource *ctx,
                double timestamp,
                const char *name,
                json_t *context);
double time_now (void);

#endif // !SOLO_RESOURCE_H
