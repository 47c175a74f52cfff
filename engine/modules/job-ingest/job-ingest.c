/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Takes jobs in: decodes the request, and passes the jobspec through the
 * frobnicator and the validator, as [ingest] has it, before the job is made.
 */
#include "libutil/errno_safe.h"
#include "common/respond.h"
#include "ingest.h"

static int check_request (struct flux_msg_cred cred, int urgency, int flags,
                          flux_error_t *error)
{
    const int allowed = FLUX_JOB_DEBUG | FLUX_JOB_WAITABLE
                        | FLUX_JOB_NOVALIDATE;

    if (flags & ~allowed)
        return deny (error, EPROTO, "invalid job flags");
    if (urgency < FLUX_JOB_URGENCY_MIN || urgency > FLUX_JOB_URGENCY_MAX)
        return deny (error, EINVAL, "urgency range is [%d:%d]",
                     FLUX_JOB_URGENCY_MIN, FLUX_JOB_URGENCY_MAX);
    if (cred.rolemask & FLUX_ROLE_OWNER)
        return 0;
    if (flags & FLUX_JOB_NOVALIDATE)
        return deny (error, EPERM, "only the instance owner can submit with "
                     "FLUX_JOB_NOVALIDATE");
    if (urgency > FLUX_JOB_URGENCY_DEFAULT)
        return deny (error, EINVAL, "only the instance owner can submit "
                     "with urgency >%d", FLUX_JOB_URGENCY_DEFAULT);
    if (flags & FLUX_JOB_WAITABLE)
        return deny (error, EINVAL, "only the instance owner can submit "
                     "with FLUX_JOB_WAITABLE");
    return 0;
}

static void submission_destroy (struct submission *sub)
{
    if (sub) {
        ERRNO_SAFE_BLOCK;
        flux_msg_decref (sub->msg);
        json_decref (sub->jobspec);
        free (sub);
    }
}

static void fail (struct submission *sub, const char *text)
{
    respond_error (sub->ctx->h, sub->msg, text);
    submission_destroy (sub);
}

static void finish (struct submission *sub)
{
    if (batch_add (sub) < 0)
        fail (sub, NULL);
    else
        submission_destroy (sub);
}

static int crew_submit (struct crew *crew, struct submission *sub, crew_f cb)
{
    json_t *o = json_pack ("{s:O s:I s:i s:i}",
                           "jobspec", sub->jobspec,
                           "userid", (json_int_t)sub->userid,
                           "urgency", sub->urgency,
                           "flags", sub->flags);
    int rc = o ? crew_request (crew, o, cb, sub) : -1;

    json_decref (o);
    return rc;
}

static void validated (void *arg, json_t *data, const char *error)
{
    if (error)
        fail (arg, error);
    else
        finish (arg);
}

static void validate (struct submission *sub)
{
    struct stage *stage = &sub->ctx->validator;
    flux_error_t error;

    if (stage->mode == STAGE_OFF || (sub->flags & FLUX_JOB_NOVALIDATE))
        finish (sub);
    else if (stage->mode == STAGE_CREW) {
        if (crew_submit (stage->crew, sub, validated) < 0)
            fail (sub, "cannot ask the validator");
    }
    else if (jobspec_validate (sub->jobspec, &error) < 0)
        fail (sub, error.text);
    else
        finish (sub);
}

static void frobnicated (void *arg, json_t *data, const char *error)
{
    struct submission *sub = arg;

    if (error)
        fail (sub, error);
    else if (!json_is_object (data)) {
        errno = EINVAL;
        fail (sub, "the frobnicator has answered with no jobspec");
    }
    else {
        json_decref (sub->jobspec);
        sub->jobspec = json_incref (data);
        validate (sub);
    }
}

static void frobnicate (struct submission *sub)
{
    struct ingest *ctx = sub->ctx;
    flux_error_t error;

    if (ctx->frobnicator.mode == STAGE_CREW) {
        if (crew_submit (ctx->frobnicator.crew, sub, frobnicated) < 0)
            fail (sub, "cannot ask the frobnicator");
    }
    else if (ctx->frobnicator.mode == STAGE_BUILTIN
             && jobspec_frobnicate (flux_get_conf (ctx->h), sub->jobspec,
                                    &error) < 0)
        fail (sub, error.text);
    else
        validate (sub);
}

static int submission_decode (struct submission *sub, flux_error_t *error)
{
    struct flux_msg_cred cred;
    json_error_t jerr;
    uint32_t signer;
    char *spec;

    error->text[0] = '\0';
    if (flux_request_unpack (sub->msg, NULL, "{s:s s:i s:i}",
                             "J", &sub->J,
                             "urgency", &sub->urgency,
                             "flags", &sub->flags) < 0
        || flux_msg_get_cred (sub->msg, &cred) < 0
        || check_request (cred, sub->urgency, sub->flags, error) < 0)
        return -1;
    if (!(spec = flux_unwrap_string (sub->J, false, &signer, NULL)))
        return deny (error, errno, "could not unwrap jobspec: %s",
                     strerror (errno));
    sub->userid = cred.userid;
    sub->jobspec = json_loads (spec, 0, &jerr);
    free (spec);
    if (signer != cred.userid)
        return deny (error, EPERM, "signer=%lu != requestor=%lu",
                     (unsigned long)signer, (unsigned long)cred.userid);
    if (!(cred.rolemask & FLUX_ROLE_OWNER)) // there is no other type
        return deny (error, EPERM, "only instance owner can use "
                     "sign-type=none");
    if (!sub->jobspec)
        return deny (error, EINVAL, "jobspec: invalid JSON: %s", jerr.text);
    if (!json_is_object (sub->jobspec))
        return deny (error, EINVAL, "jobspec is not an object");
    return 0;
}

static void submit_cb (flux_t *h, flux_msg_handler_t *mh,
                       const flux_msg_t *msg, void *arg)
{
    struct submission *sub;
    flux_error_t error;

    if (!(sub = calloc (1, sizeof (*sub)))) {
        respond_error (h, msg, NULL);
        return;
    }
    sub->ctx = arg;
    sub->msg = flux_msg_incref (msg);
    if (submission_decode (sub, &error) < 0)
        fail (sub, error.text);
    else
        frobnicate (sub);
}

static bool only_strings (json_t *array)
{
    size_t index;
    json_t *o;

    json_array_foreach (array, index, o) {
        if (!json_is_string (o))
            return false;
    }
    return !array || json_is_array (array);
}

/* What is built in serves as long as nobody asks for more. */
static int configure_stage (struct stage *stage, json_t *conf,
                            const char *name, json_t *builtin,
                            flux_error_t *error)
{
    json_t *plugins = NULL;
    json_t *args = NULL;
    int disable = 0;
    json_error_t jerr;

    if (conf && json_unpack_ex (conf, &jerr, 0, "{s?o s?o s?b}",
                                "plugins", &plugins,
                                "args", &args,
                                "disable", &disable) < 0)
        return deny (error, EINVAL, "[ingest.%s]: %s", name, jerr.text);
    if (!only_strings (plugins))
        return deny (error, EINVAL, "[ingest.%s] plugins: not strings", name);
    if (!only_strings (args))
        return deny (error, EINVAL, "[ingest.%s] args: not strings", name);
    if (json_array_size (plugins) == 0)
        plugins = builtin;
    stage->mode = disable ? STAGE_OFF
        : json_equal (plugins, builtin) && json_array_size (args) == 0
            ? STAGE_BUILTIN : STAGE_CREW;
    crew_configure (stage->crew, plugins, args);
    return 0;
}

static json_t *split (const char *list)
{
    json_t *array = json_array ();

    for (const char *s = list; s && *s; s += strcspn (s, ","), s += *s == ',')
        json_array_append_new (array, json_stringn (s, strcspn (s, ",")));
    return array;
}

/* Options of the module count until the configuration is loaded again. */
static int apply_options (struct ingest *ctx, json_t *validator,
                          int argc, char **argv, flux_error_t *error)
{
    for (int i = 0; i < argc; i++) {
        const char *val = strchr (argv[i], '=');
        if (strstarts (argv[i], "validator-plugins="))
            json_object_set_new (validator, "plugins", split (val + 1));
        else if (strstarts (argv[i], "validator-args="))
            json_object_set_new (validator, "args", split (val + 1));
        else if (streq (argv[i], "disable-validator"))
            json_object_set_new (validator, "disable", json_true ());
        else if (strstarts (argv[i], "batch-count="))
            ctx->batch_count = atoi (val + 1);
        else
            return deny (error, EINVAL, "Invalid option: %s", argv[i]);
    }
    return 0;
}

static int configure (struct ingest *ctx, const flux_conf_t *conf,
                      int argc, char **argv, flux_error_t *error)
{
    json_t *builtin = json_pack ("{s:[ss] s:[s]}",
                                 "frobnicator", "defaults", "constraints",
                                 "validator", "jobspec");
    json_t *ingest = NULL;
    json_t *defaults = NULL;
    json_t *queues = NULL;
    json_t *validator = NULL;
    json_t *frobnicator;
    int rc = -1;

    if (flux_conf_unpack (conf, error, "{s?o s?{s?{s?o}} s?o}",
                          "ingest", &ingest,
                          "policy", "jobspec", "defaults", &defaults,
                          "queues", &queues) < 0)
        goto done;
    if (ingest && json_unpack (ingest, "{s?i}",
                               "batch-count", &ctx->batch_count) < 0) {
        deny (error, EINVAL, "[ingest] is no table");
        goto done;
    }
    frobnicator = json_object_get (ingest, "frobnicator");
    if ((validator = json_object_get (ingest, "validator")))
        validator = json_copy (validator);
    else
        validator = json_object ();
    if (!builtin || !validator
        || apply_options (ctx, validator, argc, argv, error) < 0
        || configure_stage (&ctx->frobnicator, frobnicator, "frobnicator",
                            json_object_get (builtin, "frobnicator"),
                            error) < 0
        || configure_stage (&ctx->validator, validator, "validator",
                            json_object_get (builtin, "validator"), error) < 0)
        goto done;
    if (!defaults && !queues
        && json_array_size (json_object_get (frobnicator, "plugins")) == 0)
        ctx->frobnicator.mode = STAGE_OFF;
    rc = 0;
done:
    json_decref (builtin);
    json_decref (validator);
    return rc;
}

static void reload_cb (flux_t *h, flux_msg_handler_t *mh,
                       const flux_msg_t *msg, void *arg)
{
    flux_conf_t *conf;
    flux_error_t error;

    error.text[0] = '\0';
    if (flux_module_config_request_decode (msg, &conf) < 0)
        respond_error (h, msg, NULL);
    else if (configure (arg, conf, 0, NULL, &error) < 0
             || flux_set_conf_new (h, conf) < 0) {
        respond_error (h, msg, error.text);
        flux_conf_decref (conf);
    }
    else
        respond_ok (h, msg);
}

static const struct flux_msg_handler_spec htab[] = {
    { FLUX_MSGTYPE_REQUEST, "job-ingest.submit", submit_cb, FLUX_ROLE_USER },
    { FLUX_MSGTYPE_REQUEST, "job-ingest.config-reload", reload_cb, 0 },
    FLUX_MSGHANDLER_TABLE_END,
};

int mod_main (flux_t *h, int argc, char **argv)
{
    struct ingest ctx = { .h = h };
    flux_msg_handler_t **handlers = NULL;
    flux_error_t error = { .text = "out of memory" };
    int rc = -1;

    ctx.frobnicator.crew = crew_create (h, "job-frobnicator");
    ctx.validator.crew = crew_create (h, "job-validator");
    if (!ctx.frobnicator.crew || !ctx.validator.crew
        || configure (&ctx, flux_get_conf (h), argc, argv, &error) < 0) {
        flux_log (h, LOG_ERR, "%s", error.text);
        goto done;
    }
    if (batch_init (&ctx) < 0
        || flux_msg_handler_addvec (h, htab, &ctx, &handlers) < 0) {
        flux_log_error (h, "error initializing job-ingest");
        goto done;
    }
    if ((rc = flux_reactor_run (flux_get_reactor (h), 0)) > 0)
        rc = 0;
done:
    flux_msg_handler_delvec (handlers);
    crew_destroy (ctx.frobnicator.crew);
    crew_destroy (ctx.validator.crew);
    batch_fini (&ctx);
    return rc;
}
