/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * After a reload of the plugin or a restart of Flux: learn the facts about a
 * job again from its eventlog, and tell the dws service where the job stands.
 */

#ifndef DWS_JOBTAP_REBUILD_H
#define DWS_JOBTAP_REBUILD_H

#include "job.h"

/* Begin to read the eventlog. job->known becomes true when it has been read,
 * and requests that were deferred for it are handled. Returns 0, or -1 with
 * errno set.
 */
int jobtap_rebuild (struct jobtap_job *job);

/* Hold the current job, in CLEANUP, by an epilog until that is done. To be
 * called only from callbacks, and again without harm. Returns 0, or -1 with errno set.
 */
int jobtap_rebuild_hold (struct jobtap_job *job);

#endif /* !DWS_JOBTAP_REBUILD_H */
