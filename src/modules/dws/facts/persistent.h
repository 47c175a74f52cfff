/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The persistent file systems of the cluster, as the agent reports them.
 */

#ifndef DWS_PERSISTENT_H
#define DWS_PERSISTENT_H

#include <jansson.h>

#include "libdws/directive/command.h"
#include "libdws/tell/persistent.h"
#include "facts/jobs.h"

/* The names of owners are looked up by the worker, which must not outlive it.
 */
struct persistent *persistent_create (struct worker *worker);
void persistent_destroy (struct persistent *p);

/* Take in all file systems, or a change of one.
 */
void persistent_list (struct persistent *p, json_t *objects);
void persistent_learn (struct persistent *p, json_t *object, bool deleted);

/* For dws.status: an array of what libdws/tell/persistent.h describes, and
 * "user", the owner's name, or number where that is not known or not looked up yet,
 * and "space", the bytes that it takes, by rabbit; only file systems of 'userid',
 * unless that is -1.
 */
json_t *persistent_status (const struct persistent *p,
                           const struct space *space,
                           json_int_t userid);

/* Call visit for each file system that belongs to no job (any more) and takes bytes:
 * with its owner, -1 if unknown, and the bytes.
 */
typedef void (*persistent_f)(json_int_t userid, int64_t bytes, void *arg);

void persistent_each (const struct persistent *p,
                      const struct space *space,
                      persistent_f visit, void *arg);

/* Add the bytes taken by the file system 'name', which has none while it is being
 * created. Fails with ENOENT (there is none) or EPERM ('userid' may not use it).
 */
int persistent_bytes (const struct persistent *p, const struct space *space,
                      const char *name, uint32_t userid,
                      struct dws_bytes *bytes, dws_error_t *error);

/* The description of a persistent file system; NULL if none has that name.
 */
json_t *persistent_find (const struct persistent *p, const char *name);

/* Call visit for every persistent file system that a job's directives make, use
 * or destroy, until it returns something else than 0, and return that.
 */
typedef int (*persistent_named_f)(unsigned command, const char *name, void *arg);

int persistent_each_named (const struct job *job,
                           persistent_named_f visit, void *arg);

/* May the user of a job see more of a file system of 'owner' than that it exists? Only
 * the owner of the file system and the instance owner may.
 */
bool persistent_may_know (const struct job *job, json_int_t owner);

/* May the job's owner have the file systems that the job wants to create? Fails
 * with EPERM and a text for the user.
 */
int persistent_permitted (const struct dws_ctx *ctx,
                          const struct dws_job *facts,
                          dws_error_t *error);

/* Can the file systems that the job wants to create or destroy be created or
 * destroyed, as far as one can know beforehand? Fails with EINVAL and a text for
 * the user; with ENOENT if one is not listed that the job wants to destroy.
 */
int persistent_check (const struct persistent *p,
                      const struct job *job,
                      dws_error_t *error);

/* The first file system that the job wants to destroy and that is not listed. Returns
 * false if there is none.
 */
bool persistent_unlisted (const struct persistent *p, const struct job *job,
                          char name[DWS_PERSISTENT_NAME_SIZE]);

/* Are the file systems that the job is to destroy unused? Checked before the
 * job starts, since NNF would otherwise fail its Teardown, after the job's
 * result. Fails with EBUSY and a text for the user; '*ending' is then true if
 * all users are jobs of this instance that are ending.
 */
int persistent_unused (const struct persistent *p,
                       const struct job *job,
                       bool *ending,
                       dws_error_t *error);

/* Are the file systems made that the job uses? Before that NNF does not say which nodes
 * can mount them. Fails with EAGAIN and what the job waits for, for dws_job.awaits.
 */
int persistent_made (const struct persistent *p, const struct job *job,
                     dws_error_t *error);

/* Are the xfs file systems that the job uses mounted for no other job? If they are, NNF
 * keeps the job waiting in PreRun, and does not say why. Fails with EBUSY and what the
 * job waits for, for dws_job.awaits.
 */
int persistent_unmounted (const struct persistent *p, const struct job *job,
                          dws_error_t *error);

#endif /* !DWS_PERSISTENT_H */
