/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See leases.h.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libdws/directive/command.h"
#include "libdws/tell/persistent.h"
#include "libutil/errno_safe.h"
#include "libutil/names.h"
#include "libutil/safelog.h"
#include "base/calls.h"
#include "base/commits.h"
#include "base/timeline.h"
#include "facts/config.h"
#include "facts/leases.h"
#include "facts/persistent.h"
#include "facts/sweeps.h"

/* A longer lifetime (s) counts as unlimited.
 */
#define LONGEST 1E10

/* Keep the entry of an unlisted file system for this time (s). Watches are not
 * synchronized, so a job may end before its file system is reported; a list from an
 * older backup or a lagging server lacks file systems that exist.
 */
#define GONE_GRACE 600.

struct leases {
    struct dws_ctx *ctx;
    json_t *ledger;             // name -> {"job", "userid", "lifetime", "gone"?},
                                //  or then {"uid", "expires", "told"?, "gone"?}
};

/* A promise that is being written, or has been. Ends with the workflow.
 */
struct promise {
    bool made;
    unsigned int generation;    // of the workflow
};

/* The ledger
 */

static flux_future_t *commit_ledger (struct leases *leases)
{
    flux_kvs_txn_t *txn;

    if (!(txn = commits_txn (leases->ctx->commits))
        || flux_kvs_txn_pack (txn, 0, DWS_KEY_EXPIRY, "O", leases->ledger) < 0)
        return NULL;
    return commits_wait (leases->ctx->commits);
}

static void committed_cb (const struct call *call, flux_future_t *f)
{
    struct job *job = call->jobid ? jobs_find (call->ctx->jobs, call->jobid)
                                  : NULL;

    if (flux_future_get (f, NULL) < 0)
        safe_log (call->ctx->h, LOG_ERR, DWS_KEY_EXPIRY ": %s",
                  future_strerror (f, errno));
    if (job) {
        struct promise *promise = job_slot (job, SLOT_LEASES);

        if (promise)
            promise->made = true;
        jobs_changed (job);
    }
}

static int write_ledger (struct leases *leases, uint64_t jobid)
{
    int rc = calls_add (leases->ctx, commit_ledger (leases), jobid, 0,
                        committed_cb);

    if (rc < 0)
        safe_log_error (leases->ctx->h, DWS_KEY_EXPIRY);
    return rc;
}

static int read_ledger (struct leases *leases)
{
    flux_future_t *f;
    json_t *o;
    int rc = -1;

    if (!(f = flux_kvs_lookup (leases->ctx->h, NULL, 0, DWS_KEY_EXPIRY)))
        return -1;
    if (flux_kvs_lookup_get_unpack (f, "o", &o) == 0 && json_is_object (o)) {
        leases->ledger = json_incref (o);
        rc = 0;
    }
    else if (errno == ENOENT && (leases->ledger = json_object ()))
        rc = 0;
    flux_future_destroy (f);
    return rc;
}

struct leases *leases_create (struct dws_ctx *ctx)
{
    struct leases *leases;

    if (!(leases = calloc (1, sizeof (*leases))))
        return NULL;
    leases->ctx = ctx;
    if (read_ledger (leases) < 0) {
        leases_destroy (leases);
        return NULL;
    }
    return leases;
}

void leases_destroy (struct leases *leases)
{
    if (leases) {
        ERRNO_SAFE_BLOCK;
        json_decref (leases->ledger);
        free (leases);
    }
}

/* Promises
 */

static int copy_created (unsigned command, const char *name, void *arg)
{
    if (command != DWS_COMMAND_CREATE_PERSISTENT)
        return 0;
    snprintf (arg, DWS_PERSISTENT_NAME_SIZE, "%s", name);
    return 1;
}

/* Does the entry promise the file system to another job that may still create it? One
 * of the two jobs will be refused; keep the entry until it is known which.
 */
static bool is_anothers (const struct job *job, json_t *entry)
{
    json_int_t id = 0;
    struct job *other;

    (void)json_unpack (entry, "{s:I}", "job", &id);
    return id != 0 && id != (json_int_t)job->facts->id
        && (other = jobs_find (job->ctx->jobs, id))
        && other->facts->phase < DWS_PHASE_EPILOG && !other->facts->exception;
}

/* The lifetime (s) of the file system that the job creates; 0: unlimited. Submission
 * rejects lifetimes above the maximum; cut them here in case the configuration was
 * changed since.
 */
static double granted_lifetime (const struct job *job)
{
    double max = job->ctx->config->persistent_lifetime;
    double lifetime = job->facts->lifetime;

    if (max > 0. && (lifetime < 0. || lifetime > max))
        lifetime = max;
    return lifetime > 0. && lifetime < LONGEST ? lifetime : 0.;
}

/* Returns NULL if the promise for the job's workflow was not written.
 */
static const struct promise *promise_of (const struct job *job)
{
    const struct promise *promise = job_slot (job, SLOT_LEASES);

    return promise && promise->generation == job->generation ? promise : NULL;
}

static void begin_promise (struct job *job)
{
    struct promise *promise;

    if ((promise = job_slot_make (job, SLOT_LEASES, sizeof (*promise),
                                  slot_free)))
        *promise = (struct promise){ .generation = job->generation };
}

bool leases_promise (struct job *job)
{
    struct leases *leases = job->ctx->leases;
    const struct promise *promise = promise_of (job);
    char name[DWS_PERSISTENT_NAME_SIZE];
    double lifetime = granted_lifetime (job);
    json_t *entry;
    json_t *wanted = NULL;
    bool same;

    if (!(job->facts->commands & DWS_COMMAND_CREATE_PERSISTENT)
        || (promise && promise->made)
        || !persistent_each_named (job, copy_created, name)
        || persistent_find (job->ctx->persistent, name))
        return true;
    if (promise)
        return false;
    entry = json_object_get (leases->ledger, name);
    if (is_anothers (job, entry))
        return true;
    if (lifetime > 0.)
        wanted = json_pack ("{s:I s:I s:f}",
                            "job", (json_int_t)job->facts->id,
                            "userid", (json_int_t)job->facts->userid,
                            "lifetime", lifetime);
    same = wanted ? json_equal (entry, wanted) : !entry;
    if (same) {
        json_decref (wanted);
        return true;
    }
    if (wanted)
        json_object_set_new (leases->ledger, name, wanted);
    else
        json_object_del (leases->ledger, name);
    if (write_ledger (leases, job->facts->id) < 0)
        return true;
    begin_promise (job);
    return false;
}

/* Entries and file systems
 */

static bool is_bound (json_t *entry, json_t *description)
{
    const char *uid = "";
    const char *s = "";

    return description
        && json_unpack (entry, "{s:s}", "uid", &uid) == 0
        && json_unpack (description, "{s:s}", "uid", &s) == 0
        && *uid && !strcmp (uid, s);
}

#define NAMING (DWS_COMMAND_CREATE_PERSISTENT | DWS_COMMAND_PERSISTENTDW \
                | DWS_COMMAND_DESTROY_PERSISTENT)

struct search {
    const char *name;
    bool found;
};

static int is_name (unsigned command, const char *name, void *arg)
{
    struct search *search = arg;

    return !strcmp (name, search->name);
}

static void find_named (struct job *job, void *arg)
{
    struct search *search = arg;

    if (!search->found && (job->facts->commands & NAMING))
        search->found = persistent_each_named (job, is_name, search) != 0;
}

static bool is_wanted (struct dws_ctx *ctx, const char *name,
                       json_t *description)
{
    struct search search = { .name = name };

    search.found = json_array_size (json_object_get (description, "users")) > 0;
    if (!search.found)
        jobs_each (ctx->jobs, find_named, &search);
    return search.found;
}

static void read_lease (struct leases *leases, const char *name,
                        json_t *description, struct lease_of *of)
{
    json_t *entry = json_object_get (leases->ledger, name);
    const char *uid = "";

    memset (of, 0, sizeof (*of));
    snprintf (of->name, sizeof (of->name), "%s", name);
    of->userid = -1;
    (void)json_unpack (description, "{s:s s:I}", "uid", &uid,
                       "userid", &of->userid);
    sweeps_name (uid, of->workflow);
    of->lease.there = is_bound (entry, description);
    if (of->lease.there)
        (void)json_unpack (entry, "{s?F s?F}", "expires", &of->lease.expires,
                           "told", &of->lease.told);
    sweeps_read (leases->ctx->sweeps, of->workflow, &of->lease);
}

/* Settle
 */

/* Settle the entry of a file system that is not listed: destroyed, missing from this
 * list, not reported yet, or never created because its job failed. Returns true if the
 * entry was changed or is to be removed ('*drop').
 */
static bool settle_gone (struct leases *leases, json_t *entry, double now,
                         bool *drop)
{
    json_t *id = json_object_get (entry, "job");
    json_t *gone = json_object_get (entry, "gone");
    struct timeline *timeline = leases->ctx->timeline;

    if (id && jobs_find (leases->ctx->jobs, json_integer_value (id)))
        return false;
    if (!gone)
        return json_object_set_new (entry, "gone", json_real (now)) == 0;
    *drop = timeline_of (timeline, json_real_value (gone)) + GONE_GRACE
            < timeline_now (timeline);
    return *drop;
}

/* Bind the promise to the file system of that name. A file system created after the
 * promised job ended is a different one.
 */
static bool bind_entry (struct timeline *timeline, json_t *entry,
                        json_t *description, bool *drop)
{
    const char *uid = "";
    json_int_t userid = -1;
    json_int_t owner = -1;
    double lifetime = 0.;
    double created = 0.;
    double gone = 0.;

    (void)json_unpack (entry, "{s:I s:F s?F}", "userid", &userid,
                       "lifetime", &lifetime, "gone", &gone);
    (void)json_unpack (description, "{s:s s:I s:F}", "uid", &uid,
                       "userid", &owner, "created", &created);
    *drop = owner != userid || created == 0.
            || (gone > 0. && timeline_of (timeline, created)
                             > timeline_of (timeline, gone));
    if (!*drop) {
        json_object_clear (entry);
        json_object_set_new (entry, "uid", json_string (uid));
        json_object_set_new (entry, "expires", json_real (created + lifetime));
    }
    return true;
}

/* Settle an entry with a uid. A file system of that name with another uid has
 * no lease.
 */
static bool settle_bound (struct leases *leases, json_t *entry,
                          json_t *description, double now, bool *drop)
{
    if (!description)
        return settle_gone (leases, entry, now, drop);
    *drop = !is_bound (entry, description);
    return json_object_del (entry, "gone") == 0 || *drop;
}

/* Settle any entry. Returns true if it was changed or is to be removed
 * ('*drop').
 */
static bool settle_entry (struct leases *leases, const char *name, json_t *entry,
                          double now, bool *drop)
{
    json_t *o = persistent_find (leases->ctx->persistent, name);

    *drop = false;
    if (!json_object_get (entry, "lifetime"))
        return settle_bound (leases, entry, o, now, drop);
    return o ? bind_entry (leases->ctx->timeline, entry, o, drop)
             : settle_gone (leases, entry, now, drop);
}

static void settle_ledger (struct leases *leases, double now)
{
    const char *name;
    json_t *entry;
    void *next;
    bool changed = false;

    json_object_foreach_safe (leases->ledger, next, name, entry) {
        bool drop;

        if (settle_entry (leases, name, entry, now, &drop)) {
            changed = true;
            if (drop)
                json_object_del (leases->ledger, name);
        }
    }
    if (changed)
        write_ledger (leases, 0);
}

/* Collects workflows of file systems without an entry, such as destroyed ones.
 */
struct others {
    struct leases *leases;
    struct lease_of *list;
    size_t known;
    size_t count;
};

static void add_other (const char *workflow, const char *fs, void *arg)
{
    struct others *others = arg;
    struct lease_of *of = &others->list[others->count];

    for (size_t i = 0; i < others->known; i++) {
        if (!strcmp (others->list[i].workflow, workflow))
            return;
    }
    of->userid = -1;
    snprintf (of->name, sizeof (of->name), "%s", fs);
    snprintf (of->workflow, sizeof (of->workflow), "%s", workflow);
    sweeps_read (others->leases->ctx->sweeps, workflow, &of->lease);
    others->count++;
}

struct lease_of *leases_settle (struct dws_ctx *ctx, double now, size_t *count)
{
    struct leases *leases = ctx->leases;
    struct lease_of *list;
    struct others others;
    const char *name;
    json_t *entry;

    settle_ledger (leases, now);
    *count = 0;
    if (!(list = calloc (json_object_size (leases->ledger)
                         + sweeps_count (ctx->sweeps) + 1,
                         sizeof (*list))))
        return NULL;
    json_object_foreach (leases->ledger, name, entry) {
        json_t *o = persistent_find (ctx->persistent, name);
        struct lease_of *of = &list[*count];

        if (!is_bound (entry, o))
            continue;           // there is no file system yet
        read_lease (leases, name, o, of);
        if (of->lease.has_workflow || dws_lease_is_due (&of->lease, now))
            of->lease.wanted = is_wanted (ctx, name, o);
        (*count)++;
    }
    others = (struct others) { leases, list, *count, *count };
    sweeps_each (ctx->sweeps, add_other, &others);
    *count = others.count;
    return list;
}

void leases_told (struct dws_ctx *ctx, const char *name)
{
    json_t *entry = json_object_get (ctx->leases->ledger, name);

    if (entry) {
        json_object_set (entry, "told", json_object_get (entry, "expires"));
        write_ledger (ctx->leases, 0);
    }
}

/* Requests
 */

struct check {
    struct job *job;
    dws_error_t *error;
};

static int check_named (unsigned command, const char *name, void *arg)
{
    const struct check *check = arg;
    struct dws_ctx *ctx = check->job->ctx;
    json_t *o = persistent_find (ctx->persistent, name);
    json_int_t owner = -1;
    int shared = 0;
    struct lease_of of;

    if (!o || command == DWS_COMMAND_DESTROY_PERSISTENT)
        return 0;
    /* Do not reveal when a file system of another user expires. */
    (void)json_unpack (o, "{s:I s?b}", "userid", &owner, "shared", &shared);
    if (!shared && !persistent_may_know (check->job, owner))
        return 0;
    read_lease (ctx->leases, name, o, &of);
    if (dws_lease_is_doomed (&of.lease))
        return dws_error (check->error, EINVAL, "persistent file system '%s' has "
                          "expired and is being destroyed", name);
    if (of.lease.there && of.lease.expires > 0.
        && of.lease.expires <= flux_reactor_time ()
        && check->job->facts->phase == DWS_PHASE_DEPEND)
        return dws_error (check->error, EINVAL, "persistent file system '%s' has "
                          "expired: flux rabbit persistent extend %s", name, name);
    return 0;
}

int leases_check (struct job *job, dws_error_t *error)
{
    struct check check = { .job = job, .error = error };

    return persistent_each_named (job, check_named, &check);
}

flux_future_t *leases_set (struct dws_ctx *ctx, const char *name, double expires,
                           dws_error_t *error)
{
    struct leases *leases = ctx->leases;
    json_t *o = persistent_find (ctx->persistent, name);
    double max = ctx->config->persistent_lifetime;
    const char *uid = "";
    struct lease_of of;
    double now = flux_reactor_time ();

    (void)json_unpack (o, "{s:s}", "uid", &uid);
    read_lease (leases, name, o, &of);
    if (dws_lease_is_doomed (&of.lease)) {
        dws_error (error, EBUSY, "'%s' has expired and is being destroyed", name);
        return NULL;
    }
    if (expires != 0. && !(expires > now)) {
        dws_error (error, EINVAL, "that time is over");
        return NULL;
    }
    /* Allow one second, for the time that the request has taken. */
    if (expires > now + LONGEST) {
        dws_error (error, EINVAL, "that is never");
        return NULL;
    }
    if (max > 0. && (expires == 0. || expires > now + max + 1.)) {
        dws_error (error, EINVAL, "the longest is %g s from now "
                   "(rabbit.persistent_lifetime)", max);
        return NULL;
    }
    if (expires == 0.)
        json_object_del (leases->ledger, name);
    else if (json_object_set_new (leases->ledger, name,
                                  json_pack ("{s:s s:f}", "uid", uid,
                                             "expires", expires)) < 0) {
        dws_error_nomem (error);
        return NULL;
    }
    ctx->events->leases_changed (ctx);
    return commit_ledger (leases);
}

json_t *leases_status (const struct leases *leases)
{
    const struct sweeps *sweeps = leases->ctx->sweeps;
    const char *name;
    json_t *entry;
    int listed = 0;

    json_object_foreach (leases->ledger, name, entry)
        listed += json_object_get (entry, "gone") == NULL;
    return json_pack ("{s:i s:i s:i}",
                      "listed", listed,
                      "destroying", (int)sweeps_count (sweeps),
                      "destroyed", sweeps_destroyed (sweeps));
}

json_t *leases_describe (struct dws_ctx *ctx, json_t *array)
{
    double now = flux_reactor_time ();
    json_t *o;
    size_t index;

    json_array_foreach (array, index, o) {
        struct lease_of of;
        double expires;

        read_lease (ctx->leases,
                    json_string_value (json_object_get (o, "name")), o, &of);
        expires = of.lease.expires;
        json_object_set_new (o, "expires", json_real (expires));
        json_object_set_new (o, "expiring", json_boolean (
            expires > 0.
            && expires - LEASE_NOTICE <= now));
        json_object_set_new (o, "destroying", json_boolean (
            dws_lease_is_doomed (&of.lease)));
    }
    return array;
}
