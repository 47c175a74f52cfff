/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The commands to the agent (doc/protocol.md), without their number.
 * Functions return a new reference, or NULL without memory, which sending it reports.
 */

#ifndef DWS_COMMANDS_H
#define DWS_COMMANDS_H

#include <jansson.h>

#include "libdws/facts/workflow.h"

/* Prefixes of labels on objects of a workflow; the suffixes are .name and
 * .namespace.
 */
#define WORKFLOW_LABEL "dataworkflowservices.github.io/workflow"
#define OWNER_LABEL "dataworkflowservices.github.io/owner"

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

/* A command to patch a workflow. Takes over 'patch' likewise.
 */
json_t *command_patch (const struct dws_workflow *wf, json_t *patch);

/* A command to list the objects of one kind that belong to a workflow by their
 * labels.
 */
json_t *command_list (const struct dws_workflow *wf, const char *kind);

/* The same, with the whole of each object as text.
 */
json_t *command_list_whole (const struct dws_workflow *wf, const char *kind);

/* A command to list the objects of one kind without an owner label, such as profiles
 * without the copies that NNF makes for each workflow. 'fields' are the paths of the
 * requested parts, NULL at the end.
 */
json_t *command_list_unowned (const char *kind, const char **fields);

/* A command to read the last 'bytes' of the log of each of a workflow's
 * containers.
 */
json_t *command_logs (const struct dws_workflow *wf, int bytes);

#endif /* !DWS_COMMANDS_H */
