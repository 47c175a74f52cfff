/* SPDX-License-Identifier: LGPL-3.0-only */
/* conf_toml.h - TOML to JSON, private to the library.
 *
 * Both return a new object, or NULL with errno and a text that begins with
 * the file, if there is one, and the line at fault.
 */
#ifndef SOLO_CONF_TOML_H
#define SOLO_CONF_TOML_H

#include <flux/core.h>
#include <jansson.h>

json_t *conf_toml_file (const char *path, flux_error_t *errp);
json_t *conf_toml_text (const char *text, flux_error_t *errp);

#endif
