/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * A dependency on another job, the target: a job waits until the target's data is in or
 * out. While the target is active, the plugin waits for the record of its state in the
 * KVS. When the record is there, or the target has ended, the target's eventlog and
 * records decide. A target that has ended well without a record released its nodes early
 * (release_nodes), and its data is on the way: then the record comes late, or a loss is
 * listed. If neither comes and dws.so has no workflow of the target any more, somebody
 * has deleted the workflow: dws.so is asked now and then.
 */

#ifndef DWS_JOBTAP_WAITS_H
#define DWS_JOBTAP_WAITS_H

#include "job.h"

struct kind {
    const char *scheme;
    const char *state;          // whose record says that it is fulfilled
    const char *directive;      // which the target must have
    unsigned int command;
    bool success;               // the target must have run well, too
};

struct dependency {
    struct jobtap *ctx;         // NULL once the plugin is going away
    struct dependency *prev;
    struct dependency *next;
    const struct kind *kind;
    flux_jobid_t id;            // of the job that waits
    uint32_t userid;
    flux_jobid_t target;
    char idf58[32];             // of the target
    char description[64];       // "dws-out:ƒ..."
    bool fresh;                 // submitted, not yet in DEPEND
    bool begun;                 // it is known to be unfulfilled
    bool over;                  // the target is inactive
    bool removed;               // and its file systems have been removed
    bool forgotten;             // dws.so has nothing to do for it any more
    struct jobtap_ending ending; // how the target has ended, or does
    flux_future_t *f_record;    // waits for the record
    flux_future_t *f_losses;    // watches the losses
    flux_future_t *f_step;      // a single request under way
    flux_watcher_t *again;      // the next look, or NULL
};

/* Make one for the current job, and attach it. Returns NULL with errno set.
 */
struct dependency *dependency_create (struct jobtap *ctx,
                                      const struct kind *kind,
                                      flux_jobid_t id,
                                      flux_jobid_t target);

/* Begin to wait, or with 'over' to find out. In the end the job's dependency is
 * removed, or the job gets an exception.
 */
void dependency_begin (struct dependency *dep);

/* The target has become inactive.
 */
void dependency_target_over (struct dependency *dep);

/* Cancel all requests of the dependency, and take it off the list.
 */
void dependency_settle (struct dependency *dep);

/* The job cannot have what it waits for: it gets an exception, and ends, maybe
 * with this call, and the record with it. The second is for a request that should
 * have worked, and did not for 'errno'.
 */
void dependency_fail (struct dependency *dep, const char *text);
void dependency_broken (struct dependency *dep, const char *what);

/* Call 'cb' with the dependency when 'f', which may be NULL, is ready. Takes it
 * over, in place of the future in 'slot'. Returns 0; or -1, and the dependency has
 * failed, and may not be used any more.
 */
int dependency_await (struct dependency *dep,
                      flux_future_t **slot,
                      flux_future_t *f,
                      flux_continuation_f cb);

/* Ask for the eventlog of an active or inactive job: "eventlog" in the response.
 */
flux_future_t *dependency_eventlog (struct jobtap *ctx, flux_jobid_t id);

#endif /* !DWS_JOBTAP_WAITS_H */
