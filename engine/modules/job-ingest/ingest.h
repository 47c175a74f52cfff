/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * What the files of job-ingest share: a request and the stages it goes
 * through.
 */
#ifndef SOLO_INGEST_H
#define SOLO_INGEST_H

#include "jobutil.h"

/* Set the text of error, and errno; return -1. */
int deny (flux_error_t *error, int errnum, const char *fmt, ...)
    __attribute__ ((format (printf, 3, 4)));

/* jobspec.c */
int jobspec_frobnicate (const flux_conf_t *conf, json_t *jobspec,
                        flux_error_t *error);
int jobspec_validate (json_t *jobspec, flux_error_t *error);

/* crew.c: up to four processes "flux COMMAND --plugins=... ARGS", each of
 * which answers a line of JSON with another. They are started when there is
 * work, and end when there is none for a while.
 */
struct crew;

/* The answer to a request, once; data (borrowed) is NULL if there was none,
 * error if it was positive, and errno says why otherwise.
 */
typedef void (*crew_f) (void *arg, json_t *data, const char *error);

struct crew *crew_create (flux_t *h, const char *command);
/* Requests that were not answered fail with ENOSYS. */
void crew_destroy (struct crew *crew);
/* What processes are started with from now on; takes its own references.
 * Those that run finish their work, and take no more.
 */
void crew_configure (struct crew *crew, json_t *plugins, json_t *args);
int crew_request (struct crew *crew, json_t *request, crew_f cb, void *arg);

/* A stage of what happens to a jobspec: nothing, what is built in, or plugins
 * run by a crew.
 */
struct stage {
    enum { STAGE_OFF, STAGE_BUILTIN, STAGE_CREW } mode;
    struct crew *crew;
};

struct ingest {
    flux_t *h;
    struct stage frobnicator;
    struct stage validator;
    int batch_count;            // if positive, a commit waits for that many
    struct batch *batch;        // the one that is filling
    bool committing;
    flux_watcher_t *timer;
    uint64_t timestamp;         // of the last ID, ms
    uint64_t clock_zero;
    uint64_t clock_start;
    unsigned int seq;
};

/* A request on its way through the stages. */
struct submission {
    struct ingest *ctx;
    const flux_msg_t *msg;
    const char *J;              // belongs to msg
    json_t *jobspec;
    int urgency;
    int flags;
    uint32_t userid;
};

/* batch.c */
int batch_init (struct ingest *ctx);
void batch_fini (struct ingest *ctx);
/* From here on the job exists, and the request will be answered. */
int batch_add (struct submission *sub);

#endif
