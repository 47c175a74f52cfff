/* SPDX-License-Identifier: LGPL-3.0-only */
/* module.c - the module's side of RFC 5: take the welcome message, register
 * the methods that every module has, report status, end in good order.
 */

#include <sys/resource.h>

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

static void debug_cb (flux_t *h, flux_msg_handler_t *mh,
                      const flux_msg_t *msg, void *arg)
{
    int *current = flux_aux_get (h, "flux::debug_flags");
    const char *op;
    int flags;

    if (flux_request_unpack (msg, NULL, "{s:s s:i}",
                             "op", &op,
                             "flags", &flags) < 0)
        goto error;
    if (!current
        && (!(current = calloc (1, sizeof (*current)))
            || flux_aux_set (h, "flux::debug_flags", current, free) < 0)) {
        free (current);
        goto error;
    }
    if (!strcmp (op, "setbit"))
        *current |= flags;
    else if (!strcmp (op, "clrbit"))
        *current &= ~flags;
    else if (!strcmp (op, "set"))
        *current = flags;
    else if (!strcmp (op, "clr"))
        *current = 0;
    else {
        errno = EPROTO;
        goto error;
    }
    respond_pack (h, msg, "{s:i}", "flags", *current);
    return;
error:
    respond_error (h, msg, NULL);
}

static double seconds (struct timeval tv)
{
    return tv.tv_sec + 1E-6 * tv.tv_usec;
}

static void rusage_cb (flux_t *h, flux_msg_handler_t *mh,
                       const flux_msg_t *msg, void *arg)
{
    const char *who = "self";
    struct rusage ru;
    int rc = -1;

    if (flux_msg_has_payload (msg)
        && flux_request_unpack (msg, NULL, "{s?s}", "who", &who) < 0)
        goto error;
    if (!strcmp (who, "self"))
        rc = getrusage (RUSAGE_SELF, &ru);
    else if (!strcmp (who, "children"))
        rc = getrusage (RUSAGE_CHILDREN, &ru);
    else if (!strcmp (who, "thread"))
        rc = getrusage (RUSAGE_THREAD, &ru);
    else
        errno = EINVAL;
    if (rc < 0)
        goto error;
    respond_pack (h, msg, "{s:f s:f s:I s:I s:I s:I s:I s:I s:I s:I"
                  " s:I s:I s:I s:I s:I s:I}",
                  "utime", seconds (ru.ru_utime),
                  "stime", seconds (ru.ru_stime),
                  "maxrss", (json_int_t)ru.ru_maxrss,
                  "ixrss", (json_int_t)ru.ru_ixrss,
                  "idrss", (json_int_t)ru.ru_idrss,
                  "isrss", (json_int_t)ru.ru_isrss,
                  "minflt", (json_int_t)ru.ru_minflt,
                  "majflt", (json_int_t)ru.ru_majflt,
                  "nswap", (json_int_t)ru.ru_nswap,
                  "inblock", (json_int_t)ru.ru_inblock,
                  "oublock", (json_int_t)ru.ru_oublock,
                  "msgsnd", (json_int_t)ru.ru_msgsnd,
                  "msgrcv", (json_int_t)ru.ru_msgrcv,
                  "nsignals", (json_int_t)ru.ru_nsignals,
                  "nvcsw", (json_int_t)ru.ru_nvcsw,
                  "nivcsw", (json_int_t)ru.ru_nivcsw);
    return;
error:
    respond_error (h, msg, NULL);
}

static void stats_get_cb (flux_t *h, flux_msg_handler_t *mh,
                          const flux_msg_t *msg, void *arg)
{
    flux_msgcounters_t c;

    flux_get_msgcounters (h, &c);
    respond_pack (h, msg, "{s:{s:i s:i s:i s:i} s:{s:i s:i s:i s:i}}",
                  "tx",
                  "request", c.request_tx,
                  "response", c.response_tx,
                  "event", c.event_tx,
                  "control", c.control_tx,
                  "rx",
                  "request", c.request_rx,
                  "response", c.response_rx,
                  "event", c.event_rx,
                  "control", c.control_rx);
}

static void stats_clear_cb (flux_t *h, flux_msg_handler_t *mh,
                            const flux_msg_t *msg, void *arg)
{
    int type;

    flux_clr_msgcounters (h);
    if (flux_msg_get_type (msg, &type) == 0 && type == FLUX_MSGTYPE_REQUEST)
        respond_ok (h, msg);
}

int flux_module_config_request_decode (const flux_msg_t *msg,
                                       flux_conf_t **confp)
{
    flux_conf_t *conf;
    json_t *o;

    if (flux_request_unpack (msg, NULL, "o", &o) < 0
        || !(conf = flux_conf_pack ("O", o)))
        return -1;
    if (confp)
        *confp = conf;
    else
        flux_conf_decref (conf);
    return 0;
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
    { FLUX_MSGTYPE_REQUEST, "stats-get", stats_get_cb, FLUX_ROLE_ALL },
    { FLUX_MSGTYPE_REQUEST, "stats-clear", stats_clear_cb, 0 },
    { FLUX_MSGTYPE_EVENT, "stats-clear", stats_clear_cb, 0 },
    { FLUX_MSGTYPE_REQUEST, "config-reload", config_cb, 0 },
    { FLUX_MSGTYPE_REQUEST, "config-update", config_cb, 0 },
    { FLUX_MSGTYPE_REQUEST, "debug", debug_cb, 0 },
    { FLUX_MSGTYPE_REQUEST, "rusage", rusage_cb, FLUX_ROLE_USER },
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

bool flux_module_debug_test (flux_t *h, int flag, bool clear)
{
    int *flags = flux_aux_get (h, "flux::debug_flags");

    if (!flags || !(*flags & flag))
        return false;
    if (clear)
        *flags &= ~flag;
    return true;
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
        errprintf (errp, "welcome receive failure: %s", strerror (errno));
        return -1;
    }
    if (flux_request_unpack (msg, NULL, "{s:o s:o s:o s:s s:s}",
                             "args", &args,
                             "attrs", &attrs,
                             "conf", &conf,
                             "name", &name,
                             "uuid", &uuid) < 0)
        errprintf (errp, "welcome decode failure: %s", strerror (errno));
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

/* What lives as long as the handle. */
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

/* It has entered its reactor: it runs. */
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
