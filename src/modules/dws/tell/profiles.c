/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See profiles.h. Requests during a read share its result, so users cannot
 * cause more than one read at a time.
 */

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "libdws/util/error.h"
#include "libdws/util/jsonmake.h"
#include "libutil/errno_safe.h"
#include "agent/agent.h"
#include "agent/commands.h"
#include "base/requests.h"
#include "tell/profiles.h"

enum kind {
    STORAGE,
    CONTAINERS,
    KINDS,
};

/* Fields of profiles that concern users. The commands that create storage and
 * the pods are left out, as they can contain secrets.
 */
#define SIZES(type) \
    "data." type ".allocationPadding", \
    "data." type ".capacityScalingFactor", \
    "data." type ".storageLabels"
#define TARGETS(options) \
    "data.lustreStorage." options ".count", \
    "data.lustreStorage." options ".scale", \
    "data.lustreStorage." options ".capacity", \
    "data.lustreStorage." options ".colocateComputes", \
    "data.lustreStorage." options ".storageLabels"

static const char *storage_fields[] = {
    "metadata.name",
    "metadata.namespace",
    "data.default",
    "data.pinned",
    SIZES ("xfsStorage"),
    SIZES ("gfs2Storage"),
    SIZES ("rawStorage"),
    "data.lustreStorage.combinedMgtMdt",
    TARGETS ("mgtOptions"),
    "data.lustreStorage.mgtOptions.externalMgs",
    "data.lustreStorage.mgtOptions.standaloneMgtPoolName",
    TARGETS ("mdtOptions"),
    "data.lustreStorage.mdtOptions.exclusive",
    TARGETS ("mgtMdtOptions"),
    TARGETS ("ostOptions"),
    "data.lustreStorage.ostOptions.capacityScalingFactor",
    NULL,
};

static const char *container_fields[] = {
    "metadata.name",
    "metadata.namespace",
    "data.pinned",
    "data.createContainer",
    "data.retryLimit",
    "data.numPorts",
    "data.preRunTimeoutSeconds",
    "data.postRunTimeoutSeconds",
    "data.userID",
    "data.groupID",
    "data.storages",
    NULL,
};

static const struct {
    const char *name;           // in requests
    const char *plural;
    const char **fields;
} kinds[KINDS] = {
    [STORAGE] = { "storage", "nnfstorageprofiles", storage_fields },
    [CONTAINERS] = { "containers", "nnfcontainerprofiles", container_fields },
};

struct profiles {
    struct dws_ctx *ctx;
    struct flux_msglist *waiting[KINDS];
    bool reading[KINDS];
};

static void refuse_all (struct profiles *profiles, enum kind kind,
                        int errnum, const char *text)
{
    const flux_msg_t *msg;

    while ((msg = flux_msglist_pop (profiles->waiting[kind]))) {
        requests_refuse (profiles->ctx->h, msg, errnum, text);
        flux_msg_decref (msg);
    }
}

/* Leave out pinned profiles, which NNF has copied for single workflows.
 */
static json_t *choose_profiles (json_t *objects)
{
    json_t *chosen = json_array ();
    json_t *object;
    size_t index;

    json_array_foreach (objects, index, object) {
        int pinned = 0;

        (void)json_unpack (object, "{s:{s?b}}", "data", "pinned", &pinned);
        if (!pinned)
            dws_json_append (&chosen, json_incref (object));
    }
    return chosen;
}

static void refuse_unread (struct profiles *profiles, enum kind kind,
                           json_t *report)
{
    const char *message = "";
    int status = 0;
    dws_error_t error;

    (void)json_unpack (report, "{s?i s?s}",
                       "status", &status, "message", &message);
    if (status == 403)
        dws_error (&error, 0, "flux-coral2-dws may not read %s: its user "
                   "lacks the right to list them (%s)",
                   kinds[kind].plural, message);
    else
        dws_error (&error, 0, "%s: %s", kinds[kind].plural, message);
    refuse_all (profiles, kind, agent_result_errno (status), error.text);
}

static void read_cb (struct dws_ctx *ctx, struct job *job,
                     const struct command *cmd, json_t *report)
{
    struct profiles *profiles = ctx->profiles;
    enum kind kind = cmd->index;
    json_t *objects = json_object_get (report, "objects");
    const flux_msg_t *msg;
    json_t *chosen;

    profiles->reading[kind] = false;
    if (!json_is_array (objects)) {
        refuse_unread (profiles, kind, report);
        return;
    }
    if (!(chosen = choose_profiles (objects))) {
        refuse_all (profiles, kind, errno, NULL);
        return;
    }
    while ((msg = flux_msglist_pop (profiles->waiting[kind]))) {
        requests_answer (ctx->h, msg, json_pack ("{s:O}", "profiles", chosen), NULL);
        flux_msg_decref (msg);
    }
    json_decref (chosen);
}

static int read_profiles (struct profiles *profiles, enum kind kind)
{
    if (profiles->reading[kind])
        return 0;
    if (!agent_ready (profiles->ctx->agent)) {
        errno = EAGAIN;
        return -1;
    }
    if (agent_send (profiles->ctx->agent, NULL, read_cb, NULL, kind,
                    command_list_unowned (kinds[kind].plural,
                                          kinds[kind].fields)) < 0)
        return -1;
    profiles->reading[kind] = true;
    return 0;
}

void profiles_agent_lost (struct profiles *profiles)
{
    for (int i = 0; i < KINDS; i++) {
        profiles->reading[i] = false;
        refuse_all (profiles, i, EAGAIN, "the agent has gone: ask again");
    }
}

void profiles_disconnect (struct profiles *profiles, const flux_msg_t *msg)
{
    for (int i = 0; i < KINDS; i++)
        (void)flux_msglist_disconnect (profiles->waiting[i], msg);
}

void profiles_cb (flux_t *h, flux_msg_handler_t *mh,
                  const flux_msg_t *msg, void *arg)
{
    struct dws_ctx *ctx = arg;
    struct profiles *profiles = ctx->profiles;
    const flux_msg_t *kept = NULL;
    dws_error_t error = { "" };
    const char *name;
    int kind = 0;

    if (flux_request_unpack (msg, NULL, "{s:s}", "kind", &name) < 0)
        goto error;
    while (kind < KINDS && strcmp (kinds[kind].name, name) != 0)
        kind++;
    if (kind == KINDS) {
        dws_error (&error, EINVAL, "kind is storage or containers");
        goto error;
    }
    if (!(kept = requests_keep (ctx->requests, msg, REQUESTS_WAITING, &error)))
        goto error;
    if (read_profiles (profiles, kind) < 0) {
        if (errno == EAGAIN)
            dws_error (&error, EAGAIN, "no agent is attached: is "
                       "flux-coral2-dws running?");
        goto error;
    }
    if (flux_msglist_append (profiles->waiting[kind], kept) < 0)
        goto error;
    flux_msg_decref (kept);
    return;
error:
    requests_refuse (h, msg, errno, error.text);
    flux_msg_decref (kept);
}

struct profiles *profiles_create (struct dws_ctx *ctx)
{
    struct profiles *profiles;

    if (!(profiles = calloc (1, sizeof (*profiles))))
        return NULL;
    profiles->ctx = ctx;
    for (int i = 0; i < KINDS; i++) {
        if (!(profiles->waiting[i] = flux_msglist_create ())) {
            profiles_destroy (profiles);
            return NULL;
        }
    }
    return profiles;
}

void profiles_destroy (struct profiles *profiles)
{
    if (profiles) {
        ERRNO_SAFE_BLOCK;
        for (int i = 0; i < KINDS; i++) {
            if (profiles->waiting[i])
                refuse_all (profiles, i, ENOSYS, "the dws module is unloaded");
            flux_msglist_destroy (profiles->waiting[i]);
        }
        free (profiles);
    }
}
