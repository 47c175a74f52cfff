/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * How far the data movements of a workflow have got: read from its
 * NnfDataMovement objects.
 */

#ifndef LIBDWS_MOVEMENTS_H
#define LIBDWS_MOVEMENTS_H

#include <jansson.h>

/* One number that grows as data moves: percents of all movements together.
 * One that has ended, however, has got to its end. Returns -1 when none is
 * on its way, because all have ended or none was made.
 */
int dws_movements_progress (json_t *movements);

#endif /* !LIBDWS_MOVEMENTS_H */
