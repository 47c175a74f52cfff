/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * job-manager.events-journal: every event of every job, streamed to those
 * who asked, after a backlog of the jobs known so far.
 */
#include "manager.h"

struct filter { // hangs on the request; allow and deny belong to it
    json_t *allow;
    json_t *deny;
};

static bool wanted (const flux_msg_t *msg, const char *name)
{
    struct filter *f = flux_msg_aux_get (msg, "filter");

    return (!f->allow || json_object_get (f->allow, name))
        && !(f->deny && json_object_get (f->deny, name));
}

void journal_event (struct manager *jm, struct job *job, const char *name,
                    json_t *entry)
{
    const flux_msg_t *msg;
    json_t *o;

    if (!(msg = flux_msglist_first (jm->journal))
        || !(o = json_pack ("{s:I s:[O]}", "id", job->id, "events", entry)))
        return;
    if (streq (name, "submit"))
        (void)json_object_set (o, "jobspec", job->jobspec);
    else if (streq (name, "alloc") && job->R)
        (void)json_object_set (o, "R", job->R);
    while (msg) {
        if (wanted (msg, name) && flux_respond_pack (jm->h, msg, "O", o) < 0)
            flux_log_error (jm->h, "error responding to events-journal");
        msg = flux_msglist_next (jm->journal);
    }
    json_decref (o);
}

static int send_backlog (struct manager *jm, const flux_msg_t *msg,
                         struct idmap *map)
{
    struct job *job;
    int rc = 0;

    each_job (job, map) {
        json_t *events = json_array ();
        size_t index;
        json_t *entry;
        json_t *o;

        json_array_foreach (job->eventlog, index, entry) {
            const char *name;

            if (entry_parse (entry, NULL, &name, NULL) == 0
                && wanted (msg, name))
                (void)json_array_append (events, entry);
        }
        o = json_pack ("{s:I s:o s:O s:O*}",
                       "id", job->id,
                       "events", events,
                       "jobspec", job->jobspec,
                       "R", job->R);
        rc = flux_respond_pack (jm->h, msg, "O", o);
        json_decref (o);
        if (rc < 0)
            break;
    }
    return rc;
}

void journal_request (flux_t *h, flux_msg_handler_t *mh,
                      const flux_msg_t *msg, void *arg)
{
    struct manager *jm = arg;
    struct filter *f;
    int full = 0;

    if (!(f = calloc (1, sizeof (*f)))
        || flux_msg_aux_set (msg, "filter", f, free) < 0) {
        free (f);
        goto error;
    }
    if (flux_request_unpack (msg, NULL, "{s?o s?o s?b}",
                             "allow", &f->allow,
                             "deny", &f->deny,
                             "full", &full) < 0)
        goto error;
    if (!flux_msg_is_streaming (msg)
        || (f->allow && !json_is_object (f->allow))
        || (f->deny && !json_is_object (f->deny))) {
        errno = EPROTO;
        goto error;
    }
    // the one with id -1 marks the end of the backlog
    if ((full && send_backlog (jm, msg, jm->inactive) < 0)
        || send_backlog (jm, msg, jm->active) < 0
        || flux_respond_pack (h, msg, "{s:I s:[]}",
                              "id", FLUX_JOBID_ANY,
                              "events") < 0
        || flux_msglist_append (jm->journal, msg) < 0)
        goto error;
    return;
error:
    respond_error (h, msg, NULL);
}

void journal_cancel_request (flux_t *h, flux_msg_handler_t *mh,
                             const flux_msg_t *msg, void *arg)
{
    struct manager *jm = arg;

    if (flux_msglist_cancel (h, jm->journal, msg) < 0)
        flux_log_error (h, "error handling events-journal-cancel");
}

void journal_end (struct manager *jm)
{
    const flux_msg_t *msg;

    while (jm->journal && (msg = flux_msglist_pop (jm->journal))) {
        (void)flux_respond_error (jm->h, msg, ENODATA, NULL);
        flux_msg_decref (msg);
    }
}
