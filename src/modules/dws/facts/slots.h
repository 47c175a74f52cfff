/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The slots of a job: what a part of the module keeps about a job is in a struct of
 * that part, which no other part sees. A slot is filled at first use and destroyed with
 * the job.
 */

#ifndef DWS_SLOTS_H
#define DWS_SLOTS_H

#include <stddef.h>

#include "base/ctx.h"

struct job;

/* Destroys what is in a slot, which is empty by then. May fill other slots of the job
 * that come later in enum slot.
 */
typedef void (*slot_f)(struct job *job, void *data);

struct slot_data {
    void *data;                 // or NULL
    slot_f destroy;
};

/* What is in the slot, or NULL.
 */
void *job_slot (const struct job *job, enum slot slot);

/* The same; fills an empty slot with 'size' zero bytes. 'destroy' must free them.
 * Returns NULL with errno ENOMEM.
 */
void *job_slot_make (struct job *job, enum slot slot, size_t size,
                     slot_f destroy);

/* Put 'data' into an empty slot.
 */
void job_slot_put (struct job *job, enum slot slot, void *data, slot_f destroy);

/* Empty the slot. Returns what was in it, or NULL.
 */
void *job_slot_take (struct job *job, enum slot slot);

/* Empty the slot, or all in the order of enum slot, and destroy what was in it.
 */
void job_slot_clear (struct job *job, enum slot slot);
void job_slots_clear (struct job *job);

/* For data without pointers of its own.
 */
void slot_free (struct job *job, void *data);

/* Use a slot without data, as a flag. Cannot fail.
 */
void job_slot_mark (struct job *job, enum slot slot);

#endif /* !DWS_SLOTS_H */
