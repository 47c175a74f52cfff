/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Names of things about jobs: IDs in their encodings (RFC 19), states and
 * results, KVS keys, exit codes; and the unsigned form of "J".
 *
 * Job IDs in words or emoji are not supported (ENOTSUP).
 */
#include <ctype.h>
#include <langinfo.h>
#include <signal.h>
#include <strings.h>
#include <sys/wait.h>
#include <unistd.h>

#include <flux/core.h>

#include "common/base64.h"
#include "errprintf.h"
#include "job_private.h"

static const char b58[] =
    "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
static const char f58_prefix[] = "ƒ";

static int encode_f58 (flux_jobid_t id, bool plain, char *buf, size_t size)
{
    char digits[16];
    char *p = &digits[sizeof (digits) - 1];
    const char *prefix = f58_prefix;

    if (plain
        || MB_CUR_MAX == 1
        || strcmp (nl_langinfo (CODESET), "UTF-8") != 0
        || getenv ("FLUX_F58_FORCE_ASCII"))
        prefix = "f";
    *p = '\0';
    do {
        *--p = b58[id % 58];
        id /= 58;
    } while (id > 0);
    return snprintf (buf, size, "%s%s", prefix, p);
}

int flux_job_id_encode (flux_jobid_t id, const char *type,
                        char *buf, size_t bufsz)
{
    int len;

    if (!buf) {
        errno = EINVAL;
        return -1;
    }
    if (!type || strcasecmp (type, "dec") == 0)
        len = snprintf (buf, bufsz, "%ju", (uintmax_t)id);
    else if (strcasecmp (type, "hex") == 0)
        len = snprintf (buf, bufsz, "0x%jx", (uintmax_t)id);
    else if (strcasecmp (type, "kvs") == 0
             || strcasecmp (type, "dothex") == 0)
        len = snprintf (buf, bufsz, "%s%04x.%04x.%04x.%04x",
                        strcasecmp (type, "kvs") == 0 ? "job." : "",
                        (unsigned int)(id >> 48) & 0xffff,
                        (unsigned int)(id >> 32) & 0xffff,
                        (unsigned int)(id >> 16) & 0xffff,
                        (unsigned int)id & 0xffff);
    else if (strcasecmp (type, "f58") == 0)
        len = encode_f58 (id, false, buf, bufsz);
    else if (strcasecmp (type, "f58plain") == 0)
        len = encode_f58 (id, true, buf, bufsz);
    else {
        errno = strcasecmp (type, "words") == 0
                || strcasecmp (type, "emoji") == 0 ? ENOTSUP : EPROTO;
        return -1;
    }
    if ((size_t)len >= bufsz) {
        errno = EOVERFLOW;
        return -1;
    }
    return 0;
}

static int parse_f58 (const char *s, flux_jobid_t *id)
{
    uint64_t val = 0;

    if (*s == '\0')
        goto inval;
    for (; *s; s++) {
        const char *digit = strchr (b58, *s);

        if (!digit
            || __builtin_mul_overflow (val, 58, &val)
            || __builtin_add_overflow (val, (uint64_t)(digit - b58), &val))
            goto inval;
    }
    *id = val;
    return 0;
inval:
    errno = EINVAL;
    return -1;
}

/* Four groups of 16 bits, the highest first: 0000.0004.d1a0.0000
 */
static int parse_dothex (const char *s, flux_jobid_t *id)
{
    uint64_t sum = 0;

    for (int group = 0; group < 4; group++) {
        char *end = NULL;

        if (isxdigit ((unsigned char)*s))
            sum = sum << 16 | strtoul (s, &end, 16);
        if (!end || end - s > 4 || *end != (group < 3 ? '.' : '\0')) {
            errno = EINVAL;
            return -1;
        }
        s = end + 1;
    }
    *id = sum;
    return 0;
}

int flux_job_id_parse (const char *s, flux_jobid_t *id)
{
    char *end;
    flux_jobid_t val;

    if (!s || !id || *s == '\0')
        goto inval;
    while (isspace ((unsigned char)*s))
        s++;
    if (strncmp (s, "job.", 4) == 0)
        s += 4;
    if (strchr (s, '.'))
        return parse_dothex (s, id);
    if (strncmp (s, f58_prefix, strlen (f58_prefix)) == 0)
        return parse_f58 (s + strlen (f58_prefix), id);
    if (*s == 'f')
        return parse_f58 (s + 1, id);
    if (!isdigit ((unsigned char)*s))
        goto inval;
    errno = 0;
    val = strtoull (s, &end, strncmp (s, "0x", 2) == 0 ? 16 : 10);
    if (errno != 0)
        return -1;
    while (isspace ((unsigned char)*end))
        end++;
    if (*end != '\0')
        goto inval;
    *id = val;
    return 0;
inval:
    errno = EINVAL;
    return -1;
}

struct name {
    int num;
    const char *form[4]; // LONG, long, SHORT, short
};

static const struct name states[] = {
    { FLUX_JOB_STATE_NEW, { "NEW", "new", "N", "n" } },
    { FLUX_JOB_STATE_DEPEND, { "DEPEND", "depend", "D", "d" } },
    { FLUX_JOB_STATE_PRIORITY, { "PRIORITY", "priority", "P", "p" } },
    { FLUX_JOB_STATE_SCHED, { "SCHED", "sched", "S", "s" } },
    { FLUX_JOB_STATE_RUN, { "RUN", "run", "R", "r" } },
    { FLUX_JOB_STATE_CLEANUP, { "CLEANUP", "cleanup", "C", "c" } },
    { FLUX_JOB_STATE_INACTIVE, { "INACTIVE", "inactive", "I", "i" } },
    { FLUX_JOB_STATE_PENDING, { "PENDING", "pending", "PD", "pd" } },
    { FLUX_JOB_STATE_RUNNING, { "RUNNING", "running", "RU", "ru" } },
    { FLUX_JOB_STATE_ACTIVE, { "ACTIVE", "active", "A", "a" } },
    { 0, { NULL } },
};

static const struct name results[] = {
    { FLUX_JOB_RESULT_COMPLETED, { "COMPLETED", "completed", "CD", "cd" } },
    { FLUX_JOB_RESULT_FAILED, { "FAILED", "failed", "F", "f" } },
    { FLUX_JOB_RESULT_CANCELED, { "CANCELED", "canceled", "CA", "ca" } },
    { FLUX_JOB_RESULT_TIMEOUT, { "TIMEOUT", "timeout", "TO", "to" } },
    { 0, { NULL } },
};

static const char *num_to_name (const struct name *table, int num,
                                const char *fmt)
{
    static const char *unknown[] = { "(unknown)", "(unknown)", "?", "?" };
    char c = fmt ? *fmt : 'L';
    int form = c == 'l' ? 1 : c == 'S' ? 2 : c == 's' ? 3 : 0;

    for (; table->num; table++) {
        if (table->num == num)
            return table->form[form];
    }
    return unknown[form];
}

const char *flux_job_statetostr (flux_job_state_t state, const char *fmt)
{
    return num_to_name (states, state, fmt);
}

const char *flux_job_resulttostr (flux_job_result_t result, const char *fmt)
{
    return num_to_name (results, result, fmt);
}

static int check_len (int len, int bufsz)
{
    if (len >= bufsz) {
        errno = EOVERFLOW;
        return -1;
    }
    return len;
}

static int job_key (char *buf, int bufsz, flux_jobid_t id, const char *dir,
                    const char *key)
{
    char idstr[32];

    if (!buf || bufsz <= 0) {
        errno = EINVAL;
        return -1;
    }
    (void)flux_job_id_encode (id, "kvs", idstr, sizeof (idstr));
    return check_len (snprintf (buf, bufsz, "%s%s%s%s", idstr, dir,
                                key ? "." : "", key ? key : ""), bufsz);
}

int flux_job_kvs_key (char *buf, int bufsz, flux_jobid_t id, const char *key)
{
    return job_key (buf, bufsz, id, "", key);
}

/* Within a job the guest directory is the root of the default namespace. */
int flux_job_kvs_guest_key (char *buf, int bufsz, flux_jobid_t id,
                            const char *key)
{
    if (buf && bufsz > 0 && getenv ("FLUX_KVS_NAMESPACE"))
        return check_len (snprintf (buf, bufsz, "%s", key ? key : "."),
                          bufsz);
    return job_key (buf, bufsz, id, ".guest", key);
}

int flux_job_kvs_namespace (char *buf, int bufsz, flux_jobid_t id)
{
    if (!buf || bufsz <= 0) {
        errno = EINVAL;
        return -1;
    }
    return check_len (snprintf (buf, bufsz, "job-%ju", (uintmax_t)id), bufsz);
}

/* The shell exits with 128 + signal when a signal ended its tasks. */
int flux_job_waitstatus_to_exitcode (int waitstatus, flux_error_t *errp)
{
    int code;

    if (WIFSIGNALED (waitstatus)) {
        errprintf (errp, "job shell %s", strsignal (WTERMSIG (waitstatus)));
        return WTERMSIG (waitstatus) + 128;
    }
    if (!WIFEXITED (waitstatus)) {
        errprintf (errp, "unexpected wait(2) status %d", waitstatus);
        errno = EINVAL;
        return -1;
    }
    if ((code = WEXITSTATUS (waitstatus)) > 128)
        errprintf (errp, "task(s) %s", strsignal (code - 128));
    else if (code > 0)
        errprintf (errp, "task(s) exited with exit code %d", code);
    else
        errprintf (errp, "%s", "");
    return code;
}

/* HEADER.PAYLOAD.none: the header has NUL terminated keys and typed values. */
char *job_sign_none (const char *payload, uint32_t userid)
{
    char header[128];
    int len;
    char *h;
    char *p;
    char *result = NULL;

    len = snprintf (header, sizeof (header),
                    "version%ci1%cuserid%ci%u%cmechanism%csnone%c",
                    0, 0, 0, (unsigned int)userid, 0, 0, 0);
    h = base64_encode (header, len);
    p = base64_encode (payload, strlen (payload));
    if (!h || !p || asprintf (&result, "%s.%s.none", h, p) < 0) {
        result = NULL;
        errno = ENOMEM;
    }
    free (h);
    free (p);
    return result;
}

/* Decode the len characters at s.  The result has a NUL added. */
static char *decode_part (const char *s, size_t len, size_t *size)
{
    char *part = strndup (s, len);
    void *data = NULL;

    if (part)
        (void)base64_decode (part, &data, size);
    free (part);
    return data;
}

static int parse_header (const char *src, size_t srclen, uint32_t *userid)
{
    enum { VERSION = 1, USERID = 2, MECHANISM = 4, ALL = 7 };
    size_t len;
    char *h = decode_part (src, srclen, &len);
    int have = 0;
    size_t i = 0;

    while (h && i < len) {
        const char *key = &h[i];
        const char *val = key + strlen (key) + 1;

        if (val >= h + len)
            break;
        if (strcmp (key, "version") == 0 && strcmp (val, "i1") == 0)
            have |= VERSION;
        else if (strcmp (key, "mechanism") == 0 && strcmp (val, "snone") == 0)
            have |= MECHANISM;
        else if (strcmp (key, "userid") == 0
                 && val[0] == 'i' && isdigit ((unsigned char)val[1])) {
            *userid = strtoul (val + 1, NULL, 10);
            have |= USERID;
        }
        i = val + strlen (val) + 1 - h;
    }
    free (h);
    if (have != ALL) {
        errno = EINVAL;
        return -1;
    }
    return 0;
}

char *flux_unwrap_string (const char *in, bool verify, uint32_t *userid,
                          flux_error_t *error)
{
    const char *dot1 = in ? strchr (in, '.') : NULL;
    const char *dot2 = dot1 ? strchr (dot1 + 1, '.') : NULL;
    char *result = NULL;
    uint32_t uid;
    size_t len;

    if (!dot2
        || strcmp (dot2, ".none") != 0
        || parse_header (in, dot1 - in, &uid) < 0
        || !(result = decode_part (dot1 + 1, dot2 - dot1 - 1, &len))) {
        errno = EINVAL;
        errprintf (error, "jobspec with no signature: %s", strerror (errno));
        return NULL;
    }
    if (verify && uid != getuid ()) {
        errprintf (error, "jobspec of user %lu, and not of "
                   "%lu", (unsigned long)uid, (unsigned long)getuid ());
        free (result);
        errno = EPERM;
        return NULL;
    }
    if (userid)
        *userid = uid;
    return result;
}
