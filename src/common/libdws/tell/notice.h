/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Notices to users, as rabbit.notice_command reads them.
 */

#ifndef LIBDWS_NOTICE_H
#define LIBDWS_NOTICE_H

#include <stdint.h>
#include <jansson.h>

#include "libdws/facts/job.h"
#include "libdws/storage/bytes.h"

/* Values of "event".
 */
#define DWS_NOTICE_FAILED "stage-out-failed"
#define DWS_NOTICE_LOST "stage-out-lost"
#define DWS_NOTICE_EXPIRING "file-system-expiring"
#define DWS_NOTICE_DESTROYED "file-system-destroyed"

/* A notice is {"id", "event", "t", "userid"?, "what", "where"?, "until"?, "message"}: a
 * unique id; what, an array of texts; where, a hostlist of rabbits, those of
 * 'bytes'; until, a time (s since the epoch). The functions
 * return NULL with errno ENOMEM.
 *
 * The data of a job was not staged out, for the reason 'text'. Until 'until' the
 * stage-out can be retried; 0: the data is lost. The notice also has "jobid", and "job",
 * which is 'f58'.
 */
json_t *dws_notice_stage_out (const struct dws_job *job,
                              const char *f58,
                              const struct dws_bytes *bytes,
                              const char *text,
                              double until,
                              double now);

/* A persistent file system of the user ('userid', -1: not known) expires, or is
 * destroyed, as 'event' says. 'expires' is when, 0 for one that is destroyed.
 */
json_t *dws_notice_file_system (const char *event,
                                const char *name,
                                int64_t userid,
                                const struct dws_bytes *bytes,
                                double expires,
                                double now);

#endif /* !LIBDWS_NOTICE_H */
