/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Internal: a list of directives, each as its text and its words. directive.c fills one
 * from what a user wrote, dws_directives_read() from texts that have been checked.
 */

#ifndef LIBDWS_LIST_PRIVATE_H
#define LIBDWS_LIST_PRIVATE_H

#include <stddef.h>

#include "directive.h"

struct dws_arg {
    char *key;
    char *value;          // NULL for a bare key
    size_t line;          // of the text that is parsed, from 1
};

struct dws_directive {
    char *text;
    char *command;        // NULL if there is no word behind "#DW"
    struct dws_arg *args;
    size_t nargs;
    size_t line;          // that of its "#DW"
};

struct dws_directives {
    struct dws_directive *list;
    size_t count;
    size_t alloc;
    size_t line;          // of 'dw', presets have none of their own
    char **warnings;
    size_t warning_count;
};

/* An empty list, for dws_directives_destroy(), or NULL with errno ENOMEM.
 */
struct dws_directives *list_create (void);

/* Add a directive without text and words. Fails with ENOMEM.
 */
int list_begin_directive (struct dws_directives *dirs);

/* Add a word to the last directive: the first is its command, the others are arguments.
 * Fails with ENOMEM.
 */
int list_append_word (struct dws_directives *dirs, const char *word, size_t len);

/* Set the text of a directive to "#DW" and its words, joined by single blanks. Fails
 * with ENOMEM.
 */
int list_join_words (struct dws_directive *dir);

/* Keep 'text' as a warning. 'dirs' is a struct dws_directives (grammar_warn_f). Fails
 * with ENOMEM.
 */
int list_add_warning (void *dirs, const char *text);

/* The value of 'key', "" for a bare key, NULL if it is not there.
 */
const char *list_arg (const struct dws_directive *dir, const char *key);

#endif /* !LIBDWS_LIST_PRIVATE_H */
