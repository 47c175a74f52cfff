/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Shared by job-manager, the shell and libflux: see jobutil.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/va.h"
#include "libutil/errno_safe.h"
#include "jobutil.h"

const char *idf58 (flux_jobid_t id)
{
    static __thread char buf[4][32];
    static __thread int turn;
    char *s = buf[turn++ % 4];

    if (flux_job_id_encode (id, "f58", s, sizeof (buf[0])) < 0)
        snprintf (s, sizeof (buf[0]), "%ju", (uintmax_t)id);
    return s;
}

/* Walk to the object that holds the last component of 'path', which is
 * returned in 'last'.  With 'make', objects that are missing are created.
 */
static json_t *jp_parent (json_t *o, const char *path, bool make,
                          const char **last)
{
    const char *dot;

    while (o && (dot = strchr (path, '.'))) {
        char key[256];
        json_t *next;

        if ((size_t)(dot - path) >= sizeof (key)) {
            errno = EINVAL;
            return NULL;
        }
        memcpy (key, path, dot - path);
        key[dot - path] = '\0';
        if (!(next = json_object_get (o, key)) && make) {
            next = json_object ();
            if (json_object_set_new (o, key, next) < 0)
                next = NULL;
        }
        o = next;
        path = dot + 1;
    }
    *last = path;
    if (!json_is_object (o) || *path == '\0') {
        errno = o ? EINVAL : ENOENT;
        return NULL;
    }
    return o;
}

json_t *jp_get (json_t *o, const char *path)
{
    const char *last;
    json_t *val;

    if (!(o = jp_parent (o, path, false, &last)))
        return NULL;
    if (!(val = json_object_get (o, last)))
        errno = ENOENT;
    return val;
}

int jp_set (json_t *o, const char *path, json_t *val)
{
    const char *last;

    if (!(o = jp_parent (o, path, true, &last))
        || json_object_set (o, last, val) < 0) {
        errno = EINVAL;
        return -1;
    }
    return 0;
}

void jp_del (json_t *o, const char *path)
{
    const char *last;

    if ((o = jp_parent (o, path, false, &last)))
        (void)json_object_del (o, last);
}

int jp_merge (json_t *o, json_t *patch)
{
    const char *key;
    json_t *val;

    json_object_foreach (patch, key, val) {
        json_t *old = json_object_get (o, key);

        if (json_is_null (val))
            (void)json_object_del (o, key);
        else if (json_is_object (val)) {
            if (!json_is_object (old)) {
                old = json_object ();
                if (json_object_set_new (o, key, old) < 0)
                    goto nomem;
            }
            if (jp_merge (old, val) < 0)
                return -1;
            if (json_object_size (old) == 0)
                (void)json_object_del (o, key);
        }
        else if (json_object_set (o, key, val) < 0)
            goto nomem;
    }
    return 0;
nomem:
    errno = ENOMEM;
    return -1;
}

int parse_duration (const char *s, double *t)
{
    static const struct { const char *unit; double factor; } units[] = {
        { "", 1 }, { "ms", 1E-3 }, { "s", 1 }, { "m", 60 }, { "h", 3600 },
        { "d", 86400 },
    };
    char *end;
    double d = strtod (s, &end);

    for (size_t i = 0; i < sizeof (units) / sizeof (units[0]); i++) {
        if (end != s && d >= 0. && streq (end, units[i].unit)) {
            *t = d * units[i].factor;
            return 0;
        }
    }
    errno = EINVAL;
    return -1;
}

double now_realtime (void)
{
    struct timespec ts;

    clock_gettime (CLOCK_REALTIME, &ts);
    return ts.tv_sec + 1E-9 * ts.tv_nsec;
}

json_t *entry_vpack (double timestamp,
                     const char *name,
                     const char *fmt,
                     va_list ap)
{
    json_t *context = NULL;
    json_t *entry;

    if (timestamp == 0.)
        timestamp = now_realtime ();
    if (fmt && !(context = json_vpack_ex (NULL, 0, fmt, ap)))
        goto inval;
    if (context && !json_is_object (context))
        goto inval;
    if (!(entry = json_pack ("{s:f s:s s:o*}",
                             "timestamp", timestamp,
                             "name", name,
                             "context", context))) {
        errno = ENOMEM;
        return NULL;
    }
    return entry;
inval:
    json_decref (context);
    errno = EINVAL;
    return NULL;
}

int entry_parse (json_t *entry,
                 double *timestamp,
                 const char **name,
                 json_t **context)
{
    double t;
    const char *s;
    json_t *o = NULL;

    if (json_unpack (entry, "{s:F s:s s?o}",
                     "timestamp", &t,
                     "name", &s,
                     "context", &o) < 0
        || (o && !json_is_object (o))) {
        errno = EPROTO;
        return -1;
    }
    if (timestamp)
        *timestamp = t;
    if (name)
        *name = s;
    if (context)
        *context = o;
    return 0;
}

char *entry_encode (json_t *entry)
{
    char *s = NULL;
    char *line = NULL;

    if (!(s = json_dumps (entry, JSON_COMPACT))
        || asprintf (&line, "%s\n", s) < 0) {
        line = NULL;
        errno = ENOMEM;
    }
    free (s);
    return line;
}

json_t *eventlog_parse (const char *text)
{
    json_t *log;

    if (!(log = json_array ())) {
        errno = ENOMEM;
        return NULL;
    }
    while (*text) {
        const char *end = strchr (text, '\n');
        json_t *entry;

        if (!end
            || !(entry = json_loadb (text, end - text, 0, NULL))
            || json_array_append_new (log, entry) < 0
            || entry_parse (entry, NULL, NULL, NULL) < 0) {
            json_decref (log);
            errno = EPROTO;
            return NULL;
        }
        text = end + 1;
    }
    return log;
}

int jobspec_apply (json_t *jobspec, json_t *updates)
{
    const char *key;
    json_t *val;

    json_object_foreach (updates, key, val) {
        if (jp_set (jobspec, key, val) < 0)
            return -1;
    }
    return 0;
}

int set_error (flux_error_t *error, const char *fmt, ...)
{
    if (error) {
        ERRNO_SAFE_BLOCK;

        VA_DO (fmt, format_text (error->text, sizeof (error->text), fmt, ap));
    }
    return -1;
}

void format_text (char *text, size_t size, const char *fmt, va_list ap)
{
    size_t n = size - 1;

    if (vsnprintf (text, size, fmt, ap) < (int)size)
        return;
    while (n > 0 && ((unsigned char)text[n - 1] & 0xc0) == 0x80)
        n--; // of a character of several bytes, all but the first
    if (n > 0 && ((unsigned char)text[n - 1] & 0x80))
        n--;
    text[n] = '\0';
}
