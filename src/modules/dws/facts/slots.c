/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See slots.h.
 */

#include <stdlib.h>

#include "libutil/errno_safe.h"
#include "facts/jobs.h"
#include "facts/slots.h"

void *job_slot (const struct job *job, enum slot slot)
{
    return job->slots[slot].data;
}

void *job_slot_make (struct job *job, enum slot slot, size_t size,
                     slot_f destroy)
{
    void *data = job_slot (job, slot);

    if (!data && (data = calloc (1, size)))
        job_slot_put (job, slot, data, destroy);
    return data;
}

void job_slot_put (struct job *job, enum slot slot, void *data, slot_f destroy)
{
    job->slots[slot] = (struct slot_data){ data, destroy };
}

void *job_slot_take (struct job *job, enum slot slot)
{
    void *data = job_slot (job, slot);

    job->slots[slot].data = NULL;
    return data;
}

void job_slot_clear (struct job *job, enum slot slot)
{
    void *data = job_slot_take (job, slot);

    if (data)
        ERRNO_SAFE (job->slots[slot].destroy (job, data));
}

void job_slots_clear (struct job *job)
{
    for (int slot = 0; slot < SLOT_COUNT; slot++)
        job_slot_clear (job, slot);
}

void slot_free (struct job *job, void *data)
{
    free (data);
}

static void no_data (struct job *job, void *data)
{
}

void job_slot_mark (struct job *job, enum slot slot)
{
    job_slot_put (job, slot, job, no_data);
}
