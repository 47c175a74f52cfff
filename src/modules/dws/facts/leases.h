/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * When persistent file systems expire. Kubernetes has no place for that where we may
 * write: it is in the KVS. An entry begins as a promise, made before there is a
 * workflow that creates the file system; when the file system is there, it is bound to
 * the uid of that, so that it says nothing of another of the same name.
 */

#ifndef DWS_LEASES_H
#define DWS_LEASES_H

#include <jansson.h>
#include <flux/core.h>

#include "libdws/decide/leases.h"
#include "libdws/directive/command.h"
#include "libdws/tell/persistent.h"
#include "facts/jobs.h"

/* So long before a file system expires its owner is told (s).
 */
#define LEASE_NOTICE (72. * 3600.)

struct leases;

/* Reads the KVS.
 */
struct leases *leases_create (struct dws_ctx *ctx);
void leases_destroy (struct leases *leases);

/* A job is going to create a file system: write down how long that is to be kept.
 * Returns true when there is nothing to wait for; otherwise the job is decided about
 * anew when it is written.
 */
bool leases_promise (struct job *job);

/* One file system, or one workflow for which there is none.
 */
struct lease_of {
    struct dws_lease lease;
    char name[DWS_PERSISTENT_NAME_SIZE];        // of the file system
    char workflow[DWS_NAME_SIZE];               // that destroys it, or would
    json_int_t userid;                          // -1: not known
};

/* Bind promises, forget what is not there any more (all jobs and file systems must be
 * known), and return the rest, or NULL with errno; it is to be freed. Whether jobs want
 * a file system is found out for those whose time is over, and no others.
 */
struct lease_of *leases_settle (struct dws_ctx *ctx, double now, size_t *count);

/* That it is going to expire was said.
 */
void leases_told (struct dws_ctx *ctx, const char *name);

/* May a job name these file systems? Fails with EINVAL and a text for the user.
 */
int leases_check (struct job *job, dws_error_t *error);

/* Set when a file system expires, 0: never. Returns the future of the commit, or NULL
 * with errno and a text.
 */
flux_future_t *leases_set (struct dws_ctx *ctx, const char *name, double expires,
                           dws_error_t *error);

/* For dws.status: {"listed", "destroying", "destroyed"}; and for each of the
 * descriptions of file systems "expires", "expiring", "destroying".
 */
json_t *leases_status (const struct leases *leases);
json_t *leases_describe (struct dws_ctx *ctx, json_t *array);

#endif /* !DWS_LEASES_H */
