/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * flux_jobtap_*(), the functions for plugins in flux/jobtap.h.
 */
#include "common/va.h"
#include "jobtap.h"

flux_t *flux_jobtap_get_flux (flux_plugin_t *p)
{
    struct jobtap *jt = jobtap_of (p);

    return jt ? jt->jm->h : NULL;
}

/* The current job may be one that is in no map any more (or not yet). */
static struct job *lookup (flux_plugin_t *p, flux_jobid_t id)
{
    struct jobtap *jt;
    struct job *job;

    if (!(jt = jobtap_of (p)))
        return NULL;
    job = jobtap_current (jt);
    if (id == FLUX_JOBTAP_CURRENT_JOB || (job && job->id == id)) {
        if (!job)
            errno = ENOENT;
        return job;
    }
    return job_find (jt->jm, id);
}

static struct job *lookup_active (flux_plugin_t *p, flux_jobid_t id)
{
    struct job *job = lookup (p, id);

    if (!job || job->state != FLUX_JOB_STATE_INACTIVE)
        return job;
    errno = ENOENT;
    return NULL;
}

int flux_jobtap_service_register_ex (flux_plugin_t *p, const char *method,
                                     uint32_t rolemask,
                                     flux_msg_handler_f cb, void *arg)
{
    struct flux_match match = FLUX_MATCH_REQUEST;
    const char *name = flux_plugin_get_name (p);
    flux_t *h = flux_jobtap_get_flux (p);
    flux_free_f destroy = (flux_free_f)flux_msg_handler_destroy;
    flux_msg_handler_t *mh;
    char topic[1024];

    if (!h || !name || strchr (name, '/')) {
        errno = EINVAL;
        return -1;
    }
    if (*name == '.') // builtin
        name++;
    if ((size_t)snprintf (topic, sizeof (topic), "job-manager.%s%s%s", name,
                          method ? "." : "", method ? method : "")
        >= sizeof (topic)) {
        errno = EINVAL;
        return -1;
    }
    match.topic_glob = topic;
    mh = flux_msg_handler_create (h, match, cb, arg);
    if (!mh || flux_plugin_aux_set (p, NULL, mh, destroy) < 0) {
        flux_msg_handler_destroy (mh);
        return -1;
    }
    flux_msg_handler_allow_rolemask (mh, rolemask);
    flux_msg_handler_start (mh);
    return 0;
}

int flux_jobtap_service_register (flux_plugin_t *p, const char *method,
                                  flux_msg_handler_f cb, void *arg)
{
    return flux_jobtap_service_register_ex (p, method, 0, cb, arg);
}

static void verror (flux_plugin_t *p, flux_plugin_arg_t *args,
                    const char *fmt, va_list ap)
{
    int flags = FLUX_PLUGIN_ARG_OUT;
    flux_error_t why;

    format_text (why.text, sizeof (why.text), fmt, ap);
    if (!*why.text)
        return;
    if (flux_plugin_arg_pack (args, flags, "{s:s}", "errmsg", why.text) < 0)
        flux_log_error (jobtap_of (p)->jm->h, "refusal of a plugin");
}

int flux_jobtap_error (flux_plugin_t *p, flux_plugin_arg_t *args,
                       const char *fmt, ...)
{
    VA_DO (fmt, verror (p, args, fmt, ap));
    return -1;
}

int flux_jobtap_reject_job (flux_plugin_t *p, flux_plugin_arg_t *args,
                            const char *fmt, ...)
{
    if (!fmt)
        return flux_jobtap_error (p, args,
                                  "rejected by job-manager plugin '%s'",
                                  jobtap_plugin_name (p));
    VA_DO (fmt, verror (p, args, fmt, ap));
    return -1;
}

static int dependency (flux_plugin_t *p, flux_jobid_t id, bool add,
                       const char *description)
{
    struct job *job;
    json_t *state;

    if (!description) {
        errno = EINVAL;
        return -1;
    }
    if (!(job = lookup_active (p, id)))
        return -1;
    if (!(job->state & (FLUX_JOB_STATE_DEPEND | FLUX_JOB_STATE_NEW))) {
        errno = EINVAL;
        return -1;
    }
    state = json_object_get (job->deps, description);
    if (add && json_is_true (state)) // as after a restart
        return 0;
    return event_post (jobtap_of (p)->jm, job, 0,
                       add ? "dependency-add" : "dependency-remove",
                       "{s:s}", "description", description);
}

int flux_jobtap_dependency_add (flux_plugin_t *p, flux_jobid_t id,
                                const char *description)
{
    return dependency (p, id, true, description);
}

int flux_jobtap_dependency_remove (flux_plugin_t *p, flux_jobid_t id,
                                   const char *description)
{
    return dependency (p, id, false, description);
}

int flux_jobtap_reprioritize_all (flux_plugin_t *p)
{
    return reprioritize_all (jobtap_of (p)->jm, jobtap_get_priority);
}

static struct job_aux **aux_find (struct job *job, flux_plugin_t *p,
                                  const char *name, void *val)
{
    struct job_aux **ap = &job->aux;

    while (*ap) {
        struct job_aux *a = *ap;

        if (a->plugin == p
            && (name ? a->name && streq (a->name, name) : a->val == val))
            break;
        ap = &a->next;
    }
    return ap;
}

static void aux_delete (struct job_aux **ap)
{
    struct job_aux *a = *ap;

    if (a) {
        *ap = a->next;
        if (a->free_fn)
            a->free_fn (a->val);
        free (a->name);
        free (a);
    }
}

/* NULL as value deletes; NULL as name makes the value anonymous. */
int flux_jobtap_job_aux_set (flux_plugin_t *p, flux_jobid_t id,
                             const char *name, void *val,
                             flux_free_f free_fn)
{
    struct job *job;
    struct job_aux *a;

    if (!(job = lookup (p, id)))
        return -1;
    if ((!name && !val) || (!val && free_fn)) {
        errno = EINVAL;
        return -1;
    }
    if (name)
        aux_delete (aux_find (job, p, name, NULL));
    if (!val)
        return 0;
    if (!(a = calloc (1, sizeof (*a)))
        || (name && !(a->name = strdup (name)))) {
        free (a);
        return -1;
    }
    a->plugin = p;
    a->val = val;
    a->free_fn = free_fn;
    a->next = job->aux;
    job->aux = a;
    return 0;
}

void *flux_jobtap_job_aux_get (flux_plugin_t *p, flux_jobid_t id,
                               const char *name)
{
    struct job *job;
    struct job_aux *a;

    if (!(job = lookup (p, id)))
        return NULL;
    if (!name) {
        errno = EINVAL;
        return NULL;
    }
    if (!(a = *aux_find (job, p, name, NULL)))
        errno = ENOENT;
    return a ? a->val : NULL;
}

int flux_jobtap_raise_exception (flux_plugin_t *p, flux_jobid_t id,
                                 const char *type, int severity,
                                 const char *fmt, ...)
{
    struct job *job;
    char note[1024];
    struct manager *jm;
    va_list ap;

    if (!type || !fmt) {
        errno = EINVAL;
        return -1;
    }
    if (!(job = lookup_active (p, id)))
        return -1;
    va_start (ap, fmt);
    if (vsnprintf (note, sizeof (note), fmt, ap) >= (int)sizeof (note))
        note[sizeof (note) - 2] = '+';
    va_end (ap);
    jm = jobtap_of (p)->jm;
    return raise_exception (jm, job, type, severity, jm->owner, note, -1);
}

flux_plugin_arg_t *flux_jobtap_job_lookup (flux_plugin_t *p, flux_jobid_t id)
{
    struct job *job = lookup (p, id);

    return job ? jobtap_args (job) : NULL;
}

int flux_jobtap_event_post_pack (flux_plugin_t *p, flux_jobid_t id,
                                 const char *name, const char *fmt, ...)
{
    struct job *job;

    if (!name) {
        errno = EINVAL;
        return -1;
    }
    if (!(job = lookup_active (p, id)))
        return -1;
    return VA (fmt, event_vpost (jobtap_of (p)->jm, job, 0, name, fmt, ap));
}

static bool can_update (struct job *job)
{
    return job
        && !(job->state & (FLUX_JOB_STATE_RUN
                           | FLUX_JOB_STATE_CLEANUP
                           | FLUX_JOB_STATE_INACTIVE))
        && !job->readonly;
}

int flux_jobtap_jobspec_update_pack (flux_plugin_t *p, const char *fmt, ...)
{
    struct jobtap *jt = jobtap_of (p);
    json_t *o;
    int rc = 0;

    if (!jt || !fmt || !can_update (jobtap_current (jt)))
        goto inval;
    o = VA (fmt, json_vpack_ex (NULL, 0, fmt, ap));
    if (!o || !updates_valid (o)) {
        json_decref (o);
        goto inval;
    }
    if (!jt->top->update)
        jt->top->update = o;
    else {
        rc = json_object_update (jt->top->update, o);
        json_decref (o);
    }
    return rc;
inval:
    errno = EINVAL;
    return -1;
}

int flux_jobtap_jobspec_update_id_pack (flux_plugin_t *p, flux_jobid_t id,
                                        const char *fmt, ...)
{
    struct jobtap *jt = jobtap_of (p);
    struct job *job;
    json_t *o;
    int rc;

    if (!jt
        || !fmt
        || !(job = lookup_active (p, id))
        || !can_update (job)
        || job == jobtap_current (jt))
        goto inval;
    o = VA (fmt, json_vpack_ex (NULL, 0, fmt, ap));
    if (!o || !updates_valid (o)) {
        json_decref (o);
        goto inval;
    }
    rc = event_post (jt->jm, job, 0, "jobspec-update", "o", o);
    return rc;
inval:
    errno = EINVAL;
    return -1;
}

int flux_jobtap_job_subscribe (flux_plugin_t *p, flux_jobid_t id)
{
    struct job *job;
    flux_plugin_t **new;

    if (!(job = lookup_active (p, id)))
        return -1;
    job_unsubscribe (job, p); // once is enough
    if (!(new = realloc (job->subscribers,
                         (job->nsubscribers + 1) * sizeof (*new))))
        return -1;
    job->subscribers = new;
    job->subscribers[job->nsubscribers++] = p;
    return 0;
}

void flux_jobtap_job_unsubscribe (flux_plugin_t *p, flux_jobid_t id)
{
    struct job *job = lookup_active (p, id);

    if (job)
        job_unsubscribe (job, p);
}

/* A prolog can begin until the job is handed to exec, an epilog while it is
 * in CLEANUP; both end in any case but that one.
 */
static int perilog (flux_plugin_t *p, struct job *job, bool prolog,
                    const char *event, const char *description, int status)
{
    bool start = strstr (event, "-start") != NULL;
    bool cleanup = job->state == FLUX_JOB_STATE_CLEANUP;
    bool late = prolog ? job->start_pending || (start && cleanup) : !cleanup;
    struct manager *jm = jobtap_of (p)->jm;

    if (late || !description) {
        errno = EINVAL;
        return -1;
    }
    if (start)
        return event_post (jm, job, 0, event, "{s:s}",
                           "description", description);
    return event_post (jm, job, 0, event, "{s:s s:i}",
                       "description", description,
                       "status", status);
}

static struct job *current (flux_plugin_t *p)
{
    struct jobtap *jt = jobtap_of (p);
    struct job *job = jt ? jobtap_current (jt) : NULL;

    if (!job)
        errno = EINVAL;
    return job;
}

int flux_jobtap_prolog_start (flux_plugin_t *p, const char *description)
{
    struct job *job = current (p);

    if (!job)
        return -1;
    return perilog (p, job, true, "prolog-start", description, 0);
}

int flux_jobtap_prolog_finish (flux_plugin_t *p, flux_jobid_t id,
                               const char *description, int status)
{
    struct job *job = lookup_active (p, id);

    if (!job)
        return -1;
    return perilog (p, job, true, "prolog-finish", description, status);
}

int flux_jobtap_epilog_start (flux_plugin_t *p, const char *description)
{
    struct job *job = current (p);

    if (!job)
        return -1;
    return perilog (p, job, false, "epilog-start", description, 0);
}

int flux_jobtap_epilog_finish (flux_plugin_t *p, flux_jobid_t id,
                               const char *description, int status)
{
    struct job *job = lookup_active (p, id);

    if (!job)
        return -1;
    return perilog (p, job, false, "epilog-finish", description, status);
}
