/* SPDX-License-Identifier: LGPL-3.0-only */
/* config.c - the instance's configuration object.
 *
 * Files are read and merged by flux_conf_parse ().  A new object is offered
 * to every module as "<module>.config-reload"; when one of them refuses,
 * those that had accepted get the old one back.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/errno_safe.h"
#include "broker.h"

struct config {
    struct broker *b;
    char *path;
    json_t *conf;
    struct flux_msglist *getters;
    struct update *updates;     // in progress
    json_t *(*listeners) (struct broker *b);    // names of modules
    flux_msg_handler_t **handlers;
};

/* A config.load or config.reload request on its way to the modules.
 */
struct update {
    struct config *c;
    const flux_msg_t *msg;
    json_t *conf;
    json_t *accepted;           // names of modules
    int waiting;
    int errnum;
    flux_error_t error;
    struct update *next;
};

/* The error says what flux-core's does.
 */
static json_t *read_config (const char *path, flux_error_t *error)
{
    flux_error_t why;
    flux_conf_t *conf;
    json_t *o = NULL;

    if (!(conf = flux_conf_parse (path, &why))
        || flux_conf_unpack (conf, &why, "o", &o) < 0)
        errprintf (error, "Config file error: %.140s", why.text);
    json_incref (o);
    flux_conf_decref (conf);
    return o;
}

json_t *config_get (struct config *c)
{
    return c->conf;
}

/* Apply the keys that are for the broker itself.
 */
static int apply_to_broker (struct broker *b, json_t *conf, flux_error_t *error)
{
    int guests = 0;
    int root = 0;
    json_error_t jerror;

    if (json_unpack_ex (conf,
                        &jerror,
                        0,
                        "{s?{s?b s?b}}",
                        "access",
                          "allow-guest-user", &guests,
                          "allow-root-owner", &root) < 0) {
        errno = EINVAL;
        return errprintf (error, "[access]: %s", jerror.text);
    }
    b->access_guests = guests;
    b->access_root = root;
    return 0;
}

static int set_config (struct config *c, json_t *conf, flux_error_t *error)
{
    flux_conf_t *cf;
    const flux_msg_t *msg;

    if (apply_to_broker (c->b, conf, error) < 0)
        return -1;
    if (!(cf = flux_conf_pack ("O", conf))
        || flux_set_conf_new (c->b->h, cf) < 0)
        return errprintf (error, "flux_set_conf: %s", strerror (errno));
    json_decref (c->conf);
    c->conf = json_incref (conf);
    msg = flux_msglist_first (c->getters);
    while (msg) {
        respond_pack (c->b->h, msg, "O", conf);
        msg = flux_msglist_next (c->getters);
    }
    return 0;
}

int config_load (struct config *c, const char *path, flux_error_t *error)
{
    json_t *o;
    int rc = -1;

    if (!(o = read_config (path, error)))
        return -1;
    if ((c->path = strdup (path))
        && attr_set (c->b->attrs, "config.path", "%s", c->path) == 0)
        rc = set_config (c, o, error);
    json_decref (o);
    return rc;
}

static void update_destroy (struct update *u)
{
    struct update **p = &u->c->updates;

    while (*p != u)
        p = &(*p)->next;
    *p = u->next;
    flux_msg_decref (u->msg);
    json_decref (u->conf);
    json_decref (u->accepted);
    free (u);
}

static flux_future_t *offer (struct config *c, const char *name, json_t *conf)
{
    char topic[256];

    snprintf (topic, sizeof (topic), "%s.config-reload", name);
    return flux_rpc_pack (c->b->h, topic, FLUX_NODEID_ANY, 0, "O", conf);
}

static void update_finish (struct update *u)
{
    struct config *c = u->c;
    flux_t *h = c->b->h;
    size_t i;
    json_t *name;

    if (u->errnum == 0 && set_config (c, u->conf, &u->error) < 0)
        u->errnum = errno;
    if (u->errnum == 0) {
        respond_ok (h, u->msg);
    }
    else {
        json_array_foreach (u->accepted, i, name)
            flux_future_destroy (offer (c, json_string_value (name), c->conf));
        errno = u->errnum;
        respond_error (h, u->msg, u->error.text);
    }
    update_destroy (u);
}

static void offered (flux_future_t *f, void *arg)
{
    struct update *u = arg;
    const char *name = flux_future_aux_get (f, "name");

    if (flux_future_get (f, NULL) == 0)
        json_array_append_new (u->accepted, json_string (name));
    else if (errno != ENOSYS && u->errnum == 0) {
        u->errnum = errno;
        errprintf (&u->error,
                   "error updating %s: %s",
                   name,
                   future_strerror (f, errno));
    }
    flux_future_destroy (f);
    if (--u->waiting == 0)
        update_finish (u);
}

static void update_start (struct config *c, const flux_msg_t *msg, json_t *conf)
{
    json_t *names = c->listeners (c->b);
    struct update *u;
    size_t i;
    json_t *o;

    if (!(u = calloc (1, sizeof (*u)))) {
        (void)flux_respond_error (c->b->h, msg, ENOMEM, NULL);
        goto out;
    }
    u->c = c;
    u->msg = flux_msg_incref (msg);
    u->conf = json_incref (conf);
    u->accepted = json_array ();
    u->next = c->updates;
    c->updates = u;
    u->waiting = 1;
    json_array_foreach (names, i, o) {
        char *name = strdup (json_string_value (o));
        flux_future_t *f = offer (c, name, conf);

        if (!f
            || flux_future_aux_set (f, "name", name, free) < 0
            || flux_future_then (f, -1, offered, u) < 0) {
            u->errnum = errno;
            flux_future_destroy (f);
            continue;
        }
        u->waiting++;
    }
    if (--u->waiting == 0)
        update_finish (u);
out:
    json_decref (names);
}

static void load_cb (flux_t *h,
                     flux_msg_handler_t *mh,
                     const flux_msg_t *msg,
                     void *arg)
{
    struct config *c = arg;
    json_t *o;

    if (flux_request_unpack (msg, NULL, "o", &o) < 0)
        respond_error (h, msg, "config.load wants a JSON object");
    else
        update_start (c, msg, o);
}

static void reload_cb (flux_t *h,
                       flux_msg_handler_t *mh,
                       const flux_msg_t *msg,
                       void *arg)
{
    struct config *c = arg;
    flux_error_t error;
    json_t *o;

    if (c->path) {
        if (!(o = read_config (c->path, &error))) {
            respond_error (h, msg, error.text);
            return;
        }
        if (!json_equal (o, c->conf)) {
            update_start (c, msg, o);
            json_decref (o);
            return;
        }
        json_decref (o);
    }
    respond_ok (h, msg);
}

static void get_cb (flux_t *h,
                    flux_msg_handler_t *mh,
                    const flux_msg_t *msg,
                    void *arg)
{
    struct config *c = arg;

    if (flux_respond_pack (h, msg, "O", c->conf) < 0
        || (flux_msg_is_streaming (msg)
            && flux_msglist_append (c->getters, msg) < 0))
        flux_log_error (h, "cannot answer config.get");
}

static void disconnect_cb (flux_t *h,
                           flux_msg_handler_t *mh,
                           const flux_msg_t *msg,
                           void *arg)
{
    struct config *c = arg;

    (void)flux_msglist_disconnect (c->getters, msg);
}

static const struct flux_msg_handler_spec htab[] = {
    { FLUX_MSGTYPE_REQUEST, "config.load", load_cb, 0 },
    { FLUX_MSGTYPE_REQUEST, "config.reload", reload_cb, 0 },
    { FLUX_MSGTYPE_REQUEST, "config.get", get_cb, FLUX_ROLE_USER },
    { FLUX_MSGTYPE_REQUEST, "config.disconnect", disconnect_cb, FLUX_ROLE_USER },
    FLUX_MSGHANDLER_TABLE_END,
};

void config_tell (struct config *c, json_t *(*names) (struct broker *b))
{
    c->listeners = names;
}

struct config *config_create (struct broker *b)
{
    struct config *c;
    flux_error_t error;
    json_t *empty = json_object ();

    if (!(c = calloc (1, sizeof (*c))))
        goto error;
    c->b = b;
    if (!(c->getters = flux_msglist_create ())
        || flux_msg_handler_addvec (b->h, htab, c, &c->handlers) < 0
        || set_config (c, empty, &error) < 0)
        goto error;
    json_decref (empty);
    return c;
error:
    json_decref (empty);
    config_destroy (c);
    return NULL;
}

void config_destroy (struct config *c)
{
    if (c) {
        ERRNO_SAFE_BLOCK;
        while (c->updates)
            update_destroy (c->updates);
        flux_msg_handler_delvec (c->handlers);
        flux_msglist_destroy (c->getters);
        json_decref (c->conf);
        free (c->path);
        free (c);
    }
}
