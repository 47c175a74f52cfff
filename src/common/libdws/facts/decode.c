/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * From a Workflow object to the record: see workflow.h. A workflow is reported thirty
 * times in the life of its job, so the record is one piece of memory with its texts.
 */

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libdws/directive/command.h"
#include "libdws/util/timestamp.h"
#include "libutil/errno_safe.h"
#include "drivers.h"
#include "workflow.h"

/* A member of the object at 'o', NULL if there is none of that type.
 */
static json_t *array_in (json_t *o, const char *key)
{
    json_t *value = json_object_get (o, key);

    return json_is_array (value) ? value : NULL;
}

static const char *text_in (json_t *o, const char *key)
{
    return json_string_value (json_object_get (o, key));
}

static bool is_true_in (json_t *o, const char *key)
{
    return json_is_true (json_object_get (o, key));
}

static const char *or_else (const char *text, const char *other)
{
    return text ? text : other;
}

static bool is_text (const char *text, const char *wanted)
{
    return text && wanted && !strcmp (text, wanted);
}

/* Directives
 */

static size_t count_mounted (json_t *directives)
{
    const unsigned int mounted = DWS_COMMAND_JOBDW | DWS_COMMAND_PERSISTENTDW;
    size_t count = 0;
    json_t *value;
    size_t index;

    json_array_foreach (directives, index, value) {
        if (json_is_string (value)
            && (dws_command (json_string_value (value)) & mounted))
            count++;
    }
    return count;
}

/* With such a daemon users start data movements themselves.
 */
static bool has_requires (json_t *directives)
{
    json_t *value;
    size_t index;
    char buf[64];

    json_array_foreach (directives, index, value) {
        if (json_is_string (value)
            && dws_command_arg (json_string_value (value), "requires", buf,
                                sizeof (buf)))
            return true;
    }
    return false;
}

static void read_directives (struct dws_workflow *wf, json_t *directives)
{
    unsigned int commands = dws_commands (directives);

    wf->directives_hash = dws_commands_hash (directives);
    wf->destroys = (commands & DWS_COMMAND_DESTROY_PERSISTENT) != 0;
    wf->containers = (commands & DWS_COMMAND_CONTAINER) != 0;
    wf->mounts = count_mounted (directives);
    wf->moves = wf->containers || (commands & DWS_COMMAND_COPY_OUT)
                || has_requires (directives);
}

/* Scalars
 */

static enum dws_state state_parse (const char *s, size_t len)
{
    for (int i = DWS_STATE_PROPOSAL; i <= DWS_STATE_TEARDOWN; i++) {
        const char *name = dws_state_name (i);

        if (strlen (name) == len && !strncmp (name, s, len))
            return i;
    }
    return DWS_STATE_NONE;
}

static enum dws_state state_in (json_t *o, const char *key)
{
    const char *s = text_in (o, key);

    return s ? state_parse (s, strlen (s)) : DWS_STATE_NONE;
}

static enum dws_status status_in (json_t *o, const char *key)
{
    const char *s = text_in (o, key);

    for (int i = DWS_STATUS_DRIVERWAIT; i <= DWS_STATUS_ERROR; i++) {
        if (is_text (s, dws_status_name (i)))
            return i;
    }
    return DWS_STATUS_NONE;
}

/* Seconds since the epoch as dws.so has noted them, 0 if that is none.
 */
static double seconds_parse (const char *s)
{
    char *end;
    double when = s ? strtod (s, &end) : 0.;

    return s && end > s && isfinite (when) && when > 0. ? when : 0.;
}

/* What cannot be read is no stamp.
 */
static void read_stamp (struct dws_workflow *wf, const char *s)
{
    size_t len = s ? strcspn (s, " ") : 0;
    double when = seconds_parse (s ? s + len : NULL);

    if (when > 0.) {
        wf->stamp_state = state_parse (s, len);
        wf->stamped = wf->t_stamp = when;
    }
}

static bool has_finalizer (json_t *finalizers)
{
    json_t *value;
    size_t index;

    json_array_foreach (finalizers, index, value) {
        if (is_text (json_string_value (value), DWS_FINALIZER))
            return true;
    }
    return false;
}

/* The record
 */

/* A text of the record, and where it is to be.
 */
struct copied {
    size_t offset;
    const char *text;           // or NULL
};

#define COPIED(FIELD, TEXT) { offsetof (struct dws_workflow, FIELD), TEXT }
#define COUNT(a) (sizeof (a) / sizeof ((a)[0]))

/* A new record, with the texts behind it.
 */
static struct dws_workflow *create (const struct copied *copied, size_t count)
{
    struct dws_workflow *wf;
    size_t size = 0;
    char *to;

    for (size_t i = 0; i < count; i++)
        size += copied[i].text ? strlen (copied[i].text) + 1 : 0;
    if (!(wf = calloc (1, sizeof (*wf) + size)))
        return NULL;
    to = (char *)(wf + 1);
    for (size_t i = 0; i < count; i++) {
        if (!copied[i].text)
            continue;
        *(char **)((char *)wf + copied[i].offset) = to;
        to = stpcpy (to, copied[i].text) + 1;
    }
    return wf;
}

/* The parts of the object, and what of it is kept as text.
 */
struct parts {
    json_t *metadata;
    json_t *labels;
    json_t *annotations;
    json_t *spec;
    json_t *status;
    json_t *drivers;
    char *env;                  // or NULL
    char *refs;                 // likewise
};

/* Of the references only what is needed to read the breakdowns.
 */
static char *copy_refs (json_t *refs)
{
    json_t *copies = json_array ();
    json_t *ref;
    size_t index;
    char *text;

    json_array_foreach (refs, index, ref) {
        json_t *copy = json_pack ("{s:O* s:O*}",
                                  "name", json_object_get (ref, "name"),
                                  "namespace",
                                  json_object_get (ref, "namespace"));

        if (json_array_append_new (copies, copy) < 0) {
            json_decref (copies);
            return NULL;
        }
    }
    text = json_dumps (copies, JSON_COMPACT);
    json_decref (copies);
    return text;
}

static void set_status (struct dws_workflow *wf, const struct parts *p)
{
    const char *state = or_else (text_in (p->status, "state"), "");

    wf->desired = state_in (p->spec, "desiredState");
    wf->state = state_in (p->status, "state");
    wf->status = status_in (p->status, "status");
    wf->ready = is_true_in (p->status, "ready");
    if (wf->status == DWS_STATUS_ERROR && !wf->ready
        && dws_drivers_recovered (p->drivers, state))
        wf->status = DWS_STATUS_DRIVERWAIT;
    /* In Proposal all that is in the objects comes from the directives. Later it is
     * also ours, or read from what changes, and may be put right. */
    if (wf->state == DWS_STATE_PROPOSAL && !wf->ready
        && dws_drivers_refused (p->drivers, state))
        wf->status = DWS_STATUS_ERROR;
    wf->trouble = wf->status == DWS_STATUS_TRANSIENT
                  || dws_drivers_trouble (p->drivers, state);
    wf->outdated = wf->state == DWS_STATE_SETUP
                   && wf->status == DWS_STATUS_ERROR
                   && dws_drivers_outdated (wf->message);
    wf->t_desired = dws_timestamp (text_in (p->status, "desiredStateChange"));
    wf->t_ready = dws_timestamp (text_in (p->status, "readyChange"));
}

/* Whose it is, and what this module has noted in it.
 */
static void set_metadata (struct dws_workflow *wf, const struct parts *p,
                          const char *instance)
{
    const char *version = text_in (p->metadata, "resourceVersion");
    const char *label = text_in (p->labels, DWS_INSTANCE_LABEL);
    const char *maker = text_in (p->annotations, DWS_INSTANCE_LABEL);

    wf->version = version ? strtoull (version, NULL, 10) : 0;
    wf->ours = is_text (maker ? maker : label, instance);
    wf->unlabelled = wf->ours && !is_text (label, instance);
    wf->deleting = text_in (p->metadata, "deletionTimestamp") != NULL;
    wf->finalizer = has_finalizer (array_in (p->metadata, "finalizers"));
    wf->retry = text_in (p->annotations, DWS_STAGE_OUT_RETRY_ANNOTATION) != NULL;
    wf->first = text_in (p->annotations, DWS_DATA_FIRST_ANNOTATION) != NULL;
    read_stamp (wf, text_in (p->annotations, DWS_TRANSIENT_ANNOTATION));
    wf->failed_at = wf->t_failed = seconds_parse (
        text_in (p->annotations, DWS_STAGE_OUT_FAILED_ANNOTATION));
}

/* Neither label nor annotation says whose it is.
 */
static bool is_stray (const struct parts *p)
{
    return !text_in (p->labels, DWS_INSTANCE_LABEL)
           && !text_in (p->annotations, DWS_INSTANCE_LABEL)
           && is_text (text_in (p->spec, "wlmID"), "flux");
}

static struct dws_workflow *create_with (const struct parts *p)
{
    const char *state = or_else (text_in (p->status, "state"), "");
    const char *namespace = or_else (text_in (p->metadata, "namespace"),
                                     DWS_NAMESPACE);
    json_t *computes = json_object_get (p->status, "computes");
    json_t *token = json_object_get (p->status, "workflowToken");
    const char *secret = text_in (token, "secretName");
    char buf[DWS_DRIVERS_TEXT_SIZE];
    char rabbit[DWS_RABBIT_SIZE];
    const struct copied copied[] = {
        COPIED (name, text_in (p->metadata, "name")),
        COPIED (namespace, namespace),
        COPIED (uid, text_in (p->metadata, "uid")),
        COPIED (message, dws_drivers_text (p->drivers, state,
                                           text_in (p->status, "message"), buf)),
        COPIED (silent, dws_drivers_silent (p->drivers, state, rabbit)),
        COPIED (elapsed, text_in (p->status, "elapsedTimeLastState")),
        COPIED (computes, text_in (computes, "name")),
        COPIED (computes_namespace,
                or_else (text_in (computes, "namespace"), namespace)),
        COPIED (failed, text_in (p->annotations, DWS_FAILED_ANNOTATION)),
        COPIED (waived, text_in (p->annotations, DWS_WAIVED_ANNOTATION)),
        COPIED (token, secret),
        COPIED (token_namespace,
                secret ? or_else (text_in (token, "secretNamespace"), namespace)
                       : text_in (token, "secretNamespace")),
        COPIED (env, p->env),
        COPIED (breakdown_refs, p->refs),
        COPIED (noted, is_stray (p) ? text_in (p->spec, "jobID") : NULL),
    };

    return create (copied, COUNT (copied));
}

struct dws_workflow *dws_workflow_decode (json_t *object, const char *instance,
                                          dws_error_t *error)
{
    json_t *metadata = json_object_get (object, "metadata");
    json_t *status = json_object_get (object, "status");
    json_t *env = json_object_get (status, "env");
    json_t *refs = array_in (status, "directiveBreakdowns");
    const char *name = or_else (text_in (metadata, "name"), "");
    uint64_t jobid = dws_workflow_jobid (name);
    struct parts p = {
        .metadata = metadata,
        .labels = json_object_get (metadata, "labels"),
        .annotations = json_object_get (metadata, "annotations"),
        .spec = json_object_get (object, "spec"),
        .status = status,
        .drivers = array_in (status, "drivers"),
    };
    json_t *userid = json_object_get (p.spec, "userID");
    struct dws_workflow *wf = NULL;

    if (jobid == 0) {
        dws_error (error, EINVAL, "'%s' is no workflow of a Flux job", name);
        return NULL;
    }
    if ((json_is_object (env) && !(p.env = json_dumps (env, JSON_COMPACT)))
        || (refs && !(p.refs = copy_refs (refs)))
        || !(wf = create_with (&p))) {
        dws_error_nomem (error);
        goto done;
    }
    wf->jobid = jobid;
    wf->stray = is_stray (&p);
    set_metadata (wf, &p, instance);
    wf->userid = json_is_integer (userid) ? json_integer_value (userid) : -1;
    wf->force_ready = is_true_in (p.spec, "forceReady");
    set_status (wf, &p);
    wf->breakdown_count = json_array_size (refs);
    read_directives (wf, array_in (p.spec, "dwDirectives"));
done:
    ERRNO_SAFE (free (p.env));
    ERRNO_SAFE (free (p.refs));
    return wf;
}
