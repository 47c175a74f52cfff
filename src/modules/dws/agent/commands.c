/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See commands.h.
 */

#include <errno.h>
#include <stdio.h>

#include "agent/commands.h"

json_t *command_create (const char *op,
                        const char *kind,
                        const char *namespace,
                        const char *name)
{
    json_t *o;

    if (!(o = json_pack ("{s:s s:s s:s s:s}",
                         "op", op,
                         "kind", kind,
                         "namespace", namespace,
                         "name", name)))
        errno = ENOMEM;
    return o;
}

json_t *command_create_with (const char *op,
                             const char *kind,
                             const char *namespace,
                             const char *name,
                             const char *key,
                             json_t *value)
{
    json_t *o = command_create (op, kind, namespace, name);

    /* json_object_set_new() takes over 'value' also when it fails. */
    if (json_object_set_new (o, key, value) < 0) {
        json_decref (o);
        errno = ENOMEM;
        return NULL;
    }
    return o;
}

static void make_selector (const struct dws_workflow *wf,
                           char *buf, size_t size)
{
    snprintf (buf, size, "%s.name=%s,%s.namespace=%s",
              WORKFLOW_LABEL, wf->name, WORKFLOW_LABEL, wf->namespace);
}

json_t *command_list (const struct dws_workflow *wf, const char *kind)
{
    char selector[512];
    json_t *o;

    make_selector (wf, selector, sizeof (selector));
    if (!(o = json_pack ("{s:s s:s s:s}",
                         "op", "list",
                         "kind", kind,
                         "selector", selector)))
        errno = ENOMEM;
    return o;
}

json_t *command_list_whole (const struct dws_workflow *wf, const char *kind)
{
    json_t *o = command_list (wf, kind);

    if (json_object_set_new (o, "whole", json_true ()) < 0) {
        json_decref (o);
        errno = ENOMEM;
        return NULL;
    }
    return o;
}

json_t *command_list_unowned (const char *kind, const char **fields)
{
    json_t *paths = json_array ();
    json_t *o;

    for (; *fields; fields++) {
        if (json_array_append_new (paths, json_string (*fields)) < 0) {
            json_decref (paths);
            errno = ENOMEM;
            return NULL;
        }
    }
    if (!(o = json_pack ("{s:s s:s s:s s:o}",
                         "op", "list",
                         "kind", kind,
                         "selector", "!" OWNER_LABEL ".name",
                         "fields", paths)))
        errno = ENOMEM;
    return o;
}

json_t *command_logs (const struct dws_workflow *wf, int bytes)
{
    char selector[512];
    json_t *o;

    make_selector (wf, selector, sizeof (selector));
    if (!(o = json_pack ("{s:s s:s s:s s:s s:i}",
                         "op", "logs",
                         "kind", "pods",
                         "namespace", wf->namespace,
                         "selector", selector,
                         "bytes", bytes)))
        errno = ENOMEM;
    return o;
}
