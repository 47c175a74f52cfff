/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * One job: its life time, what plugins hang on it, its place in a priority
 * queue, and its reconstruction from what the KVS has.
 */
#include "libutil/errno_safe.h"
#include "manager.h"

void job_aux_clear (struct job *job, flux_plugin_t *only)
{
    struct job_aux **ap = &job->aux;

    while (*ap) {
        struct job_aux *a = *ap;

        if (only && a->plugin != only) {
            ap = &a->next;
            continue;
        }
        *ap = a->next; // unlink first: the destructor may call back
        if (a->free_fn)
            a->free_fn (a->val);
        free (a->name);
        free (a);
        ap = &job->aux;
    }
}

void job_unsubscribe (struct job *job, flux_plugin_t *p)
{
    for (size_t i = 0; i < job->nsubscribers; i++) {
        if (job->subscribers[i] == p) {
            job->nsubscribers--;
            memmove (&job->subscribers[i],
                     &job->subscribers[i + 1],
                     (job->nsubscribers - i) * sizeof (p));
            break;
        }
    }
}

void job_decref (struct job *job)
{
    if (job && --job->refcount == 0) {
        ERRNO_SAFE_BLOCK;

        jobq_remove (job);
        job_aux_clear (job, NULL);
        while (job->evq) {
            struct queued_event *qe = job->evq;
            job->evq = qe->next;
            json_decref (qe->entry);
            free (qe);
        }
        flux_msg_decref (job->waiter);
        json_decref (job->jobspec);
        json_decref (job->R);
        json_decref (job->eventlog);
        json_decref (job->posted);
        json_decref (job->annotations);
        json_decref (job->deps);
        json_decref (job->end_event);
        free (job->subscribers);
        free (job);
    }
}

struct job *job_incref (struct job *job)
{
    if (job)
        job->refcount++;
    return job;
}

struct job *job_create (flux_jobid_t id)
{
    struct job *job;

    if (!(job = calloc (1, sizeof (*job))))
        return NULL;
    job->refcount = 1;
    job->id = id;
    job->userid = FLUX_USERID_UNKNOWN;
    job->urgency = FLUX_JOB_URGENCY_DEFAULT;
    job->priority = -1;
    job->state = FLUX_JOB_STATE_NEW;
    if (!(job->eventlog = json_array ())
        || !(job->posted = json_object ())
        || !(job->deps = json_object ())) {
        job_decref (job);
        errno = ENOMEM;
        return NULL;
    }
    return job;
}

int job_parse_queue (json_t *jobspec, const char **queue)
{
    *queue = NULL;
    if (json_unpack (jobspec,
                     "{s?{s?{s?s}}}",
                     "attributes",
                       "system",
                         "queue", queue) < 0) {
        errno = EINVAL;
        return -1;
    }
    return 0;
}

struct job *job_from_submit (json_t *o)
{
    struct job *job;

    if (!(job = job_create (0)))
        return NULL;
    if (json_unpack (o,
                     "{s:O s:I s:f s:i s:i s:i}",
                     "jobspec", &job->jobspec,
                     "id", &job->id,
                     "t_submit", &job->t_submit,
                     "flags", &job->flags,
                     "urgency", &job->urgency,
                     "userid", &job->userid) < 0
        || job_parse_queue (job->jobspec, &job->queue) < 0) {
        job_decref (job);
        errno = EPROTO;
        return NULL;
    }
    return job;
}

struct job *job_find (struct manager *jm, flux_jobid_t id)
{
    struct job *job = idmap_get (jm->active, id);

    return job ? job : idmap_get (jm->inactive, id);
}

struct job *job_find_active (struct manager *jm,
                             flux_jobid_t id,
                             const char **errstr)
{
    struct job *job;

    if (!(job = idmap_get (jm->active, id))) {
        *errstr = idmap_get (jm->inactive, id) ? "job is inactive"
                                               : "unknown job id";
        errno = ENOENT;
    }
    return job;
}

int job_set_flag (struct job *job, const char *flag, bool dry_run)
{
    bool *b = NULL;

    if (streq (flag, "alloc-bypass"))
        b = &job->alloc_bypass;
    else if (streq (flag, "immutable"))
        b = &job->immutable;
    else if (!streq (flag, "debug")) {
        errno = EINVAL;
        return -1;
    }
    if (!dry_run) {
        if (b)
            *b = true;
        else
            job->flags |= FLUX_JOB_DEBUG;
    }
    return 0;
}

int job_open_deps (struct job *job)
{
    const char *key;
    json_t *val;
    int count = 0;

    json_object_foreach (job->deps, key, val)
        count += json_is_true (val);
    return count;
}

/* On a copy first: a jobspec with half of the updates is never seen. */
int job_jobspec_update (struct job *job, json_t *updates)
{
    json_t *copy = json_deep_copy (job->jobspec);
    const char *queue;
    int rc = -1;

    if (copy
        && jobspec_apply (copy, updates) == 0
        && job_parse_queue (copy, &queue) == 0
        && jobspec_apply (job->jobspec, updates) == 0)
        rc = job_parse_queue (job->jobspec, &job->queue);
    json_decref (copy);
    return rc;
}

/* RFC 21: updates concern these three sections */
bool updates_valid (json_t *updates)
{
    const char *key;
    json_t *val;

    if (!json_is_object (updates))
        return false;
    json_object_foreach (updates, key, val) {
        const char *dot = strchr (key, '.');
        size_t len = dot ? (size_t)(dot - key) : strlen (key);

        if (!(len == 10 && strncmp (key, "attributes", len) == 0)
            && !(len == 9 && strncmp (key, "resources", len) == 0)
            && !(len == 5 && strncmp (key, "tasks", len) == 0))
            return false;
    }
    return true;
}

bool job_event_queued (struct job *job, const char *name)
{
    for (struct queued_event *qe = job->evq; qe; qe = qe->next) {
        const char *s;

        if (entry_parse (qe->entry, NULL, &s, NULL) == 0 && streq (s, name))
            return true;
    }
    return false;
}

/* Merge 'patch' into the job's annotations, below 'key' unless NULL. */
int job_annotate (struct job *job, const char *key, json_t *patch)
{
    json_t *wrap = NULL;
    int rc;

    if (!json_is_object (patch)) {
        errno = EINVAL;
        return -1;
    }
    if ((key && !(wrap = json_pack ("{s:O}", key, patch)))
        || (!job->annotations && !(job->annotations = json_object ()))) {
        json_decref (wrap);
        errno = ENOMEM;
        return -1;
    }
    rc = jp_merge (job->annotations, wrap ? wrap : patch);
    json_decref (wrap);
    if (json_object_size (job->annotations) == 0) {
        json_decref (job->annotations);
        job->annotations = NULL;
    }
    return rc;
}

int job_cmp_priority (struct job *a, struct job *b)
{
    if (a->priority != b->priority)
        return a->priority > b->priority ? -1 : 1;
    return a->id == b->id ? 0 : a->id < b->id ? -1 : 1;
}

/* New jobs mostly go to the end, so look for the place from there. */
void jobq_insert (struct jobq *q, struct job *job)
{
    struct job *prev;

    jobq_remove (job); // may be in this very queue
    prev = q->tail;
    while (prev && job_cmp_priority (job, prev) < 0)
        prev = prev->qprev;
    job->q = q;
    job->qprev = prev;
    job->qnext = prev ? prev->qnext : q->head;
    if (job->qnext)
        job->qnext->qprev = job;
    else
        q->tail = job;
    if (prev)
        prev->qnext = job;
    else
        q->head = job;
    q->count++;
}

void jobq_remove (struct job *job)
{
    struct jobq *q = job->q;

    if (q) {
        if (job->qprev)
            job->qprev->qnext = job->qnext;
        else
            q->head = job->qnext;
        if (job->qnext)
            job->qnext->qprev = job->qprev;
        else
            q->tail = job->qprev;
        job->q = NULL;
        job->qprev = job->qnext = NULL;
        q->count--;
    }
}
