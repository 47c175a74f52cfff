/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Facts about a rabbit job, from its eventlog. Facts only ever become true, so it does
 * not matter how often events are seen. Exceptions in the epilog are recognized by their
 * place in the eventlog, not by their time: somebody may set the clock. Prologs, epilogs
 * and dependencies of other plugins, which have other descriptions, are no facts.
 */

#ifndef DWS_JOBTAP_FACTS_H
#define DWS_JOBTAP_FACTS_H

#include <stdbool.h>
#include <jansson.h>
#include <flux/core.h>

#include "libutil/names.h"

/* The epilog of a job that gets into CLEANUP, or whose nodes are released, before its
 * eventlog was read: reading the eventlog ends this epilog. A job has one for each load
 * of the plugin that comes at such a moment.
 */
#define DWS_REBUILD "dws-rebuild"

/* Requests of the plugin to the job manager. The event follows, after those that other
 * plugins have posted before: until it is seen, the request is no fact and has no time.
 */
struct jobtap_posted {
    bool depend;                // dependency-add
    bool prolog;                // prolog-start
    bool prolog_end;            // prolog-finish
    bool epilog;
    bool epilog_end;
    bool rebuild;
};

struct jobtap_facts {
    uint32_t owner;             // the instance owner
    struct jobtap_posted posted;
    bool depend_added;
    bool depend_removed;
    bool prolog_started;
    bool prolog_finished;
    json_t *prologs;            // {EVENT TIME NAME: null}: of all plugins, or NULL
    bool environment_posted;
    bool allocated;
    bool run_started;
    bool run_finished;          // or lost, and its nodes released
    bool epilog_started;
    bool epilog_finished;
    json_t *rebuilds;           // {EVENT TIME NAME: null}: those of DWS_REBUILD, or NULL
    json_t *others;             // {DESCRIPTION: BOOL}: dependencies besides ours,
                                //  true of those that hold the job
    int urgency;                // 0: the job is held
    bool exception;             // a fatal exception was raised
    bool starting;              // when its tasks were asked for, and did not run yet
    bool prolonged;             // its time limit counts from the start of the tasks
    double t_prolog;            // when the prolog began (s since the epoch)
    double t_start;             // the tasks
    double t_epilog;            // and the epilog
    bool cut_short;             // a fatal exception was raised in the epilog
    bool abandoned;             // and was the one that gives the epilog up
    double t_early;             // of the last fatal exception that was seen when no
                                //  epilog had been, or 0
    bool early_timeout;         // it was the one that gives an epilog up
};

/* Take one eventlog entry (RFC 18) into account. Events that say nothing
 * about rabbits are ignored. Returns 0, or -1 with errno EPROTO when 'entry'
 * is not an eventlog entry.
 */
int jobtap_facts_apply (struct jobtap_facts *facts, json_t *entry);

/* Free what they own.
 */
void jobtap_facts_clear (struct jobtap_facts *facts);

/* Is the job held by somebody else: by another dependency, or as its urgency is 0?
 */
bool jobtap_facts_waits (const struct jobtap_facts *facts);

/* The same for a whole eventlog: 'entries' is an array.
 */
int jobtap_facts_apply_all (struct jobtap_facts *facts, json_t *entries);

/* True from when the plugin asks for the hold until it asks for its end.
 */
bool jobtap_facts_depend_held (const struct jobtap_facts *facts);
bool jobtap_facts_prolog_held (const struct jobtap_facts *facts);
bool jobtap_facts_epilog_held (const struct jobtap_facts *facts);

/* How many of DWS_REBUILD have begun and not ended.
 */
size_t jobtap_facts_rebuilds (const struct jobtap_facts *facts);

/* True from the event with which the epilog begins until it ends: only then has it a
 * time, and only what comes after that event is in the epilog.
 */
bool jobtap_facts_in_epilog (const struct jobtap_facts *facts);

/* True if an entry says that no node is used any more by the job's tasks.
 */
bool jobtap_facts_is_final_release (json_t *entry);

/* True if an entry is the exception that gives up an epilog: nodes and rabbits
 * are taken out of use for it, so it counts only if the instance owner raised
 * it, or this plugin, which does that in the owner's name. Raised by a guest it
 * is an exception like any other.
 */
bool jobtap_facts_is_timeout (const struct jobtap_facts *facts, json_t *entry);

/* True if the epilog was given up. Before the epilog the exception for it is
 * one like any other.
 */
bool jobtap_facts_abandoned (const struct jobtap_facts *facts);

/* True if a fatal exception was raised in the epilog: nothing more is to be
 * copied.
 */
bool jobtap_facts_cut_short (const struct jobtap_facts *facts);

/* True in CLEANUP, if the epilog has to begin: there is none yet, and the tasks
 * are gone.
 */
bool jobtap_facts_epilog_due (const struct jobtap_facts *facts);

/* "depend", "pending", "prolog", "running" or "epilog", or NULL when nothing
 * more can come of the job (its epilog was released).
 */
const char *jobtap_facts_phase (const struct jobtap_facts *facts,
                                flux_job_state_t state);

/* The constraints of a job before ours were joined to them, as other plugins have updated
 * them: borrowed from 'entries', or NULL if they are those that it was submitted with.
 */
json_t *jobtap_constraints_read (json_t *entries);

/* Why a job has failed, "" if it has not: until its epilog began, and after that.
 */
struct jobtap_ending {
    char run[256];
    char late[256];
};

/* Read the failures from the eventlog of any job. The first of several reasons counts;
 * without any, a job that has not started has failed for that.
 */
void jobtap_ending_read (struct jobtap_ending *ending, json_t *entries);

#endif /* !DWS_JOBTAP_FACTS_H */
