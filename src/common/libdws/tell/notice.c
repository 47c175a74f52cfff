/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See notice.h.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "libdws/directive/command.h"
#include "notice.h"

static const char *date_of (double t, char buf[32])
{
    time_t when = t;
    struct tm tm;

    strftime (buf, 32, "%Y-%m-%d %H:%M:%S UTC", gmtime_r (&when, &tm));
    return buf;
}

/* Takes over 'value'. Returns false for lack of memory, also if 'value' is NULL.
 */
static bool set (json_t *o, const char *key, json_t *value)
{
    return json_object_set_new (o, key, value) == 0;
}

/* Takes over 'what' and 'message'.
 */
static json_t *make_notice (const char *event, const char *of, int64_t userid,
                            json_t *what, const struct dws_bytes *bytes,
                            double until, json_t *message, double now)
{
    json_t *o = json_object ();
    char *where = dws_bytes_rabbits (bytes);
    bool ok = set (o, "what", what);

    ok = set (o, "message", message) && ok;
    if (!ok || !where
        || !set (o, "id", json_sprintf ("%s/%s/%.3f", event, of, now))
        || !set (o, "event", json_string (event))
        || !set (o, "t", json_real (now))
        || (userid >= 0 && !set (o, "userid", json_integer (userid)))
        || (*where && !set (o, "where", json_string (where)))
        || (until > 0. && !set (o, "until", json_real (until)))) {
        json_decref (o);
        o = NULL;
    }
    free (where);
    if (!o)
        errno = ENOMEM;
    return o;
}

json_t *dws_notice_stage_out (const struct dws_job *job,
                              const char *f58,
                              const struct dws_bytes *bytes,
                              const char *text,
                              double until,
                              double now)
{
    char date[32];
    json_t *o;

    o = make_notice (until > 0. ? DWS_NOTICE_FAILED : DWS_NOTICE_LOST,
                     f58, job->userid, dws_commands_copied_out (job->directives),
                     bytes, until, until > 0.
        ? json_sprintf ("The data of job %s was not staged out: %s. It is kept until "
                        "%s; to have it tried again: flux rabbit retry %s",
                        f58, text, date_of (until, date), f58)
        : json_sprintf ("The data of job %s was not staged out, and is lost: %s",
                        f58, text), now);
    if (o && (!set (o, "jobid", json_integer (job->id))
              || !set (o, "job", json_string (f58)))) {
        json_decref (o);
        errno = ENOMEM;
        o = NULL;
    }
    return o;
}

static json_t *message_of (const char *event, const char *name, double expires,
                           double now)
{
    char date[32];

    if (!strcmp (event, DWS_NOTICE_DESTROYED))
        return json_sprintf ("The persistent file system %s has expired and is "
                             "destroyed.", name);
    if (expires <= now)
        return json_sprintf ("The persistent file system %s has expired. As soon as "
                             "no job uses it any more it is destroyed, with all that "
                             "is in it. To keep it: flux rabbit persistent extend %s "
                             "--expires TIME", name, name);
    return json_sprintf ("The persistent file system %s expires at %s. Then it is "
                         "destroyed, with all that is in it. To keep it longer: flux "
                         "rabbit persistent extend %s --expires TIME",
                         name, date_of (expires, date), name);
}

json_t *dws_notice_file_system (const char *event,
                                const char *name,
                                int64_t userid,
                                const struct dws_bytes *bytes,
                                double expires,
                                double now)
{
    return make_notice (event, name, userid, json_pack ("[s]", name), bytes,
                        expires, message_of (event, name, expires, now), now);
}
