/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Doubts workflows that should have moved, and of which nothing has been heard for a
 * minute: a watch can be deaf. They are read by their names (act/look.c).
 */

#ifndef DWS_OVERDUE_H
#define DWS_OVERDUE_H

#include "base/ctx.h"

struct overdue *overdue_create (struct dws_ctx *ctx);
void overdue_destroy (struct overdue *overdue);

#endif /* !DWS_OVERDUE_H */
