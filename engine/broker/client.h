/* SPDX-License-Identifier: LGPL-3.0-only */
/* client.h - connections on unix stream sockets: clients and the processes
 * of Python modules.
 */
#ifndef SOLO_CLIENT_H
#define SOLO_CLIENT_H

#include "broker.h"

struct client;

typedef void (*client_connect_f)(struct client *c, void *arg);
typedef void (*client_recv_f)(struct client *c, flux_msg_t *msg, void *arg);
typedef void (*client_lost_f)(struct client *c, void *arg);

/* A socket for somebody in particular: the owner of 'cb' keeps the client.
 */
struct client_server *client_server_create_private (struct broker *b,
                                                    const char *path,
                                                    client_connect_f cb,
                                                    void *arg);

void client_set_handlers (struct client *c,
                          client_recv_f recv,
                          client_lost_f lost,
                          void *arg);
/* Takes over *msg when it succeeds.
 */
int client_send (struct client *c, flux_msg_t **msg);
/* Handle what has arrived up to now.
 */
void client_drain (struct client *c);
void client_destroy (struct client *c);

#endif // !SOLO_CLIENT_H
