/* SPDX-License-Identifier: LGPL-3.0-only */
/* conf_toml.h - TOML to JSON, private to the library.
 *
 * Returns a new object, or NULL with errno and a text that begins with the
 * file, and the line at fault if that is known.
 */
#ifndef SOLO_CONF_TOML_H
#define SOLO_CONF_TOML_H

#include <flux/core.h>
#include <jansson.h>

json_t *conf_toml_file (const char *path, flux_error_t *errp);

#endif
