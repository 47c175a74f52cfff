/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Shared by job-manager, the shell and libflux: JSON by dotted path, eventlog
 * lines, error text.
 */
#ifndef SOLO_JOBUTIL_H
#define SOLO_JOBUTIL_H

#include <stdarg.h>
#include <stdbool.h>
#include <jansson.h>
#include <flux/core.h>

static inline bool streq (const char *a, const char *b)
{
    return strcmp (a, b) == 0;
}

static inline bool strstarts (const char *s, const char *prefix)
{
    return strncmp (s, prefix, strlen (prefix)) == 0;
}

/* Job ID in F58, in a small rotating buffer of this thread: for messages. */
const char *idf58 (flux_jobid_t id);

/* Access by dotted path, as in "attributes.system.queue".  jp_set() makes
 * the objects on the way and takes its own reference of val.
 */
json_t *jp_get (json_t *o, const char *path);
int jp_set (json_t *o, const char *path, json_t *val);
void jp_del (json_t *o, const char *path);
/* Merge 'patch' into 'o' level by level; a null in patch removes the key. */
int jp_merge (json_t *o, json_t *patch);

/* RFC 18 eventlog entries.  Timestamp 0 stands for now. */
json_t *entry_vpack (double timestamp,
                     const char *name,
                     const char *fmt,
                     va_list ap);
int entry_parse (json_t *entry,
                 double *timestamp,
                 const char **name,
                 json_t **context);
char *entry_encode (json_t *entry); // one line with its newline
json_t *eventlog_parse (const char *text); // array of entries

/* Apply a jobspec-update (dotted keys). */
int jobspec_apply (json_t *jobspec, json_t *updates);

/* Format text into 'error' (may be NULL) and return -1. */
int set_error (flux_error_t *error, const char *fmt, ...)
    __attribute__ ((format (printf, 2, 3)));

/* vsnprintf() that does not cut within a character: JSON takes no part of one.
 */
void format_text (char *text, size_t size, const char *fmt, va_list ap);

/* Parse a duration in seconds, as "1.5s", "10m", "2h", "100ms", or without a
 * unit; in JSON it may be a number.  Fails with EINVAL.
 */
int parse_duration (const char *s, double *t);

double now_realtime (void);

#endif
