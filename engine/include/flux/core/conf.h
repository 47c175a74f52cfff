/* SPDX-License-Identifier: LGPL-3.0-only */
/* conf.h - configuration objects (a JSON object with a reference count). */
#ifndef SOLO_FLUX_CONF_H
#define SOLO_FLUX_CONF_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct flux_conf flux_conf_t;

flux_conf_t *flux_conf_create (void);
void flux_conf_decref (const flux_conf_t *conf);

/* path: a file, TOML unless its name ends in .json, or a directory whose
 * TOML files are merged in the order of glob (3). */
flux_conf_t *flux_conf_parse (const char *path, flux_error_t *error);

/* value: JSON object text, TOML text of more than one line, `key=value` with
 * a dotted key, or the path of a file. */
int flux_conf_update (flux_conf_t *conf, const char *value, flux_error_t *error);

flux_conf_t *flux_conf_pack (const char *fmt, ...);
flux_conf_t *flux_conf_vpack (const char *fmt, va_list ap);
int flux_conf_unpack (const flux_conf_t *conf, flux_error_t *error,
                      const char *fmt, ...);
int flux_conf_vunpack (const flux_conf_t *conf, flux_error_t *error,
                       const char *fmt, va_list ap);

/* Built-in paths. */
enum flux_conf_builtin_hint {
    FLUX_CONF_INSTALLED = 0,
    FLUX_CONF_INTREE = 1,
    FLUX_CONF_AUTO = 2,
};

const char *flux_conf_builtin_get (const char *key,
                                   enum flux_conf_builtin_hint hint);

#ifdef __cplusplus
}
#endif
#endif
