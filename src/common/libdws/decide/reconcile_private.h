/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * For the tests of dws_reconcile() only: the table with one row taken out.
 */

#ifndef LIBDWS_RECONCILE_PRIVATE_H
#define LIBDWS_RECONCILE_PRIVATE_H

#include "reconcile.h"

size_t reconcile_rows (void);
const char *reconcile_row_name (size_t row);

/* As dws_reconcile() without row number 'skip' (-1: with all of them).
 */
int reconcile_without (int skip,
                       const struct dws_job *job,
                       const struct dws_workflow *wf,
                       const struct dws_policy *policy,
                       double now,
                       struct dws_actions *out);

#endif /* !LIBDWS_RECONCILE_PRIVATE_H */
