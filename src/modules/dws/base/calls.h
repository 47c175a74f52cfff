/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The pending RPCs of the module, listed so that they can be dropped when the
 * module is unloaded.
 */

#ifndef DWS_CALLS_H
#define DWS_CALLS_H

#include <stdint.h>
#include <flux/core.h>

struct dws_ctx;

/* A pending call: the subject of its response.
 */
struct call {
    struct dws_ctx *ctx;
    uint64_t jobid;
    int kind;                   // the caller's own
    const void *arg;            // likewise
};

typedef void (*call_f)(const struct call *call, flux_future_t *f);

struct calls *calls_create (void);
void calls_destroy (struct calls *calls);

/* Send a request to the nearest service of that name. The payload is packed as by
 * flux_rpc_pack(), but cheaper, since every job sends some. Returns NULL with errno.
 */
flux_future_t *calls_rpc (flux_t *h, const char *topic, const char *fmt, ...);

/* Call 'cb' when 'f' is ready, then destroy 'f'. Takes over 'f', also on
 * failure; 'f' may be NULL with errno set, which fails.
 */
int calls_add (struct dws_ctx *ctx,
               flux_future_t *f,
               uint64_t jobid,
               int kind,
               call_f cb);

/* The same with an argument, and within 'seconds' (-1.: any time): then the call fails
 * with ETIMEDOUT.
 */
int calls_add_with (struct dws_ctx *ctx,
                    flux_future_t *f,
                    double seconds,
                    uint64_t jobid,
                    const void *arg,
                    call_f cb);

/* Nobody waits for 'f': if it fails, at once (returns -1) or later, that is logged as
 * "WHAT: error". 'what' is not copied.
 */
int calls_log (struct dws_ctx *ctx, flux_future_t *f, int level, const char *what);

#endif /* !DWS_CALLS_H */
