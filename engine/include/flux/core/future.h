/* SPDX-License-Identifier: LGPL-3.0-only */
/* future.h - futures, and the calls that return one: RPC, service, sync. */
#ifndef SOLO_FLUX_FUTURE_H
#define SOLO_FLUX_FUTURE_H

#include "handle.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef void (*flux_continuation_f) (flux_future_t *f, void *arg);
typedef void (*flux_future_init_f) (flux_future_t *f, void *arg);

/* For whoever waits. */
int flux_future_then (flux_future_t *f, double timeout,
                      flux_continuation_f cb, void *arg);
int flux_future_wait_for (flux_future_t *f, double timeout);
bool flux_future_is_ready (flux_future_t *f);
int flux_future_get (flux_future_t *f, const void **result);
bool flux_future_has_error (flux_future_t *f);
const char *flux_future_error_string (flux_future_t *f);
#define future_strerror(f, errnum) \
    (flux_future_has_error (f) ? flux_future_error_string (f) \
                               : flux_strerror (errnum))
void flux_future_reset (flux_future_t *f);
void flux_future_incref (flux_future_t *f);
void flux_future_decref (flux_future_t *f);
void flux_future_destroy (flux_future_t *f);
void *flux_future_aux_get (flux_future_t *f, const char *name);
int flux_future_aux_set (flux_future_t *f, const char *name, void *aux,
                         flux_free_f destroy);

/* For whoever fulfills. */
flux_future_t *flux_future_create (flux_future_init_f cb, void *arg);
void flux_future_fulfill (flux_future_t *f, void *result, flux_free_f free_fn);
void flux_future_fulfill_error (flux_future_t *f, int errnum,
                                const char *errstr);
int flux_future_fulfill_with (flux_future_t *f, flux_future_t *p);
void flux_future_fatal_error (flux_future_t *f, int errnum, const char *errstr);
void flux_future_set_flux (flux_future_t *f, flux_t *h);
flux_t *flux_future_get_flux (flux_future_t *f);
void flux_future_set_reactor (flux_future_t *f, flux_reactor_t *r);
flux_reactor_t *flux_future_get_reactor (flux_future_t *f);

/* All of, any of. */
flux_future_t *flux_future_wait_all_create (void);
int flux_future_push (flux_future_t *cf, const char *name, flux_future_t *f);
flux_future_t *flux_future_get_child (flux_future_t *cf, const char *name);

/* One after the other. */
flux_future_t *flux_future_and_then (flux_future_t *f,
                                     flux_continuation_f cb, void *arg);
flux_future_t *flux_future_or_then (flux_future_t *f,
                                    flux_continuation_f cb, void *arg);
int flux_future_continue (flux_future_t *prev, flux_future_t *f);
void flux_future_continue_error (flux_future_t *prev, int errnum,
                                 const char *errstr);
int flux_future_fulfill_next (flux_future_t *prev, void *result,
                              flux_free_f free_fn);

/* Remote procedure calls. */
enum { FLUX_RPC_NORESPONSE = 1, FLUX_RPC_STREAMING = 2 };

flux_future_t *flux_rpc (flux_t *h, const char *topic, const char *s,
                         uint32_t nodeid, int flags);
flux_future_t *flux_rpc_pack (flux_t *h, const char *topic, uint32_t nodeid,
                              int flags, const char *fmt, ...);
flux_future_t *flux_rpc_vpack (flux_t *h, const char *topic, uint32_t nodeid,
                               int flags, const char *fmt, va_list ap);
int flux_rpc_get (flux_future_t *f, const char **s);
int flux_rpc_get_unpack (flux_future_t *f, const char *fmt, ...);
uint32_t flux_rpc_get_matchtag (flux_future_t *f);

/* Claim a service name; give it back. */
flux_future_t *flux_service_register (flux_t *h, const char *name);
flux_future_t *flux_service_unregister (flux_t *h, const char *name);

#ifdef __cplusplus
}
#endif
#endif
