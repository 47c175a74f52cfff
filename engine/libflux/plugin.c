/* SPDX-License-Identifier: LGPL-3.0-only */
/* plugin.c - plugins: a name, some handlers with topic globs, what they need
 * to keep (aux, configuration), and arguments: JSON in, JSON out.
 */

#include <dlfcn.h>
#include <fnmatch.h>
#include <unistd.h>

#include <flux/core.h>
#include <jansson.h>

#include "common/va.h"
#include "libutil/errno_safe.h"
#include "aux.h"

struct handler {
    struct handler *next;
    char *topic;
    flux_plugin_f cb;
    void *data;
};

struct flux_plugin {
    char *name;
    char *path;
    int flags;
    void *dso;
    json_t *conf;
    char *conf_text;
    struct aux_item *aux;
    struct handler *handlers;       // the first that matches is called
    char error[160];
};

struct flux_plugin_arg {
    json_t *in;
    json_t *out;
    json_error_t error;
};

static int __attribute__ ((format (printf, 3, 4)))
fail (flux_plugin_t *p, int errnum, const char *fmt, ...)
{
    if (p) {
        VA_DO (fmt, vsnprintf (p->error, sizeof (p->error), fmt, ap));
    }
    errno = errnum;
    return -1;
}

/* Begin a call: no error yet; are p and its argument there? */
static int begin (flux_plugin_t *p, const void *arg)
{
    if (!p || !arg)
        return fail (p, EINVAL, "%s", strerror (EINVAL));
    p->error[0] = '\0';
    return 0;
}

/* Life time */

flux_plugin_t *flux_plugin_create (void)
{
    flux_plugin_t *p;

    if (!(p = calloc (1, sizeof (*p))))
        return NULL;
    p->flags = FLUX_PLUGIN_RTLD_LAZY;
    return p;
}

static void handler_destroy (struct handler *handler)
{
    if (handler) {
        free (handler->topic);
        free (handler);
    }
}

/* Aux destructors may be code of the plugin: close it last. */
void flux_plugin_destroy (flux_plugin_t *p)
{
    if (p) {
        ERRNO_SAFE_BLOCK;
        aux_destroy (&p->aux);
        while (p->handlers) {
            struct handler *handler = p->handlers;
            p->handlers = handler->next;
            handler_destroy (handler);
        }
        json_decref (p->conf);
        free (p->conf_text);
        free (p->name);
        free (p->path);
#ifndef __SANITIZE_ADDRESS__        // it could no longer name what leaked
        if (p->dso)
            dlclose (p->dso);
#endif
        free (p);
    }
}

static int dlopen_flags (int flags)
{
    const char *s = getenv ("FLUX_LOAD_WITH_DEEPBIND");
    bool deepbind = (flags & FLUX_PLUGIN_RTLD_DEEPBIND) && !(s && atoi (s) == 0);

#ifdef __SANITIZE_ADDRESS__
    deepbind = false;               // the two do not go together
#endif
    return (flags & FLUX_PLUGIN_RTLD_NOW ? RTLD_NOW : RTLD_LAZY)
           | (flags & FLUX_PLUGIN_RTLD_GLOBAL ? RTLD_GLOBAL : RTLD_LOCAL)
           | (deepbind ? RTLD_DEEPBIND : 0);
}

int flux_plugin_load_dso (flux_plugin_t *p, const char *path)
{
    flux_plugin_init_f init;
    char *name = NULL;
    char *cpy = NULL;

    if (begin (p, path) < 0)
        return -1;
    if (access (path, R_OK) < 0)
        return fail (p, errno, "%s: %s", path, strerror (errno));
    dlerror ();
    if (!(p->dso = dlopen (path, dlopen_flags (p->flags))))
        return fail (p, EINVAL, "dlopen: %s", dlerror ());
    if (!(name = strdup (path)) || !(cpy = strdup (path))) {
        free (name);
        return fail (p, ENOMEM, "out of memory");
    }
    free (p->name);
    free (p->path);
    p->name = name;     // until the plugin says what it is called
    p->path = cpy;
    if ((init = dlsym (p->dso, "flux_plugin_init")) && init (p) < 0)
        return fail (p, EINVAL, "%s: its flux_plugin_init () has failed", path);
    return 0;
}

/* Properties */

const char *flux_plugin_strerror (flux_plugin_t *p)
{
    return p->error;
}

int flux_plugin_set_flags (flux_plugin_t *p, int flags)
{
    if (!p || (flags & ~(FLUX_PLUGIN_RTLD_LAZY | FLUX_PLUGIN_RTLD_NOW
                         | FLUX_PLUGIN_RTLD_GLOBAL
                         | FLUX_PLUGIN_RTLD_DEEPBIND))) {
        errno = EINVAL;
        return -1;
    }
    p->flags = flags;
    return 0;
}

int flux_plugin_set_name (flux_plugin_t *p, const char *name)
{
    char *cpy;

    if (begin (p, name) < 0)
        return -1;
    if (!(cpy = strdup (name)))
        return -1;
    free (p->name);
    p->name = cpy;
    return 0;
}

const char *flux_plugin_get_name (flux_plugin_t *p)
{
    return begin (p, p) == 0 ? p->name : NULL;
}

const char *flux_plugin_get_path (flux_plugin_t *p)
{
    return p ? p->path : NULL;
}

int flux_plugin_aux_set (flux_plugin_t *p, const char *key, void *val,
                         flux_free_f free_fn)
{
    return aux_set (&p->aux, key, val, free_fn);
}

void *flux_plugin_aux_get (flux_plugin_t *p, const char *key)
{
    return aux_get (p->aux, key);
}

int flux_plugin_set_conf (flux_plugin_t *p, const char *json_str)
{
    json_error_t error;
    json_t *conf;

    if (begin (p, json_str) < 0)
        return -1;
    if (!(conf = json_loads (json_str, 0, &error)))
        return fail (p, EINVAL, "parse error: col %d: %s", error.column,
                     error.text);
    json_decref (p->conf);
    p->conf = conf;
    free (p->conf_text);
    p->conf_text = NULL;
    return 0;
}

const char *flux_plugin_get_conf (flux_plugin_t *p)
{
    if (begin (p, p) < 0)
        return NULL;
    if (!p->conf)
        fail (p, ENOENT, "No plugin conf set");
    else if (!p->conf_text
             && !(p->conf_text = json_dumps (p->conf, JSON_COMPACT)))
        fail (p, ENOMEM, "out of memory");
    return p->conf_text;
}

int flux_plugin_conf_unpack (flux_plugin_t *p, const char *fmt, ...)
{
    json_error_t error;
    int rc;

    if (begin (p, fmt) < 0)
        return -1;
    if (!p->conf)
        return fail (p, ENOENT, "No plugin conf set");
    rc = VA (fmt, json_vunpack_ex (p->conf, &error, 0, fmt, ap));
    if (rc < 0)
        return fail (p, EINVAL, "unpack error: %s", error.text);
    return 0;
}

/* Handlers */

static struct handler **find_topic (flux_plugin_t *p, const char *topic)
{
    struct handler **slot = &p->handlers;

    while (*slot && strcmp ((*slot)->topic, topic))
        slot = &(*slot)->next;
    return slot;
}

static struct handler *match_topic (flux_plugin_t *p, const char *topic)
{
    struct handler *handler = p->handlers;

    while (handler && fnmatch (handler->topic, topic, 0) != 0)
        handler = handler->next;
    return handler;
}

int flux_plugin_remove_handler (flux_plugin_t *p, const char *topic)
{
    struct handler **slot;
    struct handler *handler;

    if (begin (p, topic) < 0)
        return -1;
    slot = find_topic (p, topic);
    if ((handler = *slot)) {
        *slot = handler->next;
        handler_destroy (handler);
    }
    return 0;
}

int flux_plugin_add_handler (flux_plugin_t *p, const char *topic,
                             flux_plugin_f cb, void *arg)
{
    struct handler **slot;
    struct handler *handler;

    if (begin (p, topic) < 0)
        return -1;
    if (!cb)
        return flux_plugin_remove_handler (p, topic);
    if (!(handler = calloc (1, sizeof (*handler)))
        || !(handler->topic = strdup (topic))) {
        handler_destroy (handler);
        return fail (p, ENOMEM, "out of memory");
    }
    handler->cb = cb;
    handler->data = arg;
    for (slot = &p->handlers; *slot; slot = &(*slot)->next)
        ;
    *slot = handler;
    return 0;
}

flux_plugin_f flux_plugin_match_handler (flux_plugin_t *p, const char *topic)
{
    struct handler *handler = begin (p, topic) == 0 ? match_topic (p, topic)
                                                    : NULL;
    return handler ? handler->cb : NULL;
}

int flux_plugin_register (flux_plugin_t *p, const char *name,
                          const struct flux_plugin_handler t[])
{
    if (begin (p, t) < 0 || (name && flux_plugin_set_name (p, name) < 0))
        return -1;
    for (; t->topic; t++) {
        if (flux_plugin_add_handler (p, t->topic, t->cb, t->data) < 0)
            return -1;
    }
    return 0;
}

/* 1: called, 0: has no handler for that, -1: the handler failed */
int flux_plugin_call (flux_plugin_t *p, const char *topic,
                      flux_plugin_arg_t *args)
{
    struct handler *handler;

    if (begin (p, topic) < 0)
        return -1;
    if (!(handler = match_topic (p, topic)))
        return 0;
    return handler->cb (p, topic, args, handler->data) < 0 ? -1 : 1;
}

/* Arguments */

static int __attribute__ ((format (printf, 3, 4)))
arg_fail (flux_plugin_arg_t *args, int errnum, const char *fmt, ...)
{
    if (args) {
        VA_DO (fmt, vsnprintf (args->error.text, sizeof (args->error.text),
                               fmt, ap));
    }
    errno = errnum;
    return -1;
}

static int arg_begin (flux_plugin_arg_t *args, const void *arg)
{
    if (!args || !arg)
        return arg_fail (args, EINVAL, "%s", strerror (EINVAL));
    args->error.text[0] = '\0';
    return 0;
}

flux_plugin_arg_t *flux_plugin_arg_create ()
{
    return calloc (1, sizeof (flux_plugin_arg_t));
}

void flux_plugin_arg_destroy (flux_plugin_arg_t *args)
{
    if (args) {
        ERRNO_SAFE_BLOCK;
        json_decref (args->in);
        json_decref (args->out);
        free (args);
    }
}

const char *flux_plugin_arg_strerror (flux_plugin_arg_t *args)
{
    return args ? args->error.text : strerror (errno);
}

static json_t **arg_slot (flux_plugin_arg_t *args, int flags)
{
    return flags & FLUX_PLUGIN_ARG_OUT ? &args->out : &args->in;
}

/* Takes o over.  Merges o into the object there, or replaces that. */
static int arg_store (flux_plugin_arg_t *args, int flags, json_t *o)
{
    json_t **slot = arg_slot (args, flags);
    int rc = 0;

    if (*slot && !(flags & FLUX_PLUGIN_ARG_REPLACE)) {
        rc = json_object_update (*slot, o);
        json_decref (o);
    }
    else {
        json_decref (*slot);
        *slot = o;
    }
    return rc;
}

int flux_plugin_arg_set (flux_plugin_arg_t *args, int flags,
                         const char *json_str)
{
    json_t *o = NULL;

    if (arg_begin (args, args) < 0
        || (json_str && !(o = json_loads (json_str, 0, &args->error))))
        return -1;
    return arg_store (args, flags, o);
}

int flux_plugin_arg_get (flux_plugin_arg_t *args, int flags, char **json_str)
{
    if (arg_begin (args, json_str) < 0)
        return -1;
    if (!*arg_slot (args, flags))
        return arg_fail (args, ENOENT, "No args currently set");
    *json_str = json_dumps (*arg_slot (args, flags), JSON_COMPACT);
    return *json_str ? 0 : arg_fail (args, ENOMEM, "out of memory");
}

int flux_plugin_arg_vpack (flux_plugin_arg_t *args, int flags,
                           const char *fmt, va_list ap)
{
    json_t *o;

    if (arg_begin (args, fmt) < 0
        || !(o = json_vpack_ex (&args->error, 0, fmt, ap)))
        return -1;
    return arg_store (args, flags, o);
}

int flux_plugin_arg_pack (flux_plugin_arg_t *args, int flags,
                          const char *fmt, ...)
{
    return VA (fmt, flux_plugin_arg_vpack (args, flags, fmt, ap));
}

int flux_plugin_arg_vunpack (flux_plugin_arg_t *args, int flags,
                             const char *fmt, va_list ap)
{
    if (arg_begin (args, fmt) < 0)
        return -1;
    return json_vunpack_ex (*arg_slot (args, flags), &args->error, 0, fmt, ap);
}

int flux_plugin_arg_unpack (flux_plugin_arg_t *args, int flags,
                            const char *fmt, ...)
{
    return VA (fmt, flux_plugin_arg_vunpack (args, flags, fmt, ap));
}
