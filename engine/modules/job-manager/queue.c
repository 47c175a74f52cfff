/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Queues (RFC 33): one without name, or those in [queues].  A queue lets jobs
 * go to the scheduler (start), or not.  Stopped queues take jobs too.
 */
#include "libutil/errno_safe.h"
#include "queue.h"

static void queue_free (struct queue *q)
{
    if (q) {
        free (q->name);
        free (q->stop_reason);
        free (q);
    }
}

/* Named queues begin stopped. */
static struct queue *queue_new (const char *name)
{
    struct queue *q;

    if (!(q = calloc (1, sizeof (*q)))
        || (name && !(q->name = strdup (name)))) {
        free (q);
        return NULL;
    }
    q->started = q->sticky_started = (name == NULL);
    return q;
}

bool queues_have_names (struct queues *queues)
{
    return queues->list && queues->list->name;
}

struct queue *queue_find (struct queues *queues, const char *name,
                           flux_error_t *error)
{
    errno = EINVAL;
    if (!name && queues_have_names (queues)) {
        set_error (error, "a named queue is required");
        return NULL;
    }
    for (struct queue *q = queues->list; q; q = q->next) {
        if (name ? q->name && streq (q->name, name) : !q->name)
            return q;
    }
    set_error (error, "'%s' is not a valid queue", name ? name : "default");
    return NULL;
}

/* Keep the state of queues that stay; jobs of one that goes are on hold. */
int queues_configure (struct queues *queues, const flux_conf_t *conf,
                      flux_error_t *error)
{
    json_t *table = NULL;
    int stop_on_restart = 0;
    const char *name;
    json_t *val;
    struct queue **qp;

    if (flux_conf_unpack (conf, error, "{s?{s?b} s?o}",
                          "job-manager",
                            "stop-queues-on-restart", &stop_on_restart,
                          "queues", &table) < 0)
        return -1;
    if (table && !json_is_object (table))
        return set_error (error, "[queues] must be a table");
    queues->stop_on_restart = stop_on_restart;
    for (struct queue *q = queues->list; q; q = q->next)
        q->mark = false;
    json_object_foreach (table, name, val) {
        struct queue *q;

        for (q = queues->list; q; q = q->next) {
            if (q->name && streq (q->name, name))
                break;
        }
        if (!q) {
            if (!(q = queue_new (name)))
                return set_error (error, "out of memory");
            for (qp = &queues->list; *qp; qp = &(*qp)->next)
                ;
            *qp = q;
        }
        q->mark = true;
    }
    if (json_object_size (table) == 0) {
        struct queue *anon = queues->list;

        if (!anon || anon->name) {
            if (!(anon = queue_new (NULL)))
                return set_error (error, "out of memory");
            anon->next = queues->list;
            queues->list = anon;
        }
        anon->mark = true;
    }
    for (qp = &queues->list; *qp;) {
        struct queue *q = *qp;

        if (!q->mark) {
            *qp = q->next;
            queue_free (q);
        }
        else
            qp = &q->next;
    }
    return 0;
}

bool queue_started (struct manager *jm, struct job *job)
{
    struct queue *q = queue_find (jm->queues, job->queue, NULL);

    return q && q->started;
}

int queue_submit_check (struct manager *jm, json_t *jobspec,
                        flux_error_t *error)
{
    json_t *o = jp_get (jobspec, "attributes.system.queue");
    const char *name = json_string_value (o);

    return queue_find (jm->queues, name, error) ? 0 : -1;
}

json_t *queues_save (struct queues *queues)
{
    json_t *a = json_array ();

    for (struct queue *q = queues->list; q; q = q->next)
        json_array_append_new (a,
                json_pack ("{s:b s:s* s:s*}",
                           "start", q->sticky_started,
                           "name", q->name,
                           "stop_reason",
                             q->sticky_started ? NULL : q->stop_reason));
    return a;
}

void queues_destroy (struct queues *queues)
{
    if (queues) {
        ERRNO_SAFE_BLOCK;

        while (queues->list) {
            struct queue *q = queues->list;

            queues->list = q->next;
            queue_free (q);
        }
        free (queues);
    }
}

struct queues *queues_create (struct manager *jm)
{
    struct queues *queues;

    if (!(queues = calloc (1, sizeof (*queues))))
        return NULL;
    queues->jm = jm;
    return queues;
}
