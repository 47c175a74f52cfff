/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See space.h: claims that the scheduler is told of.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "facts/space_private.h"

json_t *space_held (const struct space *space)
{
    return space->held;
}

int space_hold (struct space *space, uint64_t jobid, struct claim *claim)
{
    char key[32];

    snprintf (key, sizeof (key), "%" PRIu64, jobid);
    if (json_object_set_new (space->held, key, dws_bytes_encode (&claim->bytes)) < 0) {
        errno = ENOMEM;
        return -1;
    }
    claim->held = true;
    return 0;
}

bool space_hold_outside (struct space *space)
{
    json_t *before = json_object_get (space->held, SPACE_NOBODY);
    json_t *now = dws_bytes_encode (&space->outside);
    bool changed = before ? !json_equal (now, before) : space->outside.count > 0;

    if (changed && space->outside.count > 0)
        changed = json_object_set (space->held, SPACE_NOBODY, now) == 0;
    else if (changed)
        (void)json_object_del (space->held, SPACE_NOBODY);
    json_decref (now);
    return changed;
}

bool space_let_go (struct space *space, uint64_t jobid, struct claim *claim)
{
    bool held = claim->held;
    char key[32];

    snprintf (key, sizeof (key), "%" PRIu64, jobid);
    held |= json_object_del (space->held, key) == 0;
    claim->held = false;
    return held;
}

void space_hold_failed (struct claim *claim)
{
    claim->held = false;
}

void space_held_clear (struct space *space)
{
    json_object_clear (space->held);
}
