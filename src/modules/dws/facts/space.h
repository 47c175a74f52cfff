/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Who holds what on the rabbits: a ledger of all Servers objects, as maps
 * {RABBIT: BYTES} that count as NNF does (libdws/storage/drives.h), and what they
 * keep from others there (libdws/storage/colocation.h). No other part writes them.
 *
 * An entry begins when storage is laid out for a job, or a Servers object is
 * seen that takes space, whoever has made it. It ends with the object, or as
 * soon as all has been given back. While a job lives the storage that it has
 * made is the job's; persistent storage is nobody's when its job is over, as is
 * what other clients have. All of it can be found again in the objects, so that
 * it is the same after a restart.
 */

#ifndef DWS_SPACE_H
#define DWS_SPACE_H

#include <stdbool.h>
#include <stdint.h>
#include <jansson.h>

#define SPACE_NAMESPACE "default"

struct space;
struct holding;

/* What one job holds on rabbits. Part of struct job.
 */
struct claim {
    uint64_t id;                // of the job
    json_t *bytes;              // by rabbit; NULL: nothing is known of
    char *rabbits;              // space_rabbits(), if somebody has asked
    struct holding *holdings;   // what these are from
    bool held;                  // the scheduler is told (space_hold())
    unsigned int leaving;       // sched/withheld.h: its job is let go next, 0: not yet
    bool kept;                  // withheld_kept(), when that was counted last
};

struct space *space_create (void);
void space_destroy (struct space *space);

/* All that is taken, and what of it no job has: borrowed.
 */
json_t *space_used (const struct space *space);
json_t *space_outside (const struct space *space);

/* The rabbits of a claim as a hostlist. Returns NULL if out of memory.
 */
const char *space_rabbits (struct claim *claim);

/* Who keeps what from others on any of 'rabbits', an object with their names: a new
 * array of {"servers": {"name", "namespace"}, "jobid", "workflow", "persistent",
 * "released", "rabbits": {RABBIT: {KEY: true}}}. The job is the one that has it, 0 if
 * none has; of the two names those are there that the Servers object has; it is
 * released if the job that had it has given it up. Returns NULL with errno ENOMEM.
 */
json_t *space_keys (const struct space *space, json_t *rabbits);

/* Does a job have storage that it keeps others from?
 */
bool space_has_keys (const struct space *space, const struct claim *claim);

/* The rabbits where somebody has kept less from others since this was called: an
 * object with their names, a new reference, or NULL if there are none.
 */
json_t *space_freed (struct space *space);

/* What persistent storage takes, or that alone which no job has (any more): a new
 * object {NAME: {RABBIT: BYTES}}, without those of which nothing is known. NULL: no
 * memory.
 */
json_t *space_persistent (const struct space *space, bool outside);

/* The job takes what a layout says, as dws_allocation_sets() makes it, in the
 * place of what its Servers objects took before. Fails with ENOMEM. Without
 * memory the sum may stay too low, which does no harm: the storage controllers
 * refuse what does not fit.
 */
int space_claim (struct space *space, struct claim *claim, json_t *layout);

/* The job holds nothing on any rabbit (any more). With 'torn_down' all but
 * persistent storage has been given back, else that lasts as long as the
 * objects.
 */
void space_free (struct space *space, struct claim *claim, bool torn_down);

/* Take in a change of a Servers object, or a part of all of them. After the last part
 * there are no others than those in the parts. Fails with ENOMEM.
 */
int space_learn (struct space *space, json_t *servers, bool deleted);
int space_list (struct space *space, json_t *objects, bool first, bool last);

/* Find out whose the entries are that no job has, by the names of workflow and
 * persistent storage: one of them is NULL, or both. Those that were found to be
 * nobody's are asked for only 'again'.
 */
enum space_owner {
    SPACE_OF_NOBODY,
    SPACE_OF_JOB,               // 'claim' has been set
    SPACE_GIVEN_BACK,           // it takes nothing
};

typedef enum space_owner (*space_owner_f)(void *arg,
                                          const char *workflow,
                                          const char *persistent,
                                          struct claim **claim);

void space_settle (struct space *space, bool again, space_owner_f owner,
                   void *arg);

/* Before the claims of jobs from before this start of the module have become
 * known, the sum is too low.
 */
bool space_known (const struct space *space);
void space_set_known (struct space *space);

/* Claims that the scheduler must not give away, though it may think them free:
 * {JOBID: {RABBIT: BYTES}}, borrowed.
 */
json_t *space_held (const struct space *space);

/* Add a claim to those that are held, or take it out. Adding fails with ENOMEM.
 */
int space_hold (struct space *space, uint64_t jobid, struct claim *claim);
void space_let_go (struct space *space, uint64_t jobid, struct claim *claim);

/* The same for what no job has, which goes by the id SPACE_NOBODY. Returns false
 * if that is as it was.
 */
#define SPACE_NOBODY "0"
bool space_hold_outside (struct space *space);

/* The scheduler could not be told of a claim: that has to be done again.
 */
void space_hold_failed (struct claim *claim);

/* Empty the map of held claims; each claim still says whether it was held.
 */
void space_held_clear (struct space *space);

#endif /* !DWS_SPACE_H */
