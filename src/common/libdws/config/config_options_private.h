/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Internal to config.c: the keys of the table [rabbit].
 */

#ifndef LIBDWS_CONFIG_OPTIONS_PRIVATE_H
#define LIBDWS_CONFIG_OPTIONS_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>

#include "config_checks_private.h"

enum option_type {
    TYPE_TEXT,
    TYPE_BOOL,
    TYPE_INTEGER,
    TYPE_SECONDS,       // number or Flux Standard Duration
    TYPE_CHOICE,        // one of 'choices', kept as an int
    TYPE_TEXTS,         // array of texts
    TYPE_TABLE,
};

struct option {
    const char *name;
    enum option_type type;
    const char *fallback;       // the default, as JSON, or NULL
    double min;
    double max;
    size_t offset;              // of the target in struct dws_config
    check_f check;              // what type and bounds do not say, or NULL
    const char *expected;       // for errors, if the type does not say it
    const char *const *choices; // up to NULL
    bool agent;                 // the agent goes by it
    bool plugin;                // the jobtap plugin goes by it
    bool limit;                 // of time: 0 is none, as is infinity
    const char *help;
};

extern const struct option config_options[];
extern const size_t config_option_count;

/* Returns NULL if there is no such key.
 */
const struct option *config_option_find (const char *name);

#endif /* !LIBDWS_CONFIG_OPTIONS_PRIVATE_H */
