/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Bounds on what users can make the module keep: the size of a request, and the
 * number of requests of one user that wait for an answer. Neither holds for the owner
 * of the instance, who is also the sender of what the plugin and the agent ask.
 */

#ifndef DWS_REQUESTS_H
#define DWS_REQUESTS_H

#include <flux/core.h>

#include "libdws/util/error.h"

/* Bytes of a user's request, header and payload. The longest that flux-dws sends for a
 * user names a file system.
 */
#define REQUESTS_BYTES 4096

/* Requests of one user that wait, where a person asks and not the shells of a job.
 */
#define REQUESTS_WAITING 64

struct requests;

/* Refuse a user's request that is too large, before its payload is parsed: EMSGSIZE.
 */
int requests_check_size (const flux_msg_t *msg, dws_error_t *error);

struct requests *requests_create (void);

/* Messages that were kept must be gone by then.
 */
void requests_destroy (struct requests *requests);

/* A copy of 'msg' without its payload, to be answered later. The copy counts as one of
 * its sender's until its last reference is dropped (flux_msg_decref()). Returns NULL with
 * EBUSY if 'max' requests of that user wait already.
 */
const flux_msg_t *requests_keep (struct requests *requests,
                                 const flux_msg_t *msg, size_t max,
                                 dws_error_t *error);

#endif /* !DWS_REQUESTS_H */
