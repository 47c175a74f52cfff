/* SPDX-License-Identifier: LGPL-3.0-only */
/* broker.h - the parts of solo's broker and what they share.
 *
 * Everything here runs in the broker's own thread.  Modules run in threads
 * of their own and reach the broker only by messages.
 */
#ifndef SOLO_BROKER_H
#define SOLO_BROKER_H

#include <stdbool.h>
#include <sys/types.h>
#include <jansson.h>
#include <flux/core.h>

#include "common/process_watcher.h"
#include "common/respond.h"
#include "libflux/errprintf.h"

struct broker {
    flux_reactor_t *reactor;
    flux_t *h;                  // the broker's own services use this handle
    struct router *router;
    struct attrs *attrs;
    struct logbuf *log;
    struct config *config;
    struct modules *modules;
    struct client_server *clients;
    struct runlevel *runlevel;
    uid_t owner;
    uint32_t size;              // made-up nodes
    const char *rundir;         // owned by main ()
    int verbose;
    bool access_guests;         // [access] allow-guest-user
    bool access_root;           // [access] allow-root-owner
    bool signalled;             // asked to end by a signal
    /* A module has ended that nobody removed.  Set by runlevel.c. */
    void (*module_failed) (struct broker *b);
};

/*
 * router.c, router_requests.c, peer.c, service.c - peers, services,
 * subscriptions, routing
 *
 * A peer is whoever exchanges messages with the router: a client, a module
 * or the broker itself.  Its id is unique for the life time of the broker.
 */
struct peer;

/* Deliver one message.  Takes over *msg when it succeeds.
 */
typedef int (*peer_send_f) (void *arg, flux_msg_t **msg);

struct router *router_create (struct broker *b);
void router_destroy (struct router *r);
/* Answer the requests of peers that are about services and events.
 */
int router_serve (struct router *r);

struct peer *peer_create (struct router *r,
                          struct flux_msg_cred cred,
                          bool is_process,
                          peer_send_f send,
                          void *arg);
/* Send the disconnect notices, drop its services and answer the requests
 * that it will not answer any more (with EHOSTUNREACH).
 */
void peer_destroy (struct peer *p);
const char *peer_id (struct peer *p);

/* A message from this peer has arrived.  Takes over msg.
 */
void peer_recv (struct peer *p, flux_msg_t *msg);
/* From now on only the answer to its module.status request reaches it.
 */
void peer_mute (struct peer *p);

int service_add (struct router *r, const char *name, struct peer *p);
json_t *service_list (struct router *r, struct peer *p);

bool router_subscribed (struct router *r, const char *topic);

/*
 * attr.c
 */
struct attrs *attrs_create (struct broker *b);
void attrs_destroy (struct attrs *a);
int attr_set (struct attrs *a, const char *name, const char *fmt, ...)
    __attribute__ ((format (printf, 3, 4)));
/* as "-S name=value" does: unknown and read-only attributes are refused */
int attr_set_cmdline (struct attrs *a,
                      const char *assignment,
                      flux_error_t *error);
const char *attr_get (struct attrs *a, const char *name);
/* {name: value} of what clients may cache */
json_t *attrs_cacheable (struct attrs *a);

/*
 * log.c
 */
struct logbuf *logbuf_create (struct broker *b);
void logbuf_destroy (struct logbuf *log);

/*
 * config.c
 */
struct config *config_create (struct broker *b);
void config_destroy (struct config *c);
/* Read a TOML or JSON file, or all the TOML files of a directory.
 */
int config_load (struct config *c, const char *path, flux_error_t *error);
json_t *config_get (struct config *c);
/* The function returns the names of the modules that have to accept a new
 * configuration.
 */
void config_tell (struct config *c, json_t *(*names) (struct broker *b));

/*
 * module.c
 */
struct modules *modules_create (struct broker *b);
void modules_destroy (struct modules *m);
/* The names of what is loaded, the last loaded first.
 */
json_t *modules_names (struct broker *b);
/* Start the process of a Python module now, so that the interpreter gets
 * ready while others load.  The process waits for its welcome message
 * until a module.load request.
 */
void modules_prestart (struct modules *m, const char *name);

/*
 * client.c
 */
struct client_server *client_server_create (struct broker *b,
                                            const char *path);
void client_server_destroy (struct client_server *s);

/*
 * runlevel.c - load the modules, run the program, clean up, unload
 */
struct runlevel_opts {
    const char *scheduler;      // module name, or "none"
    char **command;             // NULL: a shell
    json_t *resource_args;      // arguments of the resource module
    json_t *kvs_args;
};

struct runlevel *runlevel_create (struct broker *b,
                                  const struct runlevel_opts *opts);
void runlevel_destroy (struct runlevel *rl);
void runlevel_start (struct runlevel *rl);
void runlevel_shutdown (struct runlevel *rl, int exit_code);
bool runlevel_stopping (struct runlevel *rl);
int runlevel_exit_code (struct runlevel *rl);

#endif // !SOLO_BROKER_H
