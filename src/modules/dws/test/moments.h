/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * base/timeline.h with a clock that the test sets, 'moment' (s). It is the wall clock,
 * too.
 */

#ifndef DWS_TEST_MOMENTS_H
#define DWS_TEST_MOMENTS_H

#include "base/timeline.h"

static double moment = 1000.;

double timeline_now (struct timeline *timeline)
{
    return moment;
}

double timeline_of (struct timeline *timeline, double stamp)
{
    return stamp;
}

double timeline_wall (struct timeline *timeline, double t)
{
    return t;
}

double monotonic_now (void)
{
    return moment;
}

#endif /* !DWS_TEST_MOMENTS_H */
