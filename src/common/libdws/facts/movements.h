/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * How far the data movements of a workflow have got: read from its
 * NnfDataMovement objects.
 */

#ifndef LIBDWS_MOVEMENTS_H
#define LIBDWS_MOVEMENTS_H

#include <jansson.h>

/* How far data movements are, all together, in percent. A movement that has
 * ended counts as 100, however it ended. Returns -1 when no movement is under
 * way: all have ended, or there are none. 'bytes' is what they have moved, as far as
 * they say that.
 */
int dws_movements_progress (json_t *movements, double *bytes);

/* The failed movements of a stage-out: an array of {"namespace", "name"}. Movements
 * that users have begun themselves are not among them. Returns NULL with errno ENOMEM.
 */
json_t *dws_movements_failed (json_t *movements);

#endif /* !LIBDWS_MOVEMENTS_H */
