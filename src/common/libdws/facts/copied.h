/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Progress of a copy, as the copying program reports it in an NnfDataMovement.
 */

#ifndef LIBDWS_COPIED_H
#define LIBDWS_COPIED_H

#include <jansson.h>

/* Unknown members are 0.
 */
struct dws_copied {
    double bytes;               // so far
    double percent;             // that this is of all
    double rate;                // bytes/s, while it runs
    double left;                // seconds, by the program's own estimate
};

/* Read it from 'status' of a movement: the last progress line of dcp while it runs,
 * or its summary.
 */
void dws_copied_read (json_t *status, struct dws_copied *copied);

#endif /* !LIBDWS_COPIED_H */
