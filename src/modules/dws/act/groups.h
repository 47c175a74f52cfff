/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Finds the group to which a job's file systems belong.
 */

#ifndef DWS_GROUPS_H
#define DWS_GROUPS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <flux/core.h>

#include "libdws/util/error.h"

/* Lifetimes of cached answers of the name service (s). A lookup may take
 * seconds, so the worker does it, and a user may submit hundreds of jobs at
 * once.
 */
#define GROUPS_LIFETIME 60.
#define GROUPS_LIFETIME_FAILED 1.

struct groups;
struct worker;

/* Called when an answer about a user has arrived.
 */
typedef void (*groups_found_f)(uint32_t userid, void *arg);

/* The worker must not outlive it.
 */
struct groups *groups_create (struct worker *worker,
                              groups_found_f found, void *arg);
void groups_destroy (struct groups *groups);

/* Returns true if groups_find() can answer. Otherwise a lookup is under way.
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
