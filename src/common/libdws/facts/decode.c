/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Decodes the agent's report of a workflow into the record: see workflow.h. The agent
 * reports a workflow thirty times in its life, so the record is one piece of memory with
 * its texts. src/python/flux_k8s/fields.py has the fields, and where in the Workflow
 * object each is.
 */

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libdws/directive/command.h"
#include "libdws/util/jsontext.h"
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

static size_t count_mounted (const struct dws_directives *dirs)
{
    const unsigned int mounted = DWS_COMMAND_JOBDW | DWS_COMMAND_PERSISTENTDW;
    size_t count = 0;

    for (size_t i = 0; i < dws_directives_count (dirs); i++) {
        if ((dws_command (dirs, i) & mounted))
            count++;
    }
    return count;
}

/* With such a daemon users start data movements themselves.
 */
static bool has_requires (const struct dws_directives *dirs)
{
    for (size_t i = 0; i < dws_directives_count (dirs); i++) {
        if (dws_directives_arg (dirs, i, "requires"))
            return true;
    }
    return false;
}

static int read_directives (struct dws_workflow *wf, json_t *texts)
{
    struct dws_directives *dirs;
    unsigned int commands;

    if (!(dirs = dws_directives_read (texts)))
        return -1;
    commands = dws_commands (dirs);
    wf->directives_hash = dws_commands_hash (dirs);
    wf->destroys = (commands & DWS_COMMAND_DESTROY_PERSISTENT) != 0;
    wf->containers = (commands & DWS_COMMAND_CONTAINER) != 0;
    wf->mounts = count_mounted (dirs);
    wf->moves = wf->containers || (commands & DWS_COMMAND_COPY_OUT)
                || has_requires (dirs);
    dws_directives_destroy (dirs);
    return 0;
}

/* Scalars
 */

static enum dws_state state_in (json_t *o, const char *key)
{
    const char *s = text_in (o, key);

    return s ? dws_state_parse (s, strlen (s)) : DWS_STATE_NONE;
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

/* Seconds since the epoch as dws.so has noted them, 0 for other text.
 */
static double seconds_parse (const char *s)
{
    char *end;
    double when = s ? strtod (s, &end) : 0.;

    return s && end > s && isfinite (when) && when > 0. ? when : 0.;
}

/* Text that cannot be read counts as no stamp.
 */
static void read_stamp (struct dws_workflow *wf, const char *s)
{
    size_t len = s ? strcspn (s, " ") : 0;
    double when = seconds_parse (s ? s + len : NULL);

    if (when > 0.) {
        wf->stamp_state = dws_state_parse (s, len);
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

static void set_status (struct dws_workflow *wf, json_t *o, json_t *drivers)
{
    const char *state = or_else (text_in (o, "state"), "");

    wf->desired = state_in (o, "desired");
    wf->state = state_in (o, "state");
    wf->status = status_in (o, "status");
    wf->ready = is_true_in (o, "ready");
    if (wf->status == DWS_STATUS_ERROR && !wf->ready
        && dws_drivers_recovered (drivers, state))
        wf->status = DWS_STATUS_DRIVERWAIT;
    /* In Proposal all that is in the objects comes from the directives. Later it is
     * also ours, or read from what changes, and may be put right. */
    if (wf->state == DWS_STATE_PROPOSAL && !wf->ready
        && dws_drivers_refused (drivers, state))
        wf->status = DWS_STATUS_ERROR;
    wf->trouble = wf->status == DWS_STATUS_TRANSIENT
                  || dws_drivers_trouble (drivers, state);
    wf->outdated = wf->state == DWS_STATE_SETUP
                   && wf->status == DWS_STATUS_ERROR
                   && dws_drivers_outdated (wf->message);
    wf->t_desired = dws_timestamp (text_in (o, "t_desired"));
    wf->t_ready = dws_timestamp (text_in (o, "t_ready"));
}

/* Set the owner of the workflow, and the notes of this module in it.
 */
static void set_marks (struct dws_workflow *wf, json_t *o, const char *instance)
{
    const char *version = text_in (o, "version");
    const char *label = text_in (o, "label");
    const char *maker = text_in (o, "maker");

    wf->version = version ? strtoull (version, NULL, 10) : 0;
    wf->ours = is_text (maker ? maker : label, instance);
    wf->unlabelled = wf->ours && !is_text (label, instance);
    wf->deleting = text_in (o, "deleting") != NULL;
    wf->finalizer = has_finalizer (array_in (o, "finalizers"));
    wf->retry = text_in (o, "retry") != NULL;
    wf->data_first = text_in (o, "first") != NULL;
    read_stamp (wf, text_in (o, "stamp"));
    wf->failed_at = wf->t_failed = seconds_parse (text_in (o, "failed_at"));
}

/* Does neither label nor annotation name the instance that made the workflow?
 */
static bool is_stray (json_t *o)
{
    return !text_in (o, "label") && !text_in (o, "maker")
           && is_text (text_in (o, "wlm"), "flux");
}

/* A new record with its texts. 'env' and 'refs' may be NULL.
 */
static struct dws_workflow *create_with (json_t *o, json_t *drivers,
                                         const char *env, const char *refs)
{
    const char *state = or_else (text_in (o, "state"), "");
    const char *namespace = or_else (text_in (o, "namespace"), DWS_NAMESPACE);
    const char *token = text_in (o, "token");
    char buf[DWS_DRIVERS_TEXT_SIZE];
    char rabbit[DWS_RABBIT_SIZE];
    const struct copied copied[] = {
        COPIED (name, text_in (o, "name")),
        COPIED (namespace, namespace),
        COPIED (uid, text_in (o, "uid")),
        COPIED (message, dws_drivers_text (drivers, state,
                                           text_in (o, "message"), buf)),
        COPIED (silent, dws_drivers_silent (drivers, state, rabbit)),
        COPIED (elapsed, text_in (o, "elapsed")),
        COPIED (computes, text_in (o, "computes")),
        COPIED (computes_namespace,
                or_else (text_in (o, "computes_namespace"), namespace)),
        COPIED (failed, text_in (o, "failed")),
        COPIED (waived, text_in (o, "waived")),
        COPIED (token, token),
        COPIED (token_namespace,
                or_else (text_in (o, "token_namespace"),
                         token ? namespace : NULL)),
        COPIED (env, env),
        COPIED (breakdown_refs, refs),
        COPIED (noted, is_stray (o) ? text_in (o, "noted") : NULL),
    };

    return create (copied, COUNT (copied));
}

struct dws_workflow *dws_workflow_decode (json_t *o, const char *instance,
                                          dws_error_t *error)
{
    const char *name = or_else (text_in (o, "name"), "");
    uint64_t jobid = dws_workflow_jobid (name);
    json_t *drivers = array_in (o, "drivers");
    json_t *refs = array_in (o, "breakdowns");
    json_t *env = json_object_get (o, "env");
    json_t *userid = json_object_get (o, "userid");
    struct dws_workflow *wf = NULL;
    char *env_text = NULL;
    char *refs_text = NULL;

    if (jobid == 0) {
        dws_error (error, EINVAL, "'%s' is no workflow of a Flux job", name);
        return NULL;
    }
    if (dws_jsontext_set (&env_text, json_is_object (env) ? env : NULL) < 0
        || dws_jsontext_set (&refs_text, refs) < 0
        || !(wf = create_with (o, drivers, env_text, refs_text))) {
        dws_error_nomem (error);
        goto done;
    }
    wf->jobid = jobid;
    wf->stray = is_stray (o);
    wf->userid = json_is_integer (userid) ? json_integer_value (userid) : -1;
    wf->force_ready = is_true_in (o, "force_ready");
    wf->breakdown_count = json_array_size (refs);
    set_marks (wf, o, instance);
    set_status (wf, o, drivers);
    if (read_directives (wf, array_in (o, "directives")) < 0) {
        dws_error_nomem (error);
        dws_workflow_destroy (wf);
        wf = NULL;
    }
done:
    ERRNO_SAFE (free (env_text));
    ERRNO_SAFE (free (refs_text));
    return wf;
}
