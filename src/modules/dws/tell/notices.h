/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Notices: what users are told by a command of the site (rabbit.notice_command), since
 * their jobs cannot tell them any more, or there is no job.
 *
 * A notice is in the KVS from the commit on that records what it is about, until the
 * command has been run for it: at least once, whatever is restarted in between. Without
 * a command none are kept.
 */

#ifndef DWS_NOTICES_H
#define DWS_NOTICES_H

#include <jansson.h>

#include "facts/jobs.h"

struct notices;

/* Reads those in the KVS.
 */
struct notices *notices_create (struct dws_ctx *ctx);

/* What runs is killed, and run again by the next module.
 */
void notices_destroy (struct notices *notices);

/* The data of a job was not staged out; 'until': it can be tried again as long, 0: it
 * is lost.
 */
void notices_stage_out (struct job *job, const char *text, double until);

/* A persistent file system expires, or is destroyed by that: libdws/tell/notice.h has
 * the events. 'expires' is 0 for one that is destroyed.
 */
void notices_file_system (struct dws_ctx *ctx, const char *event,
                          const char *name, json_int_t userid, double expires);

/* The module has been loaded, or has another configuration: tell what is still to be
 * told.
 */
void notices_start (struct notices *notices);

/* {"waiting": N, "told": N, "failed": N}, the latter two since the module was loaded.
 */
json_t *notices_status (const struct notices *notices);

#endif /* !DWS_NOTICES_H */
