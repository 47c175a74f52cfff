/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The ledger of space taken on rabbits: an entry for each Servers object, with a map
 * of bytes by rabbit that counts as NNF does (libdws/storage/drives.h), and its exclusive
 * keys (libdws/storage/colocation.h). No other part writes entries.
 *
 * An entry begins when storage is laid out for a job, or with a Servers object of any
 * client that takes space. The entry ends with the object, or once all its space is
 * free. Storage belongs to the job that created it until that job ends; after that
 * persistent storage belongs to no job, nor does storage of other clients. After a
 * restart the ledger is rebuilt from the objects.
 */

#ifndef DWS_SPACE_H
#define DWS_SPACE_H

#include <stdbool.h>
#include <stdint.h>
#include <jansson.h>

#include "libdws/storage/bytes.h"

#define SPACE_NAMESPACE "default"

struct space;
struct space_entry;

/* The bytes of rabbits that one job holds. Part of struct job.
 */
struct claim {
    uint64_t id;                // of the job
    struct dws_bytes bytes;
    char *rabbits;              // cache of space_rabbits(), or NULL
    struct space_entry *entries; // the entries that make up 'bytes'
    bool withheld;              // withheld from others (space_withhold())
    unsigned int leaving;       // sched/withheld.h: its job is let go next, 0: not yet
    bool kept;                  // withheld_kept() at the last count
};

struct space *space_create (void);
void space_destroy (struct space *space);

/* The sum of all entries, and of those that belong to no job.
 */
const struct dws_bytes *space_used (const struct space *space);
const struct dws_bytes *space_outside (const struct space *space);

/* The rabbits of a claim as a hostlist. Returns NULL if out of memory.
 */
const char *space_rabbits (struct claim *claim);

/* The exclusive keys on any of 'rabbits', an object with their names: a new array of
 * {"servers": {"name", "namespace"}, "jobid", "workflow", "persistent", "released",
 * "rabbits": {RABBIT: {KEY: true}}}. 'jobid' is 0 if the storage belongs to no job;
 * 'workflow' and 'persistent' are there if the Servers object names them; 'released' is
 * set if its job has given the storage up. Returns NULL with errno ENOMEM.
 */
json_t *space_keys (const struct space *space, json_t *rabbits);

/* Does the job hold exclusive keys?
 */
bool space_has_keys (const struct space *space, const struct claim *claim);

/* The rabbits on which exclusive keys were freed since the last call: an object with
 * their names, a new reference, or NULL if there are none.
 */
json_t *space_freed (struct space *space);

/* Add the bytes of the persistent storage of that name; and of all that belongs to no
 * job, by its name in the place of the rabbit's.
 */
void space_persistent (const struct space *space, const char *name,
                       struct dws_bytes *bytes);
void space_persistent_outside (const struct space *space,
                               struct dws_bytes *by_name);

/* Set the claim to the bytes of a layout by dws_allocation_sets(), in place of
 * those of its Servers objects. Fails with ENOMEM. The sum may then stay too
 * low, which is harmless: the storage controllers refuse storage that does not
 * fit.
 */
int space_claim (struct space *space, struct claim *claim, json_t *layout);

/* Empty the claim. With 'torn_down' all but persistent storage is free;
 * otherwise all of it stays in the ledger as long as the objects.
 */
void space_free (struct space *space, struct claim *claim, bool torn_down);

/* Take in a change of a Servers object, or a part of a list of all. After the last
 * part, objects missing from the list count as deleted. Fails with ENOMEM.
 */
int space_learn (struct space *space, json_t *servers, bool deleted);
int space_list (struct space *space, json_t *objects, bool first, bool last);

/* Find the owners of entries without a job. 'owner' gets the names of workflow
 * and persistent storage, of which at least one is NULL. Entries settled as
 * SPACE_OF_NOBODY are passed to 'owner' only with 'again'.
 */
enum space_owner {
    SPACE_OF_NOBODY,
    SPACE_OF_JOB,               // 'claim' has been set
    SPACE_FREE,                 // the entry takes no space
};

typedef enum space_owner (*space_owner_f)(void *arg,
                                          const char *workflow,
                                          const char *persistent,
                                          struct claim **claim);

void space_settle (struct space *space, bool again, space_owner_f owner,
                   void *arg);

/* False after the start of the module until the claims of earlier jobs are
 * known: the sum is too low before.
 */
bool space_known (const struct space *space);
void space_set_known (struct space *space);

/* Withheld claims, which the scheduler must not allocate though they may look free
 * to it: {JOBID: {RABBIT: BYTES}}, borrowed.
 */
json_t *space_withheld (const struct space *space);

/* Withhold a claim, or end that. Withholding fails with ENOMEM. Ending returns false if
 * there was nothing to end; what the scheduler did not get (space_withhold_failed()) ends,
 * too.
 */
int space_withhold (struct space *space, uint64_t jobid, struct claim *claim);
bool space_withhold_end (struct space *space, uint64_t jobid, struct claim *claim);

/* Withhold the storage that belongs to no job, by the id SPACE_NOBODY. Returns false
 * if it is unchanged.
 */
#define SPACE_NOBODY "0"
bool space_withhold_outside (struct space *space);

/* The scheduler did not get a withheld claim: report it again.
 */
void space_withhold_failed (struct claim *claim);

/* Empty the map of withheld claims; each claim still says whether it was withheld.
 */
void space_withheld_clear (struct space *space);

#endif /* !DWS_SPACE_H */
