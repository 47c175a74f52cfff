/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See workflow.h. Kubernetes objects are decoded with tolerance.
 */

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/errno_safe.h"
#include "libdws/directive/command.h"
#include "libdws/util/hosts.h"
#include "libdws/util/jsontext.h"
#include "libdws/util/timestamp.h"
#include "drivers.h"
#include "workflow.h"

#define NAME_PREFIX "fluxjob-"
#define SUFFIX_LENGTH 8

/* The errors that pass have been seen to last up to 0.2 s.
 */
#define PASSING 5.

static const char *state_names[] = {
    [DWS_STATE_NONE] = "",
    [DWS_STATE_PROPOSAL] = "Proposal",
    [DWS_STATE_SETUP] = "Setup",
    [DWS_STATE_DATAIN] = "DataIn",
    [DWS_STATE_PRERUN] = "PreRun",
    [DWS_STATE_POSTRUN] = "PostRun",
    [DWS_STATE_DATAOUT] = "DataOut",
    [DWS_STATE_TEARDOWN] = "Teardown",
};

static const char *status_names[] = {
    [DWS_STATUS_NONE] = "",
    [DWS_STATUS_DRIVERWAIT] = "DriverWait",
    [DWS_STATUS_TRANSIENT] = "TransientCondition",
    [DWS_STATUS_COMPLETED] = "Completed",
    [DWS_STATUS_ERROR] = "Error",
};

#define COUNT(a) (sizeof (a) / sizeof ((a)[0]))

static int name_index (const char *const names[], size_t count, const char *s)
{
    for (size_t i = 0; s && i < count; i++) {
        if (!strcmp (names[i], s))
            return i;
    }
    return -1;
}

const char *dws_state_name (enum dws_state state)
{
    return (size_t)state < COUNT (state_names) ? state_names[state] : "";
}

const char *dws_status_name (enum dws_status status)
{
    return (size_t)status < COUNT (status_names) ? status_names[status] : "";
}

static enum dws_state state_parse (const char *s)
{
    int i = name_index (state_names, COUNT (state_names), s);

    return i < 0 ? DWS_STATE_NONE : (enum dws_state)i;
}

const char *dws_workflow_name (uint64_t jobid, const char *instance,
                               char buf[DWS_NAME_SIZE])
{
    snprintf (buf, DWS_NAME_SIZE, NAME_PREFIX "%" PRIu64 "%s%.*s", jobid,
              instance ? "-" : "", SUFFIX_LENGTH, instance ? instance : "");
    return buf;
}

uint64_t dws_workflow_jobid (const char *name)
{
    const char *digits = name + strlen (NAME_PREFIX);
    char buf[DWS_NAME_SIZE];
    char *suffix;
    uint64_t id;

    if (strncmp (name, NAME_PREFIX, strlen (NAME_PREFIX)) != 0)
        return 0;
    id = strtoull (digits, &suffix, 10);
    if (*suffix == '-') {
        suffix++;
        /* The index in the name of a breakdown is shorter. */
        if (strspn (suffix, "0123456789abcdef") != SUFFIX_LENGTH)
            return 0;
    }
    else
        suffix = NULL;
    /* Only the one spelling: no sign, no leading zero, no overflow. */
    if (strcmp (dws_workflow_name (id, suffix, buf), name) != 0)
        return 0;
    return id;
}

void dws_workflow_destroy (struct dws_workflow *wf)
{
    if (wf) {
        ERRNO_SAFE_BLOCK;
        free (wf->name);
        free (wf->namespace);
        free (wf->uid);
        free (wf->message);
        free (wf->silent);
        free (wf->elapsed);
        free (wf->computes);
        free (wf->computes_namespace);
        free (wf->failed);
        free (wf->waived);
        free (wf->places);
        free (wf->lagging);
        free (wf->allocated);
        free (wf->env);
        free (wf->token);
        free (wf->token_namespace);
        free (wf->breakdown_refs);
        free (wf->breakdowns);
        free (wf);
    }
}

/* The halves of the object. All that is taken from them may be anything.
 */
struct object {
    json_t *metadata;
    json_t *annotations;
    json_t *spec;
    json_t *status;
};

static struct object halves (json_t *o)
{
    json_t *metadata = json_object_get (o, "metadata");

    return (struct object){
        .metadata = metadata,
        .annotations = json_object_get (metadata, "annotations"),
        .spec = json_object_get (o, "spec"),
        .status = json_object_get (o, "status"),
    };
}

static const char *get_string (json_t *o, const char *key)
{
    return json_string_value (json_object_get (o, key));
}

static bool get_bool (json_t *o, const char *key)
{
    return json_is_true (json_object_get (o, key));
}

static bool has_finalizer (json_t *metadata)
{
    json_t *list = json_object_get (metadata, "finalizers");
    json_t *entry;
    size_t index;

    json_array_foreach (list, index, entry) {
        const char *s = json_string_value (entry);
        if (s && !strcmp (s, DWS_FINALIZER))
            return true;
    }
    return false;
}

/* strdup() where NULL is a value. Returns false only if out of memory.
 */
static bool copy_string (char **dst, const char *src)
{
    *dst = NULL;
    return !src || (*dst = strdup (src)) != NULL;
}

static bool copy_strings (struct dws_workflow *wf,
                          const char *name,
                          const char *namespace,
                          const struct object *o)
{
    json_t *computes = json_object_get (o->status, "computes");
    json_t *secret = json_object_get (o->status, "workflowToken");
    const char *cns = get_string (computes, "namespace");
    const char *token = get_string (secret, "secretName");
    const char *tns = get_string (secret, "secretNamespace");
    char rabbit[DWS_RABBIT_SIZE];

    return copy_string (&wf->name, name)
        && copy_string (&wf->namespace, namespace)
        && copy_string (&wf->uid, get_string (o->metadata, "uid"))
        && (wf->message = dws_drivers_text (o->status))
        && copy_string (&wf->silent, dws_drivers_silent (o->status, rabbit))
        && copy_string (&wf->elapsed, get_string (o->status,
                                                  "elapsedTimeLastState"))
        && copy_string (&wf->computes, get_string (computes, "name"))
        && copy_string (&wf->computes_namespace, cns ? cns : namespace)
        && copy_string (&wf->failed, get_string (o->annotations,
                                                 DWS_FAILED_ANNOTATION))
        && copy_string (&wf->waived, get_string (o->annotations,
                                                 DWS_WAIVED_ANNOTATION))
        && copy_string (&wf->token, token)
        && (!token
            || copy_string (&wf->token_namespace, tns ? tns : namespace))
        && dws_jsontext_set (&wf->env, json_object_get (o->status, "env")) == 0
        && dws_jsontext_set (&wf->breakdown_refs,
                             json_object_get (o->status,
                                              "directiveBreakdowns")) == 0;
}

/* What cannot be read is no stamp.
 */
static void read_stamp (struct dws_workflow *wf, const char *stamp)
{
    char state[16];
    double when;

    if (stamp && sscanf (stamp, "%15s %lf", state, &when) == 2
        && isfinite (when) && when > 0.) {
        wf->stamp_state = state_parse (state);
        wf->t_stamp = when;
    }
}

/* The time at which its stage-out has failed, as dws.so has noted it.
 */
static void read_failed (struct dws_workflow *wf, const char *s)
{
    double when;

    if (s && sscanf (s, "%lf", &when) == 1 && isfinite (when) && when > 0.)
        wf->t_failed = when;
}

const char *dws_workflow_stamp (const struct dws_workflow *wf,
                                char buf[DWS_STAMP_SIZE])
{
    snprintf (buf, DWS_STAMP_SIZE, "%s %.3f", dws_state_name (wf->state),
              wf->t_transient);
    return buf;
}

bool dws_workflow_is_stamped (const struct dws_workflow *wf)
{
    return wf->stamp_state == wf->state
        && fabs (wf->t_stamp - wf->t_transient) < 0.01;
}

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

struct dws_workflow *dws_workflow_decode (json_t *object,
                                          const char *instance,
                                          dws_error_t *error)
{
    const struct object o = halves (object);
    struct dws_workflow *wf;
    const char *name = get_string (o.metadata, "name");
    const char *namespace = get_string (o.metadata, "namespace");
    const char *version = get_string (o.metadata, "resourceVersion");
    const char *label = get_string (json_object_get (o.metadata, "labels"),
                                    DWS_INSTANCE_LABEL);
    const char *wlm = get_string (o.spec, "wlmID");
    json_t *directives = json_object_get (o.spec, "dwDirectives");
    json_t *userid = json_object_get (o.spec, "userID");
    unsigned int commands;
    uint64_t jobid;
    int index;

    if (!name || (jobid = dws_workflow_jobid (name)) == 0) {
        dws_error (error, EINVAL, "'%s' is no workflow of a Flux job",
                   name ? name : "");
        return NULL;
    }
    if (!(wf = calloc (1, sizeof (*wf)))
        || !copy_strings (wf, name, namespace ? namespace : DWS_NAMESPACE,
                          &o)) {
        dws_workflow_destroy (wf);
        dws_error (error, ENOMEM, "out of memory");
        return NULL;
    }
    wf->jobid = jobid;
    wf->version = version ? strtoull (version, NULL, 10) : 0;
    wf->ours = instance && label && !strcmp (instance, label);
    wf->stray = !label && wlm && !strcmp (wlm, "flux");
    wf->deleting = get_string (o.metadata, "deletionTimestamp") != NULL;
    wf->finalizer = has_finalizer (o.metadata);
    wf->desired = state_parse (get_string (o.spec, "desiredState"));
    wf->state = state_parse (get_string (o.status, "state"));
    index = name_index (status_names, COUNT (status_names),
                        get_string (o.status, "status"));
    wf->status = index < 0 ? DWS_STATUS_NONE : (enum dws_status)index;
    wf->trouble = wf->status == DWS_STATUS_TRANSIENT
                  || dws_drivers_trouble (o.status);
    wf->ready = get_bool (o.status, "ready");
    wf->force_ready = get_bool (o.spec, "forceReady");
    wf->userid = json_is_integer (userid) ? json_integer_value (userid) : -1;
    wf->directives_hash = dws_commands_hash (directives);
    commands = dws_commands (directives);
    wf->destroys = (commands & DWS_COMMAND_DESTROY_PERSISTENT) != 0;
    wf->containers = (commands & DWS_COMMAND_CONTAINER) != 0;
    wf->mounts = count_mounted (directives);
    wf->moves = wf->containers || (commands & DWS_COMMAND_COPY_OUT)
                || has_requires (directives);
    wf->t_desired = dws_timestamp (get_string (o.status,
                                               "desiredStateChange"));
    read_stamp (wf, get_string (o.annotations, DWS_TRANSIENT_ANNOTATION));
    read_failed (wf, get_string (o.annotations,
                                 DWS_STAGE_OUT_FAILED_ANNOTATION));
    wf->retry = get_string (o.annotations,
                            DWS_STAGE_OUT_RETRY_ANNOTATION) != NULL;
    wf->first = get_string (o.annotations, DWS_DATA_FIRST_ANNOTATION) != NULL;
    wf->t_ready = dws_timestamp (get_string (o.status, "readyChange"));
    wf->breakdown_count = json_array_size (json_object_get (o.status,
                                                  "directiveBreakdowns"));
    return wf;
}

static void inherit_lag (struct dws_workflow *wf, struct dws_workflow *old)
{
    wf->lag_state = old->lag_state;
    wf->lag_missing = old->lag_missing;
    wf->t_lag = old->t_lag;
    wf->unmount = old->unmount;
    wf->places = old->places;
    old->places = NULL;
    wf->lagging = old->lagging;
    old->lagging = NULL;
    wf->lagging_count = old->lagging_count;
    wf->shared = old->shared;
    wf->told = old->told;
    wf->excluded = old->excluded;
    wf->drained = old->drained;
}

int dws_workflow_set_lagging (struct dws_workflow *wf,
                              const char *hosts,
                              bool shared,
                              dws_error_t *error)
{
    char *lagging;
    bool same;

    if (!(lagging = dws_hosts_join (hosts, wf->failed, error)))
        return -1;
    same = wf->lag_state == wf->state && wf->lagging
           && !strcmp (wf->lagging, lagging);
    free (wf->lagging);
    wf->lagging = lagging;
    /* The text names hosts that have failed before, but they alone keep the
     * workflow waiting for nothing. */
    wf->lagging_count = *hosts ? dws_hosts_count (lagging) : 0;
    wf->shared = shared;
    wf->lag_state = wf->state;
    if (!same) {
        wf->told = false;
        wf->excluded = false;
        wf->drained = false;
    }
    return 0;
}

void dws_workflow_set_progress (struct dws_workflow *wf,
                                int progress,
                                double bytes,
                                double now)
{
    /* What was read first has nothing to be compared with: it advances. */
    wf->advancing = progress >= 0
        && (wf->t_progress <= 0. || progress > wf->progress
            || bytes > wf->moved);
    wf->progress = progress;
    wf->moved = bytes;
    wf->t_progress = now;
}

bool dws_workflow_troubled (const struct dws_workflow *wf, double now)
{
    return wf->status == DWS_STATUS_ERROR
        || (wf->t_trouble > 0. && now - wf->t_trouble >= PASSING);
}

void dws_workflow_inherit (struct dws_workflow *wf,
                           struct dws_workflow *old,
                           double now)
{
    bool same = old && old->uid && wf->uid && !strcmp (old->uid, wf->uid);

    if (same) {
        /* Only where storage is chosen, and large. */
        if (old->breakdown_count == wf->breakdown_count
            && wf->desired <= DWS_STATE_PROPOSAL) {
            wf->breakdowns = old->breakdowns;
            old->breakdowns = NULL;
        }
        wf->made = old->made;
        wf->servers_written = old->servers_written;
        wf->computes_written = old->computes_written;
        wf->movements = old->movements;
        if (!strcmp (wf->message, old->message)) {
            wf->recorded = old->recorded;
            wf->recording = old->recording;
        }
        wf->allocated = old->allocated;
        old->allocated = NULL;
        wf->disabled = old->disabled;
        wf->kept = old->kept;
        wf->given = old->given;
        if (old->lag_state == wf->state)
            inherit_lag (wf, old);
        if (old->state == wf->state && old->desired == wf->desired) {
            wf->t_computes = old->t_computes;
            wf->t_progress = old->t_progress;
            wf->progress = old->progress;
            wf->moved = old->moved;
            wf->advancing = old->advancing;
        }
    }
    if (wf->status == DWS_STATUS_TRANSIENT) {
        if (same && old->state == wf->state && old->t_transient > 0.)
            wf->t_transient = old->t_transient;
        else if (!old && wf->stamp_state == wf->state && wf->t_stamp > 0.
                 && wf->t_stamp < now)
            wf->t_transient = wf->t_stamp;
        else
            wf->t_transient = now;
    }
    if (wf->trouble) {
        if (same && old->state == wf->state && old->t_trouble > 0.)
            wf->t_trouble = old->t_trouble;
        else
            wf->t_trouble = now;
    }
    /* desiredStateChange is that of the state before until DWS acts. */
    if (wf->state != wf->desired) {
        if (same && old->state != old->desired && old->desired == wf->desired)
            wf->t_desired = old->t_desired;
        else
            wf->t_desired = now;
    }
}
