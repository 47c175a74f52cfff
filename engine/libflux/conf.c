/* SPDX-License-Identifier: LGPL-3.0-only */
/* conf.c - configuration objects: the one place where configuration is read
 * and merged.  Tables are merged key by key; of anything else what comes
 * later takes the place of what was there, arrays and whole tables too.
 */

#include <flux/core.h>
#include <glob.h>
#include <jansson.h>

#include "common/va.h"
#include "libutil/errno_safe.h"
#include "conf_toml.h"
#include "errprintf.h"

struct flux_conf {
    json_t *obj;
};

static int __attribute__ ((format (printf, 3, 4)))
fail (flux_error_t *errp, int errnum, const char *fmt, ...)
{
    if (errp) {
        VA_DO (fmt, vsnprintf (errp->text, sizeof (errp->text), fmt, ap));
    }
    errno = errnum;
    return -1;
}

/* Takes obj over. */
static flux_conf_t *conf_wrap (json_t *obj, int errnum)
{
    flux_conf_t *conf = NULL;

    if (!obj)
        errno = errnum;
    else if ((conf = calloc (1, sizeof (*conf))))
        conf->obj = obj;
    else
        json_decref (obj);
    return conf;
}

flux_conf_t *flux_conf_create (void)
{
    return conf_wrap (json_object (), ENOMEM);
}

void flux_conf_decref (const flux_conf_t *cconf)
{
    flux_conf_t *conf = (flux_conf_t *)cconf;

    if (conf) {
        ERRNO_SAFE_BLOCK;
        json_decref (conf->obj);
        free (conf);
    }
}

flux_conf_t *flux_conf_vpack (const char *fmt, va_list ap)
{
    return conf_wrap (fmt ? json_vpack_ex (NULL, 0, fmt, ap) : NULL, EINVAL);
}

flux_conf_t *flux_conf_pack (const char *fmt, ...)
{
    return VA (fmt, flux_conf_vpack (fmt, ap));
}

int flux_conf_vunpack (const flux_conf_t *conf, flux_error_t *errp,
                       const char *fmt, va_list ap)
{
    json_error_t error;

    if (!conf || !fmt || !*fmt)
        return fail (errp, EINVAL, "%s", strerror (EINVAL));
    if (json_vunpack_ex (conf->obj, &error, 0, fmt, ap) < 0)
        return fail (errp, EINVAL, "%s", error.text);
    return 0;
}

int flux_conf_unpack (const flux_conf_t *conf, flux_error_t *errp,
                      const char *fmt, ...)
{
    return VA (fmt, flux_conf_vunpack (conf, errp, fmt, ap));
}

/* Update and parse */

/* Takes obj over. */
static int merge (flux_conf_t *conf, json_t *obj, flux_error_t *errp)
{
    int rc = 0;

    if (!json_is_object (obj))
        rc = fail (errp, EINVAL, "JSON must be an object");
    else if (json_object_update_recursive (conf->obj, obj) < 0)
        rc = fail (errp, ENOMEM, "out of memory");
    json_decref (obj);
    return rc;
}

static int merge_file (flux_conf_t *conf, const char *path, flux_error_t *errp)
{
    const char *ext = strrchr (path, '.');
    json_error_t jerror;
    flux_error_t error;
    json_t *obj;

    if (ext && !strcmp (ext, ".json")) {
        if (!(obj = json_load_file (path, 0, &jerror)))
            return fail (errp, EINVAL, "%s:%d: %s",
                         path, jerror.line, jerror.text);
        if (merge (conf, obj, &error) < 0)
            return fail (errp, errno, "%s: %s", path, error.text);
        return 0;
    }
    if (!(obj = conf_toml_file (path, errp)))
        return -1;
    return merge (conf, obj, errp);
}

static int merge_text (flux_conf_t *conf, const char *text, flux_error_t *errp)
{
    json_error_t error;
    json_t *obj;

    if (*text != '{')
        obj = conf_toml_text (text, errp);
    else if (!(obj = json_loads (text, 0, &error)))
        return fail (errp, EINVAL, "inline JSON: %s", error.text);
    return obj ? merge (conf, obj, errp) : -1;
}

/* Set a.b.c=VALUE; VALUE is JSON if it parses as that, else a string. */
static int set_key (flux_conf_t *conf, const char *text, flux_error_t *errp)
{
    const char *value = strchr (text, '=') + 1;
    size_t len = value - text - 1;
    json_t *obj = json_loads (value, JSON_DECODE_ANY, NULL);

    if (len == 0) {
        json_decref (obj);
        return fail (errp, EINVAL, "no key before the =");
    }
    if (!obj)
        obj = json_string (value);
    // build {"a":{"b":{"c":VALUE}}} from the inside out
    while (obj && len > 0) {
        const char *dot = memrchr (text, '.', len);
        const char *key = dot ? dot + 1 : text;
        obj = json_pack ("{s%:o}", key, text + len - key, obj);
        len = dot ? dot - text : 0;
    }
    if (!obj)
        return fail (errp, EINVAL, "cannot set %s", text);
    return merge (conf, obj, errp);
}

int flux_conf_update (flux_conf_t *conf, const char *value, flux_error_t *errp)
{
    if (!conf || !value)
        return fail (errp, EINVAL, "%s", strerror (EINVAL));
    if (*value == '{' || strchr (value, '\n'))
        return merge_text (conf, value, errp);
    if (strchr (value, '='))
        return set_key (conf, value, errp);
    return merge_file (conf, value, errp);
}

static int merge_dir (flux_conf_t *conf, const char *path, flux_error_t *errp)
{
    char *pattern;
    glob_t gl;
    int rc = 0;

    if (asprintf (&pattern, "%s/*.toml", path) < 0)
        return fail (errp, ENOMEM, "out of memory");
    switch (glob (pattern, GLOB_ERR, NULL, &gl)) {
    case 0:
        for (size_t i = 0; i < gl.gl_pathc && rc == 0; i++)
            rc = merge_file (conf, gl.gl_pathv[i], errp);
        globfree (&gl);
        break;
    case GLOB_NOMATCH:
        break;
    default:
        rc = fail (errp, EINVAL, "%s: read error", path);
    }
    free (pattern);
    return rc;
}

flux_conf_t *flux_conf_parse (const char *path, flux_error_t *errp)
{
    flux_conf_t *conf;
    struct stat st;
    int rc;

    if (!path) {
        fail (errp, EINVAL, "%s", strerror (EINVAL));
        return NULL;
    }
    if (stat (path, &st) < 0) {
        errprintf (errp, "stat: %s: %s", path, strerror (errno));
        return NULL;
    }
    if (!(conf = flux_conf_create ())) {
        errprintf (errp, "%s", strerror (errno));
        return NULL;
    }
    rc = S_ISDIR (st.st_mode) ? merge_dir (conf, path, errp)
                              : merge_file (conf, path, errp);
    if (rc < 0) {
        flux_conf_decref (conf);
        return NULL;
    }
    return conf;
}
