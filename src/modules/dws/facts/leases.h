/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Leases: when persistent file systems expire. Kubernetes offers no place that the
 * module may write, so leases are in the KVS. A lease begins as the promise of a job,
 * written before the workflow that creates the file system. Once this very workflow has
 * made the file system, there is an entry with its uid, which does not hold for another
 * file system of the same name.
 */

#ifndef DWS_LEASES_H
#define DWS_LEASES_H

#include <jansson.h>
#include <flux/core.h>

#include "libdws/decide/leases.h"
#include "libdws/directive/command.h"
#include "libdws/tell/persistent.h"
#include "facts/jobs.h"

/* How long before a file system expires its owner gets a notice (s).
 */
#define LEASE_NOTICE (72. * 3600.)

struct leases;

/* Reads the KVS.
 */
struct leases *leases_create (struct dws_ctx *ctx);
void leases_destroy (struct leases *leases);

/* Write a promise with the lifetime of the file system that the job will create.
 * Returns true if the promise is written or not needed; otherwise the job is reconciled
 * again after the commit.
 */
bool leases_promise (struct job *job);

/* Is the lease in the KVS, of the file system that the job's workflow has made? Asked
 * before Setup: in Teardown the file system ceases to belong to the workflow. Returns 1
 * if so or if there is none, 0 if the job is reconciled again after the commit, and -1 if
 * the file system has to be read by its name first (leases_have_read()): watches lag.
 */
int leases_keep (struct job *job);
void leases_have_read (struct job *job);

/* The lease of a file system, or of a workflow whose file system is gone.
 */
struct lease_of {
    struct dws_lease lease;
    char name[DWS_PERSISTENT_NAME_SIZE];        // of the file system
    char workflow[DWS_NAME_SIZE];               // that destroys it, now or later
    json_int_t userid;                          // -1: not known
};

/* Bind promises, drop entries of vanished file systems (all jobs and file systems must
 * be known), and return the other leases, which the caller frees, or NULL with errno.
 * 'wanted' is computed only for leases that are due or have a workflow.
 */
struct lease_of *leases_settle (struct dws_ctx *ctx, double now, size_t *count);

/* Note that the owner got the notice before expiry.
 */
void leases_told (struct dws_ctx *ctx, const char *name);

/* May the job use the file systems that it names, or do they expire? Fails with
 * EINVAL and a text for the user.
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
