/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See commands.h.
 */

#include <stdio.h>

#include "libdws/util/jsonmake.h"
#include "agent/commands.h"

json_t *command_create (const char *op,
                        const char *kind,
                        const char *namespace,
                        const char *name)
{
    return json_pack ("{s:s s:s s:s s:s}",
                      "op", op,
                      "kind", kind,
                      "namespace", namespace,
                      "name", name);
}

json_t *command_create_with (const char *op,
                             const char *kind,
                             const char *namespace,
                             const char *name,
                             const char *key,
                             json_t *value)
{
    json_t *o = command_create (op, kind, namespace, name);

    dws_json_set (&o, key, value);
    return o;
}

static void make_selector (const struct dws_workflow *wf,
                           char *buf, size_t size)
{
    snprintf (buf, size, "%s.name=%s,%s.namespace=%s",
              WORKFLOW_LABEL, wf->name, WORKFLOW_LABEL, wf->namespace);
}

json_t *command_patch (const struct dws_workflow *wf, json_t *patch)
{
    return command_create_with ("patch", "workflows", wf->namespace, wf->name,
                                "patch", patch);
}

json_t *command_list (const struct dws_workflow *wf, const char *kind)
{
    char selector[512];

    make_selector (wf, selector, sizeof (selector));
    return json_pack ("{s:s s:s s:s}",
                      "op", "list",
                      "kind", kind,
                      "selector", selector);
}

json_t *command_list_whole (const struct dws_workflow *wf, const char *kind)
{
    json_t *o = command_list (wf, kind);

    dws_json_set (&o, "whole", json_true ());
    return o;
}

json_t *command_list_unowned (const char *kind, const char **fields)
{
    json_t *paths = json_array ();

    for (; *fields; fields++)
        dws_json_append (&paths, json_string (*fields));
    return json_pack ("{s:s s:s s:s s:o}",
                      "op", "list",
                      "kind", kind,
                      "selector", "!" OWNER_LABEL ".name",
                      "fields", paths);
}

json_t *command_logs (const struct dws_workflow *wf, int bytes)
{
    char selector[512];

    make_selector (wf, selector, sizeof (selector));
    return json_pack ("{s:s s:s s:s s:s s:i}",
                      "op", "logs",
                      "kind", "pods",
                      "namespace", wf->namespace,
                      "selector", selector,
                      "bytes", bytes);
}
