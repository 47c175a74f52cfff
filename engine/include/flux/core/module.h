/* SPDX-License-Identifier: LGPL-3.0-only */
/* module.h - what a broker module, or the program that hosts one, calls. */
#ifndef SOLO_FLUX_MODULE_H
#define SOLO_FLUX_MODULE_H

#include "handle.h"

#define MOD_NAME(name) const char *mod_name = name

#ifdef __cplusplus
extern "C" {
#endif

int flux_module_set_running (flux_t *h);
int flux_module_config_request_decode (const flux_msg_t *msg,
                                       flux_conf_t **conf);
int flux_module_initialize (flux_t *h, char **args, flux_error_t *error);
int flux_module_register_handlers (flux_t *h, flux_error_t *error);
int flux_module_finalize (flux_t *h, int errnum, flux_error_t *error);

#ifdef __cplusplus
}
#endif
#endif
