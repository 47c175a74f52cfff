/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See service.h. A request changes a fact and is answered at once; facts/jobs.c decides
 * on actions later. request_cb() calls each handler, and rejects requests that are too
 * large or whose fields are missing or of another type.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libdws/util/fields.h"
#include "libutil/errno_safe.h"
#include "libutil/names.h"
#include "libutil/safelog.h"
#include "act/abort.h"
#include "act/expire.h"
#include "act/reservations.h"
#include "act/limits.h"
#include "act/objects.h"
#include "act/retry.h"
#include "act/users.h"
#include "agent/agent.h"
#include "agent/commands.h"
#include "base/calls.h"
#include "base/requests.h"
#include "base/timeline.h"
#include "facts/config.h"
#include "facts/jobs.h"
#include "facts/persistent.h"
#include "facts/storages.h"
#include "facts/sync.h"
#include "facts/totals.h"
#include "health/health.h"
#include "service.h"
#include "tell/expiry.h"
#include "tell/logs.h"
#include "tell/losses.h"
#include "tell/notices.h"
#include "tell/profiles.h"
#include "tell/quota.h"
#include "tell/status.h"
#include "tell/token.h"

static void respond (flux_t *h, const flux_msg_t *msg, int rc,
                     const char *errstr)
{
    if (rc < 0)
        requests_refuse (h, msg, errno, errstr);
    else if (flux_respond (h, msg, NULL) < 0)
        safe_log_error (h, "error responding to request");
}

/* The job of a request. A job unknown here was submitted while this module was
 * away: start a sync for its facts.
 */
static struct job *known_job (struct dws_ctx *ctx, json_int_t id)
{
    struct job *job = jobs_find (ctx->jobs, id);

    if (!job || !job->facts->directives) {
        sync_start (ctx->sync);
        return NULL;
    }
    return job;
}

/* A repeated request tells of changes. The job was permitted by the first.
 */
static int permit (struct dws_ctx *ctx, const struct dws_job *facts,
                   dws_error_t *error)
{
    const struct job *job = jobs_find (ctx->jobs, facts->id);

    if (job && job->facts->directives)
        return 0;
    return persistent_permitted (ctx, facts, error);
}

static void create_cb (flux_t *h, flux_msg_handler_t *mh,
                       const flux_msg_t *msg, void *arg)
{
    struct dws_ctx *ctx = arg;
    struct dws_job *facts = NULL;
    dws_error_t error = { "" };
    json_t *payload;
    int rc = -1;

    if (flux_request_unpack (msg, NULL, "o", &payload) == 0
        && (facts = dws_job_decode_request (payload, &error)))
        facts->absent = sync_done (ctx->sync);
    if (!facts || permit (ctx, facts, &error) < 0) {
        ERRNO_SAFE_BLOCK;
        dws_job_destroy (facts);
    }
    else if (jobs_learn (ctx->jobs, facts)) {
        if (!sync_done (ctx->sync))
            sync_start (ctx->sync);
        rc = 0;
    }
    respond (h, msg, rc, error.text);
}

static void setup_cb (flux_t *h, flux_msg_handler_t *mh,
                      const flux_msg_t *msg, void *arg)
{
    struct dws_ctx *ctx = arg;
    dws_error_t error = { "" };
    json_int_t id;
    json_t *R;
    struct job *job;
    int rc;

    if ((rc = flux_request_unpack (msg, NULL, "{s:I s:o}",
                                   "jobid", &id, "R", &R)) == 0
        && (job = known_job (ctx, id))
        && (rc = dws_job_set_R (job->facts, R, &error)) == 0) {
        reservations_learn_R (job, R);
        if (dws_job_advance (job->facts, DWS_PHASE_PROLOG))
            job->facts->t_prolog = timeline_now (ctx->timeline);
        jobs_changed (job);
    }
    respond (h, msg, rc, error.text);
}

static void post_run_cb (flux_t *h, flux_msg_handler_t *mh,
                         const flux_msg_t *msg, void *arg)
{
    struct dws_ctx *ctx = arg;
    json_int_t id;
    int run_started;
    struct job *job;
    int rc;

    if ((rc = flux_request_unpack (msg, NULL, "{s:I s:b}",
                                   "jobid", &id,
                                   "run_started", &run_started)) == 0
        && (job = known_job (ctx, id))) {
        if (dws_job_advance (job->facts, DWS_PHASE_EPILOG))
            job->facts->t_epilog = timeline_now (ctx->timeline);
        job->facts->run_started = run_started;
        jobs_changed (job);
    }
    respond (h, msg, rc, NULL);
}

/* A job got an exception in its epilog: tear down its workflow.
 */
static void teardown_cb (flux_t *h, flux_msg_handler_t *mh,
                         const flux_msg_t *msg, void *arg)
{
    struct dws_ctx *ctx = arg;
    json_int_t id;
    struct job *job;
    int rc;

    if ((rc = flux_request_unpack (msg, NULL, "{s:I}", "jobid", &id)) == 0
        && (job = known_job (ctx, id))) {
        job->facts->exception = true;
        job->facts->teardown = true;
        jobs_changed (job);
    }
    respond (h, msg, rc, NULL);
}

/* dws.abort: the epilog has timed out, so abandon the job. A job that ended without an
 * epilog may be known only by its workflow, and is abandoned, too.
 */
static void abort_cb (flux_t *h, flux_msg_handler_t *mh,
                      const flux_msg_t *msg, void *arg)
{
    struct dws_ctx *ctx = arg;
    json_int_t id;
    struct job *job;

    if (flux_request_unpack (msg, NULL, "{s:I}", "jobid", &id) < 0) {
        respond (h, msg, -1, NULL);
        return;
    }
    if ((job = known_job (ctx, id)) || (job = jobs_find (ctx->jobs, id))) {
        job->facts->exception = true;
        job->facts->abandoned = true;
        jobs_changed (job);
    }
    aborts_add (ctx->aborts, msg, job);
}

/* The plugin was loaded or unloads. The request needs no response.
 */
static void plugin_cb (flux_t *h, flux_msg_handler_t *mh,
                       const flux_msg_t *msg, void *arg)
{
    struct dws_ctx *ctx = arg;
    int loaded;

    if (flux_request_unpack (msg, NULL, "{s:b}", "loaded", &loaded) < 0)
        safe_log_error (h, DWS_TOPIC_PLUGIN);
    else
        sync_plugin (ctx->sync, loaded);
}

/* Enable or disable a rabbit. The answer comes from Kubernetes.
 */
static void rabbit_cb (flux_t *h, flux_msg_handler_t *mh,
                       const flux_msg_t *msg, void *arg)
{
    struct dws_ctx *ctx = arg;
    dws_error_t error = { "" };
    const char *name;
    const char *state;
    const char *reason = NULL;
    const char *user = NULL;
    json_t *patch;

    if (flux_request_unpack (msg, NULL, "{s:s s:s s?s s?s}", "rabbit", &name,
                             "state", &state, "reason", &reason,
                             "user", &user) < 0)
        goto error;
    if (strcmp (state, "Enabled") != 0 && strcmp (state, "Disabled") != 0) {
        dws_error (&error, EINVAL, "a rabbit is made Enabled or Disabled");
        goto error;
    }
    if (dws_topology_find (ctx->config->topology, name) < 0) {
        dws_error (&error, errno, "there is no such rabbit in the mapping");
        goto error;
    }
    if (!strcmp (state, "Disabled"))
        patch = object_disabled (reason ? reason : "", user);
    else
        patch = object_enabled ();
    if (agent_forward (ctx->agent, msg,
                       command_create_with ("patch", "storages",
                                            DWS_NAMESPACE, name,
                                            "patch", patch),
                       REQUESTS_WAITING, &error) < 0)
        goto error;
    safe_log (h, LOG_INFO, "%s: to be %s%s%s", name, state,
              reason ? ": " : "", reason ? reason : "");
    return;
error:
    respond (h, msg, -1, error.text);
}

static void disconnect_cb (flux_t *h, flux_msg_handler_t *mh,
                           const flux_msg_t *msg, void *arg)
{
    struct dws_ctx *ctx = arg;

    agent_disconnect (ctx->agent, msg);
    tokens_disconnect (ctx->tokens, msg);
    profiles_disconnect (ctx->profiles, msg);
}

/* Time limit for the agent's answer about a kubeconfig (s). Reading one may run a
 * plugin of the site, which the agent kills after 20 s.
 */
#define KUBECONFIG_S 30.

/* Forward the check of a kubeconfig to the agent: the result depends on the
 * agent's options, environment and library.
 */
static void kubeconfig_cb (flux_t *h, flux_msg_handler_t *mh,
                           const flux_msg_t *msg, void *arg)
{
    struct dws_ctx *ctx = arg;
    const char *path = NULL;
    json_t *command;
    dws_error_t error = { "" };

    if (flux_request_unpack (msg, NULL, "{s?s}", "path", &path) < 0
        || !(command = json_pack ("{s:s s:s*}", "op", "kubeconfig",
                                  "path", path))
        || agent_forward (ctx->agent, msg, command, REQUESTS_WAITING, &error) < 0)
        respond (h, msg, -1, error.text);
}

static bool agent_concerned (const struct dws_config *before,
                             const struct dws_config *after)
{
    json_t *a = dws_config_agent (before);
    json_t *b = dws_config_agent (after);
    bool same = a && b && json_equal (a, b);

    json_decref (a);
    json_decref (b);
    return !same;
}

/* A new configuration that is being checked: the agent is asked about its kubeconfig, and
 * the worker looks up its names.
 */
struct reload {
    const flux_msg_t *msg;
    flux_conf_t *conf;          // NULL once the handle owns it
    struct dws_config *config;  // NULL once the module owns it
};

static void reload_destroy (void *arg)
{
    struct reload *reload = arg;

    if (reload) {
        ERRNO_SAFE_BLOCK;
        flux_msg_decref (reload->msg);
        flux_conf_decref (reload->conf);
        dws_config_destroy (reload->config);
        free (reload);
    }
}

static struct reload *reload_create (const flux_msg_t *msg, dws_error_t *error)
{
    struct reload *reload;

    if (!(reload = calloc (1, sizeof (*reload)))
        || flux_module_config_request_decode (msg, &reload->conf) < 0
        || !(reload->config = config_create (reload->conf, NULL, error))) {
        reload_destroy (reload);
        return NULL;
    }
    reload->msg = flux_msg_incref (msg);
    return reload;
}

/* All of 'from', which is left empty: its owner may destroy it.
 */
static struct reload *reload_take (struct reload *from)
{
    struct reload *reload;

    if ((reload = malloc (sizeof (*reload)))) {
        *reload = *from;
        *from = (struct reload){ 0 };
    }
    return reload;
}

static void reload_apply (struct dws_ctx *ctx, json_t *unknown, void *arg)
{
    struct reload *reload = arg;
    bool tell_agent;

    if (json_array_size (unknown) > 0) {
        errno = EINVAL;
        respond (ctx->h, reload->msg, -1,
                 json_string_value (json_array_get (unknown, 0)));
        return;
    }
    if (flux_set_conf_new (ctx->h, reload->conf) < 0) {
        respond (ctx->h, reload->msg, -1, NULL);
        return;
    }
    reload->conf = NULL;
    tell_agent = agent_concerned (ctx->config, reload->config);
    dws_config_destroy (ctx->config);
    ctx->config = reload->config;
    reload->config = NULL;
    totals_recount (ctx->totals);
    storages_remap (ctx->storages);
    if (tell_agent)
        agent_reconfigure (ctx->agent);
    health_changed (ctx->health);
    expire_look (ctx->expire);
    notices_start (ctx->notices);
    jobs_changed_all (ctx->jobs);
    respond (ctx->h, reload->msg, 0, NULL);
}

/* Takes over 'reload', whose kubeconfig is good.
 */
static void reload_names (struct dws_ctx *ctx, struct reload *reload)
{
    const flux_msg_t *msg = flux_msg_incref (reload->msg);

    if (!dws_config_has_names (reload->config->limits_table)) {
        reload_apply (ctx, NULL, reload);
        reload_destroy (reload);
    }
    else if (limits_find_names (ctx, reload->config->limits_table, reload_apply,
                                reload_destroy, reload) < 0)
        respond (ctx->h, msg, -1, NULL);
    flux_msg_decref (msg);
}

/* If no agent can check the kubeconfig, the module's own check of the file must
 * suffice.
 */
static void reload_kubeconfig_cb (const struct call *call, flux_future_t *f)
{
    struct reload *reload = (struct reload *)call->arg;
    const char *fault = NULL;

    if (flux_rpc_get_unpack (f, "{s:[s]}", "objects", &fault) == 0) {
        errno = EINVAL;
        respond (call->ctx->h, reload->msg, -1, fault);
    }
    else if (!(reload = reload_take (reload)))
        respond (call->ctx->h, ((struct reload *)call->arg)->msg, -1, NULL);
    else
        reload_names (call->ctx, reload);
}

/* Either the whole new configuration is good, or the old one stays. The agent is asked
 * only if something changes for it: it may hang, and flux-core waits for the answer
 * before it serves any other request about the configuration.
 */
static void config_reload_cb (flux_t *h, flux_msg_handler_t *mh,
                              const flux_msg_t *msg, void *arg)
{
    struct dws_ctx *ctx = arg;
    struct reload *reload;
    flux_future_t *f;
    dws_error_t error = { "" };

    if (!(reload = reload_create (msg, &error))) {
        respond (h, msg, -1, error.text);
        return;
    }
    if (!agent_concerned (ctx->config, reload->config)) {
        reload_names (ctx, reload);
        return;
    }
    f = flux_rpc_pack (h, DWS_TOPIC_KUBECONFIG, FLUX_NODEID_ANY, 0,
                       "{s:s*}", "path", reload->config->kubeconfig);
    if (!f || flux_future_aux_set (f, NULL, reload, reload_destroy) < 0) {
        respond (h, msg, -1, NULL);
        flux_future_destroy (f);
        reload_destroy (reload);
    }
    else if (calls_add_with (ctx, f, KUBECONFIG_S, 0, reload,
                             reload_kubeconfig_cb) < 0)
        respond (h, msg, -1, NULL);
}

static const struct flux_msg_handler_spec htab[] = {
    { FLUX_MSGTYPE_REQUEST, "dws.create", create_cb, 0 },
    { FLUX_MSGTYPE_REQUEST, "dws.setup", setup_cb, 0 },
    { FLUX_MSGTYPE_REQUEST, "dws.post_run", post_run_cb, 0 },
    { FLUX_MSGTYPE_REQUEST, "dws.teardown", teardown_cb, 0 },
    { FLUX_MSGTYPE_REQUEST, "dws.abort", abort_cb, 0 },
    { FLUX_MSGTYPE_REQUEST, DWS_TOPIC_PLUGIN, plugin_cb, 0 },
    { FLUX_MSGTYPE_REQUEST, DWS_TOPIC_RABBIT, rabbit_cb, 0 },
    { FLUX_MSGTYPE_REQUEST, DWS_TOPIC_USER, users_cb, 0 },
    { FLUX_MSGTYPE_REQUEST, DWS_TOPIC_AGENT, agent_attach_cb, 0 },
    { FLUX_MSGTYPE_REQUEST, DWS_TOPIC_REPORT, agent_report_cb, 0 },
    { FLUX_MSGTYPE_REQUEST, "dws.config-reload", config_reload_cb, 0 },
    { FLUX_MSGTYPE_REQUEST, DWS_TOPIC_KUBECONFIG, kubeconfig_cb, 0 },
    { FLUX_MSGTYPE_REQUEST, DWS_TOPIC_STATUS, status_cb, FLUX_ROLE_USER },
    { FLUX_MSGTYPE_REQUEST, DWS_TOPIC_EXPIRY, expiry_cb, FLUX_ROLE_USER },
    { FLUX_MSGTYPE_REQUEST, DWS_TOPIC_LOGS, logs_cb, FLUX_ROLE_USER },
    { FLUX_MSGTYPE_REQUEST, DWS_TOPIC_LOSSES, losses_cb, FLUX_ROLE_USER },
    { FLUX_MSGTYPE_REQUEST, DWS_TOPIC_RETRY, retry_cb, FLUX_ROLE_USER },
    { FLUX_MSGTYPE_REQUEST, DWS_TOPIC_PROFILES, profiles_cb, FLUX_ROLE_USER },
    { FLUX_MSGTYPE_REQUEST, DWS_TOPIC_QUOTA, quota_cb, FLUX_ROLE_USER },
    { FLUX_MSGTYPE_REQUEST, DWS_TOPIC_TOKEN, token_cb, FLUX_ROLE_USER },
    { FLUX_MSGTYPE_REQUEST, "dws.disconnect", disconnect_cb,
      FLUX_ROLE_USER },
    FLUX_MSGHANDLER_TABLE_END,
};

#define HANDLERS (sizeof (htab) / sizeof (htab[0]) - 1)

/* The fields of each request, without dws.create (dws_job_decode_request()), dws.report,
 * which is not parsed as a whole, and dws.config-reload.
 */
static const struct {
    const char *topic;
    struct dws_field fields[5];
} requests[] = {
    { "dws.setup", { DWS_REQUIRED ("jobid", ID), DWS_REQUIRED ("R", OBJECT) } },
    { "dws.post_run", { DWS_REQUIRED ("jobid", ID),
                        DWS_REQUIRED ("run_started", BOOL) } },
    { "dws.teardown", { DWS_REQUIRED ("jobid", ID) } },
    { "dws.abort", { DWS_REQUIRED ("jobid", ID) } },
    { DWS_TOPIC_PLUGIN, { DWS_REQUIRED ("loaded", BOOL) } },
    { DWS_TOPIC_RABBIT, { DWS_REQUIRED ("rabbit", STRING),
                          DWS_REQUIRED ("state", STRING),
                          DWS_OPTIONAL ("reason", STRING),
                          DWS_OPTIONAL ("user", STRING) } },
    { DWS_TOPIC_USER, { DWS_REQUIRED ("userid", USERID) } },
    { DWS_TOPIC_AGENT, { DWS_REQUIRED ("version", COUNT),
                         DWS_OPTIONAL ("oldest", COUNT),
                         DWS_OPTIONAL ("release", STRING),
                         DWS_OPTIONAL ("batches", BOOL) } },
    { DWS_TOPIC_STATUS, { DWS_OPTIONAL ("jobid", ID),
                          DWS_OPTIONAL ("list", STRING),
                          DWS_OPTIONAL ("after", INTEGER),
                          DWS_OPTIONAL ("max", COUNT) } },
    { DWS_TOPIC_EXPIRY, { DWS_REQUIRED ("name", STRING),
                          DWS_REQUIRED ("expires", NUMBER) } },
    { DWS_TOPIC_KUBECONFIG, { DWS_OPTIONAL ("path", STRING) } },
    { DWS_TOPIC_LOGS, { DWS_REQUIRED ("jobid", ID),
                        DWS_OPTIONAL ("since", COUNT) } },
    { DWS_TOPIC_LOSSES, { DWS_OPTIONAL ("ack", ID) } },
    { DWS_TOPIC_RETRY, { DWS_REQUIRED ("jobid", ID) } },
    { DWS_TOPIC_PROFILES, { DWS_REQUIRED ("kind", STRING) } },
    { DWS_TOPIC_QUOTA, { DWS_OPTIONAL ("userid", USERID),
                         DWS_OPTIONAL ("all", BOOL) } },
    { DWS_TOPIC_TOKEN, { DWS_REQUIRED ("jobid", ID) } },
};

static int check_fields (const flux_msg_t *msg, const char *topic,
                         dws_error_t *error)
{
    json_t *payload = NULL;

    for (size_t i = 0; i < sizeof (requests) / sizeof (requests[0]); i++) {
        if (strcmp (requests[i].topic, topic) != 0)
            continue;
        if (flux_msg_has_payload (msg)
            && flux_request_unpack (msg, NULL, "o", &payload) < 0)
            return -1;
        return dws_fields_check (payload, requests[i].fields, error);
    }
    return 0;
}

static void request_cb (flux_t *h, flux_msg_handler_t *mh,
                        const flux_msg_t *msg, void *arg)
{
    dws_error_t error = { "" };
    const char *topic;

    if (requests_check_size (msg, &error) < 0
        || flux_msg_get_topic (msg, &topic) < 0
        || check_fields (msg, topic, &error) < 0) {
        respond (h, msg, -1, error.text);
        return;
    }
    for (size_t i = 0; i < HANDLERS; i++) {
        if (!strcmp (htab[i].topic_glob, topic))
            htab[i].cb (h, mh, msg, arg);
    }
}

int service_start (struct dws_ctx *ctx)
{
    struct flux_msg_handler_spec checked[HANDLERS + 1];

    memcpy (checked, htab, sizeof (htab));
    for (size_t i = 0; i < HANDLERS; i++)
        checked[i].cb = request_cb;
    return flux_msg_handler_addvec (ctx->h, checked, ctx, &ctx->handlers);
}
