/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Totals (totals.c) and ledger (space.c) of any mix of jobs: whatever they have asked
 * for, and however far they have got, both count the same bytes.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libdws/config/config.h"
#include "libdws/directive/command.h"
#include "libdws/facts/report.h"
#include "libdws/storage/allocation.h"
#include "libdws/storage/test/with.h"
#include "libdws/test/util.h"
#include "facts/accounts.h"
#include "facts/jobs.h"
#include "facts/persistent.h"
#include "facts/space.h"
#include "facts/totals.h"

#define GIB (INT64_C (1) << 30)
#define JOBS 12
#define USERS 3
#define RABBITS 4
#define ROUNDS 100

enum stage {
    SUBMITTED,
    ADMITTED,                   // it has a workflow
    LAID_OUT,
    MADE,                       // NNF says what it has made
    OVER,
};

struct model {
    enum stage stage;
    int nodes;
    struct dws_workflow wf;
    json_t *breakdowns;
    json_t *layout;
};

static struct {
    struct dws_ctx ctx;
    struct dws_config config;
    struct job jobs[JOBS];
    struct model models[JOBS];
} w;

void jobs_changed (struct job *job)
{
    totals_see_job (w.ctx.totals, job);
}

void jobs_each (struct jobs *jobs, void (*cb)(struct job *job, void *arg),
                void *arg)
{
    for (size_t i = 0; i < JOBS; i++)
        cb (&w.jobs[i], arg);
}

bool job_torn_down (const struct job *job)
{
    return job->wf && job->wf->state == DWS_STATE_TEARDOWN && job->wf->ready;
}

/* The owner is a part of the name.
 */
void persistent_each (const struct persistent *p, const struct space *space,
                      persistent_f visit, void *arg)
{
    struct dws_bytes taken = { 0 };

    space_persistent_outside (space, &taken);
    for (size_t i = 0; i < taken.count; i++)
        visit (taken.list[i].rabbit[0] - '0', taken.list[i].bytes, arg);
    dws_bytes_clear (&taken);
}

static uint64_t seed = 7;

static int draw (int below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (int)(seed % (uint64_t)below);
}

/* A directive, and what NNF makes of it: with or without padding, by a profile that
 * makes more or less of it; Lustre with its metadata.
 */
static void add_directive (struct job *job, struct model *m, json_t *directives,
                           int number)
{
    static const char *const types[] = { "xfs", "gfs2", "raw", "lustre" };
    const char *type = types[draw (4)];
    bool persistent = draw (4) == 0;
    json_int_t bytes = 1000000 * (1 + (json_int_t)draw (30000));
    json_t *sets = json_array ();
    char name[64];

    json_array_append_new (directives, json_sprintf (
        "#DW %s type=%s capacity=%lldMB name=%c%d-%d",
        persistent ? "create_persistent" : "jobdw", type,
        (long long)bytes / 1000000, (char)('0' + job->facts->userid),
        (int)job->facts->id, number));
    job->facts->commands |= persistent ? DWS_COMMAND_CREATE_PERSISTENT
                                       : DWS_COMMAND_JOBDW;
    if (draw (2))
        bytes += 300 << 20;
    if (draw (3) == 0)
        bytes = bytes / 1000 * (500 + draw (1000));
    if (strcmp (type, "lustre") == 0) {
        json_array_append_new (sets, json_pack (
            "{s:s s:s s:I}", "allocationStrategy", "AllocateAcrossServers",
            "label", "ost", "minimumCapacity", bytes));
        json_array_append_new (sets, json_pack (
            "{s:s s:s s:I s:{s:i}}", "allocationStrategy",
            "AllocateAcrossServers", "label", "mdt", "minimumCapacity",
            (json_int_t)(5 * GIB), "constraints", "count", 1 + draw (3)));
    }
    else
        json_array_append_new (sets, json_pack (
            "{s:s s:s s:I}", "allocationStrategy",
            draw (8) ? "AllocatePerCompute" : "AllocatePerServer",
            "label", type, "minimumCapacity", bytes));
    snprintf (name, sizeof (name), "%c%c%d-%d", persistent ? 'p' : 'j',
              (char)('0' + job->facts->userid), (int)job->facts->id, number);
    json_array_append_new (m->breakdowns, json_pack (
        "{s:{s:s} s:{s:b s:{s:{s:s s:s} s:o}}}",
        "metadata", "name", name,
        "status", "ready", 1, "storage",
          "reference", "name", name, "namespace", "default",
          "allocationSets", sets));
}

static void submit (int i)
{
    struct job *job = &w.jobs[i];
    struct model *m = &w.models[i];
    struct dws_job *facts = calloc (1, sizeof (*facts));
    json_t *texts = json_array ();
    char text[64];

    assert_non_null (facts);
    m->nodes = 1 + draw (6);
    m->breakdowns = json_array ();
    facts->id = 10 + i;
    facts->userid = 1 + draw (USERS);
    *job = (struct job){ .ctx = &w.ctx, .facts = facts };
    for (int n = 0; n <= draw (3); n++)
        add_directive (job, m, texts, n);
    facts->directives = dws_directives_read (texts);
    json_decref (texts);
    snprintf (text, sizeof (text), "[{\"type\": \"node\", \"count\": %d}]",
              m->nodes);
    facts->resources = strdup (text);
    job->claim.id = facts->id;
    m->wf = (struct dws_workflow){ .state = DWS_STATE_PROPOSAL,
                                   .desired = DWS_STATE_PROPOSAL };
    m->stage = SUBMITTED;
    totals_see_job (w.ctx.totals, job);
}

static bool admit (struct job *job)
{
    struct dws_subject subject = { .userid = job->facts->userid, .user = "u" };
    struct dws_applying applying;

    assert_true (dws_limits_find (w.config.storage_limits, &subject,
                                  &applying));
    totals_set_rules (job, &applying);
    return totals_admit (w.ctx.totals, job);
}

static json_t *find_nodes (int count)
{
    json_t *nodes = json_object ();
    int left = count;

    while (left > 0) {
        char rabbit[16];
        json_int_t n;

        snprintf (rabbit, sizeof (rabbit), "rabbit%d", draw (RABBITS));
        n = json_integer_value (json_object_get (nodes, rabbit));
        json_object_set_new (nodes, rabbit, json_integer (n + 1));
        left--;
    }
    return nodes;
}

static void lay_out (struct job *job, struct model *m)
{
    json_t *nodes = find_nodes (m->nodes);
    dws_error_t e = { "" };

    m->layout = WITH_BREAKDOWNS (m->breakdowns, &e,
                                 dws_allocation_sets (bd, nodes, NULL, &e));
    if (!m->layout)
        fail_msg ("%s", e.text);
    assert_int_equal (space_claim (w.ctx.space, &job->claim, m->layout), 0);
    m->wf.desired = DWS_STATE_SETUP;
    json_decref (nodes);
}

/* The object with the entry's name as Kubernetes has it: made with 'spare' bytes more
 * than was wanted, as with drives lost, or with nothing any more.
 */
static void tell (json_t *entry, json_int_t spare, bool gone)
{
    json_t *servers = dws_allocation_patch (entry);
    json_t *labels = json_object ();
    json_t *made = json_array ();
    const char *name = "";
    json_t *set;
    size_t index;

    (void)json_unpack (entry, "{s:{s:s}}", "servers", "name", &name);
    if (*name == 'p')
        json_object_set_new (labels, DWS_LABEL_PERSISTENT,
                             json_string (name + 1));
    json_array_foreach (json_object_get (entry, "allocationSets"), index, set) {
        json_t *by_rabbit = json_object ();
        json_int_t size = 0;
        json_t *storage;
        size_t i;

        (void)json_unpack (set, "{s:I}", "allocationSize", &size);
        json_array_foreach (json_object_get (set, "storage"), i, storage) {
            const char *rabbit = "";
            json_int_t count = 0;

            (void)json_unpack (storage, "{s:s s:I}", "name", &rabbit,
                               "allocationCount", &count);
            json_object_set_new (by_rabbit, rabbit, json_pack (
                "{s:I}", "allocationSize", gone ? 0 : size * count + spare));
        }
        json_array_append_new (made, json_pack ("{s:o}", "storage", by_rabbit));
    }
    json_object_set_new (servers, "metadata", json_pack (
        "{s:s s:s s:o}", "name", name, "namespace", "default",
        "labels", labels));
    json_object_set_new (servers, "status", json_pack (
        "{s:b s:o}", "ready", 1, "allocationSets", made));
    assert_int_equal (space_learn (w.ctx.space, servers, false), 0);
    json_decref (servers);
}

static void tell_all (struct model *m, bool over)
{
    json_t *entry;
    size_t index;

    json_array_foreach (m->layout, index, entry) {
        const char *name = "";

        (void)json_unpack (entry, "{s:{s:s}}", "servers", "name", &name);
        tell (entry, draw (5) * 65536, over && *name == 'j' && draw (2));
    }
}

static void forget (int i)
{
    struct job *job = &w.jobs[i];
    struct model *m = &w.models[i];

    job_slot_clear (job, SLOT_TOTALS);
    space_free (w.ctx.space, &job->claim, true);
    dws_job_destroy (job->facts);
    dws_breakdowns_destroy (m->wf.breakdowns);
    json_decref (m->breakdowns);
    json_decref (m->layout);
    *m = (struct model){ 0 };
}

/* The next thing that happens to a job.
 */
static void step (int i)
{
    struct job *job = &w.jobs[i];
    struct model *m = &w.models[i];

    switch (m->stage) {
        case SUBMITTED:
            if (!admit (job))
                return;
            job->wf = &m->wf;
            break;
        case ADMITTED:
            if (!m->wf.breakdowns)
                m->wf.breakdowns = dws_breakdowns_create (m->breakdowns, NULL);
            totals_see_job (w.ctx.totals, job);
            if (!admit (job))
                return;
            job->facts->phase = DWS_PHASE_PROLOG;
            lay_out (job, m);
            break;
        case LAID_OUT:
            tell_all (m, false);
            break;
        case MADE:
            m->wf.desired = m->wf.state = DWS_STATE_TEARDOWN;
            job->facts->phase = DWS_PHASE_EPILOG;
            tell_all (m, true);
            break;
        case OVER:
            if (!m->wf.ready) {
                m->wf.ready = true;
                space_free (w.ctx.space, &job->claim, true);
            }
            break;
    }
    if (m->stage < OVER)
        m->stage++;
    totals_see_space (w.ctx.totals);
    totals_see_job (w.ctx.totals, job);
}

static void add_account (struct account *account, void *arg)
{
    int64_t *bytes = arg;

    *bytes += account->bytes + account->persistent_bytes;
}

/* What is promised to jobs that have been let in, and not laid out.
 */
static int64_t promised (void)
{
    int64_t bytes = 0;

    for (int i = 0; i < JOBS; i++) {
        struct job *job = &w.jobs[i];

        if (w.models[i].stage == ADMITTED && !job->facts->awaits)
            bytes += totals_sizes (job)->job.taken;
    }
    return bytes;
}

static void check (void)
{
    int64_t bytes = 0;

    totals_each (w.ctx.totals, add_account, &bytes);
    assert_int_equal (bytes - promised (),
                      dws_bytes_sum (space_used (w.ctx.space), INT64_MAX));
}

/* The configuration is another: who has nothing yet asks once more.
 */
static void recount (void)
{
    totals_recount (w.ctx.totals);
    for (int i = 0; i < JOBS; i++) {
        if (w.models[i].stage == ADMITTED)
            (void)admit (&w.jobs[i]);
    }
    check ();
}

static void run (const char *rules)
{
    json_t *table = J (rules);
    dws_error_t e;

    memset (&w, 0, sizeof (w));
    w.ctx.config = &w.config;
    w.ctx.jobs = (struct jobs *)&w;
    assert_non_null (w.config.storage_limits = dws_limits_create (table, &e));
    assert_non_null (w.ctx.space = space_create ());
    assert_non_null (w.ctx.totals = totals_create (&w.ctx));
    space_set_known (w.ctx.space);
    for (int i = 0; i < JOBS; i++)
        submit (i);
    for (int n = 0; n < 20 * JOBS; n++) {
        int i = draw (JOBS);

        step (i);
        check ();
        if (draw (50) == 0)
            recount ();
    }
    for (int i = 0; i < JOBS; i++)
        forget (i);
    totals_destroy (w.ctx.totals);
    space_destroy (w.ctx.space);
    dws_limits_destroy (w.config.storage_limits);
    json_decref (table);
}

static void test_mix (void **state)
{
    for (int round = 0; round < ROUNDS; round++)
        run (round % 2 ? "{'a': {'total': 'unlimited'}}"
                       : "{'a': {'total': '200GiB'}}");
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_mix),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
