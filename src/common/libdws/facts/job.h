/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The fact record that dws_reconcile() compares with that of workflow.h: what Flux
 * says about a job. JSON in it is text (jsontext.h).
 */

#ifndef LIBDWS_JOB_H
#define LIBDWS_JOB_H

#include <stdbool.h>
#include <stdint.h>
#include <jansson.h>

#include "libdws/directive/directive.h"
#include "libdws/util/error.h"

/* Where the job is, in the order in which it gets there.
 * GONE is a job that is inactive, or that Flux never heard of.
 */
enum dws_phase {
    DWS_PHASE_DEPEND,
    DWS_PHASE_PENDING,
    DWS_PHASE_PROLOG,
    DWS_PHASE_RUNNING,
    DWS_PHASE_EPILOG,
    DWS_PHASE_GONE,
};

/* Is the job to have its storage and its data before it has nodes? Once the job has been
 * let into the queue its jobspec says which it was, and that is never YES again after NO.
 */
enum dws_first {
    DWS_FIRST_NO,               // nodes first, as its user or this module says
    DWS_FIRST_UNSAID,           // what the site does
    DWS_FIRST_YES,
};

/* The members down to t_gone come from Flux and can be asked for again at any time. The
 * others record what this process has started: they may be lost (all zero) at any time,
 * at the price of work done twice.
 */
struct dws_job {
    uint64_t id;
    uint32_t userid;
    enum dws_phase phase;
    struct dws_directives *directives; // presets expanded, as DWS is to see
                                //  them; NULL if Flux has not told of the job
    double lifetime;            // of the persistent file system that it
                                //  makes (s), INFINITY: for ever, -1: the
                                //  directives, which do not have it, did not say
    unsigned int commands;      // enum dws_command: those of the directives
    uint64_t directives_hash;   // dws_commands_hash()
    char *resources;            // JSON: jobspec resources as submitted
    char *hosts;                // RFC 29 hostlist of R, NULL until known
    int failure_tolerance;
    char *group;                // that the user asks for, or NULL
    char *bank;                 // or NULL
    char *queue;                // or NULL
    char *rabbits;              // that its nodes are to be next to, or NULL
    char *near;                 // a job or persistent storage, likewise
    enum dws_first data_first;
    char *constraints;          // JSON (RFC 31) of its user and queue, or NULL
    bool waits;                 // others hold it: a dependency, or urgency 0
    bool run_started;
    bool exception;             // a fatal exception was raised: CLEANUP is near
    bool abandoned;             // epilog timeout: the epilog was let go
    bool released;              // the epilog has ended as it should, or
                                //  there is none to wait for
    bool stranded;              // gone: it ran and ended without an epilog
    bool teardown;              // tear down without PostRun, DataOut
    double t_prolog;            // when the prolog began, 0: not known (this and
                                //  the next two: see struct dws_workflow)
    double t_epilog;            // when the epilog began, 0 before
    double t_gone;              // when it was found to be gone, 0 before

    uint64_t busy;              // bit N: action of kind N is under way, or
                                //  has failed and is not to be repeated yet
    bool absent;                // no workflow of this job exists: it has just been
                                //  submitted, or a get by name was answered 404.
                                //  False: not known, as long as there is no record
                                //  of one
    uint32_t saved;             // bits DWS_SAVED: was sent to the KVS
    bool raised;                // the workflow's error was raised
    bool reported;              // released: that data was lost is on record
    bool recalled;              // gone: what its eventlog says is known
    bool remembered;            // and that there was one
    bool remade;                // its workflow was made anew, as NNF had failed it
                                //  for Servers that it had not seen yet
    bool no_room;               // there is no room to have its data first
    bool contended;             // it has its data, its nodes are idle, and the
                                //  scheduler does not let it have them
    char *refusal;              // why the workflow can never serve the job
    char *awaits;               // what others have that its storage needs, and who,
                                //  or what limits it is held back by; NULL:
                                //  nothing is known of that
};

/* Decode one entry of a job-manager.dws.sync response. Unknown keys are ignored. Fails
 * with EPROTO, and the name of the key at fault, or with ENOMEM.
 */
struct dws_job *dws_job_decode (json_t *o, dws_error_t *error);

/* The same for the payload of dws.create, of a job in DWS_PHASE_DEPEND.
 */
struct dws_job *dws_job_decode_request (json_t *o, dws_error_t *error);
void dws_job_destroy (struct dws_job *job);

/* Update the facts from what Flux reports now, 'fresh', which is only good for
 * dws_job_destroy() after that. Phases never go back and no event is undone, so a
 * response that was overtaken by events does no harm.
 */
void dws_job_update (struct dws_job *job, struct dws_job *fresh);

/* Move the phase forward. A step back is ignored.
 * Returns true if that changed something.
 */
bool dws_job_advance (struct dws_job *job, enum dws_phase phase);

/* Set job->hosts from an R object (RFC 20). Fails with EINVAL or ENOMEM.
 */
int dws_job_set_R (struct dws_job *job, json_t *R, dws_error_t *error);

const char *dws_phase_name (enum dws_phase phase);

#endif /* !LIBDWS_JOB_H */
