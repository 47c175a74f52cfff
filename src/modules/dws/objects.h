/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The JSON that goes to Kubernetes: commands, objects and patches.
 * Functions return a new reference, or NULL with errno set.
 */

#ifndef DWS_OBJECTS_H
#define DWS_OBJECTS_H

#include <sys/types.h>
#include <jansson.h>

#include "libdws/workflow.h"

/* A new Workflow object of that name, whose file systems belong to the group
 * 'gid'.
 */
json_t *object_workflow (const struct dws_job *job,
                         const char *name,
                         gid_t gid,
                         const char *instance,
                         dws_error_t *error);

/* {"data": [{"name": HOST}, ...]} for a hostlist, without the rabbits that
 * may be in it.
 */
struct dws_topology;
json_t *object_computes (const char *hosts, const struct dws_topology *topo);

/* The variables of a workflow that may go to a job, by the patterns of the
 * configuration. The token is not among them.
 */
json_t *object_variables (const struct dws_workflow *wf, json_t *patterns);

/* The label that objects of a workflow carry, in part: .name, .namespace.
 */
#define WORKFLOW_LABEL "dataworkflowservices.github.io/workflow"

/* A command. 'key' and 'value' are its argument, if it has one; the reference
 * on 'value' is taken over, and NULL fails.
 */
json_t *command_create (const char *op,
                        const char *kind,
                        const char *namespace,
                        const char *name);
json_t *command_create_with (const char *op,
                             const char *kind,
                             const char *namespace,
                             const char *name,
                             const char *key,
                             json_t *value);

/* A command to list what belongs to a workflow by its labels.
 */
json_t *command_list (const struct dws_workflow *wf, const char *kind);

/* Merge patches of a Storage: give no storage to new workflows, with the
 * reason and date that admins look for, and give it again.
 */
json_t *object_disabled (const char *reason);
json_t *object_enabled (void);

/* A command to read the end of the logs of its containers, so many bytes of
 * each.
 */
json_t *command_logs (const struct dws_workflow *wf, int bytes);

#endif /* !DWS_OBJECTS_H */
