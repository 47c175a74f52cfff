/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Which group a job's file systems belong to.
 */

#ifndef DWS_GROUPS_H
#define DWS_GROUPS_H

#include <stdint.h>
#include <sys/types.h>

#include "libdws/util/error.h"

/* Some of the latest answers of the name service, each for so many seconds:
 * asking it blocks, and a user's jobs come in hundreds.
 */
#define GROUPS_LIFETIME 60.
struct groups;

struct groups *groups_create (void);
void groups_destroy (struct groups *groups);

/* The group of a user's job: 'group' (a name or a number) if the user is a
 * member of it, or with NULL the user's primary one. A failure is not
 * remembered: ENOENT (no such user or group), EPERM (not a member) or what the
 * name service gave.
 */
int groups_find (struct groups *groups, double now, uint32_t userid,
                 const char *group, gid_t *gid, dws_error_t *error);

#endif /* !DWS_GROUPS_H */
