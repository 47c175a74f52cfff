/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See sweeps.h.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libdws/directive/command.h"
#include "libutil/errno_safe.h"
#include "libutil/names.h"
#include "libutil/safelog.h"
#include "facts/sweeps.h"

/* The uid of the file system follows.
 */
#define NAME_PREFIX "fluxexpiry-"

struct sweeps {
    struct dws_ctx *ctx;
    json_t *workflows;          // name -> {"fs", "version", "desired", "ready",
                                //  "failed", "userid", "deleting", "message",
                                //  "labelled", "seen", "doubted"?}
    int destroyed;
};

struct sweeps *sweeps_create (struct dws_ctx *ctx)
{
    struct sweeps *sweeps;

    if (!(sweeps = calloc (1, sizeof (*sweeps))))
        return NULL;
    sweeps->ctx = ctx;
    if (!(sweeps->workflows = json_object ())) {
        sweeps_destroy (sweeps);
        return NULL;
    }
    return sweeps;
}

void sweeps_destroy (struct sweeps *sweeps)
{
    if (sweeps) {
        ERRNO_SAFE_BLOCK;
        json_decref (sweeps->workflows);
        free (sweeps);
    }
}

const char *sweeps_name (const char *uid, char buf[DWS_NAME_SIZE])
{
    snprintf (buf, DWS_NAME_SIZE, NAME_PREFIX "%s", uid);
    return buf;
}

static const char *text_of (json_t *o, const char *key)
{
    const char *s = json_string_value (json_object_get (o, key));

    return s ? s : "";
}

/* Does the label, or the annotation that it was made with, say that it is of this
 * instance?
 */
static bool has_our (const struct sweeps *sweeps, json_t *o, const char *which)
{
    return !strcmp (text_of (o, which), sweeps->ctx->instance);
}

/* No two file systems have the same uid, so a name that is known is ours.
 */
static bool is_one (const struct sweeps *sweeps, json_t *o)
{
    const char *name = text_of (o, "name");

    return !strncmp (name, NAME_PREFIX, strlen (NAME_PREFIX))
        && (has_our (sweeps, o, "label") || has_our (sweeps, o, "maker")
            || json_object_get (sweeps->workflows, name));
}

static json_t *decode_workflow (const struct sweeps *sweeps, json_t *o)
{
    const char *desired = text_of (o, "desired");
    bool arrived = !strcmp (desired, text_of (o, "state"));
    struct dws_directives *directives
        = dws_directives_read (json_object_get (o, "directives"));
    const char *fs = directives ? dws_command_persistent (directives, 0) : NULL;
    json_int_t userid = -1;
    json_t *result;

    (void)json_unpack (o, "{s:I}", "userid", &userid);
    result = json_pack ("{s:s s:I s:i s:b s:b s:I s:b s:s s:b s:b}",
                        "fs", fs ? fs : "",
                        "version", (json_int_t)strtoll (text_of (o, "version"),
                                                        NULL, 10),
                        "desired", dws_state_parse (desired, strlen (desired)),
                        "ready", arrived
                            && json_is_true (json_object_get (o, "ready")),
                        "failed", arrived
                            && !strcmp (text_of (o, "status"), "Error"),
                        "userid", userid,
                        "deleting", *text_of (o, "deleting") != '\0',
                        "message", text_of (o, "message"),
                        "labelled", has_our (sweeps, o, "label"),
                        "seen", 1);
    dws_directives_destroy (directives);
    return result;
}

static json_int_t version_of (json_t *wf)
{
    return json_integer_value (json_object_get (wf, "version"));
}

static void read_workflow (json_t *wf, struct dws_lease *lease)
{
    int desired = 0;
    int ready = 0;
    int failed = 0;
    int deleting = 0;
    int labelled = 1;
    int doubted = 0;

    lease->has_workflow = wf != NULL;
    (void)json_unpack (wf, "{s:i s:b s:b s:b s:b s?b}", "desired", &desired,
                       "ready", &ready, "failed", &failed,
                       "deleting", &deleting, "labelled", &labelled,
                       "doubted", &doubted);
    lease->desired = desired;
    lease->ready = ready;
    lease->failed = failed;
    lease->deleting = deleting;
    lease->unlabelled = !labelled;
    lease->doubted = doubted;
}

static bool is_ready (json_t *wf)
{
    return json_is_true (json_object_get (wf, "ready"));
}

static bool is_torn_down (json_t *wf)
{
    struct dws_lease lease;

    read_workflow (wf, &lease);
    return lease.has_workflow && lease.desired == DWS_STATE_TEARDOWN;
}

static bool has_done (json_t *wf)
{
    return is_torn_down (wf) && is_ready (wf);
}

/* Report a file system as destroyed when its workflow completes. A workflow that is
 * already being deleted when first seen was reported by the previous module.
 */
static void note_end (struct sweeps *sweeps, json_t *before, json_t *wf)
{
    const char *fs = json_string_value (json_object_get (wf, "fs"));
    json_t *userid = json_object_get (wf, "userid");

    if (!has_done (wf) || has_done (before)
        || (!before && json_is_true (json_object_get (wf, "deleting"))))
        return;
    sweeps->destroyed++;
    safe_log (sweeps->ctx->h, LOG_NOTICE, "persistent file system '%s' has "
              "expired and is destroyed", fs);
    sweeps->ctx->events->file_system_destroyed (sweeps->ctx, fs,
                                                json_integer_value (userid));
}

static void doubt (json_t *wf)
{
    json_object_set_new (wf, "doubted", json_true ());
}

/* Takes over 'wf'.
 */
static void update (struct sweeps *sweeps, const char *name, json_t *wf,
                    bool deleted)
{
    json_t *before = json_object_get (sweeps->workflows, name);

    if (deleted) {
        doubt (before);
        json_decref (wf);
    }
    else if (before && version_of (before) > version_of (wf)) {
        json_object_set_new (before, "seen", json_true ());
        json_decref (wf);
        return;
    }
    else {
        note_end (sweeps, before, wf);
        json_object_set_new (sweeps->workflows, name, wf);
    }
    sweeps->ctx->events->leases_changed (sweeps->ctx);
}

bool sweeps_learn (struct sweeps *sweeps, json_t *o, bool deleted)
{
    bool found = is_one (sweeps, o);
    json_t *wf;

    if (found && (wf = decode_workflow (sweeps, o)))
        update (sweeps, text_of (o, "name"), wf, deleted);
    return found;
}

void sweeps_agent_lost (struct sweeps *sweeps)
{
    const char *name;
    json_t *wf;

    json_object_foreach (sweeps->workflows, name, wf)
        json_object_set_new (wf, "version", json_integer (0));
}

void sweeps_unsee (struct sweeps *sweeps)
{
    const char *name;
    json_t *wf;

    json_object_foreach (sweeps->workflows, name, wf)
        json_object_set_new (wf, "seen", json_false ());
}

void sweeps_doubt_unseen (struct sweeps *sweeps)
{
    const char *name;
    json_t *wf;

    json_object_foreach (sweeps->workflows, name, wf) {
        if (!json_is_true (json_object_get (wf, "seen")))
            doubt (wf);
    }
    sweeps->ctx->events->leases_changed (sweeps->ctx);
}

void sweeps_deleting (struct sweeps *sweeps, const char *name)
{
    json_t *wf = json_object_get (sweeps->workflows, name);

    if (wf)
        json_object_set_new (wf, "deleting", json_true ());
}

void sweeps_forget (struct sweeps *sweeps, const char *name)
{
    json_object_del (sweeps->workflows, name);
    sweeps->ctx->events->leases_changed (sweeps->ctx);
}

void sweeps_read (const struct sweeps *sweeps, const char *name,
                  struct dws_lease *lease)
{
    read_workflow (json_object_get (sweeps->workflows, name), lease);
}

const char *sweeps_message (const struct sweeps *sweeps, const char *name)
{
    const char *message = "";

    (void)json_unpack (json_object_get (sweeps->workflows, name), "{s:s}",
                       "message", &message);
    return message;
}

void sweeps_each (const struct sweeps *sweeps, sweeps_f visit, void *arg)
{
    const char *name;
    json_t *wf;

    json_object_foreach (sweeps->workflows, name, wf)
        visit (name, json_string_value (json_object_get (wf, "fs")), arg);
}

size_t sweeps_count (const struct sweeps *sweeps)
{
    return json_object_size (sweeps->workflows);
}

int sweeps_destroyed (const struct sweeps *sweeps)
{
    return sweeps->destroyed;
}
