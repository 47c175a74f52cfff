/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Persistent file systems that are to go some day: who is told, and what is destroyed.
 *
 * What destroys a file system in DWS is the Teardown of a workflow. That is made for
 * it when its time has come, and as long as it is in Proposal nothing is lost: it is
 * deleted when somebody wants the file system after all.
 */

#ifndef LIBDWS_LEASES_H
#define LIBDWS_LEASES_H

#include <stdbool.h>
#include <stddef.h>

#include "libdws/facts/workflow.h"

/* What can be done about a file system.
 */
enum dws_lease_action {
    DWS_LEASE_NOTHING,
    DWS_LEASE_NOTICE,           // say that it is going to expire
    DWS_LEASE_BEGIN,            // make the workflow
    DWS_LEASE_DESTROY,          // its Teardown
    DWS_LEASE_SPARE,            // delete it: nothing is destroyed
    DWS_LEASE_END,              // delete it: all is done
    DWS_LEASE_LOOK,             // read it by its name
    DWS_LEASE_LABEL,            // give it the label by which watches select it
};

struct dws_lease {
    double expires;             // (s since the epoch), 0: never
    double told;                // the value of that for the last notice
    bool there;                 // the file system, as it was made
    bool wanted;                // a job uses or names it
    bool has_workflow;
    bool doubted;               // no watch shows the workflow any more
    bool unlabelled;
    bool deleting;              // the workflow
    bool ready;                 // in its state, which is that which is desired
    bool failed;                // likewise
    enum dws_state desired;

    enum dws_lease_action action;       // the decision
};

/* Its time is over, and there is nobody who wants it.
 */
bool dws_lease_is_due (const struct dws_lease *lease, double now);

/* It cannot be kept any more.
 */
bool dws_lease_is_doomed (const struct dws_lease *lease);

/* Decide about all of them; no more than 'max' are destroyed at one time, those first
 * that have been due for longest. 'notice' (s) is how long before one expires that is
 * said. Returns when to decide again, if nothing changes before, or 0.
 */
double dws_leases_decide (struct dws_lease *leases,
                          size_t count,
                          double notice,
                          size_t max,
                          double now);

#endif /* !LIBDWS_LEASES_H */
