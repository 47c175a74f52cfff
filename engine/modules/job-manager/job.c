/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * struct job: made from a submission or by ID, counted references, changes of
 * its parts, and the queues in which jobs wait by priority.
 */
#include "libutil/errno_safe.h"
#include "manager.h"

/* Life time */

struct job *job_create (flux_jobid_t id)
{
    struct job *job = malloc (sizeof (*job));

    if (!job)
        return NULL;
    *job = (struct job) {
        .id = id, .refcount = 1, .state = FLUX_JOB_STATE_NEW, .priority = -1,
        .urgency = FLUX_JOB_URGENCY_DEFAULT, .userid = FLUX_USERID_UNKNOWN,
        .posted = json_object (), .deps = json_object (),
        .eventlog = json_array (),
    };
    if (job->posted && job->deps && job->eventlog)
        return job;
    job_decref (job);
    errno = ENOMEM;
    return NULL;
}

struct job *job_from_submit (json_t *o)
{
    struct job *job = job_create (0);

    if (job
        && (json_unpack (o, "{s:I s:i s:i s:i s:f s:O}",
                         "id", &job->id,
                         "userid", &job->userid,
                         "urgency", &job->urgency,
                         "flags", &job->flags,
                         "t_submit", &job->t_submit,
                         "jobspec", &job->jobspec) < 0
            || job_parse_queue (job->jobspec, &job->queue) < 0)) {
        job_decref (job);
        job = NULL;
        errno = EPROTO;
    }
    return job;
}

struct job *job_incref (struct job *job)
{
    job->refcount++;
    return job;
}

void job_decref (void *arg)
{
    struct job *job = arg;
    struct queued_event *qe;

    if (!job || --job->refcount > 0)
        return;
    ERRNO_SAFE_BLOCK;
    jobq_remove (job);
    job_aux_clear (job, NULL);
    while ((qe = job->evq)) {
        job->evq = qe->next;
        json_decref (qe->entry);
        free (qe);
    }
    json_t *parts[] = {
        job->annotations, job->deps, job->end_event, job->eventlog,
        job->jobspec, job->posted, job->R,
    };
    for (size_t i = 0; i < sizeof (parts) / sizeof (parts[0]); i++)
        json_decref (parts[i]);
    flux_msg_decref (job->waiter);
    free (job->subscribers);
    free (job);
}

/* Search */

struct job *job_find (struct manager *jm, flux_jobid_t id)
{
    struct job *job = idmap_find (jm->active, id);

    if (!job && !(job = idmap_find (jm->inactive, id)))
        errno = ENOENT;
    return job;
}

struct job *job_find_active (struct manager *jm, flux_jobid_t id,
                             const char **errstr)
{
    struct job *job = idmap_find (jm->active, id);

    if (!job) {
        *errstr = job_find (jm, id) ? "job is inactive" : "unknown job id";
        errno = ENOENT;
    }
    return job;
}

/* What plugins keep with the job */

void job_aux_clear (struct job *job, flux_plugin_t *only)
{
    struct job_aux **slot = &job->aux;
    struct job_aux *item;

    while ((item = *slot)) {
        if (only && item->plugin != only) {
            slot = &item->next;
            continue;
        }
        *slot = item->next;
        if (item->free_fn)
            item->free_fn (item->val);  // may change the list
        free (item->name);
        free (item);
        slot = &job->aux;
    }
}

void job_unsubscribe (struct job *job, flux_plugin_t *p)
{
    size_t left = 0;

    for (size_t i = 0; i < job->nsubscribers; i++) {
        if (job->subscribers[i] != p)
            job->subscribers[left++] = job->subscribers[i];
    }
    job->nsubscribers = left;
}

/* Merge 'patch' into the job's annotations, below 'key' unless NULL. */
int job_annotate (struct job *job, const char *key, json_t *patch)
{
    int rc = -1;

    if (!json_is_object (patch)) {
        errno = EINVAL;
        return -1;
    }
    patch = key ? json_pack ("{s:O}", key, patch) : json_incref (patch);
    if (!job->annotations)
        job->annotations = json_object ();
    if (patch && job->annotations)
        rc = jp_merge (job->annotations, patch);
    else
        errno = ENOMEM;
    json_decref (patch);
    if (json_object_size (job->annotations) == 0) {
        json_decref (job->annotations);
        job->annotations = NULL;
    }
    return rc;
}

/* Flags, dependencies, events */

int job_set_flag (struct job *job, const char *flag)
{
    if (streq (flag, "debug"))
        job->flags |= FLUX_JOB_DEBUG;
    else if (streq (flag, "immutable"))
        job->immutable = true;
    else if (streq (flag, "alloc-bypass"))
        job->alloc_bypass = true;
    else {
        errno = EINVAL;
        return -1;
    }
    return 0;
}

int job_open_deps (struct job *job)
{
    int open = 0;
    const char *name;
    json_t *is_open;

    json_object_foreach (job->deps, name, is_open)
        open += json_is_true (is_open);
    return open;
}

bool job_event_queued (struct job *job, const char *name)
{
    struct queued_event *qe = job->evq;
    json_t *o;

    for (; qe; qe = qe->next) {
        if ((o = json_object_get (qe->entry, "name"))
            && streq (json_string_value (o), name))
            return true;
    }
    return false;
}

/* Jobspec */

int job_parse_queue (json_t *jobspec, const char **queue)
{
    *queue = NULL;
    if (json_unpack (jobspec, "{s?{s?{s?s}}}", "attributes", "system", "queue",
                     queue) == 0)
        return 0;
    errno = EINVAL;
    return -1;
}

/* Keys are paths within one of three sections (RFC 21). */
bool updates_valid (json_t *updates)
{
    static const char *const sections[] = {
        "attributes", "resources", "tasks",
    };
    const char *key;
    json_t *value;
    int i;

    json_object_foreach (updates, key, value) {
        size_t len = strcspn (key, ".");

        for (i = 0; i < 3; i++) {
            if (strlen (sections[i]) == len && strstarts (key, sections[i]))
                break;
        }
        if (i == 3)
            return false;
    }
    return json_is_object (updates);
}

/* On a copy first: a jobspec with half of the updates is never seen. */
int job_jobspec_update (struct job *job, json_t *updates)
{
    json_t *trial = json_deep_copy (job->jobspec);
    const char *queue;
    int rc = trial ? jobspec_apply (trial, updates) : -1;

    if (rc == 0 && (rc = job_parse_queue (trial, &queue)) == 0
        && (rc = jobspec_apply (job->jobspec, updates)) == 0)
        rc = job_parse_queue (job->jobspec, &job->queue);
    json_decref (trial);
    return rc;
}

/* Queues */

int job_cmp_priority (struct job *a, struct job *b)
{
    if (a->priority != b->priority)
        return a->priority > b->priority ? -1 : 1;
    return (a->id > b->id) - (a->id < b->id);
}

/* New jobs mostly go to the end, so look for the place from there. */
void jobq_insert (struct jobq *q, struct job *job)
{
    struct job *before;

    jobq_remove (job); // may be in this very queue
    before = TAILQ_LAST (&q->jobs, joblist);
    while (before && job_cmp_priority (job, before) < 0)
        before = TAILQ_PREV (before, joblist, link);
    if (before)
        TAILQ_INSERT_AFTER (&q->jobs, before, job, link);
    else
        TAILQ_INSERT_HEAD (&q->jobs, job, link);
    q->count++;
    job->q = q;
}

void jobq_remove (struct job *job)
{
    if (job->q) {
        TAILQ_REMOVE (&job->q->jobs, job, link);
        job->q->count--;
        job->q = NULL;
    }
}
