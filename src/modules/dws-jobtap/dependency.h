/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * --dependency=dws-in:JOBID and dws-out:JOBID: a job is held in DEPEND until the
 * data of another rabbit job is in or out. dws.so then stores the timing of DataIn or
 * DataOut in that job's directory of the KVS. The plugin reads the KVS again after any
 * restart, so it needs no record of its own.
 */

#ifndef DWS_JOBTAP_DEPENDENCY_H
#define DWS_JOBTAP_DEPENDENCY_H

#include "job.h"

/* Callback for job.dependency.dws-*; 'arg' is the struct jobtap. A dependency that
 * cannot be fulfilled is rejected when the job is submitted. Later, after a reload or a
 * restart, the job gets an exception.
 */
int jobtap_dependency_cb (flux_plugin_t *p,
                          const char *topic,
                          flux_plugin_arg_t *args,
                          void *arg);

/* The current job is in DEPEND, as 'args' of the callback say.
 */
void jobtap_dependency_depend (struct jobtap *ctx, flux_plugin_arg_t *args);

/* Callback for job.state.inactive, of any job: others may depend on its data.
 */
int jobtap_dependency_inactive_cb (flux_plugin_t *p,
                                   const char *topic,
                                   flux_plugin_arg_t *args,
                                   void *arg);

/* The plugin is going away. Each dependency is freed with its job.
 */
void jobtap_dependency_detach (struct jobtap *ctx);

#endif /* !DWS_JOBTAP_DEPENDENCY_H */
