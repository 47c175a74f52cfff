/* SPDX-License-Identifier: LGPL-3.0-only */
/* handle.h - the handle: connection, attributes, log, the connector ABI. */
#ifndef SOLO_FLUX_HANDLE_H
#define SOLO_FLUX_HANDLE_H

#include "message.h"
#include "conf.h"
#include "reactor.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    FLUX_O_TRACE = 1,
    FLUX_O_CLONE = 2,
    FLUX_O_NONBLOCK = 4,
    FLUX_O_MATCHDEBUG = 8,
    FLUX_O_TEST_NOSUB = 16,
    FLUX_O_RPCTRACK = 32,
    FLUX_O_NOREQUEUE = 64,
};

enum { FLUX_RQ_HEAD = 1, FLUX_RQ_TAIL = 2 };

#define FLUX_OPT_TESTING_USERID "flux::testing_userid"
#define FLUX_OPT_TESTING_ROLEMASK "flux::testing_rolemask"
#define FLUX_OPT_ROUTER_NAME "flux::router_name"
#define FLUX_OPT_SEND_QUEUE_COUNT "flux::send_queue_count"
#define FLUX_OPT_RECV_QUEUE_COUNT "flux::recv_queue_count"
#define FLUX_OPT_POLLFD_EVENTS "flux::pollfd_events"

/* Open and close. */
flux_t *flux_open (const char *uri, int flags);
flux_t *flux_open_ex (const char *uri, int flags, flux_error_t *error);
void flux_close (flux_t *h);
flux_t *flux_incref (flux_t *h);
void flux_decref (flux_t *h);
flux_t *flux_clone (flux_t *orig);

/* What belongs to the handle. */
flux_reactor_t *flux_get_reactor (flux_t *h);
int flux_set_reactor (flux_t *h, flux_reactor_t *r);
const flux_conf_t *flux_get_conf (flux_t *h);
int flux_set_conf_new (flux_t *h, const flux_conf_t *conf);
int flux_opt_set (flux_t *h, const char *option, const void *val, size_t len);
int flux_opt_get (flux_t *h, const char *option, void *val, size_t len);
void *flux_aux_get (flux_t *h, const char *name);
int flux_aux_set (flux_t *h, const char *name, void *aux, flux_free_f destroy);
int flux_flags_get (flux_t *h);
uint32_t flux_matchtag_alloc (flux_t *h);
void flux_matchtag_free (flux_t *h, uint32_t matchtag);
uint32_t flux_matchtag_avail (flux_t *h);

/* Send and receive.  send_new takes *msg over on success. */
int flux_send (flux_t *h, const flux_msg_t *msg, int flags);
int flux_send_new (flux_t *h, flux_msg_t **msg, int flags);
flux_msg_t *flux_recv (flux_t *h, struct flux_match match, int flags);
int flux_requeue (flux_t *h, const flux_msg_t *msg, int flags);
int flux_pollevents (flux_t *h);
int flux_pollfd (flux_t *h);

/* Connector ABI: a transport implements these. */
struct flux_handle_ops {
    int (*setopt) (void *impl, const char *option, const void *val, size_t len);
    int (*getopt) (void *impl, const char *option, void *val, size_t len);
    int (*pollfd) (void *impl);
    int (*pollevents) (void *impl);
    int (*send) (void *impl, const flux_msg_t *msg, int flags);
    flux_msg_t *(*recv) (void *impl, int flags);
    int (*reconnect) (void *impl);
    void (*impl_destroy) (void *impl);
    int (*send_new) (void *impl, flux_msg_t **msg, int flags);
    void *_pad[4];
};

typedef flux_t *(connector_init_f) (const char *uri, int flags,
                                    flux_error_t *errp);

flux_t *flux_handle_create (void *impl, const struct flux_handle_ops *ops,
                            int flags);
void flux_handle_destroy (flux_t *hp);

/* Attributes of the broker, cached where they cannot change. */
const char *flux_attr_get (flux_t *h, const char *name);
int flux_attr_set (flux_t *h, const char *name, const char *val);
int flux_attr_set_cacheonly (flux_t *h, const char *name, const char *val);
int flux_get_rank (flux_t *h, uint32_t *rank);

/* Log, to the broker's ring. */
void flux_log_set_appname (flux_t *h, const char *s);
int flux_log (flux_t *h, int level, const char *fmt, ...)
    __attribute__ ((format (printf, 3, 4)));
int flux_vlog (flux_t *h, int level, const char *fmt, va_list ap);
void flux_log_error (flux_t *h, const char *fmt, ...)
    __attribute__ ((format (printf, 2, 3)));
void flux_log_verror (flux_t *h, const char *fmt, va_list ap);
#define FLUX_LOG_ERROR(h) \
    ((void)flux_log_error ((h), "%s::%d[%s]", __FILE__, __LINE__, __func__))

#ifdef __cplusplus
}
#endif
#endif
