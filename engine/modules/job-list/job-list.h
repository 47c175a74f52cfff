/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Jobs as job-list keeps them: the attributes that requests can ask for, in
 * one JSON object per job, and what is needed to sort and match.
 */
#ifndef SOLO_JOB_LIST_H
#define SOLO_JOB_LIST_H

#include "common/respond.h"
#include "jobutil.h"

struct job {
    flux_jobid_t id;
    int state;
    int states_mask;        // states it has been in
    double t_inactive;
    double t_run;
    json_int_t priority;
    json_t *attrs;
    json_t *jobspec;
    json_t *R;
    json_t *exception;      // context of the worst one
};

struct job *job_create (flux_jobid_t id);
void job_destroy (struct job *job);
/* Replace (or keep, if NULL) jobspec and R and the attributes from them. */
void job_set_data (struct job *job, json_t *jobspec, json_t *R);
/* Returns 1 if the event says that the job is void. */
int job_event (struct job *job, json_t *entry);

/* RFC 31 constraint: 1 if the job matches, 0 if not, -1 if the constraint is
 * invalid.  Without a job, only the constraint is checked.
 */
int job_match (struct job *job, json_t *constraint, flux_error_t *error);

#endif
