/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Loading and removing plugins: from [job-manager] plugins, by request, and
 * the builtin ones, whose names begin with a dot.
 */
#include <fnmatch.h>

#include "libutil/errno_safe.h"
#include "jobtap.h"

int jobtap_conf_update (flux_plugin_t *p, const flux_conf_t *conf,
                        flux_error_t *error)
{
    const char *topic = "conf.update";
    flux_plugin_arg_t *args;
    char text[128];
    json_t *root;
    int rc = -1;

    if (!flux_plugin_match_handler (p, topic))
        return 0;
    if (flux_conf_unpack (conf, error, "o", &root) < 0)
        return -1;
    args = flux_plugin_arg_create ();
    if (flux_plugin_arg_pack (args, FLUX_PLUGIN_ARG_IN, "{s:O}", "conf", root)
        < 0)
        set_error (error, "%s: cannot call", topic);
    else if (flux_plugin_call (p, topic, args) >= 0)
        rc = 0;
    else {
        snprintf (text, sizeof (text), "%s has refused the configuration",
                  flux_plugin_get_name (p));
        jobtap_errmsg (args, text, error);
        errno = EINVAL;
    }
    flux_plugin_arg_destroy (args);
    return rc;
}

static const struct builtin *find_builtin (const char *name)
{
    for (const struct builtin *b = jobtap_builtins; b->name; b++) {
        if (streq (b->name, name))
            return b;
    }
    errno = ENOENT;
    return NULL;
}

static bool is_loaded (struct jobtap *jt, const char *name)
{
    for (size_t i = 0; i < jt->nplugins; i++) {
        if (streq (jobtap_plugin_name (jt->plugins[i]), name))
            return true;
    }
    return false;
}

/* A name the plugin gave itself stays unless it looks like a file. */
static int name_plugin (flux_plugin_t *p, const char *basename)
{
    const char *own = flux_plugin_get_name (p);
    char *s = strdup (basename);
    int rc = 0;

    if (!s || flux_plugin_aux_set (p, "jobtap::basename", s, free) < 0) {
        free (s);
        return -1;
    }
    if (!own || own[strcspn (own, "/.")] != '\0') {
        if (!(s = strndup (basename, strcspn (basename, "."))))
            return -1;
        rc = flux_plugin_set_name (p, s);
        free (s);
    }
    return rc;
}

static int load_object (struct jobtap *jt, flux_plugin_t *p,
                        const char *path, flux_error_t *error)
{
    const char *slash = strrchr (path, '/');
    const char *basename = slash ? slash + 1 : path;

    if (flux_plugin_load_dso (p, path) < 0)
        return set_error (error, "%s", flux_plugin_strerror (p));
    if (is_loaded (jt, basename)) {
        errno = EEXIST;
        return set_error (error, "%s already loaded", basename);
    }
    if (name_plugin (p, basename) < 0)
        return set_error (error, "%s: no name for it", path);
    return 0;
}

static int load_from_path (struct jobtap *jt, flux_plugin_t *p,
                           const char *path, flux_error_t *error)
{
    const char *dir = jt->searchpath;

    if (!dir || path[0] == '/' || strstarts (path, "./"))
        return load_object (jt, p, path, error);
    while (*dir) {
        size_t len = strcspn (dir, ":");
        char *full;

        if (asprintf (&full, "%.*s/%s", (int)len, dir, path) < 0)
            return set_error (error, "out of memory");
        if (access (full, R_OK) == 0) {
            int rc = load_object (jt, p, full, error);

            free (full);
            return rc;
        }
        free (full);
        dir += len + (dir[len] == ':');
    }
    errno = ENOENT;
    return set_error (error, "%s: no such plugin", path);
}

static int load_code (struct jobtap *jt, flux_plugin_t *p, const char *path,
                      flux_error_t *error)
{
    const struct builtin *b;

    if (path[0] != '.' || strchr (path, '/')) {
        flux_plugin_set_flags (p, FLUX_PLUGIN_RTLD_NOW);
        return load_from_path (jt, p, path, error);
    }
    if (!(b = find_builtin (path)))
        return set_error (error, "%s: no such builtin plugin", path);
    if (is_loaded (jt, path)) {
        errno = EEXIST;
        return set_error (error, "%s already loaded", path);
    }
    if (flux_plugin_set_name (p, b->name) < 0 || b->init (p) < 0)
        return set_error (error, "%s: does not start", path);
    return 0;
}

static int set_conf (flux_plugin_t *p, json_t *conf, flux_error_t *error)
{
    char *s;
    int rc;

    if (!conf || json_is_null (conf))
        return 0;
    if (!json_is_object (conf)) {
        errno = EINVAL;
        return set_error (error, "the conf of a plugin is an object");
    }
    if (!(s = json_dumps (conf, 0)))
        return set_error (error, "out of memory");
    rc = flux_plugin_set_conf (p, s);
    free (s);
    return rc;
}

/* The configuration comes before any callback about jobs. */
flux_plugin_t *jobtap_load (struct jobtap *jt, const char *path,
                            json_t *conf, flux_error_t *error)
{
    flux_plugin_t **plugins;
    flux_plugin_t *p;

    error->text[0] = '\0';
    if (!(plugins = realloc (jt->plugins,
                             (jt->nplugins + 1) * sizeof (*plugins)))) {
        set_error (error, "out of memory");
        return NULL;
    }
    jt->plugins = plugins;
    if (!(p = flux_plugin_create ())
        || flux_plugin_aux_set (p, "flux::jobtap", jt, NULL) < 0
        || set_conf (p, conf, error) < 0
        || load_code (jt, p, path, error) < 0
        || jobtap_conf_update (p, flux_get_conf (jt->jm->h), error) < 0) {
        ERRNO_SAFE_BLOCK;

        if (error->text[0] == '\0')
            set_error (error, "%s", p ? flux_plugin_strerror (p)
                                      : strerror (errno));
        flux_plugin_destroy (p);
        return NULL;
    }
    jt->plugins[jt->nplugins++] = p;
    return p;
}

static void forget_plugin (struct idmap *map, flux_plugin_t *p)
{
    struct job *job;

    each_job (job, map) {
        job_unsubscribe (job, p);
        job_aux_clear (job, p);
    }
}

/* Destroy the plugin's aux items of jobs before its code is unloaded. */
void jobtap_unload (struct jobtap *jt, size_t index)
{
    flux_plugin_t *p = jt->plugins[index];

    forget_plugin (jt->jm->active, p);
    forget_plugin (jt->jm->inactive, p);
    jt->nplugins--;
    memmove (&jt->plugins[index], &jt->plugins[index + 1],
             (jt->nplugins - index) * sizeof (p));
    flux_plugin_destroy (p);
}

/* Tell a plugin of a job that was there before it. */
static void introduce (struct jobtap *jt, flux_plugin_t *p, struct job *job)
{
    flux_plugin_arg_t *args;
    flux_error_t error;

    if (!(args = jobtap_args (job)))
        return;
    (void)jobtap_stack_call (jt, &p, 1, job, "job.create", args);
    (void)jobtap_stack_call (jt, &p, 1, job, "job.new", args);
    // in DEPEND state it may have to set up what will resolve one
    if (job->state == FLUX_JOB_STATE_DEPEND) {
        if (jobtap_dependencies_each (jt, p, job, false, &error) < 0)
            flux_log (jt->jm->h, LOG_ERR, "jobtap: %s: %s: %s",
                      jobtap_plugin_name (p), idf58 (job->id), error.text);
        (void)jobtap_stack_call (jt, &p, 1, job, "job.state.depend", args);
    }
    flux_plugin_arg_destroy (args);
}

static flux_plugin_t *load_and_introduce (struct jobtap *jt,
                                          const char *path, json_t *conf,
                                          flux_error_t *error)
{
    flux_plugin_t *p;
    struct job *job;

    if (!(p = jobtap_load (jt, path, conf, error)))
        return NULL;
    each_job (job, jt->jm->active) {
        if (job->state != FLUX_JOB_STATE_INACTIVE)
            introduce (jt, p, job);
    }
    (void)reprioritize_all (jt->jm, jobtap_get_priority);
    return p;
}

static int remove_matching (struct jobtap *jt, const char *arg,
                            flux_error_t *error)
{
    bool all = streq (arg, "all");
    int count = 0;

    for (size_t i = 0; i < jt->nplugins;) {
        const char *name = jobtap_plugin_name (jt->plugins[i]);

        if ((all && name[0] != '.')
            || streq (arg, name)
            || fnmatch (arg, name, FNM_PERIOD) == 0) {
            jobtap_unload (jt, i);
            count++;
        }
        else
            i++;
    }
    if (count == 0 && !all) {
        errno = ENOENT;
        return set_error (error, "no plugin of that name");
    }
    return 0;
}

/* [job-manager] plugins counts at start only; conf.update always. */
int jobtap_configure (struct jobtap *jt, const flux_conf_t *conf,
                      flux_error_t *error)
{
    json_t *plugins = NULL;
    flux_error_t e;
    size_t index;
    json_t *entry;

    if (!jt->configured) {
        if (flux_conf_unpack (conf, error, "{s?{s?o}}",
                              "job-manager", "plugins", &plugins) < 0)
            return -1;
        if (plugins && !json_is_array (plugins))
            return set_error (error,
                        "[job-manager.plugins] is not an array");
        json_array_foreach (plugins, index, entry) {
            json_t *pconf = NULL;
            const char *remove = NULL;
            const char *load = NULL;

            if (json_unpack (entry, "{s?s s?s s?o}",
                             "remove", &remove,
                             "load", &load,
                             "conf", &pconf) < 0)
                return set_error (error, "[job-manager.plugins][%zu]: "
                                  "not a table of load, conf, remove", index);
            if (remove && remove_matching (jt, remove, &e) < 0)
                return set_error (error, "[job-manager.plugins][%zu]: "
                                  "remove %s: %s", index, remove, e.text);
            if (load && !load_and_introduce (jt, load, pconf, &e))
                return set_error (error, "[job-manager.plugins][%zu]: "
                                  "load: %s", index, e.text);
        }
        jt->configured = true;
    }
    for (size_t i = 0; i < jt->nplugins; i++) {
        if (jobtap_conf_update (jt->plugins[i], conf, error) < 0)
            return -1;
    }
    return 0;
}

static void list_plugins (flux_t *h, struct jobtap *jt, const flux_msg_t *msg)
{
    json_t *a = json_array ();

    for (size_t i = 0; i < jt->nplugins; i++)
        json_array_append_new (a,
                        json_string (jobtap_plugin_name (jt->plugins[i])));
    respond_pack (h, msg, "{s:o}", "plugins", a);
}

void jobtap_request (flux_t *h, flux_msg_handler_t *mh,
                     const flux_msg_t *msg, void *arg)
{
    struct manager *jm = arg;
    struct jobtap *jt = jm->jobtap;
    flux_error_t error = { .text = "" };
    int list_only = 0;
    const char *remove = NULL;
    const char *load = NULL;
    json_t *conf = NULL;
    int rc;

    rc = flux_request_unpack (msg, NULL, "{s?b s?s s?s s?o}",
                              "query_only", &list_only,
                              "remove", &remove,
                              "load", &load,
                              "conf", &conf);
    if (rc == 0 && list_only) {
        list_plugins (h, jt, msg);
        return;
    }
    if (rc == 0) {
        errno = EINVAL;
        if ((remove && remove_matching (jt, remove, &error) < 0)
            || (load && !load_and_introduce (jt, load, conf, &error)))
            rc = -1;
    }
    if (rc < 0)
        respond_error (h, msg, error.text);
    else
        respond_ok (h, msg);
}

static char *query_plugin (flux_plugin_t *p)
{
    const char *path = flux_plugin_get_path (p);
    flux_plugin_arg_t *args;
    char *result = NULL;

    if (!(args = flux_plugin_arg_create ())
        || flux_plugin_arg_pack (args, FLUX_PLUGIN_ARG_OUT, "{s:s s:s}",
                                 "path", path ? path : "builtin",
                                 "name", jobtap_plugin_name (p)) < 0
        || flux_plugin_call (p, "plugin.query", args) < 0
        || flux_plugin_arg_get (args, FLUX_PLUGIN_ARG_OUT, &result) < 0)
        result = NULL;
    flux_plugin_arg_destroy (args);
    return result;
}

void jobtap_query_request (flux_t *h, flux_msg_handler_t *mh,
                           const flux_msg_t *msg, void *arg)
{
    struct manager *jm = arg;
    struct jobtap *jt = jm->jobtap;
    flux_error_t error;
    const char *name;

    if (flux_request_unpack (msg, NULL, "{s:s}", "name", &name) < 0) {
        set_error (&error, "Protocol error");
        goto error;
    }
    for (size_t i = 0; i < jt->nplugins; i++) {
        char *result;

        if (!streq (name, jobtap_plugin_name (jt->plugins[i])))
            continue;
        if (!(result = query_plugin (jt->plugins[i]))) {
            set_error (&error, "it does not answer plugin.query");
            goto error;
        }
        if (flux_respond (h, msg, result) < 0)
            flux_log_error (h, "cannot answer job-manager.jobtap-query");
        free (result);
        return;
    }
    errno = ENOENT;
    set_error (&error, "%s: no such plugin", name);
error:
    respond_error (h, msg, error.text);
}

void jobtap_destroy (struct jobtap *jt)
{
    if (jt) {
        ERRNO_SAFE_BLOCK;

        while (jt->nplugins > 0)
            jobtap_unload (jt, 0);
        free (jt->plugins);
        free (jt->searchpath);
        free (jt);
    }
}

struct jobtap *jobtap_create (struct manager *jm)
{
    const char *path;
    struct jobtap *jt;
    flux_error_t error;

    if (!(jt = calloc (1, sizeof (*jt))))
        return NULL;
    jt->jm = jm;
    if ((path = flux_conf_builtin_get ("jobtap_pluginpath", FLUX_CONF_AUTO))
        && !(jt->searchpath = strdup (path)))
        goto error;
    for (const struct builtin *b = jobtap_builtins; b->name; b++) {
        if (!jobtap_load (jt, b->name, NULL, &error)) {
            flux_log (jm->h, LOG_ERR, "jobtap: %s: %s", b->name, error.text);
            goto error;
        }
    }
    return jt;
error:
    jobtap_destroy (jt);
    return NULL;
}
