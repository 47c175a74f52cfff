/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See persistent.h.
 */

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libdws/directive/command.h"
#include "libdws/tell/persistent.h"
#include "libdws/util/jsonmake.h"
#include "libutil/errno_safe.h"
#include "base/worker.h"
#include "facts/config.h"
#include "facts/persistent.h"
#include "facts/space.h"

struct persistent {
    json_t *list;               // namespace/name -> description
    json_t *users;              // number -> name, or number while it is unknown
    struct worker *worker;
};

struct persistent *persistent_create (struct worker *worker)
{
    struct persistent *p;

    if (!(p = calloc (1, sizeof (*p))))
        return NULL;
    p->worker = worker;
    p->list = json_object ();
    p->users = json_object ();
    if (!p->list || !p->users) {
        persistent_destroy (p);
        errno = ENOMEM;
        return NULL;
    }
    return p;
}

void persistent_destroy (struct persistent *p)
{
    if (p) {
        ERRNO_SAFE_BLOCK;
        json_decref (p->list);
        json_decref (p->users);
        free (p);
    }
}

/* The task of the worker: find the name of an owner.
 */
struct owner {
    uid_t uid;
    char number[24];
    char name[256];             // "": there is none
    bool failed;
};

/* In the thread.
 */
static void owner_run (void *task)
{
    struct owner *owner = task;
    struct passwd pw;
    struct passwd *result = NULL;
    char space[16384];

    owner->failed = getpwuid_r (owner->uid, &pw, space, sizeof (space),
                                &result) != 0;
    if (!owner->failed && result)
        snprintf (owner->name, sizeof (owner->name), "%s", pw.pw_name);
}

static void owner_done (void *task, void *arg)
{
    const struct owner *owner = task;
    struct persistent *p = arg;
    const char *key;
    json_t *o;

    if (owner->failed)          // look up again when the file system changes
        json_object_del (p->users, owner->number);
    if (!*owner->name)
        return;
    json_object_set_new (p->users, owner->number, json_string (owner->name));
    json_object_foreach (p->list, key, o) {
        json_int_t id = json_integer_value (json_object_get (o, "userid"));

        if (id == (json_int_t)owner->uid)
            json_object_set_new (o, "user", json_string (owner->name));
    }
}

static const struct work owner_work = {
    .run = owner_run,
    .done = owner_done,
    .destroy = free,
};

static void look_up (struct persistent *p, uid_t uid, const char *number)
{
    struct owner *owner;

    if (!(owner = calloc (1, sizeof (*owner))))
        return;
    owner->uid = uid;
    snprintf (owner->number, sizeof (owner->number), "%s", number);
    if (json_object_set_new (p->users, number, json_string (number)) < 0)
        free (owner);
    else if (worker_submit (p->worker, &owner_work, owner, p) < 0)
        json_object_del (p->users, number);
}

/* The owner's name, or the user id until the worker has found the name.
 */
static json_t *find_user (struct persistent *p, json_t *description)
{
    json_int_t id = json_integer_value (json_object_get (description,
                                                         "userid"));
    char number[24];
    json_t *name;

    snprintf (number, sizeof (number), "%lld", (long long)id);
    if (id >= 0 && id < UINT32_MAX && !json_object_get (p->users, number))
        look_up (p, id, number);
    if ((name = json_object_get (p->users, number)))
        return json_incref (name);
    return json_string (number);
}

/* If memory runs out the file system is not shown, which does no harm.
 */
void persistent_learn (struct persistent *p, json_t *object, bool deleted)
{
    json_t *o;
    char key[512];
    const char *namespace = "";
    const char *name = "";

    if (!(o = dws_persistent_describe (object)))
        return;
    json_unpack (o, "{s:s s:s}", "namespace", &namespace, "name", &name);
    snprintf (key, sizeof (key), "%s/%s", namespace, name);
    if (deleted)
        json_object_del (p->list, key);
    else if (json_object_set_new (o, "user", find_user (p, o)) == 0)
        json_object_set (p->list, key, o);
    json_decref (o);
}

void persistent_list (struct persistent *p, json_t *objects)
{
    json_t *object;
    size_t index;

    json_object_clear (p->list);
    json_array_foreach (objects, index, object)
        persistent_learn (p, object, false);
}

/* Returns a copy of the description with "space", or NULL.
 */
static json_t *with_space (json_t *o, const struct space *space)
{
    struct dws_bytes bytes = { 0 };
    json_t *copy = json_copy (o);

    space_persistent (space, json_string_value (json_object_get (o, "name")), &bytes);
    dws_json_set (&copy, "space", dws_bytes_encode (&bytes));
    dws_bytes_clear (&bytes);
    return copy;
}

json_t *persistent_status (const struct persistent *p,
                           const struct space *space,
                           json_int_t userid)
{
    json_t *array = json_array ();
    const char *key;
    json_t *o;

    json_object_foreach (p->list, key, o) {
        if (userid == -1
            || json_integer_value (json_object_get (o, "userid")) == userid)
            dws_json_append (&array, with_space (o, space));
    }
    return array;
}

void persistent_each (const struct persistent *p,
                      const struct space *space,
                      persistent_f visit, void *arg)
{
    struct dws_bytes taken = { 0 };
    const char *key;
    json_t *o;

    space_persistent_outside (space, &taken);
    json_object_foreach (p->list, key, o) {
        const char *name = "";
        json_int_t userid = -1;
        int64_t bytes;

        (void)json_unpack (o, "{s:s s:I}", "name", &name, "userid", &userid);
        if ((bytes = dws_bytes_get (&taken, name)) > 0)
            visit (userid, bytes, arg);
    }
    dws_bytes_clear (&taken);
}

json_t *persistent_find (const struct persistent *p, const char *name)
{
    char key[512];

    snprintf (key, sizeof (key), "%s/%s", DWS_NAMESPACE, name);
    return json_object_get (p->list, key);
}

int persistent_bytes (const struct persistent *p, const struct space *space,
                      const char *name, uint32_t userid,
                      struct dws_bytes *bytes, dws_error_t *error)
{
    json_t *o = persistent_find (p, name);
    json_int_t owner = -1;
    int shared = 0;

    if (!o)
        return dws_error (error, ENOENT, "there is no persistent file system"
                          " '%.64s'", name);
    (void)json_unpack (o, "{s:I s?b}", "userid", &owner, "shared", &shared);
    if (owner != (json_int_t)userid && !shared)
        return dws_error (error, EPERM, "persistent file system '%.64s' belongs to"
                          " another user", name);
    space_persistent (space, name, bytes);
    return 0;
}

static bool is_owner (flux_t *h, uint32_t userid)
{
    const char *s = flux_attr_get (h, "security.owner");

    return s && strtoul (s, NULL, 10) == userid;
}

bool persistent_may_know (const struct job *job, json_int_t owner)
{
    uint32_t userid = job->facts->userid;

    return owner == (json_int_t)userid || is_owner (job->ctx->h, userid);
}

int persistent_permitted (const struct dws_ctx *ctx,
                          const struct dws_job *facts,
                          dws_error_t *error)
{
    if (!ctx->config->restrict_persistent || is_owner (ctx->h, facts->userid))
        return 0;
    if ((facts->commands & DWS_COMMAND_CREATE_PERSISTENT))
        return dws_error (error, EPERM, "only the instance owner can create "
                          "persistent file systems "
                          "(rabbit.restrict_persistent_creation)");
    return 0;
}

int persistent_each_named (const struct job *job,
                           persistent_named_f visit, void *arg)
{
    const struct dws_directives *directives = job->facts->directives;
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < dws_directives_count (directives); i++) {
        const char *name = dws_command_persistent (directives, i);

        if (name)
            rc = visit (dws_command (directives, i), name, arg);
    }
    return rc;
}

/* Search for another job that is creating a file system.
 */
struct rival {
    const struct job *job;      // the other job that wants to create it
    const char *name;
    const struct job *found;
};

static int is_created (unsigned command, const char *name, void *arg)
{
    const struct rival *rival = arg;

    return command == DWS_COMMAND_CREATE_PERSISTENT
        && !strcmp (rival->name, name);
}

/* NNF creates the storage instance in Proposal.
 */
static void find_rival (struct job *job, void *arg)
{
    struct rival *rival = arg;
    const struct dws_workflow *wf = job->wf;
    bool making = wf ? wf->state <= DWS_STATE_PROPOSAL && !wf->ready
                     : (job->facts->busy & DWS_BUSY (DWS_ACT_CREATE)) != 0;

    if (job != rival->job && making
        && (job->facts->commands & DWS_COMMAND_CREATE_PERSISTENT)
        && persistent_each_named (job, is_created, rival))
        rival->found = job;
}

/* Arguments of the checks on the file systems that a job names.
 */
struct question {
    const struct persistent *p;
    const struct job *job;
    dws_error_t *error;
};

/* DWS changes nothing about a file system that exists: a workflow with another
 * directive for it would stay in Proposal. NNF compares the owner first and reports a
 * mismatch. Only the owner may learn the directive that made the file system.
 */
static int check_existing (const struct question *q, const char *name, json_t *o)
{
    const char *made_by = NULL;
    json_int_t owner = -1;
    int shared = 0;
    const char *directive;
    int rc = 0;

    (void)json_unpack (o, "{s:I s?b s?s}", "userid", &owner, "shared", &shared,
                       "directive", &made_by);
    if (!made_by || (owner != (json_int_t)q->job->facts->userid && !shared))
        return 0;
    directive = dws_directives_text (q->job->facts->directives, 0);
    if (directive && strcmp (directive, made_by) != 0) {
        if (persistent_may_know (q->job, owner))
            rc = dws_error (q->error, EINVAL, "persistent file system '%s' exists "
                            "already, made by '%.200s'", name, made_by);
        else
            rc = dws_error (q->error, EINVAL, "persistent file system '%s' exists "
                            "already, made by another user", name);
    }
    return rc;
}

/* If two workflows create the same file system at once, NNF leaves one hanging:
 * reject the second job.
 */
static int check_create (const struct question *q, const char *name)
{
    struct rival rival = { .job = q->job, .name = name };
    char label[JOB_LABEL_SIZE];
    json_t *o;

    if ((o = persistent_find (q->p, name)))
        return check_existing (q, name, o);
    jobs_each (q->job->ctx->jobs, find_rival, &rival);
    if (!rival.found)
        return 0;
    if (!persistent_may_know (q->job, rival.found->facts->userid))
        return dws_error (q->error, EINVAL, "persistent file system '%s' is just "
                          "being created by another user", name);
    return dws_error (q->error, EINVAL, "persistent file system '%s' is just "
                      "being created by job %s", name,
                      job_label (rival.found, label));
}

/* The controllers would report a missing file system as destroyed, and one of
 * another user would keep the workflow in Teardown for ever.
 */
static int check_destroy (const struct question *q, const char *name)
{
    json_int_t userid = -1;
    const char *user = "";
    json_t *o;

    if (!(o = persistent_find (q->p, name)))
        return dws_error (q->error, ENOENT,
                          "there is no persistent file system '%s'", name);
    json_unpack (o, "{s:I s:s}", "userid", &userid, "user", &user);
    if (userid == (json_int_t)q->job->facts->userid)
        return 0;
    if (!persistent_may_know (q->job, userid))
        return dws_error (q->error, EINVAL, "persistent file system '%s' "
                          "belongs to another user", name);
    return dws_error (q->error, EINVAL, "persistent file system '%s' "
                      "belongs to user %s", name, user);
}

static int check_named (unsigned command, const char *name, void *arg)
{
    if (command == DWS_COMMAND_CREATE_PERSISTENT)
        return check_create (arg, name);
    if (command == DWS_COMMAND_DESTROY_PERSISTENT)
        return check_destroy (arg, name);
    return 0;
}

struct unlisted {
    const struct persistent *p;
    char *name;
};

static int copy_unlisted (unsigned command, const char *name, void *arg)
{
    struct unlisted *unlisted = arg;

    if (command != DWS_COMMAND_DESTROY_PERSISTENT
        || persistent_find (unlisted->p, name))
        return 0;
    snprintf (unlisted->name, DWS_PERSISTENT_NAME_SIZE, "%s", name);
    return 1;
}

bool persistent_unlisted (const struct persistent *p, const struct job *job,
                          char name[DWS_PERSISTENT_NAME_SIZE])
{
    struct unlisted unlisted = { .p = p, .name = name };

    return persistent_each_named (job, copy_unlisted, &unlisted) != 0;
}

int persistent_check (const struct persistent *p,
                      const struct job *job,
                      dws_error_t *error)
{
    struct question q = { .p = p, .job = job, .error = error };

    return persistent_each_named (job, check_named, &q);
}

/* The users of a file system other than the job that is to destroy it.
 */
struct others {
    struct question question;
    char names[256];
    size_t count;
    bool ending;                // all of them are ending
};

static void add_other (struct others *others, const char *name)
{
    size_t len = strlen (others->names);

    snprintf (others->names + len, sizeof (others->names) - len, "%s%s",
              others->count++ > 0 ? ", " : "", name);
}

static void find_others (struct others *others, json_t *users)
{
    const struct job *job = others->question.job;
    json_t *user;
    size_t index;

    json_array_foreach (users, index, user) {
        char label[JOB_LABEL_SIZE];
        const char *workflow = "";
        json_int_t id = 0;
        struct job *other;

        (void)json_unpack (user, "{s:s s?I}", "workflow", &workflow,
                           "jobid", &id);
        if (job->wf && !strcmp (workflow, job->wf->name))
            continue;
        other = jobs_find (job->ctx->jobs, id);
        if (other && (!other->wf || strcmp (workflow, other->wf->name) != 0))
            other = NULL;       // of another instance
        add_other (others, other ? job_label (other, label) : workflow);
        if (!other || other->facts->phase < DWS_PHASE_EPILOG)
            others->ending = false;
    }
}

/* Search for the job that is to create a file system. Jobs can use it from the end of
 * Setup.
 */
static void find_maker (struct job *job, void *arg)
{
    struct rival *rival = arg;
    const struct dws_job *facts = job->facts;

    if ((facts->commands & DWS_COMMAND_CREATE_PERSISTENT)
        && facts->phase <= DWS_PHASE_PROLOG && !facts->exception
        && (job->wf || !facts->awaits)
        && facts->userid == rival->job->facts->userid
        && persistent_each_named (job, is_created, rival))
        rival->found = job;
}

static int check_made (unsigned command, const char *name, void *arg)
{
    const struct question *q = arg;
    struct rival rival = { .job = q->job, .name = name };
    char label[JOB_LABEL_SIZE];
    const char *state = "";
    json_int_t owner = -1;
    int shared = 0;
    json_t *o;

    if (command != DWS_COMMAND_PERSISTENTDW)
        return 0;
    if (!(o = persistent_find (q->p, name))) {
        jobs_each (q->job->ctx->jobs, find_maker, &rival);
        return !rival.found ? 0
               : dws_error (q->error, EAGAIN, "persistent file system '%s', which"
                            " job %s is to create", name,
                            job_label (rival.found, label));
    }
    (void)json_unpack (o, "{s:I s:s s?b}", "userid", &owner, "state", &state,
                       "shared", &shared);
    if ((*state && strcmp (state, "Creating") != 0)
        || (owner != (json_int_t)q->job->facts->userid && !shared))
        return 0;
    return dws_error (q->error, EAGAIN, "persistent file system '%s' to be created",
                      name);
}

int persistent_made (const struct persistent *p, const struct job *job,
                     dws_error_t *error)
{
    struct question q = { .p = p, .job = job, .error = error };

    return persistent_each_named (job, check_made, &q);
}

static int is_used (unsigned command, const char *name, void *arg)
{
    const struct rival *rival = arg;

    return command == DWS_COMMAND_PERSISTENTDW && !strcmp (rival->name, name);
}

/* Search for another job that mounts a file system, or is about to.
 */
static void find_mounter (struct job *job, void *arg)
{
    struct rival *rival = arg;

    if (job != rival->job && job->wf && job->wf->servers_written
        && (job->facts->commands & DWS_COMMAND_PERSISTENTDW)
        && persistent_each_named (job, is_used, rival))
        rival->found = job;
}

static int check_unmounted (unsigned command, const char *name, void *arg)
{
    struct others *others = arg;
    const struct question *q = &others->question;
    struct rival rival = { .job = q->job, .name = name };
    json_t *o = persistent_find (q->p, name);
    const char *type = json_string_value (json_object_get (o, "type"));
    char label[JOB_LABEL_SIZE];

    if (command != DWS_COMMAND_PERSISTENTDW || !type || strcmp (type, "xfs") != 0)
        return 0;
    find_others (others, json_object_get (o, "users"));
    jobs_each (q->job->ctx->jobs, find_mounter, &rival);
    if (others->count == 0 && rival.found)
        add_other (others, job_label (rival.found, label));
    if (others->count == 0)
        return 0;
    return dws_error (q->error, EBUSY, "persistent file system '%s', which is xfs"
                      " and mounted for one job at a time: it is in use by %s",
                      name, others->names);
}

int persistent_unmounted (const struct persistent *p, const struct job *job,
                          dws_error_t *error)
{
    struct others others = {
        .question = { .p = p, .job = job, .error = error },
    };

    return persistent_each_named (job, check_unmounted, &others);
}

static int check_unused (unsigned command, const char *name, void *arg)
{
    struct others *others = arg;
    const struct question *q = &others->question;

    if (command != DWS_COMMAND_DESTROY_PERSISTENT)
        return 0;
    find_others (others, json_object_get (persistent_find (q->p, name),
                                          "users"));
    if (others->count == 0)
        return 0;
    return dws_error (q->error, EBUSY, "persistent file system '%s' cannot be "
                      "destroyed while in use by %s", name, others->names);
}

int persistent_unused (const struct persistent *p,
                       const struct job *job,
                       bool *ending,
                       dws_error_t *error)
{
    struct others others = {
        .question = { .p = p, .job = job, .error = error },
        .ending = true,
    };
    int rc = persistent_each_named (job, check_unused, &others);

    *ending = others.ending;
    return rc;
}
