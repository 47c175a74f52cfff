/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Hosts that keep a workflow waiting for its mounts, read from its ClientMount
 * objects. The functions return an RFC 29 hostlist that the caller frees, "" for none.
 */

#ifndef LIBDWS_MOUNTS_H
#define LIBDWS_MOUNTS_H

#include <jansson.h>

#include "libdws/graph/topology.h"
#include "libdws/util/error.h"
#include "job.h"
#include "workflow.h"

/* The compute nodes that have not got all their mounts into 'state'
 * ("mounted" or "unmounted"), from an array of a workflow's ClientMounts.
 * A node whose ClientMount reports no mounts is among them. Fails with ENOMEM.
 */
char *dws_mounts_lagging (json_t *clientmounts,
                          const char *state,
                          dws_error_t *error);

/* The nodes with a rabbit of a job that have not got all the mounts which its workflow
 * is to give them: those that lag, and those that NNF has not even made all
 * ClientMounts for, as it does when Computes asks for what it cannot mount.
 * Fails with EINVAL (the job's hosts) or ENOMEM.
 */
char *dws_mounts_missing (json_t *clientmounts,
                          const struct dws_job *job,
                          const struct dws_workflow *wf,
                          const struct dws_topology *topo,
                          dws_error_t *error);

/* The nodes that DWS still has to unmount, for a workflow whose job does without
 * wf->waived. While other nodes mount a file system whose allocations are counted out
 * to nodes, Computes must not change: the count would begin anew.
 */
enum dws_unmount dws_mounts_unmount (json_t *clientmounts,
                                     const struct dws_workflow *wf);

/* Where compute nodes have the file system of each directive: a new object
 * {INDEX: path}. NULL for lack of memory.
 */
json_t *dws_mounts_places (json_t *clientmounts);

#endif /* !LIBDWS_MOUNTS_H */
