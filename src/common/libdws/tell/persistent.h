/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Persistent file systems, as PersistentStorageInstance objects show them.
 */

#ifndef LIBDWS_PERSISTENT_H
#define LIBDWS_PERSISTENT_H

#include <stddef.h>
#include <jansson.h>

/* Describe one: {"name", "uid", "namespace", "type", "userid", "state", "created",
 * "users", "maker"?, "shared"?, "directive"?}, where created is a time (s since the epoch),
 * and users an array of {"workflow", "jobid"?} for those that use it now; jobid is there if
 * the workflow is named like those of Flux jobs; maker is the workflow that has made it,
 * until the Teardown of that; shared, true, if others than its owner may use it. Whatever
 * the object does not tell is "" or -1, or 0 for the time. Returns NULL with errno ENOMEM.
 */
json_t *dws_persistent_describe (json_t *object);

#endif /* !LIBDWS_PERSISTENT_H */
