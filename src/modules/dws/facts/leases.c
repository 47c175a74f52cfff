/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See leases.h.
 */

#include <errno.h>
#include <inttypes.h>
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
    json_t *ledger;             // name -> {"uid", "expires", "told"?, "gone"?}, and
                                //  promises: name/job -> {"job", "lifetime", "uid"?}
};

/* What is being done about the promise of a job, or has been. Ends with the workflow.
 */
struct promise {
    bool written;
    bool settled;               // for Setup: leases_keep()
    unsigned int generation;    // of the workflow
};

/* Name, slash, job id.
 */
#define PROMISE_KEY_SIZE (DWS_PERSISTENT_NAME_SIZE + 24)

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
            promise->written = true;
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

static struct promise *promise_of (const struct job *job)
{
    struct promise *promise = job_slot (job, SLOT_LEASES);

    return promise && promise->generation == job->generation ? promise : NULL;
}

static struct promise *begin_promise (struct job *job)
{
    struct promise *promise;

    if ((promise = job_slot_make (job, SLOT_LEASES, sizeof (*promise),
                                  slot_free)))
        *promise = (struct promise){ .generation = job->generation };
    return promise;
}

/* Copy the name of the file system that the job creates, and the key of its promise.
 * Returns false if the job creates none.
 */
static bool name_promise (const struct job *job,
                          char name[DWS_PERSISTENT_NAME_SIZE],
                          char key[PROMISE_KEY_SIZE])
{
    if (!(job->facts->commands & DWS_COMMAND_CREATE_PERSISTENT)
        || !persistent_each_named (job, copy_created, name))
        return false;
    snprintf (key, PROMISE_KEY_SIZE, "%s/%" PRIu64, name, job->facts->id);
    return true;
}

bool leases_promise (struct job *job)
{
    struct leases *leases = job->ctx->leases;
    const struct promise *promise = promise_of (job);
    char name[DWS_PERSISTENT_NAME_SIZE];
    char key[PROMISE_KEY_SIZE];
    double lifetime = granted_lifetime (job);
    json_t *entry;
    json_t *wanted = NULL;
    bool same;

    if (promise || !name_promise (job, name, key))
        return !promise || promise->written;
    if (lifetime > 0.)
        wanted = json_pack ("{s:I s:f}",
                            "job", (json_int_t)job->facts->id,
                            "lifetime", lifetime);
    entry = json_object_get (leases->ledger, key);
    same = wanted ? json_equal (entry, wanted) : !entry;
    if (same) {
        json_decref (wanted);
        return true;
    }
    if (wanted)
        json_object_set_new (leases->ledger, key, wanted);
    else
        json_object_del (leases->ledger, key);
    if (write_ledger (leases, job->facts->id) < 0)
        return true;
    return begin_promise (job) == NULL;
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

/* Keep the promise of the job if its workflow has made the file system: of two jobs that
 * ask for one name, only the job whose workflow has made the file system says when that
 * expires. A later extend is not undone. Returns true if the ledger was changed.
 */
static bool keep_promise (struct job *job)
{
    json_t *ledger = job->ctx->leases->ledger;
    char name[DWS_PERSISTENT_NAME_SIZE];
    char key[PROMISE_KEY_SIZE];
    json_t *entry;
    json_t *o;
    const char *uid = "";
    const char *maker = "";
    double lifetime = 0.;
    double created = 0.;

    if (!job->wf || !name_promise (job, name, key)
        || !(entry = json_object_get (ledger, key))
        || !(o = persistent_find (job->ctx->persistent, name))
        || is_bound (entry, o))
        return false;
    (void)json_unpack (entry, "{s:F}", "lifetime", &lifetime);
    (void)json_unpack (o, "{s:s s:F s?s}", "uid", &uid, "created", &created,
                       "maker", &maker);
    if (strcmp (maker, job->wf->name) != 0 || created == 0.)
        return false;
    json_object_set_new (entry, "uid", json_string (uid));
    if (!is_bound (json_object_get (ledger, name), o))
        json_object_set_new (ledger, name,
                             json_pack ("{s:s s:f}", "uid", uid,
                                        "expires", created + lifetime));
    return true;
}

static void keep_each (struct job *job, void *arg)
{
    bool *changed = arg;

    if (keep_promise (job))
        *changed = true;
}

/* Returns 0, or 1 if the commit cannot be waited for.
 */
static int write_kept (struct job *job)
{
    struct promise *promise;

    if (write_ledger (job->ctx->leases, job->facts->id) < 0
        || !(promise = begin_promise (job)))
        return 1;
    promise->settled = true;
    return 0;
}

/* Is the promise of the job kept, now or before?
 */
static bool is_kept (struct job *job, json_t *entry, const char *name)
{
    return keep_promise (job)
        || is_bound (entry, persistent_find (job->ctx->persistent, name));
}

int leases_keep (struct job *job)
{
    const struct promise *promise = promise_of (job);
    char name[DWS_PERSISTENT_NAME_SIZE];
    char key[PROMISE_KEY_SIZE];
    json_t *entry;

    if (promise && promise->settled)
        return promise->written;
    if (!name_promise (job, name, key)
        || !(entry = json_object_get (job->ctx->leases->ledger, key)))
        return 1;
    return is_kept (job, entry, name) ? write_kept (job) : -1;
}

void leases_have_read (struct job *job)
{
    struct promise *promise;

    if (leases_keep (job) < 0 && (promise = begin_promise (job)))
        promise->settled = promise->written = true;
}

/* Settle
 */

/* Settle the entry of a file system that is not listed: destroyed, or missing from this
 * list. Returns true if the entry was changed or is to be removed ('*drop').
 */
static bool settle_gone (struct leases *leases, json_t *entry, double now,
                         bool *drop)
{
    json_t *gone = json_object_get (entry, "gone");
    struct timeline *timeline = leases->ctx->timeline;

    if (!gone)
        return json_object_set_new (entry, "gone", json_real (now)) == 0;
    *drop = timeline_of (timeline, json_real_value (gone)) + GONE_GRACE
            < timeline_now (timeline);
    return *drop;
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

/* Settle any entry. Returns true if it was changed or is to be removed ('*drop'), as a
 * promise is when its job is not known any more.
 */
static bool settle_entry (struct leases *leases, const char *name, json_t *entry,
                          double now, bool *drop)
{
    json_t *id = json_object_get (entry, "job");

    *drop = id && !jobs_find (leases->ctx->jobs, json_integer_value (id));
    if (id)
        return *drop;
    return settle_bound (leases, entry,
                         persistent_find (leases->ctx->persistent, name), now,
                         drop);
}

static void settle_ledger (struct leases *leases, double now)
{
    const char *name;
    json_t *entry;
    void *next;
    bool changed = false;

    jobs_each (leases->ctx->jobs, keep_each, &changed);
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
    bool changed = false;

    jobs_each (ctx->jobs, keep_each, &changed);
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
        listed += !json_object_get (entry, "gone")
                  && !json_object_get (entry, "job");
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
