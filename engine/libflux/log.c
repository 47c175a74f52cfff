/* SPDX-License-Identifier: LGPL-3.0-only */
/* log.c - log to the broker's ring in the form of RFC 5424, one request per
 * line of text; version.
 */

#include <flux/core.h>
#include <time.h>
#include <unistd.h>

#include "common/va.h"
#include "libutil/errno_safe.h"

struct log {
    char appname[49];           // the size that RFC 5424 allows
};

const char *flux_core_version_string (void)
{
    return FLUX_CORE_VERSION_STRING;
}

const char *flux_strerror (int errnum)
{
    return strerror (errnum);
}

static struct log *log_get (flux_t *h)
{
    struct log *log = flux_aux_get (h, "flux::log");

    if (log || !h || !(log = calloc (1, sizeof (*log))))
        return log;
    snprintf (log->appname, sizeof (log->appname), "%s",
              program_invocation_short_name);
    if (flux_aux_set (h, "flux::log", log, free) < 0) {
        free (log);
        return NULL;
    }
    return log;
}

void flux_log_set_appname (flux_t *h, const char *s)
{
    struct log *log = log_get (h);

    if (log)
        snprintf (log->appname, sizeof (log->appname), "%s", s);
}

static int log_line (flux_t *h, struct log *log, int level,
                     const char *text, size_t len)
{
    struct timespec ts;
    struct tm tm;
    char date[32];
    char *line;
    flux_msg_t *msg;
    int n;

    clock_gettime (CLOCK_REALTIME, &ts);
    gmtime_r (&ts.tv_sec, &tm);
    strftime (date, sizeof (date), "%FT%T", &tm);
    // in place of the host: the rank; there is but one
    n = asprintf (&line, "<%d>1 %s.%06ldZ 0 %s %d - - %.*s",
                  LOG_PRI (level) << 3, date, ts.tv_nsec / 1000,
                  log->appname, getpid (), (int)len, text);
    if (n < 0)
        return -1;
    if (!(msg = flux_request_encode_raw ("log.append", line, n))
        || flux_msg_set_noresponse (msg) < 0
        || flux_send_new (h, &msg, 0) < 0) {
        flux_msg_decref (msg);
        n = -1;
    }
    free (line);
    return n < 0 ? -1 : 0;
}

int flux_vlog (flux_t *h, int level, const char *fmt, va_list ap)
{
    static const char *const names[] = { "emerg", "alert", "crit", "err",
                                         "warning", "notice", "info", "debug" };
    int errno_before = errno;
    struct log *log = NULL;
    char *text;
    int rc = 0;

    if (vasprintf (&text, fmt, ap) < 0)
        return -1;
    if (!h)
        fprintf (stderr, "%s: %s\n", names[LOG_PRI (level)], text);
    else if ((log = log_get (h))) {
        for (const char *s = text; *s && rc == 0; ) {
            size_t len = strcspn (s, "\r\n");
            if (len > 0)
                rc = log_line (h, log, level, s, len);
            s += len + strspn (s + len, "\r\n");
        }
    }
    free (text);
    if (rc < 0 || (h && !log))
        return -1;
    errno = errno_before;
    return 0;
}

int flux_log (flux_t *h, int level, const char *fmt, ...)
{
    return VA (fmt, flux_vlog (h, level, fmt, ap));
}

void flux_log_verror (flux_t *h, const char *fmt, va_list ap)
{
    ERRNO_SAFE_BLOCK;
    const char *reason = flux_strerror (errno);
    char *text;

    if (vasprintf (&text, fmt, ap) >= 0) {
        flux_log (h, LOG_ERR, "%s: %s", text, reason);
        free (text);
    }
}

void flux_log_error (flux_t *h, const char *fmt, ...)
{
    VA_DO (fmt, flux_log_verror (h, fmt, ap));
}
