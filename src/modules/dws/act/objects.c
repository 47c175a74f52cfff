/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See objects.h.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <flux/core.h>

#include "libdws/config/variables.h"
#include "libdws/graph/topology.h"
#include "libdws/facts/places.h"
#include "libdws/util/hosts.h"
#include "libdws/util/jsonmake.h"
#include "libdws/util/jsontext.h"
#include "libutil/names.h"
#include "act/objects.h"
#include "agent/commands.h"

json_t *object_workflow (const struct dws_job *job,
                         const char *name,
                         gid_t gid,
                         const char *instance,
                         bool first,
                         dws_error_t *error)
{
    char f58[64];
    json_t *directives;
    json_t *o;

    if (flux_job_id_encode (job->id, "f58plain", f58, sizeof (f58)) < 0) {
        dws_error (error, errno, "job id: %s", strerror (errno));
        return NULL;
    }
    if (!(directives = dws_directives_encode (job->directives))) {
        dws_error (error, errno, "directives: %s", strerror (errno));
        return NULL;
    }
    o = json_pack ("{s:{s:s s:s s:[s] s:{s:s} s:{s:s s:s*}}"
                   " s:{s:s s:s s:s s:I s:I s:o}}",
                   "metadata",
                     "name", name,
                     "namespace", DWS_NAMESPACE,
                     "finalizers", DWS_FINALIZER,
                     "labels",
                       DWS_INSTANCE_LABEL, instance,
                     "annotations",
                       DWS_INSTANCE_LABEL, instance,
                       DWS_DATA_FIRST_ANNOTATION, first ? "true" : NULL,
                   "spec",
                     "desiredState", dws_state_name (DWS_STATE_PROPOSAL),
                     "wlmID", "flux",
                     "jobID", f58,
                     "userID", (json_int_t)job->userid,
                     "groupID", (json_int_t)gid,
                     "dwDirectives", directives);
    if (!o)
        dws_error (error, ENOMEM, "out of memory");
    return o;
}

json_t *object_computes (const char *hosts, const struct dws_topology *topo)
{
    struct hosts_walk walk;
    json_t *data = json_array ();
    const char *host;

    if (hosts_walk_begin (&walk, hosts) < 0) {
        json_decref (data);
        return NULL;
    }
    while ((host = hosts_walk_next (&walk))) {
        if (dws_topology_find_host (topo, host) >= 0)
            dws_json_append (&data, json_pack ("{s:s}", "name", host));
    }
    hosts_walk_end (&walk);
    return json_pack ("{s:o}", "data", data);
}

json_t *command_computes (const struct dws_workflow *wf, const char *hosts,
                          const struct dws_topology *topo)
{
    return command_create_with ("patch", "computes", wf->computes_namespace,
                                wf->computes,
                                "patch", object_computes (hosts, topo));
}

json_t *object_child (const struct dws_workflow *wf, const char *name,
                      const char *namespace)
{
    return json_pack ("{s:s s:s s:{s:s s:s s:s s:s s:s s:s s:s}"
                      " s:[{s:s s:s s:s s:b}]}",
                      "name", name,
                      "namespace", namespace,
                      "labels",
                        WORKFLOW_LABEL ".name", wf->name,
                        WORKFLOW_LABEL ".namespace", wf->namespace,
                        WORKFLOW_LABEL ".uid", wf->uid,
                        OWNER_LABEL ".kind", "Workflow",
                        OWNER_LABEL ".name", wf->name,
                        OWNER_LABEL ".namespace", wf->namespace,
                        OWNER_LABEL ".uid", wf->uid,
                      "ownerReferences",
                        "kind", "Workflow",
                        "name", wf->name,
                        "uid", wf->uid,
                        "controller", 1);
}

static int complete_env (json_t *env, const struct dws_workflow *wf,
                         const struct dws_directives *directives)
{
    json_t *places = dws_jsontext_get (wf->places);
    int rc = -1;

    if (places)
        rc = dws_places_complete (env, directives, places);
    json_decref (places);
    return rc;
}

json_t *object_variables (const struct dws_workflow *wf,
                          const struct dws_directives *directives)
{
    json_t *env = NULL;
    json_t *variables;
    const char *name;
    json_t *value;

    if (!(variables = json_object ())
        || (wf->env && !(env = dws_jsontext_get (wf->env))))
        goto error;
    if (env && wf->force_ready && wf->places && directives
        && complete_env (env, wf, directives) < 0)
        goto error;
    json_object_foreach (env, name, value) {
        if (dws_variable_may_pass (name)
            && json_is_string (value)
            && json_object_set (variables, name, value) < 0)
            goto error;
    }
    json_decref (env);
    return variables;
error:
    json_decref (env);
    json_decref (variables);
    errno = ENOMEM;
    return NULL;
}

json_t *object_disabled (const char *reason, const char *user)
{
    char date[64];
    time_t now = time (NULL);
    struct tm tm;

    strftime (date, sizeof (date), "%Y-%m-%d %H:%M:%S",
              localtime_r (&now, &tm));
    return json_pack ("{s:{s:{s:s s:s s:s?}} s:{s:s}}",
                      "metadata",
                        "annotations",
                          "disable_reason", reason,
                          "disable_date", date,
                          DWS_DISABLED_BY_ANNOTATION, user,
                      "spec",
                        "state", "Disabled");
}

json_t *object_enabled (void)
{
    return json_pack ("{s:{s:{s:n s:n s:n}} s:{s:s}}",
                      "metadata",
                        "annotations",
                          "disable_reason",
                          "disable_date",
                          DWS_DISABLED_BY_ANNOTATION,
                      "spec",
                        "state", "Enabled");
}
