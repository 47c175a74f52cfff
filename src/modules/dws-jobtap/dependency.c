/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The callbacks for dependencies on data; see dependency.h.
 */

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "libdws/directive/command.h"
#include "libdws/directive/directive.h"
#include "libdws/directive/presets.h"
#include "libdws/util/clean.h"

#include "dependency.h"
#include "waits.h"

static const struct kind kinds[] = {
    { "dws-in", "datain", "copy_in", DWS_COMMAND_COPY_IN, false },
    { "dws-out", "dataout", "copy_out", DWS_COMMAND_COPY_OUT, true },
};

#define KIND_COUNT (sizeof (kinds) / sizeof (kinds[0]))

void jobtap_dependency_detach (struct jobtap *ctx)
{
    for (struct dependency *dep = ctx->dependencies; dep; dep = dep->next)
        dep->ctx = NULL;
}

/* A job may name the same target twice, also in two notations.
 */
static bool dependency_exists (struct jobtap *ctx, const struct kind *kind,
                               flux_jobid_t id, flux_jobid_t target)
{
    for (struct dependency *dep = ctx->dependencies; dep; dep = dep->next) {
        if (dep->kind == kind && dep->id == id && dep->target == target)
            return true;
    }
    return false;
}

/* The first dependency that has not been told that its target is over. The caller
 * starts the search anew each time, as the list may change.
 */
static struct dependency *find_waiting (struct jobtap *ctx,
                                        flux_jobid_t target)
{
    struct dependency *dep = ctx->dependencies;

    while (dep && (dep->target != target || dep->over))
        dep = dep->next;
    return dep;
}

int jobtap_dependency_inactive_cb (flux_plugin_t *p,
                                   const char *topic,
                                   flux_plugin_arg_t *args,
                                   void *arg)
{
    struct jobtap *ctx = arg;
    struct dependency *dep;
    flux_jobid_t id;

    if (!ctx->dependencies)
        return 0;
    if (flux_plugin_arg_unpack (args, FLUX_PLUGIN_ARG_IN, "{s:I}",
                                "id", &id) < 0)
        return -1;
    while ((dep = find_waiting (ctx, id)))
        dependency_target_over (dep);
    return 0;
}

static bool has_command (struct jobtap *ctx, flux_jobid_t target,
                         flux_plugin_arg_t *args, json_t *dw,
                         unsigned int command)
{
    struct jobtap_job *job = jobtap_job_lookup (ctx, target);
    struct dws_directives *dirs;
    json_t *presets;
    bool found;

    if (job)
        return job->commands & command;
    presets = jobtap_args_presets (ctx, args, DWS_PRESETS_USER);
    dirs = dws_directives_parse (dw, presets, NULL, NULL);
    json_decref (presets);
    if (!dirs)
        return false;
    found = dws_commands (dirs) & command;
    dws_directives_destroy (dirs);
    return found;
}

/* May the job wait for the target? If it may not, 'error' says why. Otherwise
 * dep->over says whether the target is inactive.
 */
static int check_target (struct dependency *dep, dws_error_t *error)
{
    const struct kind *kind = dep->kind;
    flux_plugin_arg_t *args;
    json_t *dw = NULL;
    json_int_t userid;
    int state;
    int rc = -1;

    if (!(args = flux_jobtap_job_lookup (dep->ctx->p, dep->target)))
        return dws_error (error, ENOENT, "there is no job %s, or no more",
                          dep->idf58);
    if (flux_plugin_arg_unpack (args, FLUX_PLUGIN_ARG_IN,
                                "{s:I s:i s:{s?{s?{s?o}}}}",
                                "userid", &userid,
                                "state", &state,
                                "jobspec",
                                "attributes",
                                "system",
                                "dw", &dw) < 0)
        dws_error (error, EPROTO, "job %s cannot be read", dep->idf58);
    else if (userid != dep->userid && dep->userid != getuid ())
        dws_error (error, EPERM, "job %s is another user's", dep->idf58);
    else if (!dw)
        dws_error (error, EINVAL, "job %s has no #DW directives", dep->idf58);
    else if (!has_command (dep->ctx, dep->target, args, dw, kind->command))
        dws_error (error, EINVAL, "job %s has no %s directive", dep->idf58,
                   kind->directive);
    else
        rc = 0;
    dep->over = rc == 0 && state == FLUX_JOB_STATE_INACTIVE;
    flux_plugin_arg_destroy (args);
    return rc;
}

/* Has the event been posted for this dependency?
 */
static bool was_posted (struct dependency *dep, json_t *entries,
                        const char *event)
{
    json_t *entry;
    size_t index;

    json_array_foreach (entries, index, entry) {
        const char *name;
        const char *description;

        if (json_unpack (entry, "{s:s s:{s:s}}",
                         "name", &name,
                         "context",
                           "description", &description) == 0
            && !strcmp (name, event)
            && !strcmp (description, dep->description))
            return true;
    }
    return false;
}

/* The plugin or Flux has started again: the dependency may be fulfilled, while
 * another holds the job still. A target that is not there any more was purged meanwhile,
 * which says nothing of its data.
 */
static void resume_cb (flux_future_t *f, void *arg)
{
    struct dependency *dep = arg;
    json_t *entries;
    dws_error_t error;
    bool added;

    if (flux_rpc_get_unpack (f, "{s:o}", "eventlog", &entries) < 0) {
        dependency_broken (dep, "reading the eventlog of the job");
        return;
    }
    if (was_posted (dep, entries, "dependency-remove")) {
        dependency_settle (dep);
        return;
    }
    added = was_posted (dep, entries, "dependency-add");
    if (check_target (dep, &error) < 0) {
        if (errno != ENOENT || !added) {
            dependency_fail (dep, error.text);
            return;
        }
        dep->over = true;
    }
    if (!added
        && flux_jobtap_dependency_add (dep->ctx->p, dep->id,
                                       dep->description) < 0)
        dependency_broken (dep, "it could not be added");
    else
        dependency_begin (dep);
}

static const struct kind *find_kind (const char *scheme)
{
    for (size_t i = 0; i < KIND_COUNT; i++) {
        if (!strcmp (kinds[i].scheme, scheme))
            return &kinds[i];
    }
    return NULL;
}

/* The job is being submitted. Requests wait until it is in DEPEND, since it cannot get
 * an exception before.
 */
static int dependency_submit (struct dependency *dep, flux_plugin_arg_t *args)
{
    flux_plugin_t *p = dep->ctx->p;
    const char *scheme = dep->kind->scheme;
    dws_error_t error;

    if (check_target (dep, &error) < 0) {
        dependency_settle (dep);
        return flux_jobtap_reject_job (p, args, "dependency %s: %s", scheme,
                                       error.text);
    }
    if (flux_jobtap_dependency_add (p, dep->id, dep->description) < 0) {
        dependency_settle (dep);
        return flux_jobtap_reject_job (p, args, "dependency %s: %s", scheme,
                                       strerror (errno));
    }
    dep->fresh = true;
    return 0;
}

static struct dependency *find_fresh (struct jobtap *ctx, flux_jobid_t id)
{
    struct dependency *dep = ctx->dependencies;

    while (dep && (dep->id != id || !dep->fresh))
        dep = dep->next;
    return dep;
}

void jobtap_dependency_depend (struct jobtap *ctx, flux_plugin_arg_t *args)
{
    struct dependency *dep;
    flux_jobid_t id;

    if (!ctx->dependencies
        || flux_plugin_arg_unpack (args, FLUX_PLUGIN_ARG_IN, "{s:I}",
                                   "id", &id) < 0)
        return;
    while ((dep = find_fresh (ctx, id))) {
        dep->fresh = false;
        dependency_begin (dep);
    }
}

int jobtap_dependency_cb (flux_plugin_t *p,
                          const char *topic,
                          flux_plugin_arg_t *args,
                          void *arg)
{
    struct jobtap *ctx = arg;
    const struct kind *kind;
    struct dependency *dep;
    const char *scheme;
    const char *value;
    char shown[128];
    flux_jobid_t id;
    flux_jobid_t target;
    json_int_t userid;
    int state;

    if (flux_plugin_arg_unpack (args, FLUX_PLUGIN_ARG_IN,
                                "{s:I s:I s:i s:{s:s s:s}}",
                                "id", &id,
                                "userid", &userid,
                                "state", &state,
                                "dependency",
                                  "scheme", &scheme,
                                  "value", &value) < 0
        || !(kind = find_kind (scheme)))
        return flux_jobtap_reject_job (p, args, "dependency: malformed");
    if (flux_job_id_parse (value, &target) < 0
        || target == FLUX_JOBTAP_CURRENT_JOB)
        return flux_jobtap_reject_job (p, args, "dependency %s: \"%s\" is not a"
                                       " job id", scheme,
                                       dws_clean (value, shown,
                                                  sizeof (shown)));
    if (dependency_exists (ctx, kind, id, target))
        return 0;
    if (!(dep = dependency_create (ctx, kind, id, target)))
        return flux_jobtap_reject_job (p, args, "dependency %s: %s", scheme,
                                       strerror (errno));
    dep->userid = userid;
    if (state == FLUX_JOB_STATE_NEW)
        return dependency_submit (dep, args);
    (void)dependency_await (dep, &dep->f_step, dependency_eventlog (ctx, id),
                            resume_cb);
    return 0;
}
