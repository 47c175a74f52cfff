/* SPDX-License-Identifier: LGPL-3.0-only */
/* shell.h - the job shell's inner parts.  There is one shell process per
 * node of the job; the one of shell rank 0 is the leader, which offers the
 * job's services and writes what is said once per job.
 */
#ifndef SOLO_SHELL_H
#define SOLO_SHELL_H

#define FLUX_SHELL_PLUGIN_NAME NULL

#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <jansson.h>
#include <flux/core.h>
#include <flux/hostlist.h>
#include <flux/idset.h>
#include <flux/shell.h>

#include "jobutil.h"
#include "respond.h"

/* A node of the job, by shell rank.
 */
struct node {
    unsigned int broker_rank;
    char *host;
    const char *cores;          // these two point into R
    const char *gpus;           // "" if none
    int ncores;
    int ngpus;
    int ntasks;
    int first_task;
    json_t *info;
};

struct shell_task {
    flux_shell_t *shell;
    int index;                  // on this node
    int rank;                   // in the job
    flux_cmd_t *cmd;
    flux_subprocess_t *proc;
    int rc;                     // exit code, or 128 + signal
    bool in_exec;
    bool completed;
};

struct io;
struct doom;

struct flux_shell {
    flux_t *h;
    flux_reactor_t *r;
    flux_jobid_t id;
    uint32_t owner;             // of the instance
    int rank;                   // shell rank
    int size;
    int ntasks;                 // in the job
    struct node *nodes;
    struct hostlist *hosts;
    char service[64];           // name of the leader's service

    flux_future_t *lookup;      // borrowed by jobspec and R until destroyed
    json_t *jobspec;
    json_t *R;
    json_t *options;            // the next two are parts of jobspec
    json_t *env;
    json_t *command;
    const char *cwd;
    json_t *info;
    json_t *jobspec_info;
    int verbose;

    flux_plugin_t **plugins;
    size_t nplugins;
    json_t *event_context;      // by event name

    struct shell_task *tasks;
    int ntasks_local;
    int cursor;                 // of flux_shell_task_next()
    int running;
    struct shell_task *current;
    json_t *refs;               // completion references: count by name

    struct io *io;
    struct doom *doom;
    int log_level;
    bool in_log;
    bool exception_raised;
};

/* The one shell of this process, for the log functions.
 */
extern flux_shell_t *the_shell;

/* info.c - the job, from jobspec and R */
int shell_info_init (flux_shell_t *shell, unsigned int broker_rank);
void shell_info_fini (flux_shell_t *shell);

/* plugins.c - plugins, and most of what they may call */
int shell_plugins_load (flux_shell_t *shell);
void shell_plugins_unload (flux_shell_t *shell);

/* io.c - standard input and output of the tasks, and the log */
int shell_io_init (flux_shell_t *shell);
int shell_io_start (flux_shell_t *shell);
void shell_io_fini (flux_shell_t *shell);
void shell_io_task_output (struct shell_task *task, const char *stream);
/* Append an event to the output eventlog; takes 'context'.  'sync' does not
 * return before it is in the KVS.
 */
void shell_io_event (flux_shell_t *shell, const char *name, json_t *context,
                     bool sync);
/* Append an event to exec.eventlog with the context that was added to it. */
int shell_exec_event (flux_shell_t *shell, const char *name);

/* log.c */
void shell_log_init (flux_shell_t *shell);

/* doom.c - what follows when a task ends before the others */
int shell_doom_init (flux_shell_t *shell);
void shell_doom_fini (flux_shell_t *shell);
void shell_doom_task_exit (struct shell_task *task);

#endif
