/* SPDX-License-Identifier: LGPL-3.0-only */
/* conf.c - configuration objects.  Tables of several files merge key by key; a
 * later value, of an array as well, replaces an earlier one.
 */

#include <flux/core.h>
#include <glob.h>
#include <jansson.h>
#include <limits.h>

#include "common/va.h"
#include "libutil/errno_safe.h"
#include "conf_toml.h"
#include "errprintf.h"

struct flux_conf {
    json_t *tables;
};

/* The reference to 'tables' passes to the object. */
static flux_conf_t *conf_new (json_t *tables, int errnum)
{
    flux_conf_t *conf = tables ? malloc (sizeof (*conf)) : NULL;

    if (conf)
        conf->tables = tables;
    else {
        json_decref (tables);
        errno = tables ? ENOMEM : errnum;
    }
    return conf;
}

flux_conf_t *flux_conf_create (void)
{
    return conf_new (json_object (), ENOMEM);
}

void flux_conf_decref (const flux_conf_t *conf)
{
    if (conf) {
        ERRNO_SAFE_BLOCK;
        json_decref (conf->tables);
        free ((flux_conf_t *)conf);
    }
}

flux_conf_t *flux_conf_pack (const char *fmt, ...)
{
    return conf_new (fmt ? VA (fmt, json_vpack_ex (NULL, 0, fmt, ap)) : NULL,
                     EINVAL);
}

int flux_conf_unpack (const flux_conf_t *conf, flux_error_t *errp,
                      const char *fmt, ...)
{
    json_error_t error = { .text = "Invalid argument" };

    if (conf && fmt && *fmt
        && VA (fmt, json_vunpack_ex (conf->tables, &error, 0, fmt, ap)) == 0)
        return 0;
    errno = EINVAL;
    return errprintf (errp, "%s", error.text);
}

/* Files */

static int merge_file (flux_conf_t *conf, const char *path, flux_error_t *errp)
{
    const char *suffix = strrchr (path, '.');
    json_error_t error;
    json_t *tables;
    int rc = 0;

    if (!suffix || strcmp (suffix, ".json") != 0) {
        if (!(tables = conf_toml_file (path, errp)))
            return -1;
    }
    else if (!(tables = json_load_file (path, 0, &error))) {
        errno = EINVAL;
        return errprintf (errp, "%s:%d: %s", path, error.line, error.text);
    }
    if (json_object_update_recursive (conf->tables, tables) < 0) {
        errno = EINVAL;
        rc = errprintf (errp, "%s: JSON must be an object", path);
    }
    json_decref (tables);
    return rc;
}

static int merge_folder (flux_conf_t *conf, const char *path,
                         flux_error_t *errp)
{
    char pattern[PATH_MAX];
    glob_t found = { 0 };
    int rc;

    snprintf (pattern, sizeof (pattern), "%s/*.toml", path);
    rc = glob (pattern, GLOB_ERR, NULL, &found);
    if (rc == GLOB_NOMATCH)
        rc = 0;
    else if (rc != 0) {
        errno = EINVAL;
        rc = errprintf (errp, "%s: read error", path);
    }
    for (size_t i = 0; rc == 0 && i < found.gl_pathc; i++)
        rc = merge_file (conf, found.gl_pathv[i], errp);
    globfree (&found);
    return rc;
}

flux_conf_t *flux_conf_parse (const char *path, flux_error_t *errp)
{
    flux_conf_t *conf = NULL;
    struct stat st;

    if (!path) {
        errno = EINVAL;
        errprintf (errp, "%s", strerror (errno));
    }
    else if (stat (path, &st) < 0)
        errprintf (errp, "stat: %s: %s", path, strerror (errno));
    else if (!(conf = flux_conf_create ()))
        errprintf (errp, "%s", strerror (errno));
    else if ((S_ISDIR (st.st_mode) ? merge_folder : merge_file) (conf, path,
                                                                errp) < 0) {
        flux_conf_decref (conf);
        conf = NULL;
    }
    return conf;
}
