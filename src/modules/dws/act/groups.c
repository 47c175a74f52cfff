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

#define ANSWERS 64              // a power of two

/* Each user has one place, which he may share with others.
 */
struct groups {
    struct answer {
        char *group;            // that was asked for, or NULL
        double expires;         // 0: nothing is known
        uint32_t userid;
        gid_t gid;
    } answers[ANSWERS];
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

static int ask (uint32_t userid, const char *group, gid_t *gid,
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
    ERRNO_SAFE (free (user.name));
    return rc;
}

static bool same_group (const char *a, const char *b)
{
    return a && b ? !strcmp (a, b) : a == b;
}

static void remember (struct answer *answer, uint32_t userid,
                      const char *group, gid_t gid, double expires)
{
    free (answer->group);
    *answer = (struct answer){ .userid = userid, .gid = gid };
    if (group && !(answer->group = strdup (group)))
        return;
    answer->expires = expires;
}

int groups_find (struct groups *groups, double now, uint32_t userid,
                 const char *group, gid_t *gid, dws_error_t *error)
{
    struct answer *answer = &groups->answers[userid % ANSWERS];

    if (answer->expires > now && answer->userid == userid
        && same_group (answer->group, group)) {
        *gid = answer->gid;
        return 0;
    }
    if (ask (userid, group, gid, error) < 0)
        return -1;
    remember (answer, userid, group, *gid, now + GROUPS_LIFETIME);
    return 0;
}

struct groups *groups_create (void)
{
    return calloc (1, sizeof (struct groups));
}

void groups_destroy (struct groups *groups)
{
    if (groups) {
        ERRNO_SAFE_BLOCK;
        for (int i = 0; i < ANSWERS; i++)
            free (groups->answers[i].group);
        free (groups);
    }
}
