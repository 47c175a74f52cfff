/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Bounds the memory that users can make the module hold: the size of a request, and the
 * number of pending requests of one user. The bounds exempt the instance owner, who
 * also sends the requests of the plugin and the agent.
 */

#ifndef DWS_REQUESTS_H
#define DWS_REQUESTS_H

#include <jansson.h>
#include <flux/core.h>

#include "libdws/util/error.h"
#include "libutil/idmap.h"

/* Upper bound on a user's request, header and payload (bytes). The longest request of
 * the clients of flux-dws names a file system.
 */
#define REQUESTS_BYTES 4096

/* Upper bound on pending requests of one user, other than those of job shells.
 */
#define REQUESTS_WAITING 64

/* Refuse a user's request that is too large, before its payload is parsed: EMSGSIZE.
 */
int requests_check_size (const flux_msg_t *msg, dws_error_t *error);

/* Refuse a request with an errno and a text, NULL or "" for none; or answer with 'o',
 * which is taken over, and if that is NULL, refuse. A failure is logged with the topic.
 */
void requests_refuse (flux_t *h, const flux_msg_t *msg, int errnum,
                      const char *text);
void requests_answer (flux_t *h, const flux_msg_t *msg, json_t *o,
                      const char *text);

/* A copy of 'msg' without its payload, to be answered later. The copy counts as one of
 * its sender's until its last reference is dropped (flux_msg_decref()). Returns NULL with
 * EBUSY if 'max' requests of that user wait already. 'senders', of idmap_create (free),
 * is destroyed after all such copies.
 */
const flux_msg_t *requests_keep (struct idmap *senders,
                                 const flux_msg_t *msg, size_t max,
                                 dws_error_t *error);

#endif /* !DWS_REQUESTS_H */
