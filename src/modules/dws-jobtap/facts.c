/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Facts about a rabbit job from its eventlog; see facts.h. No Flux handle.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "facts.h"

static bool describes (json_t *context, const char *description)
{
    const char *s;

    return context
        && json_unpack (context, "{s:s}", "description", &s) == 0
        && !strcmp (s, description);
}

bool jobtap_facts_is_timeout (const struct jobtap_facts *facts, json_t *entry)
{
    const char *type;
    json_int_t userid;
    int severity;

    return json_unpack (entry,
                        "{s:{s:s s:i s:I}}",
                        "context",
                          "type", &type,
                          "severity", &severity,
                          "userid", &userid) == 0
        && severity == 0
        && userid == (json_int_t)facts->owner
        && !strcmp (type, DWS_EPILOG_TIMEOUT);
}

bool jobtap_facts_is_final_release (json_t *entry)
{
    const char *name;
    int final;

    return json_unpack (entry,
                        "{s:s s:{s:b}}",
                        "name", &name,
                        "context",
                          "final", &final) == 0
        && !strcmp (name, "release")
        && final;
}

static bool is_fatal (json_t *entry)
{
    const char *name;
    const char *type;
    int severity;

    return json_unpack (entry,
                        "{s:s s:{s:s s:i}}",
                        "name", &name,
                        "context",
                          "type", &type,
                          "severity", &severity) == 0
        && !strcmp (name, "exception")
        && severity == 0;
}

/* An event may be seen twice, in the eventlog and as it happens. Without memory no other
 * dependency is waited for.
 */
static void apply_other (struct jobtap_facts *facts, json_t *context, bool holds)
{
    const char *s = json_string_value (json_object_get (context, "description"));

    if (!s || !strcmp (s, DWS_DEPENDENCY)
        || (!facts->others && !(facts->others = json_object ())))
        return;
    if (!holds || !json_object_get (facts->others, s))
        (void)json_object_set_new (facts->others, s, json_boolean (holds));
}

/* An event that is seen twice has the same time, and counts once.
 */
static void apply_hold (json_t **holds, const char *name, double timestamp,
                        json_t *context)
{
    const char *s = json_string_value (json_object_get (context, "description"));
    char key[256];

    snprintf (key, sizeof (key), "%s %.6f %s", name, timestamp, s ? s : "");
    if (*holds || (*holds = json_object ()))
        (void)json_object_set_new (*holds, key, json_null ());
}

/* How many of these prologs, or epilogs, have started and not finished?
 */
static size_t count_held (json_t *holds)
{
    size_t started = 0;
    size_t finished = 0;
    const char *key;
    json_t *value;

    json_object_foreach (holds, key, value) {
        if (!strncmp (key + strlen ("prolog"), "-start", strlen ("-start")))
            started++;
        else
            finished++;
    }
    return started > finished ? started - finished : 0;
}

size_t jobtap_facts_rebuilds (const struct jobtap_facts *facts)
{
    return count_held (facts->rebuilds);
}

/* Flux asks for the tasks when the last prolog has finished. Their start event comes
 * when all job shells run, which may be long after.
 */
static bool is_starting (const struct jobtap_facts *facts)
{
    return facts->allocated
        && !facts->run_started
        && count_held (facts->prologs) == 0;
}

static double entry_time (json_t *entry)
{
    return json_number_value (json_object_get (entry, "timestamp"));
}

/* 'begun': the entry comes after the event with which the epilog begins.
 */
static void apply_exception (struct jobtap_facts *facts, json_t *entry,
                             bool begun)
{
    bool timeout = jobtap_facts_is_timeout (facts, entry);

    if (!facts->exception)
        facts->starting = is_starting (facts);
    facts->exception = true;
    if (begun) {
        facts->cut_short = true;
        facts->abandoned |= timeout;
    }
    else {
        facts->t_early = entry_time (entry);
        facts->early_timeout = timeout;
    }
}

void jobtap_facts_clear (struct jobtap_facts *facts)
{
    json_decref (facts->rebuilds);
    facts->rebuilds = NULL;
    json_decref (facts->prologs);
    facts->prologs = NULL;
    json_decref (facts->others);
    facts->others = NULL;
}

bool jobtap_facts_waits (const struct jobtap_facts *facts)
{
    const char *name;
    json_t *holds;

    json_object_foreach (facts->others, name, holds) {
        if (json_is_true (holds))
            return true;
    }
    return facts->urgency == FLUX_JOB_URGENCY_HOLD;
}

static bool is_epilog_start (json_t *entry)
{
    const char *name = json_string_value (json_object_get (entry, "name"));

    return name
        && !strcmp (name, "epilog-start")
        && describes (json_object_get (entry, "context"), DWS_EPILOG);
}

static int apply_entry (struct jobtap_facts *facts, json_t *entry, bool begun)
{
    double timestamp;
    const char *name;
    json_t *context = NULL;

    if (json_unpack (entry,
                     "{s:F s:s s?o}",
                     "timestamp", &timestamp,
                     "name", &name,
                     "context", &context) < 0) {
        errno = EPROTO;
        return -1;
    }
    if (!strcmp (name, "submit") || !strcmp (name, "urgency"))
        (void)json_unpack (context, "{s:i}", "urgency", &facts->urgency);
    else if (!strcmp (name, "dependency-add")) {
        facts->depend_added |= describes (context, DWS_DEPENDENCY);
        apply_other (facts, context, true);
    }
    else if (!strcmp (name, "dependency-remove")) {
        facts->depend_removed |= describes (context, DWS_DEPENDENCY);
        apply_other (facts, context, false);
    }
    else if (!strcmp (name, "alloc"))
        facts->allocated = true;
    else if (!strcmp (name, "prolog-start")) {
        apply_hold (&facts->prologs, name, timestamp, context);
        if (describes (context, DWS_PROLOG)) {
            facts->prolog_started = true;
            facts->t_prolog = timestamp;
        }
    }
    else if (!strcmp (name, "prolog-finish")) {
        apply_hold (&facts->prologs, name, timestamp, context);
        facts->prolog_finished |= describes (context, DWS_PROLOG);
    }
    else if (!strcmp (name, DWS_ENVIRONMENT))
        facts->environment_posted = true;
    else if (!strcmp (name, "start")) {
        facts->run_started = true;
        facts->t_start = timestamp;
    }
    else if (!strcmp (name, "resource-update"))
        facts->prolonged |= facts->run_started;
    else if (!strcmp (name, "finish"))
        facts->run_finished = true;
    else if (!strcmp (name, "release"))
        facts->run_finished |= jobtap_facts_is_final_release (entry);
    else if (!strcmp (name, "epilog-start")) {
        if (describes (context, DWS_EPILOG)) {
            facts->epilog_started = true;
            facts->t_epilog = timestamp;
        }
        if (describes (context, DWS_REBUILD))
            apply_hold (&facts->rebuilds, name, timestamp, context);
    }
    else if (!strcmp (name, "epilog-finish")) {
        facts->epilog_finished |= describes (context, DWS_EPILOG);
        if (describes (context, DWS_REBUILD))
            apply_hold (&facts->rebuilds, name, timestamp, context);
    }
    else if (is_fatal (entry))
        apply_exception (facts, entry, begun);
    return 0;
}

int jobtap_facts_apply (struct jobtap_facts *facts, json_t *entry)
{
    return apply_entry (facts, entry, facts->epilog_started);
}

/* Was the job starting when it got its first fatal exception? The facts may have been
 * seen in another order than these entries, and an exception that is none of them came
 * later.
 */
static bool was_starting (const struct jobtap_facts *facts, json_t *entries)
{
    struct jobtap_facts read = { .owner = facts->owner };
    bool starting;
    size_t index;
    json_t *entry;

    json_array_foreach (entries, index, entry)
        (void)apply_entry (&read, entry, false);
    starting = read.exception ? read.starting : is_starting (&read);
    jobtap_facts_clear (&read);
    return starting;
}

int jobtap_facts_apply_all (struct jobtap_facts *facts, json_t *entries)
{
    double t_early = facts->t_early;
    bool early_timeout = facts->early_timeout;
    bool met = t_early <= 0.;
    bool begun = false;
    size_t index;
    json_t *entry;

    if (!json_is_array (entries)) {
        errno = EPROTO;
        return -1;
    }
    json_array_foreach (entries, index, entry) {
        if (apply_entry (facts, entry, begun) < 0)
            return -1;
        begun |= is_epilog_start (entry);
        met |= is_fatal (entry) && entry_time (entry) == t_early;
    }
    /* An exception seen live, but not read, comes after the entries that were read. */
    if (begun && !met) {
        facts->cut_short = true;
        facts->abandoned |= early_timeout;
    }
    if (facts->exception)
        facts->starting = was_starting (facts, entries);
    return 0;
}

bool jobtap_facts_depend_held (const struct jobtap_facts *facts)
{
    return (facts->depend_added || facts->posted.depend)
        && !facts->depend_removed;
}

bool jobtap_facts_prolog_held (const struct jobtap_facts *facts)
{
    return (facts->prolog_started || facts->posted.prolog)
        && !facts->prolog_finished
        && !facts->posted.prolog_end;
}

static bool has_epilog (const struct jobtap_facts *facts)
{
    return facts->epilog_started || facts->posted.epilog;
}

static bool epilog_ended (const struct jobtap_facts *facts)
{
    return facts->epilog_finished || facts->posted.epilog_end;
}

bool jobtap_facts_epilog_held (const struct jobtap_facts *facts)
{
    return has_epilog (facts) && !epilog_ended (facts);
}

bool jobtap_facts_in_epilog (const struct jobtap_facts *facts)
{
    return facts->epilog_started && !epilog_ended (facts);
}

bool jobtap_facts_abandoned (const struct jobtap_facts *facts)
{
    return facts->abandoned;
}

bool jobtap_facts_cut_short (const struct jobtap_facts *facts)
{
    return facts->cut_short;
}

bool jobtap_facts_epilog_due (const struct jobtap_facts *facts)
{
    return !has_epilog (facts)
        && (facts->run_finished || !(facts->run_started || facts->starting));
}

const char *jobtap_facts_phase (const struct jobtap_facts *facts,
                                flux_job_state_t state)
{
    switch (state) {
        case FLUX_JOB_STATE_NEW:
        case FLUX_JOB_STATE_DEPEND:
            return facts->depend_removed ? "pending" : "depend";
        case FLUX_JOB_STATE_PRIORITY:
        case FLUX_JOB_STATE_SCHED:
            return "pending";
        case FLUX_JOB_STATE_RUN:
            return jobtap_facts_prolog_held (facts) ? "prolog" : "running";
        case FLUX_JOB_STATE_CLEANUP:
            if (epilog_ended (facts))
                return NULL;
            /* After an exception the tasks go on, or start even, until they are
             * killed, and the epilog begins when they are gone.
             */
            if (!has_epilog (facts) && !jobtap_facts_epilog_due (facts))
                return "running";
            return "epilog";
        case FLUX_JOB_STATE_INACTIVE:
            break;
    }
    return NULL;
}

/* Our update is the last one with resources before the end of our dependency.
 */
json_t *jobtap_constraints_read (json_t *entries)
{
    json_t *before = NULL;
    json_t *latest = NULL;
    size_t index;
    json_t *entry;

    json_array_foreach (entries, index, entry) {
        const char *name = "";
        json_t *context = NULL;
        json_t *o;

        (void)json_unpack (entry, "{s:s s?o}", "name", &name,
                           "context", &context);
        if (!strcmp (name, "dependency-remove")
            && describes (context, DWS_DEPENDENCY))
            return before;
        if (strcmp (name, "jobspec-update") != 0)
            continue;
        if (json_object_get (context, "resources"))
            before = latest;
        if ((o = json_object_get (context, "attributes.system.constraints")))
            latest = o;
    }
    return NULL;
}

static void read_exception (json_t *context, char *text, size_t size)
{
    const char *type;
    const char *note = "";
    int severity;

    if (json_unpack (context, "{s:s s:i s?s}",
                     "type", &type,
                     "severity", &severity,
                     "note", &note) == 0
        && severity == 0
        && !text[0])
        snprintf (text, size, "%s%s%s", type, note[0] ? ": " : "", note);
}

static void read_finish (json_t *context, char *text, size_t size)
{
    int status;

    if (json_unpack (context, "{s:i}", "status", &status) < 0 || status == 0
        || text[0])
        return;
    if (WIFSIGNALED (status))
        snprintf (text, size, "a task was killed by signal %d",
                  WTERMSIG (status));
    else
        snprintf (text, size, "a task ended with exit code %d",
                  WEXITSTATUS (status));
}

void jobtap_ending_read (struct jobtap_ending *ending, json_t *entries)
{
    struct jobtap_facts facts = { 0 };
    size_t index;
    json_t *entry;

    memset (ending, 0, sizeof (*ending));
    json_array_foreach (entries, index, entry) {
        const char *name = "";
        json_t *context = NULL;
        char *text = facts.epilog_started ? ending->late : ending->run;

        (void)json_unpack (entry, "{s:s s?o}", "name", &name,
                           "context", &context);
        (void)jobtap_facts_apply (&facts, entry);
        if (!strcmp (name, "exception"))
            read_exception (context, text, sizeof (ending->run));
        else if (!strcmp (name, "finish"))
            read_finish (context, text, sizeof (ending->run));
    }
    if (!facts.run_started && !ending->run[0])
        snprintf (ending->run, sizeof (ending->run), "it has not started");
    jobtap_facts_clear (&facts);
}
