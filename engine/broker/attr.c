/* SPDX-License-Identifier: LGPL-3.0-only */
/* attr.c - broker attributes (flux-broker-attributes(7)).
 *
 * A small table: the names that exist, what may be done with each, and the
 * values in a JSON object.
 */
#include <errno.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/va.h"
#include "libutil/errno_safe.h"
#include "broker.h"

enum {
    IMMUTABLE = 1,              // clients may cache it
    READONLY = 2,               // not on the command line
    RUNTIME = 4,                // may be changed later
};

static const struct known_attr {
    const char *pattern;
    int flags;
} known_attrs[] = {
    { "rank", READONLY | IMMUTABLE },
    { "size", READONLY | IMMUTABLE },
    { "version", READONLY },
    { "rundir", 0 },
    { "statedir", 0 },
    { "security.owner", READONLY | IMMUTABLE },
    { "local-uri", IMMUTABLE },
    { "parent-uri", READONLY | IMMUTABLE },
    { "parent-kvs-namespace", READONLY | IMMUTABLE },
    { "instance-level", READONLY | IMMUTABLE },
    { "jobid", READONLY | IMMUTABLE },
    { "jobid-path", READONLY | IMMUTABLE },
    { "hostlist", IMMUTABLE },
    { "hostname", IMMUTABLE },
    { "config.path", IMMUTABLE },
    { "broker.boot-method", READONLY | IMMUTABLE },
    { "broker.critical-ranks", IMMUTABLE },
    { "broker.mapping", READONLY | IMMUTABLE },
    { "broker.module-nopanic", RUNTIME },
    { "broker.pid", READONLY | IMMUTABLE },
    { "broker.quorum", IMMUTABLE },
    { "broker.rc1_path", 0 },
    { "broker.rc3_path", 0 },
    { "broker.starttime", READONLY | IMMUTABLE },
    { "broker.uuid", READONLY | IMMUTABLE },
    { "broker.cleanup-timeout", RUNTIME },
    { "conf.shell_initrc", RUNTIME },
    { "conf.shell_pluginpath", RUNTIME },
    { "content.*", 0 },
    { "log-level", IMMUTABLE },
    { "log-stderr-level", RUNTIME },
    { "log-*", 0 },
    { "tbon.*", 0 },
    { "test.*", RUNTIME },
    { "test-ro.*", READONLY },
    { "test-nr.*", 0 },
    { "test-im.*", IMMUTABLE },
    { "vendor.*", RUNTIME | IMMUTABLE },
};

struct attrs {
    json_t *values;
    flux_msg_handler_t **handlers;
};

static const struct known_attr *lookup (const char *name)
{
    for (size_t i = 0; i < sizeof (known_attrs) / sizeof (known_attrs[0]); i++)
        if (fnmatch (known_attrs[i].pattern, name, 0) == 0)
            return &known_attrs[i];
    errno = ENOENT;
    return NULL;
}

const char *attr_get (struct attrs *a, const char *name)
{
    return json_string_value (json_object_get (a->values, name));
}

int attr_set (struct attrs *a, const char *name, const char *fmt, ...)
{
    char *s;
    int rc;

    rc = VA (fmt, vasprintf (&s, fmt, ap));
    if (rc < 0)
        return -1;
    rc = json_object_set_new (a->values, name, json_string (s));
    free (s);
    if (rc < 0)
        errno = EINVAL;
    return rc;
}

int attr_set_cmdline (struct attrs *a,
                      const char *assignment,
                      flux_error_t *error)
{
    const char *eq = strchr (assignment, '=');
    const struct known_attr *known;
    char *name;
    int rc = -1;

    if (!eq)
        return errprintf (error, "%s: expected NAME=VALUE", assignment);
    if (!(name = strndup (assignment, eq - assignment)))
        return errprintf (error, "out of memory");
    if (!(known = lookup (name)))
        errprintf (error, "setattr %s: unknown attribute", name);
    else if ((known->flags & READONLY))
        errprintf (error,
                   "setattr %s: attribute may not be set on the command line",
                   name);
    else
        rc = attr_set (a, name, "%s", eq + 1);
    free (name);
    return rc;
}

json_t *attrs_cacheable (struct attrs *a)
{
    json_t *o = json_object ();
    const char *name;
    json_t *value;

    if (!o)
        return NULL;
    json_object_foreach (a->values, name, value) {
        const struct known_attr *known = lookup (name);
        if (known && (known->flags & IMMUTABLE))
            json_object_set (o, name, value);
    }
    return o;
}

static void get_cb (flux_t *h,
                    flux_msg_handler_t *mh,
                    const flux_msg_t *msg,
                    void *arg)
{
    struct attrs *a = arg;
    const struct known_attr *known;
    const char *name;
    const char *value;

    if (flux_request_unpack (msg, NULL, "{s:s}", "name", &name) < 0)
        goto error;
    if (!(value = attr_get (a, name)) || !(known = lookup (name))) {
        errno = ENOENT;
        goto error;
    }
    respond_pack (h,
                  msg,
                  "{s:s s:i}",
                  "value", value,
                  "flags", known->flags & IMMUTABLE);
    return;
error:
    respond_error (h, msg, NULL);
}

static void set_cb (flux_t *h,
                    flux_msg_handler_t *mh,
                    const flux_msg_t *msg,
                    void *arg)
{
    struct attrs *a = arg;
    const struct known_attr *known;
    const char *name;
    const char *value;
    int force = 0;
    const char *text = NULL;
    bool exists;

    if (flux_request_unpack (msg,
                             NULL,
                             "{s:s s:s s?b}",
                             "name", &name,
                             "value", &value,
                             "force", &force) < 0)
        goto error;
    if (!(known = lookup (name))) {
        text = "unknown attribute";
        goto error;
    }
    exists = attr_get (a, name) != NULL;
    if (exists && !force && !(known->flags & RUNTIME)) {
        errno = EINVAL;
        text = "attribute may not be updated";
        goto error;
    }
    if (exists && (known->flags & IMMUTABLE)) {
        errno = EPERM;
        goto error;
    }
    if (attr_set (a, name, "%s", value) < 0)
        goto error;
    respond_ok (h, msg);
    return;
error:
    respond_error (h, msg, text);
}

static const struct flux_msg_handler_spec htab[] = {
    { FLUX_MSGTYPE_REQUEST, "attr.get", get_cb, FLUX_ROLE_ALL },
    { FLUX_MSGTYPE_REQUEST, "attr.set", set_cb, 0 },
    FLUX_MSGHANDLER_TABLE_END,
};

struct attrs *attrs_create (struct broker *b)
{
    struct attrs *a;

    if (!(a = calloc (1, sizeof (*a))))
        return NULL;
    if (!(a->values = json_object ())
        || flux_msg_handler_addvec (b->h, htab, a, &a->handlers) < 0) {
        attrs_destroy (a);
        return NULL;
    }
    return a;
}

void attrs_destroy (struct attrs *a)
{
    if (a) {
        ERRNO_SAFE_BLOCK;
        flux_msg_handler_delvec (a->handlers);
        json_decref (a->values);
        free (a);
    }
}
