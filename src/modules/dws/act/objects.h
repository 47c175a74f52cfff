/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The JSON that goes to Kubernetes: objects and patches.
 * Functions return a new reference, or NULL without memory; object_variables() then sets
 * errno.
 */

#ifndef DWS_OBJECTS_H
#define DWS_OBJECTS_H

#include <sys/types.h>
#include <jansson.h>

#include "libdws/facts/job.h"
#include "libdws/facts/workflow.h"

/* A new Workflow object of that name, whose file systems belong to the group
 * 'gid'. 'first': the job is data first.
 */
json_t *object_workflow (const struct dws_job *job,
                         const char *name,
                         gid_t gid,
                         const char *instance,
                         bool first,
                         dws_error_t *error);

/* {"data": [{"name": HOST}, ...]} for a hostlist, without the rabbits that
 * may be in it, and nodes that have no rabbit: NNF would wait for them for ever.
 */
struct dws_topology;
json_t *object_computes (const char *hosts, const struct dws_topology *topo);

/* The command that writes the nodes into the Computes of a workflow.
 */
json_t *command_computes (const struct dws_workflow *wf, const char *hosts,
                          const struct dws_topology *topo);

/* The metadata of an object that belongs to a workflow, as DWS writes it:
 * labels for the controllers, ownerReferences for Kubernetes. The agent adds
 * the version of the owner.
 */
json_t *object_child (const struct dws_workflow *wf, const char *name,
                      const char *namespace);

/* The variables of a workflow that a job may see, which excludes the token.
 * 'directives' serve to complete them if PreRun was forced ready.
 */
json_t *object_variables (const struct dws_workflow *wf,
                          const struct dws_directives *directives);

/* Merge patches that disable a Storage for new workflows, with reason, date and user
 * (NULL: this module) for admins, and that enable it again.
 */
json_t *object_disabled (const char *reason, const char *user);
json_t *object_enabled (void);

#endif /* !DWS_OBJECTS_H */
