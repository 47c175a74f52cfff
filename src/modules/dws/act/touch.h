/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Changes an annotation of a job's Computes object, at which NNF looks at once whether
 * the job's devices are where they should be (libdws/decide/touch.c says when). Such a
 * change can be left out: NNF looks by itself, later.
 */

#ifndef DWS_ACT_TOUCH_H
#define DWS_ACT_TOUCH_H

#include "base/ctx.h"
#include "base/pace.h"

struct pace *touches_create (void);

#endif /* !DWS_ACT_TOUCH_H */
