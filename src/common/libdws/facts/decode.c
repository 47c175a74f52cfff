/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * From the text of a Workflow object to the record: see workflow.h. A workflow is
 * reported thirty times in the life of its job, so no values are made in between, and
 * the record is one piece of memory with its texts.
 */

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libdws/directive/command.h"
#include "libdws/util/jsonexcerpt.h"
#include "libdws/util/jsonparse.h"
#include "libdws/util/timestamp.h"
#include "libutil/errno_safe.h"
#include "drivers.h"
#include "workflow_private.h"

const struct workflow_text workflow_unread = { .userid = -1 };

/* What is read of an object
 */

#define MEMBER(NAME, TYPE, FIELD) \
    { .key = NAME, .type = DWS_PICK_##TYPE, \
      .offset = offsetof (struct workflow_text, FIELD) }
#define STRING(NAME, FIELD) MEMBER (NAME, STRING, FIELD)
#define INSIDE(NAME, MEMBERS) { .key = NAME, .members = MEMBERS }

static const struct dws_member labels[] = {
    STRING (DWS_INSTANCE_LABEL, instance),
    { 0 },
};

static const struct dws_member annotations[] = {
    STRING (DWS_INSTANCE_LABEL, maker),
    STRING (DWS_FAILED_ANNOTATION, failed),
    STRING (DWS_WAIVED_ANNOTATION, waived),
    STRING (DWS_TRANSIENT_ANNOTATION, stamp),
    STRING (DWS_STAGE_OUT_FAILED_ANNOTATION, stage_out_failed),
    STRING (DWS_STAGE_OUT_RETRY_ANNOTATION, stage_out_retry),
    STRING (DWS_DATA_FIRST_ANNOTATION, data_first),
    { 0 },
};

static const struct dws_member metadata[] = {
    STRING ("name", name),
    STRING ("namespace", namespace),
    STRING ("uid", uid),
    STRING ("resourceVersion", version),
    STRING ("deletionTimestamp", deleted),
    MEMBER ("finalizers", VALUE, finalizers),
    INSIDE ("labels", labels),
    INSIDE ("annotations", annotations),
    { 0 },
};

static const struct dws_member spec[] = {
    STRING ("desiredState", desired),
    STRING ("jobID", jobid),
    STRING ("wlmID", wlm),
    MEMBER ("dwDirectives", VALUE, directives),
    MEMBER ("forceReady", TRUE, force_ready),
    MEMBER ("userID", INTEGER, userid),
    { 0 },
};

static const struct dws_member computes[] = {
    STRING ("name", computes),
    STRING ("namespace", computes_namespace),
    { 0 },
};

static const struct dws_member token[] = {
    STRING ("secretName", token),
    STRING ("secretNamespace", token_namespace),
    { 0 },
};

/* Drivers
 */

struct driver {
    struct dws_text status;
    struct dws_text error;
    struct dws_text message;
};

#define DRIVER(NAME, FIELD) \
    { .key = NAME, .type = DWS_PICK_STRING, \
      .offset = offsetof (struct driver, FIELD) }

static const struct dws_member driver[] = {
    DRIVER ("status", status),
    DRIVER ("error", error),
    DRIVER ("message", message),
    { 0 },
};

/* Drivers have an entry for each state, and most of them say nothing (drivers.c).
 */
static bool says_something (const struct driver *driver)
{
    return driver->error.len > 0 || driver->message.len > 0
        || dws_text_is (driver->status, "Error")
        || dws_text_is (driver->status, "TransientCondition");
}

static int read_driver (struct dws_text *text, void *to, json_t **decoded)
{
    json_t **said = to;
    struct driver d = { .status.s = NULL };
    const char *s = text->s;
    json_t *entry;

    if (dws_text_pick (text, driver, &d, decoded) < 0)
        return -1;
    if (!says_something (&d))
        return 0;
    if (!(entry = dws_json_parse (s, text->s - s)))
        return -1;
    if (!*said && dws_text_keep (*said = json_array (), decoded) < 0)
        *said = NULL;
    if (json_array_append_new (*said, entry) < 0) {
        errno = ENOMEM;
        return -1;
    }
    return 0;
}

static const struct dws_member status[] = {
    STRING ("state", state),
    STRING ("status", status),
    STRING ("message", message),
    STRING ("desiredStateChange", desired_change),
    STRING ("readyChange", ready_change),
    STRING ("elapsedTimeLastState", elapsed),
    MEMBER ("ready", TRUE, ready),
    { .key = "drivers", .each = read_driver,
      .offset = offsetof (struct workflow_text, drivers) },
    MEMBER ("directiveBreakdowns", VALUE, breakdowns),
    MEMBER ("env", VALUE, env),
    INSIDE ("computes", computes),
    INSIDE ("workflowToken", token),
    { 0 },
};

const struct dws_member workflow_members[] = {
    INSIDE ("metadata", metadata),
    INSIDE ("spec", spec),
    INSIDE ("status", status),
    { 0 },
};

/* Arrays of it
 */

static bool is_array (struct dws_text text)
{
    return text.s && *text.s == '[';
}

/* Returns 1 if ours is there, 0 if not, or -1.
 */
static int find_finalizer (struct dws_text list, json_t **decoded)
{
    struct dws_text entry;
    struct dws_text name;
    size_t at = 0;
    int found = 0;
    int rc = 0;

    while (is_array (list)
           && (rc = dws_text_next (list, &at, NULL, &entry)) > 0) {
        if ((rc = dws_text_string (entry, &name, decoded)) < 0)
            return -1;
        if (rc > 0 && dws_text_is (name, DWS_FINALIZER))
            found = 1;
    }
    return rc < 0 ? -1 : found;
}

static size_t count_entries (struct dws_text list)
{
    struct dws_text entry;
    size_t at = 0;
    size_t count = 0;

    while (is_array (list) && dws_text_next (list, &at, NULL, &entry) > 0)
        count++;
    return count;
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

static int read_directives (struct dws_workflow *wf, struct dws_text text)
{
    json_t *directives = NULL;
    unsigned int commands;

    if (text.s && !(directives = dws_json_parse (text.s, text.len)))
        return -1;
    commands = dws_commands (directives);
    wf->directives_hash = dws_commands_hash (directives);
    wf->destroys = (commands & DWS_COMMAND_DESTROY_PERSISTENT) != 0;
    wf->containers = (commands & DWS_COMMAND_CONTAINER) != 0;
    wf->mounts = count_mounted (directives);
    wf->moves = wf->containers || (commands & DWS_COMMAND_COPY_OUT)
                || has_requires (directives);
    json_decref (directives);
    return 0;
}

/* Scalars
 */

static enum dws_state state_parse (struct dws_text text)
{
    for (int i = DWS_STATE_PROPOSAL; i <= DWS_STATE_TEARDOWN; i++) {
        if (dws_text_is (text, dws_state_name (i)))
            return i;
    }
    return DWS_STATE_NONE;
}

static enum dws_status status_parse (struct dws_text text)
{
    for (int i = DWS_STATUS_DRIVERWAIT; i <= DWS_STATUS_ERROR; i++) {
        if (dws_text_is (text, dws_status_name (i)))
            return i;
    }
    return DWS_STATUS_NONE;
}

/* A copy in 'buf', "" if there is none or it is too long.
 */
static const char *copy_short (struct dws_text text, char *buf, size_t size)
{
    size_t len = text.len < size ? text.len : 0;

    if (len > 0)
        memcpy (buf, text.s, len);
    buf[len] = '\0';
    return buf;
}

static double time_parse (struct dws_text text)
{
    char buf[64];

    return dws_timestamp (copy_short (text, buf, sizeof (buf)));
}

static uint64_t number_parse (struct dws_text text)
{
    char buf[32];

    return strtoull (copy_short (text, buf, sizeof (buf)), NULL, 10);
}

/* Seconds since the epoch as dws.so has noted them, 0 if that is none.
 */
static double seconds_parse (const char *s)
{
    char *end;
    double when = strtod (s, &end);

    return end > s && isfinite (when) && when > 0. ? when : 0.;
}

static double read_seconds (struct dws_text text)
{
    char buf[64];

    return seconds_parse (copy_short (text, buf, sizeof (buf)));
}

/* What cannot be read is no stamp.
 */
static void read_stamp (struct dws_workflow *wf, struct dws_text stamp)
{
    char buf[DWS_STAMP_SIZE];
    const char *s = copy_short (stamp, buf, sizeof (buf));
    size_t len = strcspn (s, " ");
    double when = seconds_parse (s + len);

    if (when > 0.) {
        wf->stamp_state = state_parse ((struct dws_text){ s, len });
        wf->stamped = wf->t_stamp = when;
    }
}

/* The record
 */

/* A text of the record, and where it is to be.
 */
struct copied {
    size_t offset;
    struct dws_text text;
};

#define COPIED(FIELD, TEXT) { offsetof (struct dws_workflow, FIELD), TEXT }
#define COUNT(a) (sizeof (a) / sizeof ((a)[0]))

static struct dws_text or_else (struct dws_text text, const char *other)
{
    return text.s ? text : dws_text (other);
}

/* A new record, with the texts behind it and room for as much more.
 */
static struct dws_workflow *create (const struct copied *copied, size_t count,
                                    size_t more, char **rest)
{
    struct dws_workflow *wf;
    size_t size = more;
    char *to;

    for (size_t i = 0; i < count; i++)
        size += copied[i].text.len + 1;
    if (!(wf = calloc (1, sizeof (*wf) + size)))
        return NULL;
    to = (char *)(wf + 1);
    for (size_t i = 0; i < count; i++) {
        struct dws_text text = copied[i].text;

        if (!text.s)
            continue;
        *(char **)((char *)wf + copied[i].offset) = to;
        memcpy (to, text.s, text.len);
        to += text.len + 1;
    }
    *rest = to;
    return wf;
}

/* Of the references only what is needed to read the breakdowns.
 */
static int copy_breakdowns (struct dws_workflow *wf, struct dws_text text,
                            char *to)
{
    static const struct dws_part parts[] = {
        { .key = "name" },
        { .key = "namespace" },
        { 0 },
    };
    struct dws_excerpt excerpt = { .buf = to };

    if (!text.s)
        return 0;
    if (dws_text_excerpt (text, parts, &excerpt) < 0)
        return -1;
    to[excerpt.len] = '\0';
    wf->breakdown_refs = to;
    wf->breakdown_count = count_entries (dws_text (to));
    return 0;
}

static struct dws_workflow *create_with (const struct workflow_text *text,
                                         const char *instance)
{
    json_t *drivers = text->drivers;
    struct dws_text state = or_else (text->state, "");
    struct dws_text namespace = or_else (text->namespace, DWS_NAMESPACE);
    bool labelled = instance && dws_text_is (text->instance, instance);
    bool stray = !text->instance.s && !text->maker.s
                 && dws_text_is (text->wlm, "flux");
    char buf[DWS_DRIVERS_TEXT_SIZE];
    char rabbit[DWS_RABBIT_SIZE];
    const struct copied copied[] = {
        COPIED (name, text->name),
        COPIED (namespace, namespace),
        COPIED (uid, text->uid),
        COPIED (message, dws_drivers_text (drivers, state, text->message, buf)),
        COPIED (silent, dws_text (dws_drivers_silent (drivers, state, rabbit))),
        COPIED (elapsed, text->elapsed),
        COPIED (computes, text->computes),
        COPIED (computes_namespace,
                text->computes_namespace.s ? text->computes_namespace
                                           : namespace),
        COPIED (failed, text->failed),
        COPIED (waived, text->waived),
        COPIED (token, text->token),
        COPIED (token_namespace,
                !text->token.s || text->token_namespace.s
                ? text->token_namespace : namespace),
        COPIED (env, text->env),
        COPIED (noted, stray ? text->jobid : dws_text (NULL)),
    };
    struct dws_workflow *wf;
    char *rest;

    if (!(wf = create (copied, COUNT (copied), text->breakdowns.len + 1, &rest)))
        return NULL;
    wf->ours = text->maker.s ? instance && dws_text_is (text->maker, instance)
                             : labelled;
    wf->unlabelled = wf->ours && !labelled;
    wf->stray = stray;
    wf->deleting = text->deleted.s != NULL;
    wf->desired = state_parse (text->desired);
    wf->state = state_parse (text->state);
    wf->status = status_parse (text->status);
    if (wf->status == DWS_STATUS_ERROR && !text->ready
        && dws_drivers_recovered (drivers, state))
        wf->status = DWS_STATUS_DRIVERWAIT;
    /* In Proposal all that is in the objects comes from the directives. Later it is
     * also ours, or read from what changes, and may be put right. */
    if (wf->state == DWS_STATE_PROPOSAL && !text->ready
        && dws_drivers_refused (drivers, state))
        wf->status = DWS_STATUS_ERROR;
    wf->trouble = wf->status == DWS_STATUS_TRANSIENT
                  || dws_drivers_trouble (drivers, state);
    wf->outdated = wf->state == DWS_STATE_SETUP
                   && wf->status == DWS_STATUS_ERROR
                   && dws_drivers_outdated (wf->message);
    wf->ready = text->ready;
    wf->force_ready = text->force_ready;
    wf->userid = text->userid;
    wf->t_desired = time_parse (text->desired_change);
    wf->t_ready = time_parse (text->ready_change);
    wf->retry = text->stage_out_retry.s != NULL;
    wf->first = text->data_first.s != NULL;
    read_stamp (wf, text->stamp);
    wf->failed_at = wf->t_failed = read_seconds (text->stage_out_failed);
    if (copy_breakdowns (wf, text->breakdowns, rest) < 0
        || read_directives (wf, text->directives) < 0) {
        dws_workflow_destroy (wf);
        return NULL;
    }
    return wf;
}

struct dws_workflow *workflow_create (const struct workflow_text *text,
                                      const char *instance,
                                      json_t **decoded,
                                      dws_error_t *error)
{
    struct dws_workflow *wf = NULL;
    char name[DWS_NAME_SIZE];
    uint64_t jobid = dws_workflow_jobid (copy_short (text->name, name,
                                                     sizeof (name)));
    int finalizer;

    if (jobid == 0) {
        dws_error (error, EINVAL, "'%.*s' is no workflow of a Flux job",
                   (int)text->name.len, text->name.s ? text->name.s : "");
        return NULL;
    }
    if ((finalizer = find_finalizer (text->finalizers, decoded)) >= 0)
        wf = create_with (text, instance);
    if (!wf) {
        if (errno == ENOMEM)
            dws_error (error, ENOMEM, "out of memory");
        else
            dws_error (error, EPROTO, "workflow %s is malformed", name);
        return NULL;
    }
    wf->jobid = jobid;
    wf->version = number_parse (text->version);
    wf->finalizer = finalizer;
    return wf;
}

struct dws_workflow *dws_workflow_decode (struct dws_text object,
                                          const char *instance,
                                          dws_error_t *error)
{
    struct workflow_text text = workflow_unread;
    struct dws_workflow *wf = NULL;
    json_t *decoded = NULL;

    if (dws_text_pick (&object, workflow_members, &text, &decoded) == 0)
        wf = workflow_create (&text, instance, &decoded, error);
    else if (errno == ENOMEM)
        dws_error (error, ENOMEM, "out of memory");
    else
        dws_error (error, EPROTO, "malformed workflow");
    ERRNO_SAFE (json_decref (decoded));
    return wf;
}
