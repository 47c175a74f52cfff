/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See notice.h.
 */

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "libdws/directive/command.h"
#include "libdws/util/jsonmake.h"
#include "notice.h"

static const char *date_of (double t, char buf[32])
{
    time_t when = t;
    struct tm tm;

    strftime (buf, 32, "%Y-%m-%d %H:%M:%S UTC", gmtime_r (&when, &tm));
    return buf;
}

/* Takes over 'what' and 'message'.
 */
static json_t *make_notice (const char *event, const char *of, int64_t userid,
                            json_t *what, const struct dws_bytes *bytes,
                            double until, json_t *message, double now)
{
    json_t *o = json_object ();
    char *where = dws_bytes_rabbits (bytes);

    dws_json_set (&o, "what", what);
    dws_json_set (&o, "message", message);
    dws_json_set (&o, "id", json_sprintf ("%s/%s/%.3f", event, of, now));
    dws_json_set (&o, "event", json_string (event));
    dws_json_set (&o, "t", json_real (now));
    if (userid >= 0)
        dws_json_set (&o, "userid", json_integer (userid));
    if (!where || *where)
        dws_json_set (&o, "where", json_string (where));
    if (until > 0.)
        dws_json_set (&o, "until", json_real (until));
    free (where);
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
    dws_json_set (&o, "jobid", json_integer (job->id));
    dws_json_set (&o, "job", json_string (f58));
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
