/* SPDX-License-Identifier: LGPL-3.0-only */
/* handle_private.h - between the handle and what is built on it. */
#ifndef SOLO_HANDLE_PRIVATE_H
#define SOLO_HANDLE_PRIVATE_H

#include <flux/core.h>

connector_init_f connector_local_init;
connector_init_f connector_interthread_init;
connector_init_f connector_loop_init;

/* End a streaming RPC: a request to 'topic' names its matchtag.
 */
int rpc_cancel (flux_t *h, const char *topic, flux_future_t *rpc);

#endif
