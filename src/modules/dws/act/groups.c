/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See groups.h.
 */

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libutil/errno_safe.h"
#include "act/groups.h"
#include "base/timeline.h"
#include "base/worker.h"

/* An answer of the name service: for one user and one requested group. Also the task of
 * the worker.
 */
struct answer {
    struct groups *groups;
    uint32_t userid;
    char *group;                // or NULL
    char *user;                 // the name, NULL: it has none, or not known
    gid_t gid;
    int errnum;                 // 0: gid is known
    dws_error_t error;
    double expires;
    bool waiting;               // for the worker
    struct answer *next;
};

struct groups {
    struct worker *worker;
    groups_found_f found;
    void *arg;
    struct answer *answers;
};

struct user {
    char *name;
    gid_t gid;
};

/* Try a name service call with growing buffers. 'ask' returns 0, ENOENT,
 * ERANGE or another errno.
 */
typedef int (*ask_f)(const void *key, char *buf, size_t size, void *result);

static int ask_name_service (ask_f ask, const void *key, void *result)
{
    size_t size = 1024;
    char *buf = NULL;
    int rc = ERANGE;

    for (; rc == ERANGE && size <= 1 << 24; size *= 2) {
        char *p = realloc (buf, size);

        if (!p) {
            rc = ENOMEM;
            break;
        }
        buf = p;
        rc = ask (key, buf, size, result);
    }
    free (buf);
    if (rc != 0) {
        errno = rc;
        return -1;
    }
    return 0;
}

static int ask_user (const void *key, char *buf, size_t size, void *arg)
{
    struct user *user = arg;
    struct passwd pw;
    struct passwd *result = NULL;
    int rc = getpwuid_r (*(const uid_t *)key, &pw, buf, size, &result);

    if (rc == 0 && !result)
        rc = ENOENT;
    if (rc == 0) {
        user->gid = pw.pw_gid;
        if (!(user->name = strdup (pw.pw_name)))
            rc = ENOMEM;
    }
    return rc;
}

static int ask_group (const void *key, char *buf, size_t size, void *arg)
{
    struct group gr;
    struct group *result = NULL;
    int rc = getgrnam_r (key, &gr, buf, size, &result);

    if (rc == 0 && !result)
        rc = ENOENT;
    if (rc == 0)
        *(gid_t *)arg = gr.gr_gid;
    return rc;
}

/* A number is a group id, as with chgrp(1), unless a group has it for a name.
 */
static int find_group (const char *group, gid_t *gid)
{
    unsigned long value;
    char *end;

    if (ask_name_service (ask_group, group, gid) == 0)
        return 0;
    if (errno != ENOENT || group[0] < '0' || group[0] > '9')
        return -1;
    errno = 0;
    value = strtoul (group, &end, 10);
    if (errno != 0 || *end != '\0' || value >= UINT32_MAX) {
        errno = ENOENT;
        return -1;
    }
    *gid = value;
    return 0;
}

static bool is_member (const struct user *user, gid_t gid)
{
    gid_t *list = NULL;
    int count = 64;
    int found = 0;
    int rc = -1;

    /* getgrouplist() says how many groups there are if they do not fit. */
    for (int i = 0; i < 8 && rc < 0; i++) {
        gid_t *p = realloc (list, count * sizeof (*list));

        if (!p)
            break;
        list = p;
        found = count;
        rc = getgrouplist (user->name, user->gid, list, &found);
        count = found > count ? found : count * 2;
    }
    if (rc >= 0) {
        rc = -1;
        for (int i = 0; i < found && rc < 0; i++) {
            if (list[i] == gid)
                rc = 0;
        }
    }
    free (list);
    return rc == 0;
}

static int ask (uint32_t userid, const char *group, gid_t *gid, char **name,
                dws_error_t *error)
{
    struct user user = { 0 };
    uid_t uid = userid;
    int rc = 0;

    if (ask_name_service (ask_user, &uid, &user) < 0) {
        free (user.name);
        return dws_error (error, errno, "user %u: %s", (unsigned int)userid,
                          errno == ENOENT ? "is not known on this system"
                                          : strerror (errno));
    }
    *gid = user.gid;
    if (group && find_group (group, gid) < 0)
        rc = dws_error (error, errno, "dw_group: %s: %s", group,
                        errno == ENOENT ? "there is no such group"
                                        : strerror (errno));
    else if (group && *gid != user.gid && !is_member (&user, *gid))
        rc = dws_error (error, EPERM, "dw_group: %s is not a member of %s",
                        user.name, group);
    *name = user.name;
    return rc;
}

static bool same_group (const char *a, const char *b)
{
    return a && b ? !strcmp (a, b) : a == b;
}

static void answer_destroy (void *arg)
{
    struct answer *answer = arg;

    if (answer) {
        ERRNO_SAFE_BLOCK;
        free (answer->group);
        free (answer->user);
        free (answer);
    }
}

static struct answer *answer_create (struct groups *groups, uint32_t userid,
                                     const char *group)
{
    struct answer *answer;

    if (!(answer = calloc (1, sizeof (*answer))))
        return NULL;
    answer->groups = groups;
    answer->userid = userid;
    if (group && !(answer->group = strdup (group))) {
        answer_destroy (answer);
        return NULL;
    }
    return answer;
}

static struct answer *find_answer (const struct groups *groups, uint32_t userid,
                                   const char *group)
{
    struct answer *answer = groups->answers;

    while (answer && (answer->userid != userid
                      || !same_group (answer->group, group)))
        answer = answer->next;
    return answer;
}

/* In the thread.
 */
static void answer_run (void *task)
{
    struct answer *answer = task;

    if (ask (answer->userid, answer->group, &answer->gid, &answer->user,
             &answer->error) < 0)
        answer->errnum = errno;
}

static void answer_done (void *task, void *arg)
{
    struct answer *result = task;
    struct groups *groups = result->groups;
    struct answer *answer = find_answer (groups, result->userid, result->group);

    if (!answer)
        return;
    answer->waiting = false;
    free (answer->user);
    answer->user = result->user;
    result->user = NULL;
    answer->gid = result->gid;
    answer->errnum = result->errnum;
    answer->error = result->error;
    answer->expires = monotonic_now ()
        + (result->errnum == 0 ? GROUPS_LIFETIME : GROUPS_LIFETIME_FAILED);
    groups->found (result->userid, groups->arg);
}

static const struct work answer_work = {
    .run = answer_run,
    .done = answer_done,
    .destroy = answer_destroy,
};

static void drop_expired (struct groups *groups, double now)
{
    struct answer **pp = &groups->answers;

    while (*pp) {
        struct answer *answer = *pp;

        if (!answer->waiting && answer->expires <= now) {
            *pp = answer->next;
            answer_destroy (answer);
        }
        else
            pp = &answer->next;
    }
}

static int look_up (struct groups *groups, uint32_t userid, const char *group)
{
    struct answer *answer;
    struct answer *task;

    if (!(answer = answer_create (groups, userid, group)))
        return -1;
    if (!(task = answer_create (groups, userid, group))
        || worker_submit (groups->worker, &answer_work, task, NULL) < 0) {
        answer_destroy (answer);
        return -1;
    }
    answer->waiting = true;
    answer->next = groups->answers;
    groups->answers = answer;
    return 0;
}

bool groups_ready (struct groups *groups, uint32_t userid, const char *group)
{
    struct answer *answer;

    drop_expired (groups, monotonic_now ());
    if ((answer = find_answer (groups, userid, group)))
        return !answer->waiting;
    return look_up (groups, userid, group) < 0;
}

int groups_find (struct groups *groups, uint32_t userid, const char *group,
                 gid_t *gid, dws_error_t *error)
{
    struct answer *answer = find_answer (groups, userid, group);

    if (!answer || answer->waiting)
        return dws_error (error, EAGAIN, "user %u: is being looked up",
                          (unsigned int)userid);
    if (answer->errnum != 0)
        return dws_error (error, answer->errnum, "%s", answer->error.text);
    *gid = answer->gid;
    return 0;
}

const char *groups_user (const struct groups *groups, uint32_t userid,
                         const char *group)
{
    const struct answer *answer = find_answer (groups, userid, group);

    return answer && !answer->waiting ? answer->user : NULL;
}

struct groups *groups_create (struct worker *worker,
                              groups_found_f found, void *arg)
{
    struct groups *groups;

    if (!(groups = calloc (1, sizeof (*groups))))
        return NULL;
    groups->worker = worker;
    groups->found = found;
    groups->arg = arg;
    return groups;
}

void groups_destroy (struct groups *groups)
{
    if (groups) {
        ERRNO_SAFE_BLOCK;
        while (groups->answers) {
            struct answer *answer = groups->answers;

            groups->answers = answer->next;
            answer_destroy (answer);
        }
        free (groups);
    }
}
