/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Keep jobs from a scheduler that would refuse them. While fewer nodes are up than a
 * job needs, Fluxion may end it with an exception, so that a restart of Flux could
 * empty the queue (doc/admin/schedulers.rst). Such a job has priority 0, with which
 * the job manager does not ask the scheduler for nodes, until enough are up.
 *
 * The job manager asks for all priorities when it has loaded the plugin, so the plugin
 * needs no memory of an earlier load.
 */

#ifndef DWS_JOBTAP_QUEUE_H
#define DWS_JOBTAP_QUEUE_H

#include "job.h"

/* More nodes than any job needs: the value of 'up' with a scheduler that holds such jobs
 * itself, and of 'all' as long as the number is not known.
 */
#define JOBTAP_QUEUE_OPEN INT64_MAX

/* Ask the resource module how many nodes are up, and how many there are: without an
 * answer none is up.
 */
void jobtap_queue_start (struct jobtap *ctx);

/* Set the number of nodes that are up, and of all nodes; each may be JOBTAP_QUEUE_OPEN.
 */
void jobtap_queue_set (struct jobtap *ctx, int64_t up, int64_t all);

/* For job.state.priority and job.priority.get, after all others.
 */
int jobtap_queue_priority_cb (flux_plugin_t *p,
                              const char *topic,
                              flux_plugin_arg_t *args,
                              void *arg);

#endif /* !DWS_JOBTAP_QUEUE_H */
