/* SPDX-License-Identifier: LGPL-3.0-only */
/* perilog.h - what the callbacks of perilog.so and its processes share.
 */
#ifndef SOLO_PERILOG_H
#define SOLO_PERILOG_H

#include <stdbool.h>
#include <jansson.h>
#include <flux/core.h>

/* Names of the job's aux items. */
#define PROLOG "perilog::prolog"
#define EPILOG "perilog::epilog"

/* How events name them. */
#define PROLOG_TEXT "job-manager.prolog"
#define EPILOG_TEXT "job-manager.epilog"

/* One of the two tables.
 */
struct table {
    json_t *command;            // NULL: not configured
    int per_rank;
    int cancel_on_exception;
    double timeout;             // 0: none
    double kill_timeout;
};

struct perilog {
    flux_plugin_t *p;
    struct table prolog;
    struct table epilog;
};

/* perilog_run.c: the processes of one job's prolog or epilog, an aux item of
 * the job.
 */
struct run;

/* Start a job's prolog or epilog, which its eventlog says has started.
 */
int run_start (struct perilog *ctx, bool prolog, flux_jobid_t id,
               uint32_t userid, json_t *R);

/* The prolog is over: let the job go on, to its epilog if it has failed.
 */
void run_end_prolog (struct perilog *ctx, flux_jobid_t id, uint32_t userid,
                     json_t *R, int status);

/* The job got a fatal exception: end it, if it is so configured.
 */
void run_cancel (struct run *run);

#endif
