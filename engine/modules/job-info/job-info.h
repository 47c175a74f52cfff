/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Job data for the job's user and the owner: lookups (lookup.c) and streams
 * (watch.c).
 */
#ifndef SOLO_JOB_INFO_H
#define SOLO_JOB_INFO_H

#include "common/respond.h"
#include "jobutil.h"

struct lookup;
struct watch;

struct info {
    flux_t *h;
    struct lookup *lookups;
    struct watch *watches;
};

/* May the sender of msg see the job with this eventlog?  0, or -1 + errno */
int info_authorize (const flux_msg_t *msg, const char *eventlog);

void lookup_request (flux_t *h, flux_msg_handler_t *mh,
                     const flux_msg_t *msg, void *arg);
void lookups_destroy (struct info *ctx);

void watch_request (flux_t *h, flux_msg_handler_t *mh,
                    const flux_msg_t *msg, void *arg);
void watch_cancel_request (flux_t *h, flux_msg_handler_t *mh,
                           const flux_msg_t *msg, void *arg);
void watch_disconnect (struct info *ctx, const flux_msg_t *msg);
void watches_destroy (struct info *ctx);

#endif
