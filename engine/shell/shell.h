/* SPDX-License-Identifier: LGPL-3.0-only */
/* shell.h - the parts of the job shell.  Each node of a job has one shell
 * process; shell rank 0 is the leader, which has the service of the job and
 * posts the events of which a job has one.
 */
#ifndef SOLO_SHELL_H
#define SOLO_SHELL_H

#define FLUX_SHELL_PLUGIN_NAME NULL

#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <jansson.h>
#include <flux/core.h>
#include <flux/shell.h>

#include "jobutil.h"

struct node {                   // by shell rank
    unsigned int broker_rank;
    char *host;
    int ncores;
    int ntasks;
    int first_task;
};

struct task {
    flux_shell_t *shell;
    int rank;                   // in the job
    flux_subprocess_t *proc;
    int rc;                     // exit code, or 128 + signal
    bool completed;
};

struct flux_shell {
    flux_t *h;
    flux_reactor_t *r;
    flux_jobid_t id;
    int rank;                   // shell rank
    int size;
    int ntasks;                 // in the job
    struct node *nodes;
    char service[64];           // name of the leader's service
    json_t *jobspec;
    json_t *R;
    json_t *options;            // the next three are parts of jobspec
    json_t *env;
    json_t *command;
    json_t *info;               // answers flux_shell_info_unpack()
    flux_plugin_t **plugins;
    size_t nplugins;
    struct task *tasks;
    int ntasks_local;
    int running;
    struct io *io;
};

/* The one shell of this process, for the log functions. */
extern flux_shell_t the_shell;

/* info.c: parse the answer of job-info.lookup for J and R. */
int shell_info_init (flux_shell_t *shell, flux_future_t *f,
                     unsigned int broker_rank);
void shell_info_fini (flux_shell_t *shell);
/* The RFC 34 taskmap of the job. */
json_t *shell_taskmap (flux_shell_t *shell);

/* plugins.c */
int shell_plugins_load (flux_shell_t *shell);
int shell_plugins_call (flux_shell_t *shell, const char *topic);
void shell_plugins_unload (flux_shell_t *shell);
void shell_killall (flux_shell_t *shell, int sig);

/* io.c - input and output of the tasks, and the job's eventlogs */
int shell_io_init (flux_shell_t *shell);
int shell_io_start (flux_shell_t *shell);
void shell_io_fini (flux_shell_t *shell);
void shell_io_task_output (struct task *task, const char *stream);
/* Append an event to the output eventlog; takes 'context'.  'sync' waits
 * until the KVS has it.
 */
void shell_io_event (flux_shell_t *shell, const char *name, json_t *context,
                     bool sync);
/* Append an event to exec.eventlog; takes 'context'. */
int shell_exec_event (flux_shell_t *shell, const char *name, json_t *context);

#endif
