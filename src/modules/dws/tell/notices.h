/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Notices: messages that a command of the site (rabbit.notice_command) delivers to
 * users about ended jobs and file systems, which no exception of a job can report.
 *
 * A notice is written in the same commit as the event it is about, and stays in the KVS
 * until the command has run for it. Restarts in between can repeat the delivery, but
 * not lose it. Without a command no notices are kept.
 */

#ifndef DWS_NOTICES_H
#define DWS_NOTICES_H

#include <jansson.h>

#include "facts/jobs.h"

struct notices;

/* Reads those in the KVS.
 */
struct notices *notices_create (struct dws_ctx *ctx);

/* Kills running commands; the module runs them again when it is loaded again.
 */
void notices_destroy (struct notices *notices);

/* The data of a job was not staged out. 'until' is when retries end, 0: the data is
 * lost.
 */
void notices_stage_out (struct job *job, const char *text, double until);

/* A persistent file system expires or was destroyed: libdws/tell/notice.h lists the
 * events. 'expires' is 0 for a destroyed one.
 */
void notices_file_system (struct dws_ctx *ctx, const char *event,
                          const char *name, json_int_t userid, double expires);

/* The module was loaded or reconfigured: deliver pending notices now.
 */
void notices_start (struct notices *notices);

/* {"waiting": N, "told": N, "failed": N}, the latter two since the module was loaded.
 */
json_t *notices_status (const struct notices *notices);

#endif /* !DWS_NOTICES_H */
