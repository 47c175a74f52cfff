/* SPDX-License-Identifier: LGPL-3.0-only */
/* module.c - the module's side of RFC 5: take the welcome message, register
 * the methods that every module has, report status, end in good order.
 */

#include <flux/core.h>
#include <jansson.h>

#include "common/respond.h"
#include "errprintf.h"

enum { RUNNING = 1, FINALIZING = 2, EXITED = 3 };   // module.status

/* Methods of every service */

/* Echo the request, and add where it went and what came with it. */
static void ping_cb (flux_t *h, flux_msg_handler_t *mh,
                     const flux_msg_t *msg, void *arg)
{
    const char *uuid = flux_aux_get (h, "flux::uuid");
    char *routes = NULL, *route = NULL;
    struct flux_msg_cred cred;
    json_t *o, *reply;
    uint32_t rank = 0;

    if (flux_request_unpack (msg, NULL, "o", &o) < 0
        || flux_msg_get_cred (msg, &cred) < 0
        || flux_get_rank (h, &rank) < 0
        || !(routes = flux_msg_route_string (msg))
        || asprintf (&route, "%s!%.8s", routes, uuid ? uuid : "") < 0) {
        respond_error (h, msg, NULL);
        free (routes);
        return;
    }
    reply = json_copy (o);
    json_object_set_new (reply, "route", json_string (route));
    json_object_set_new (reply, "userid", json_integer (cred.userid));
    json_object_set_new (reply, "rolemask", json_integer (cred.rolemask));
    json_object_set_new (reply, "rank", json_integer (rank));
    respond_pack (h, msg, "o", reply);
    free (route);
    free (routes);
}

int flux_module_config_request_decode (const flux_msg_t *msg,
                                       flux_conf_t **confp)
{
    flux_conf_t *conf = NULL;
    json_t *table;

    if (flux_request_unpack (msg, NULL, "o", &table) == 0)
        conf = flux_conf_pack ("O", table);
    if (conf && confp)
        *confp = conf;
    else
        flux_conf_decref (conf);
    return conf ? 0 : -1;
}

static void config_cb (flux_t *h, flux_msg_handler_t *mh,
                       const flux_msg_t *msg, void *arg)
{
    flux_conf_t *conf = NULL;

    if (flux_module_config_request_decode (msg, &conf) < 0
        || flux_set_conf_new (h, conf) < 0) {
        respond_error (h, msg, "Failed to update config");
        flux_conf_decref (conf);
        return;
    }
    respond_ok (h, msg);
}

static void shutdown_cb (flux_t *h, flux_msg_handler_t *mh,
                         const flux_msg_t *msg, void *arg)
{
    flux_reactor_stop (flux_get_reactor (h));
}

static const struct flux_msg_handler_spec default_methods[] = {
    { FLUX_MSGTYPE_REQUEST, "config-reload", config_cb, 0 },
    { FLUX_MSGTYPE_REQUEST, "config-update", config_cb, 0 },
    { FLUX_MSGTYPE_REQUEST, "ping", ping_cb, FLUX_ROLE_USER },
    FLUX_MSGHANDLER_TABLE_END,
};

static const struct flux_msg_handler_spec module_methods[] = {
    { FLUX_MSGTYPE_REQUEST, "shutdown", shutdown_cb, 0 },
    FLUX_MSGHANDLER_TABLE_END,
};

int flux_register_default_methods (flux_t *h, const char *service_name,
                                   flux_msg_handler_t **msg_handlers[])
{
    return flux_msg_handler_addvec_ex (h, service_name, default_methods, NULL,
                                       msg_handlers);
}

/* Start */

static int set_aux_string (flux_t *h, const char *name, const char *value)
{
    char *cpy = strdup (value);

    if (!cpy || flux_aux_set (h, name, cpy, free) < 0) {
        free (cpy);
        return -1;
    }
    return 0;
}

static int set_conf (flux_t *h, json_t *o)
{
    flux_conf_t *conf = flux_conf_pack ("O", o);

    if (!conf || flux_set_conf_new (h, conf) < 0) {
        flux_conf_decref (conf);
        return -1;
    }
    return 0;
}

static int cache_attrs (flux_t *h, json_t *attrs)
{
    const char *name;
    json_t *value;

    json_object_foreach (attrs, name, value) {
        if (flux_attr_set_cacheonly (h, name, json_string_value (value)) < 0)
            return -1;
    }
    return 0;
}

/* The arguments, separated by blanks; NULL if there are none. */
static int join_args (json_t *args, char **result)
{
    size_t size, index;
    char *buf = NULL;
    json_t *arg;
    FILE *f;

    *result = NULL;
    if (json_array_size (args) == 0)
        return 0;
    if (!(f = open_memstream (&buf, &size)))
        return -1;
    json_array_foreach (args, index, arg)
        fprintf (f, "%s%s", index > 0 ? " " : "", json_string_value (arg));
    if (fclose (f) != 0)
        return -1;
    *result = buf;
    return 0;
}

int flux_module_initialize (flux_t *h, char **argsp, flux_error_t *errp)
{
    const char *name, *uuid;
    json_t *args, *attrs, *conf;
    flux_msg_t *msg;
    int rc = -1;

    if (!h) {
        errno = EINVAL;
        errprintf (errp, "invalid argument");
        return -1;
    }
    if (!(msg = flux_recv (h, FLUX_MATCH_REQUEST, 0))) {
        errprintf (errp, "no welcome from the broker: %s", strerror (errno));
        return -1;
    }
    if (flux_request_unpack (msg, NULL, "{s:s s:s s:o s:o s:o}",
                             "name", &name,
                             "uuid", &uuid,
                             "conf", &conf,
                             "attrs", &attrs,
                             "args", &args) < 0)
        errprintf (errp, "the welcome is not valid: %s", strerror (errno));
    else if (set_conf (h, conf) < 0
             || cache_attrs (h, attrs) < 0
             || set_aux_string (h, "flux::name", name) < 0
             || set_aux_string (h, "flux::uuid", uuid) < 0
             || (argsp && join_args (args, argsp) < 0))
        errprintf (errp, "welcome failure: %s", strerror (errno));
    else {
        flux_log_set_appname (h, name);
        rc = 0;
    }
    flux_msg_decref (msg);
    return rc;
}

static int report (flux_t *h, int status, int errnum, int flags,
                   flux_error_t *errp)
{
    flux_future_t *f = flux_rpc_pack (h, "module.status", FLUX_NODEID_ANY,
                                      flags, "{s:i s:i}",
                                      "status", status,
                                      "errnum", errnum);
    int rc = -1;

    if (!f || flux_future_wait_for (f, 10.) < 0
        || flux_future_get (f, NULL) < 0)
        errprintf (errp, "module.status: %s", future_strerror (f, errno));
    else
        rc = 0;
    flux_future_destroy (f);
    return rc;
}

int flux_module_set_running (flux_t *h)
{
    return report (h, RUNNING, 0, FLUX_RPC_NORESPONSE, NULL);
}

/* Handlers that live as long as the handle. */
struct module {
    flux_msg_handler_t **defaults;
    flux_msg_handler_t **handlers;
    flux_watcher_t *prepare;
};

static void module_destroy (void *arg)
{
    struct module *mod = arg;

    flux_watcher_destroy (mod->prepare);
    flux_msg_handler_delvec (mod->handlers);
    flux_msg_handler_delvec (mod->defaults);
    free (mod);
}

/* A module that has entered its reactor counts as running. */
static void prepare_cb (flux_reactor_t *r, flux_watcher_t *w, int revents,
                        void *arg)
{
    flux_watcher_stop (w);
    if (flux_module_set_running (arg) < 0)
        flux_log_error (arg, "error reporting that the module runs");
}

static int subscribe_stats (flux_t *h, const char *name)
{
    char *topic;
    int rc;

    if (asprintf (&topic, "%s.stats-clear", name) < 0)
        return -1;
    rc = flux_event_subscribe (h, topic);
    free (topic);
    return rc;
}

int flux_module_register_handlers (flux_t *h, flux_error_t *errp)
{
    const char *name = flux_aux_get (h, "flux::name");
    struct module *mod;

    if (!name) {
        errno = EINVAL;
        errprintf (errp, "invalid argument");
        return -1;
    }
    if (!(mod = calloc (1, sizeof (*mod))))
        goto error;
    if (flux_aux_set (h, NULL, mod, module_destroy) < 0) {
        free (mod);
        goto error;
    }
    if (!(mod->prepare = flux_prepare_watcher_create (flux_get_reactor (h),
                                                      prepare_cb, h))
        || subscribe_stats (h, name) < 0
        || flux_register_default_methods (h, name, &mod->defaults) < 0
        || flux_msg_handler_addvec_ex (h, name, module_methods, NULL,
                                       &mod->handlers) < 0)
        goto error;
    flux_watcher_start (mod->prepare);
    return 0;
error:
    errprintf (errp, "error registering methods: %s", strerror (errno));
    return -1;
}

/* Once FINALIZING is answered no more requests come: refuse those that are
 * left.
 */
int flux_module_finalize (flux_t *h, int errnum, flux_error_t *errp)
{
    flux_msg_t *msg;

    if (!h) {
        errno = EINVAL;
        errprintf (errp, "invalid argument");
        return -1;
    }
    if (report (h, FINALIZING, 0, 0, errp) < 0)
        return -1;
    while ((msg = flux_recv (h, FLUX_MATCH_REQUEST, FLUX_O_NONBLOCK))) {
        flux_respond_error (h, msg, ENOSYS, NULL);
        flux_msg_decref (msg);
    }
    return report (h, EXITED, errnum, FLUX_RPC_NORESPONSE, errp);
}
