/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See explain.h. The workflow's own messages assign faults in words for the authors of
 * controllers; the table below translates them. The first entry whose text occurs in
 * the message applies.
 */

#include <stdio.h>
#include <string.h>

#include "libdws/util/clean.h"
#include "explain.h"

/* The party that can mend a failure. A fault is assigned only where the message proves
 * it.
 */
enum fault {
    FAULT_UNKNOWN,
    FAULT_USER,                 // the directive, or files or programs of theirs
    FAULT_SITE,                 // configuration, or too little of something
    FAULT_STORAGE,              // something is broken or slow
};

static const char *const retry =
    "submit again, and if it fails again tell the administrators";
static const char *const ask_site = "tell the administrators";
static const char *const see_log =
    "see flux job info JOBID rabbit_container_log";
static const char *const check_paths =
    "check that source and destination exist and that you may use them";
static const char *const look_at_paths =
    "see whether source and destination exist and you may use them, and if so tell "
    "the administrators";
static const char *const make_room =
    "make room at the destination, or ask for more";
static const char *const correct = "correct the directive and submit again";

static const struct rule {
    const char *text;
    enum fault fault;
    const char *advice;
} rules[] = {
    /* attributes and options, whatever is said of what they name */
    { "dw_group: ", FAULT_USER, "ask for a group that you are in" },
    { "dw_near: ", FAULT_USER,
      "name a job or a persistent file system of your own that has rabbits" },
    { "Fluxion has no rabbits in its resource graph", FAULT_SITE,
      "ask your administrators for a graph made with flux dws2jgf" },
    { "there is no rabbit '", FAULT_USER, "correct the list of rabbits" },
    { "dw_data_first: ", FAULT_USER, "submit without it" },
    { "stage-out was ended by an exception", FAULT_UNKNOWN,
      "in the epilog cancel only what may be lost" },
    { "pending container", FAULT_UNKNOWN, see_log },
    { "data movement took longer than", FAULT_UNKNOWN, retry },
    { "staging data in took longer than", FAULT_UNKNOWN, retry },
    { "took longer than", FAULT_STORAGE, retry },
    { "can mount it, the job has", FAULT_USER, "ask for fewer nodes" },
    { "has expired", FAULT_USER,
      "extend it while it is there, or create another" },
    { "is just being created", FAULT_USER, "submit again when that has ended" },
    { "exists already, made by another user", FAULT_USER,
      "use it with persistentdw, or choose another name" },
    { "exists already, made by", FAULT_USER,
      "use it with persistentdw, or destroy it first" },
    { "is not allowed for this job by rabbit.limits.", FAULT_SITE,
      "submit without directives" },
    { " by rabbit.limits.", FAULT_SITE, "ask for less" },
    { "(rabbit.policy.maximums.", FAULT_SITE, "ask for less" },
    { "no rabbit has more than", FAULT_USER, "ask for less" },
    { "has not been reconciled", FAULT_STORAGE, retry },
    { "unable to mount file system", FAULT_STORAGE, retry },
    { "could not create allocation", FAULT_SITE, ask_site },
    { "does not meet directive requirements", FAULT_STORAGE, retry },
    { "does not meet storage requirements", FAULT_STORAGE, retry },
    { "directive requirements", FAULT_SITE, ask_site },
    { "administrator must configure", FAULT_SITE, ask_site },
    { "allocationPadding", FAULT_SITE, ask_site },
    { "capacityScalingFactor", FAULT_SITE, ask_site },
    { "insufficient capacity", FAULT_SITE,
      "ask for less, or submit again later" },
    { "InsufficientResources", FAULT_SITE,
      "no port is free, or the site has none for containers: submit again, and "
      "if it fails again tell the administrators" },
    { "Invalid NnfPortManager", FAULT_SITE, ask_site },
    { "user container(s) failed to start", FAULT_UNKNOWN, see_log },
    { "user container(s) failed", FAULT_USER, see_log },
    { "container job ", FAULT_USER, see_log },
    { "container MPIJob ", FAULT_USER, see_log },
    /* what programs say that copy */
    { "quota exceeded", FAULT_USER, make_room },
    { "No space left", FAULT_USER, make_room },
    { "o such file", FAULT_USER, check_paths },
    { "ermission denied", FAULT_USER, check_paths },
    { "data movement", FAULT_UNKNOWN, look_at_paths },
    { "is not known on this system", FAULT_SITE, ask_site },
    { "belongs to another Flux instance", FAULT_SITE, ask_site },
    { "only the instance owner can create", FAULT_USER,
      "ask the administrators to create it" },
    { "default Nnf", FAULT_SITE, ask_site },
    { "no valid container profile found", FAULT_USER, correct },
    { "Forced Ready", FAULT_STORAGE, retry },
    { "were fenced", FAULT_STORAGE, retry },
    { "while in use", FAULT_USER,
      "wait for the jobs that use it to end" },
    { "is deleting", FAULT_USER, "create it anew, or use another" },
    { "must be a non-zero value", FAULT_USER, correct },
    { "invalid DW directive", FAULT_USER, correct },
    { "persistent storage instance '", FAULT_USER, correct },
    { "User ID does not match existing persistent storage", FAULT_USER,
      "use one of your own, or ask the administrators to open it to all users" },
    { "user ID does not match existing persistent storage", FAULT_USER,
      "only a job of the user who made it destroys it" },
    { "User error", FAULT_USER, correct },
    { "admission webhook", FAULT_USER, correct },
    { " is invalid: ", FAULT_USER, correct },
    { "WLM error", FAULT_SITE, ask_site },
    { "Internal error", FAULT_STORAGE, retry },
    { "TransientCondition", FAULT_STORAGE, retry },
    /* what libdws and dws.so refuse */
    { "is not Ready", FAULT_STORAGE, retry },
    { "is Disabled", FAULT_STORAGE, retry },
    { "has no Storage object", FAULT_STORAGE, retry },
    { "that it may have are up", FAULT_STORAGE, retry },
    { " GiB are left", FAULT_SITE, "ask for less, or submit again later" },
    { "has exclusive", FAULT_SITE,
      "ask for nodes of other rabbits, or have that destroyed" },
    { " rabbits: ", FAULT_SITE, "ask for less, or submit again later" },
    { "there is no persistent file system", FAULT_USER,
      "see flux rabbit persistent for those that there are" },
    { "' belongs to ", FAULT_USER, "name one of your own" },
    { "the nodes next to ", FAULT_USER, "ask for fewer nodes, or less narrowly" },
    { "rabbit storage needs a fixed number", FAULT_USER, "ask for nodes (-N)" },
    { "rabbit storage is given to nodes", FAULT_USER, "ask for nodes (-N)" },
    { "jobspec resources", FAULT_USER, "ask for nodes (-N)" },
    { "", FAULT_UNKNOWN, retry },
};

static const char *fault_name (enum fault fault)
{
    switch (fault) {
        case FAULT_USER:
            return "user";
        case FAULT_SITE:
            return "site";
        case FAULT_STORAGE:
            return "storage";
        default:
            return "not known";
    }
}

/* Rules for data movements: these also read the messages of the copying programs.
 */
static bool is_for_moving (const struct rule *rule)
{
    return rule->advice == check_paths || rule->advice == look_at_paths
        || rule->advice == make_room;
}

static bool fits (const struct rule *rule, const char *text,
                  const char *movement, bool moving)
{
    if (is_for_moving (rule) && !moving)
        return false;
    return strstr (text, rule->text)
           || (is_for_moving (rule) && movement
               && strstr (movement, rule->text));
}

static const struct rule *find_advice (const struct dws_workflow *wf,
                                       const char *text, const char *movement)
{
    const struct rule *rule = rules;
    bool moving = wf && (wf->state == DWS_STATE_DATAIN
                         || wf->state == DWS_STATE_DATAOUT);

    while (!fits (rule, text, movement, moving))
        rule++;
    return rule;
}

static bool is_given (const char *s)
{
    return s && *s;
}

/* A movement's failure is "Failed (NAME): MESSAGE".
 */
static bool has_failure (const char *text, const char *failure)
{
    const char *message = strstr (failure, "): ");

    return strstr (text, message ? message + 3 : failure) != NULL;
}

const char *dws_explain (const struct dws_workflow *wf,
                         const struct dws_details *details,
                         const char *text,
                         char buf[DWS_EXPLAIN_SIZE])
{
    static const struct dws_details none;
    const struct rule *rule;
    struct dws_text t = { .buf = buf, .size = DWS_EXPLAIN_SIZE };

    if (!details)
        details = &none;
    rule = find_advice (wf, text, details->movement);
    dws_say (&t, "%s", text);
    if (is_given (details->hosts))
        dws_say (&t, " (not ready: %s)", details->hosts);
    if (is_given (details->movement) && !has_failure (text, details->movement))
        dws_say (&t, " (data movement: %s)", details->movement);
    dws_say (&t, " [fault: %s; %s]", fault_name (rule->fault), rule->advice);
    return buf;
}

const char *dws_explain_kind (const struct dws_workflow *wf)
{
    if (!wf || wf->state != wf->desired || wf->ready)
        return NULL;
    switch (wf->state) {
        case DWS_STATE_SETUP:
            return "servers";
        case DWS_STATE_DATAIN:
        case DWS_STATE_DATAOUT:
            return "nnfdatamovements";
        case DWS_STATE_PRERUN:
        case DWS_STATE_POSTRUN:
            return "clientmounts";
        default:
            return NULL;
    }
}
