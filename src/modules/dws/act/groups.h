/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Which group a job's file systems belong to.
 */

#ifndef DWS_GROUPS_H
#define DWS_GROUPS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <flux/core.h>

#include "libdws/util/error.h"

/* The answers of the name service, each for so many seconds: asking it may take
 * seconds, so a worker does that, and a user's jobs come in hundreds.
 */
#define GROUPS_LIFETIME 60.
#define GROUPS_LIFETIME_FAILED 1.

struct groups;
struct worker;

/* Called when something has become known of a user.
 */
typedef void (*groups_found_f)(uint32_t userid, void *arg);

/* The worker must not outlive it.
 */
struct groups *groups_create (struct worker *worker,
                              groups_found_f found, void *arg);
void groups_destroy (struct groups *groups);

/* Returns true if groups_find() has something to say. Otherwise that is being
 * found out.
 */
bool groups_ready (struct groups *groups, uint32_t userid, const char *group);

/* The group of a user's job: 'group' (a name or a number) if the user is a
 * member of it, or with NULL the user's primary one. Fails with ENOENT (no such
 * user or group), EPERM (not a member), EAGAIN (not known yet) or what the name
 * service gave.
 */
int groups_find (struct groups *groups, uint32_t userid, const char *group,
                 gid_t *gid, dws_error_t *error);

/* The name of the user, as groups_find() with the same arguments has found it; NULL if
 * that has failed.
 */
const char *groups_user (const struct groups *groups, uint32_t userid,
                         const char *group);

#endif /* !DWS_GROUPS_H */
