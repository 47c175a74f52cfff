/* SPDX-License-Identifier: LGPL-3.0-only */
/* conf.h - configuration objects (a JSON object with a reference count).
 * Files are read as JSON; TOML is turned into JSON before it gets here.
 */
#ifndef SOLO_FLUX_CONF_H
#define SOLO_FLUX_CONF_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct flux_conf flux_conf_t;

flux_conf_t *flux_conf_create (void);
flux_conf_t *flux_conf_copy (const flux_conf_t *conf);
const flux_conf_t *flux_conf_incref (const flux_conf_t *conf);
void flux_conf_decref (const flux_conf_t *conf);

/* path: a file, or a directory whose files are merged in glob order. */
flux_conf_t *flux_conf_parse (const char *path, flux_error_t *error);

/* value: JSON object text, or `key=value` with a dotted key. */
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
