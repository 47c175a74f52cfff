/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * What is known of the schedulers there may be, and how the one that is loaded is asked:
 * scheduler.c finds it, fluxion.c has what Fluxion is told.
 */

#ifndef DWS_SCHEDULER_PRIVATE_H
#define DWS_SCHEDULER_PRIVATE_H

#include "base/calls.h"
#include "sched/scheduler.h"

#define SCHEDULERS 2

struct backend {
    const char *name;
    const char *topic;          // that tells of its coming and going
    bool streaming;
    void (*push)(struct scheduler *sched);
};

struct link {
    struct scheduler *sched;
    const struct backend *backend;
    flux_future_t *stream;      // or a single request
    flux_watcher_t *look;       // then, the next one
    double load_time;           // how long Fluxion took to read its graph (s): to
                                //  the nanosecond, so another is told from it
    struct retry *retry;
    bool sought;                // it was there, or was not
};

struct scheduler {
    struct dws_ctx *ctx;
    struct link links[SCHEDULERS];
    struct link *current;       // the one that is there, or NULL
    int generation;             // schedulers that came and went
    json_t *rabbits;            // as in struct dws_health, NULL: not yet known
    char *bad;
    char *unlinked;
    json_t *written;            // DWS_KEY_HEALTH, NULL: not by this start
    size_t away;                // nodes that are drained or offline
    bool asked_down;            // the graph was asked for with what is down
    unsigned int version;       // that 'rabbits' came with
    unsigned int planned;       // that of what is being told
    unsigned int told;          // of what it has been told, 0: of nothing
    json_t *telling;            // 'rabbits' as they are being told, or NULL
    json_t *heard;              // and as it has last taken them in, or NULL
    bool dirty;                 // it has to be told
    bool failed;                // it would not listen
    int under_way;              // requests without response
    struct dws_fluxion *fx;     // its graph, NULL: not yet known
    json_t *queue;              // ssds to change
    size_t next;                // the next one of them
};

/* Tell the scheduler what it does not know yet, if there is one: now, or once more, but
 * not at once.
 */
void sched_push_news (struct scheduler *sched);
void sched_push_later (struct scheduler *sched);
void sched_push_fluxion (struct scheduler *sched);

/* What is told from now on is 'rabbits'; the scheduler has taken in what was told.
 */
void sched_begin_telling (struct scheduler *sched);
void sched_heard (struct scheduler *sched);

/* Send a request. Takes over 'f', which may be NULL with errno set. Returns false if that
 * has failed.
 */
bool sched_ask (struct scheduler *sched, flux_future_t *f, call_f cb);

/* Take in a response. Returns false if there is nothing to go on with.
 */
bool sched_take_response (const struct call *call, flux_future_t *f,
                          struct scheduler *sched, const char *what);

/* What Fluxion has said of its graph, and what is to change there.
 */
void sched_forget_graph (struct scheduler *sched);

#endif /* !DWS_SCHEDULER_PRIVATE_H */
