/* SPDX-License-Identifier: LGPL-3.0-only */
/* respond.h - answer requests.
 *
 * Each call ends a request or, for a streaming one, a part of it.  A failure
 * to answer is logged with the topic of the request: there is nobody else to
 * tell.
 */
#ifndef SOLO_COMMON_RESPOND_H
#define SOLO_COMMON_RESPOND_H

#include <flux/core.h>

/* Success, with nothing to say.
 */
void respond_ok (flux_t *h, const flux_msg_t *msg);

/* Success, with a JSON object as json_pack () makes it.
 */
void respond_pack (flux_t *h, const flux_msg_t *msg, const char *fmt, ...);

/* Failure with errno (EINVAL if that is 0).  'text' is for a person; NULL or
 * an empty one stands for that of errno.
 */
void respond_error (flux_t *h, const flux_msg_t *msg, const char *text);

#endif // !SOLO_COMMON_RESPOND_H
