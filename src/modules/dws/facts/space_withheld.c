/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See space.h: claims that the scheduler must not allocate.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "facts/space_private.h"

json_t *space_withheld (const struct space *space)
{
    return space->withheld;
}

int space_withhold (struct space *space, uint64_t jobid, struct claim *claim)
{
    char key[32];

    snprintf (key, sizeof (key), "%" PRIu64, jobid);
    if (json_object_set_new (space->withheld, key,
                             dws_bytes_encode (&claim->bytes)) < 0) {
        errno = ENOMEM;
        return -1;
    }
    claim->withheld = true;
    return 0;
}

bool space_withhold_outside (struct space *space)
{
    json_t *before = json_object_get (space->withheld, SPACE_NOBODY);
    json_t *now = dws_bytes_encode (&space->outside);
    bool changed = before ? !json_equal (now, before) : space->outside.count > 0;

    if (changed && space->outside.count > 0)
        changed = json_object_set (space->withheld, SPACE_NOBODY, now) == 0;
    else if (changed)
        (void)json_object_del (space->withheld, SPACE_NOBODY);
    json_decref (now);
    return changed;
}

bool space_withhold_end (struct space *space, uint64_t jobid, struct claim *claim)
{
    bool withheld = claim->withheld;
    char key[32];

    snprintf (key, sizeof (key), "%" PRIu64, jobid);
    withheld |= json_object_del (space->withheld, key) == 0;
    claim->withheld = false;
    return withheld;
}

void space_withhold_failed (struct claim *claim)
{
    claim->withheld = false;
}

void space_withheld_clear (struct space *space)
{
    json_object_clear (space->withheld);
}
