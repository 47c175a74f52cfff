/* SPDX-License-Identifier: LGPL-3.0-only */
/* dispatch.h - message handlers: callbacks on what a handle receives. */
#ifndef SOLO_FLUX_DISPATCH_H
#define SOLO_FLUX_DISPATCH_H

#include "handle.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct flux_msg_handler flux_msg_handler_t;
typedef void (*flux_msg_handler_f) (flux_t *h, flux_msg_handler_t *mh,
                                    const flux_msg_t *msg, void *arg);

struct flux_msg_handler_spec {
    int typemask;
    const char *topic_glob;
    flux_msg_handler_f cb;
    uint32_t rolemask;
};
#define FLUX_MSGHANDLER_TABLE_END { 0, NULL, NULL, 0 }

flux_msg_handler_t *flux_msg_handler_create (flux_t *h,
                                             const struct flux_match match,
                                             flux_msg_handler_f cb, void *arg);
void flux_msg_handler_destroy (flux_msg_handler_t *mh);
void flux_msg_handler_start (flux_msg_handler_t *mh);
void flux_msg_handler_stop (flux_msg_handler_t *mh);
void flux_msg_handler_allow_rolemask (flux_msg_handler_t *mh, uint32_t rolemask);

int flux_msg_handler_addvec (flux_t *h,
                             const struct flux_msg_handler_spec tab[],
                             void *arg, flux_msg_handler_t **msg_handlers[]);
int flux_msg_handler_addvec_ex (flux_t *h, const char *service_name,
                                const struct flux_msg_handler_spec tab[],
                                void *arg, flux_msg_handler_t **hp[]);
void flux_msg_handler_delvec (flux_msg_handler_t *msg_handlers[]);

int flux_dispatch_requeue (flux_t *h);

/* Methods that every service has. */
int flux_register_default_methods (flux_t *h, const char *service_name,
                                   flux_msg_handler_t **msg_handlers[]);

#ifdef __cplusplus
}
#endif
#endif
