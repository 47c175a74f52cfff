/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See pace.h.
 */

#include <stdlib.h>

#include "libutil/errno_safe.h"
#include "base/pace.h"

struct pace {
    double interval;
    int under_way_max;
    double pause;
    int under_way;
    double next;                // earliest time of the next request
};

bool pace_begin (struct pace *pace, double now)
{
    if (now < pace->next || pace->under_way == pace->under_way_max)
        return false;
    pace->next = now + pace->interval;
    pace->under_way++;
    return true;
}

void pace_end (struct pace *pace, bool refused, double now)
{
    if (pace->under_way > 0)
        pace->under_way--;
    if (refused)
        pace->next = now + pace->pause;
}

void pace_reset (struct pace *pace)
{
    pace->under_way = 0;
}

struct pace *pace_create (double per_second, int under_way_max,
                          double pause_after_refusal)
{
    struct pace *pace;

    if (!(pace = calloc (1, sizeof (*pace))))
        return NULL;
    pace->interval = 1. / per_second;
    pace->under_way_max = under_way_max;
    pace->pause = pause_after_refusal;
    return pace;
}

void pace_destroy (struct pace *pace)
{
    ERRNO_SAFE (free (pace));
}
