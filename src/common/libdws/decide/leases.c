/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See leases.h.
 */

#include "leases.h"

bool dws_lease_is_due (const struct dws_lease *lease, double now)
{
    return lease->expires > 0. && lease->expires <= now && lease->there
        && !lease->wanted;
}

/* DWS goes on trying when Teardown has failed because a job has come to use the file
 * system meanwhile; until then it has done nothing.
 */
bool dws_lease_is_doomed (const struct dws_lease *lease)
{
    return lease->has_workflow && !lease->deleting && !lease->failed
        && lease->desired == DWS_STATE_TEARDOWN;
}

static enum dws_lease_action decide_under_way (const struct dws_lease *lease,
                                               double now)
{
    bool tearing_down = lease->desired == DWS_STATE_TEARDOWN;

    if (lease->doubted)
        return DWS_LEASE_LOOK;
    if (lease->unlabelled)
        return DWS_LEASE_LABEL;
    if (lease->deleting)
        return DWS_LEASE_NOTHING;
    if (tearing_down && lease->ready)
        return DWS_LEASE_END;
    if (dws_lease_is_doomed (lease))
        return DWS_LEASE_NOTHING;
    if (!dws_lease_is_due (lease, now) || (lease->failed && !tearing_down))
        return DWS_LEASE_SPARE;
    return lease->ready ? DWS_LEASE_DESTROY : DWS_LEASE_NOTHING;
}

static struct dws_lease *longest_due (struct dws_lease *leases, size_t count,
                                      double now)
{
    struct dws_lease *found = NULL;

    for (size_t i = 0; i < count; i++) {
        struct dws_lease *lease = &leases[i];

        if (!lease->has_workflow
            && lease->action == DWS_LEASE_NOTHING
            && dws_lease_is_due (lease, now)
            && (!found || lease->expires < found->expires))
            found = lease;
    }
    return found;
}

static void sooner (double *wake, double when, double now)
{
    if (when > now && (*wake == 0. || when < *wake))
        *wake = when;
}

double dws_leases_decide (struct dws_lease *leases,
                          size_t count,
                          double notice,
                          size_t max,
                          double now)
{
    struct dws_lease *next;
    size_t under_way = 0;
    double wake = 0.;

    for (size_t i = 0; i < count; i++) {
        struct dws_lease *lease = &leases[i];
        double t_notice = lease->expires - notice;

        lease->action = DWS_LEASE_NOTHING;
        if (lease->has_workflow) {
            under_way++;
            lease->action = decide_under_way (lease, now);
        }
        else if (lease->expires > 0. && lease->there
                 && lease->told != lease->expires && t_notice <= now)
            lease->action = DWS_LEASE_NOTICE;
        if (lease->expires > 0. && lease->there) {
            sooner (&wake, t_notice, now);
            sooner (&wake, lease->expires, now);
        }
    }
    for (; under_way < max && (next = longest_due (leases, count, now));
         under_way++)
        next->action = DWS_LEASE_BEGIN;
    return wake;
}
