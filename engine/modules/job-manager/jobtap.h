/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The plugin stack, as jobtap.c (stack, callbacks), jobtap_load.c (load,
 * remove, query) and jobtap_api.c (what plugins call) share it.
 */
#ifndef SOLO_JOBTAP_H
#define SOLO_JOBTAP_H

#include "manager.h"

enum {
    PRIORITY_UNAVAIL = -2, // a plugin's way to say: not yet
};

struct frame { // a callback in progress
    struct frame *up;
    struct job *job;
    json_t *update;         // of its jobspec, by flux_jobtap_jobspec_update
};

struct jobtap {
    struct manager *jm;
    char *searchpath;
    flux_plugin_t **plugins;    // in order of loading
    size_t nplugins;
    struct frame *top;
    bool configured;
};

static inline struct job *jobtap_current (struct jobtap *jt)
{
    return jt->top ? jt->top->job : NULL;
}

struct jobtap *jobtap_of (flux_plugin_t *p); // NULL + EINVAL
const char *jobtap_plugin_name (flux_plugin_t *p);
flux_plugin_arg_t *jobtap_args (struct job *job);
/* Call 'topic' in each plugin that has it.  Returns how many had it, or -1
 * at the first that fails.
 */
int jobtap_stack_call (struct jobtap *jt, flux_plugin_t **plugins,
                       size_t count, struct job *job, const char *topic,
                       flux_plugin_arg_t *args);
/* Text a plugin left in the output arguments, or else 'def'. */
void jobtap_errmsg (flux_plugin_arg_t *args, const char *def,
                    flux_error_t *error);
/* Announce dependencies of a job: to one plugin, or to all of them (NULL) */
int jobtap_dependencies_each (struct jobtap *jt, flux_plugin_t *p,
                              struct job *job, bool raise,
                              flux_error_t *error);
int jobtap_conf_update (flux_plugin_t *p, const flux_conf_t *conf,
                        flux_error_t *error);
flux_plugin_t *jobtap_load (struct jobtap *jt, const char *path,
                            json_t *conf, flux_error_t *error);
void jobtap_unload (struct jobtap *jt, size_t index);

#endif
