/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The JSON that goes to Kubernetes: objects and patches.
 * Functions return a new reference, or NULL with errno set.
 */

#ifndef DWS_OBJECTS_H
#define DWS_OBJECTS_H

#include <sys/types.h>
#include <jansson.h>

#include "libdws/facts/job.h"
#include "libdws/facts/workflow.h"

/* A new Workflow object of that name, whose file systems belong to the group
 * 'gid'. With 'first' the job is to have its data before it has nodes.
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

/* The command that puts them into the Computes of a workflow.
 */
json_t *command_computes (const struct dws_workflow *wf, const char *hosts,
                          const struct dws_topology *topo);

/* The metadata of an object that belongs to a workflow, as DWS has it: by its
 * labels the controllers find the workflow, by its owner Kubernetes does. The
 * agent adds the version of the owner.
 */
json_t *object_child (const struct dws_workflow *wf, const char *name,
                      const char *namespace);

/* The variables of a workflow that may go to a job. 'directives' are of use where PreRun
 * was forced ready. The token is not among them.
 */
json_t *object_variables (const struct dws_workflow *wf,
                          const struct dws_directives *directives);

/* Merge patches of a Storage: it gives no storage to new workflows, with the
 * reason and date that admins look for, and who did it (NULL: this module); and it
 * gives storage again.
 */
json_t *object_disabled (const char *reason, const char *user);
json_t *object_enabled (void);

#endif /* !DWS_OBJECTS_H */
