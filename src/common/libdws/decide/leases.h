/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Expiry of persistent file systems: whom to notify, and what to destroy.
 *
 * DWS destroys a file system in the Teardown of a workflow. The module makes this
 * workflow when the file system expires. A workflow in Proposal destroys nothing yet: it
 * is deleted when somebody wants the file system after all.
 */

#ifndef LIBDWS_LEASES_H
#define LIBDWS_LEASES_H

#include <stdbool.h>
#include <stddef.h>

#include "libdws/facts/workflow.h"

/* The next action for a file system.
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

/* Has the file system expired, and does no job want it?
 */
bool dws_lease_is_due (const struct dws_lease *lease, double now);

/* Is it too late to keep the file system?
 */
bool dws_lease_is_doomed (const struct dws_lease *lease);

/* Decide about all leases. At most 'max' file systems are destroyed at one time, the
 * longest due first. 'notice' is how long before it expires a notice is sent (s).
 * Returns when to decide again if nothing changes before, or 0.
 */
double dws_leases_decide (struct dws_lease *leases,
                          size_t count,
                          double notice,
                          size_t max,
                          double now);

#endif /* !LIBDWS_LEASES_H */
