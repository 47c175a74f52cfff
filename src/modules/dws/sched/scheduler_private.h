/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * struct scheduler, shared by scheduler.c, which finds the loaded scheduler, fluxion.c,
 * which computes requests to Fluxion, and requests.c, which sends requests.
 */

#ifndef DWS_SCHEDULER_PRIVATE_H
#define DWS_SCHEDULER_PRIVATE_H

#include "base/calls.h"
#include "sched/scheduler.h"

#define SCHEDULERS 2

struct backend {
    const char *name;
    const char *topic;          // of a request that shows whether it is loaded
    bool streaming;
    void (*push)(struct scheduler *sched);
};

struct link {
    struct scheduler *sched;
    const struct backend *backend;
    flux_future_t *stream;      // or a single request
    flux_watcher_t *look;       // then, the next one
    double load_time;           // how long Fluxion took to read its graph (s): a new
                                //  value shows that Fluxion was loaded again
    struct retry *retry;
    bool sought;                // the first search has ended
    bool keeps_off;             // sched-rabbit avoids DWS_BAD_PROPERTY by itself
};

struct scheduler {
    struct dws_ctx *ctx;
    struct link links[SCHEDULERS];
    struct link *current;       // the loaded scheduler, or NULL
    int generation;             // schedulers that came and went
    json_t *rabbits;            // as in struct dws_health, NULL: not yet known
    char *bad;
    char *unlinked;
    json_t *written;            // DWS_KEY_HEALTH, NULL: not by this start
    size_t away;                // nodes that are drained or offline
    bool asked_down;            // the graph was read with the state of ssds
    unsigned int version;       // of 'rabbits'
    unsigned int planned;       // of the update under way
    unsigned int acknowledged;  // of the last acknowledged update, 0: none
    json_t *telling;            // 'rabbits' in the update under way, or NULL
    json_t *heard;              // and in the last acknowledged one, or NULL
    bool dirty;                 // an update is due
    bool failed;                // the last update failed
    int under_way;              // requests without response
    struct dws_fluxion *fx;     // its graph, NULL: not yet known
    json_t *queue;              // ssds to change
    size_t next;                // index of the next of these
};

/* Send what the loaded scheduler, if any, lacks: now, or again after a delay.
 */
void sched_push_news (struct scheduler *sched);
void sched_push_later (struct scheduler *sched);
void sched_push_fluxion (struct scheduler *sched);

/* An update with the present 'rabbits' begins; the scheduler has acknowledged it.
 */
void sched_begin_telling (struct scheduler *sched);
void sched_heard (struct scheduler *sched);

/* Send a request. Takes over 'f', which may be NULL with errno set. Returns false if that
 * has failed.
 */
bool sched_ask (struct scheduler *sched, flux_future_t *f, call_f cb);

/* Take in a response. Returns false if the caller must not continue.
 */
bool sched_take_response (const struct call *call, flux_future_t *f,
                          struct scheduler *sched, const char *what);

/* Drop the graph read from Fluxion and the changes queued for it.
 */
void sched_forget_graph (struct scheduler *sched);

#endif /* !DWS_SCHEDULER_PRIVATE_H */
