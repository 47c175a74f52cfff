/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See persistent.h.
 */

#include <stdio.h>
#include <string.h>

#include "libdws/facts/workflow.h"
#include "libdws/util/jsonmake.h"
#include "libdws/util/timestamp.h"
#include "persistent.h"

/* Users other than its owner may use the file system.
 */
#define DWS_ANNOTATION_SHARED "dataworkflowservices.github.io/ignore-uid"

/* A reference is to the breakdown of a directive: its workflow's name and
 * "-INDEX".
 */
static void name_workflow (char workflow[256], const char *breakdown)
{
    char *cp;

    snprintf (workflow, 256, "%s", breakdown);
    if ((cp = strrchr (workflow, '-')))
        *cp = '\0';
}

static json_t *describe_user (const char *name)
{
    char workflow[256];
    uint64_t jobid;
    json_t *o;

    name_workflow (workflow, name);
    o = json_pack ("{s:s}", "workflow", workflow);
    if ((jobid = dws_workflow_jobid (workflow)))
        dws_json_set (&o, "jobid", json_integer (jobid));
    return o;
}

/* The breakdown for which NNF has made it owns it.
 */
static void describe_maker (json_t **o, json_t *object)
{
    json_t *owners = NULL;
    const char *name = NULL;
    char workflow[256];

    (void)json_unpack (object, "{s:{s:o}}", "metadata", "ownerReferences", &owners);
    if (json_unpack (json_array_get (owners, 0), "{s:s}", "name", &name) < 0)
        return;
    name_workflow (workflow, name);
    dws_json_set (o, "maker", json_string (workflow));
}

json_t *dws_persistent_describe (json_t *object)
{
    const char *name = "";
    const char *namespace = "";
    const char *type = "";
    const char *state = "";
    const char *created = NULL;
    const char *uid = "";
    json_int_t userid = -1;
    const char *shared = "";
    const char *directive = NULL;
    json_t *references = NULL;
    json_t *users = json_array ();
    json_t *o;
    json_t *value;
    size_t index;

    json_unpack (object, "{s:{s:{s:s}}}", "metadata", "annotations",
                 DWS_ANNOTATION_SHARED, &shared);
    json_unpack (object, "{s:{s?s s?s s?s s?s}}",
                 "metadata",
                   "name", &name,
                   "uid", &uid,
                   "namespace", &namespace,
                   "creationTimestamp", &created);
    json_unpack (object, "{s:{s?s s?I s?s s?o}}",
                 "spec",
                   "fsType", &type,
                   "userID", &userid,
                   "dwDirective", &directive,
                   "consumerReferences", &references);
    json_unpack (object, "{s:{s?s}}", "status", "state", &state);
    json_array_foreach (references, index, value) {
        const char *s = json_string_value (json_object_get (value, "name"));

        if (s)
            dws_json_append (&users, describe_user (s));
    }
    o = json_pack ("{s:s s:s s:s s:s s:I s:s s:f s:s*}",
                   "name", name,
                   "uid", uid,
                   "namespace", namespace,
                   "type", type,
                   "userid", userid,
                   "state", state,
                   "created", dws_timestamp (created),
                   "directive", directive);
    dws_json_set (&o, "users", users);
    describe_maker (&o, object);
    if (!strcmp (shared, "true"))
        dws_json_set (&o, "shared", json_true ());
    return o;
}
