/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Visits every state that the model of Flux, DWS and the network can get into
 * around dws_reconcile(), and follows the job from each of them to its end.
 */

#include <sys/resource.h>

#include "libdws/test/util.h"
#include "model.h"

/* Where a state is in the list, plus 1; 0: free. Most that are not looked for are
 * told by the upper half of their hash.
 */
struct slot {
    uint32_t place;
    uint32_t upper;
};

/* A set of states, in the order in which they were added.
 */
struct set {
    struct model *list;
    uint8_t *flags;             // bit W: known to end in world W
    size_t count;
    size_t size;
    struct slot *slots;
    size_t nslots;              // a power of two
};

static uint64_t hash (const struct model *m)
{
    const unsigned char *cp = (const unsigned char *)m;
    uint64_t h = 0xcbf29ce484222325ULL;

    for (size_t i = 0; i < sizeof (*m); i += sizeof (uint64_t)) {
        uint64_t word = 0;

        memcpy (&word, cp + i, sizeof (*m) - i < sizeof (word) ? sizeof (*m) - i
                                                              : sizeof (word));
        h = (h ^ word) * 0x9e3779b97f4a7c15ULL;
        h ^= h >> 32;
    }
    return h;
}

static void set_init (struct set *set)
{
    memset (set, 0, sizeof (*set));
    set->nslots = 1 << 12;
    set->slots = calloc (set->nslots, sizeof (set->slots[0]));
    assert_non_null (set->slots);
}

static void set_free (struct set *set)
{
    free (set->list);
    free (set->flags);
    free (set->slots);
}

/* Its slot, or the free one that it is to have, with 'upper' set.
 */
static struct slot *find_slot (struct set *set, const struct model *m)
{
    uint64_t h = hash (m);
    uint32_t upper = h >> 32;
    size_t i = h & (set->nslots - 1);
    struct slot *slot = &set->slots[i];

    while (slot->place
           && (slot->upper != upper
               || memcmp (&set->list[slot->place - 1], m, sizeof (*m)) != 0)) {
        i = (i + 1) & (set->nslots - 1);
        slot = &set->slots[i];
    }
    slot->upper = upper;
    return slot;
}

static void set_grow (struct set *set)
{
    free (set->slots);
    set->nslots *= 2;
    set->slots = calloc (set->nslots, sizeof (set->slots[0]));
    assert_non_null (set->slots);
    for (size_t i = 0; i < set->count; i++)
        find_slot (set, &set->list[i])->place = i + 1;
}

/* The index of 'm', which is added if it is new.
 */
static size_t set_add (struct set *set, const struct model *m)
{
    struct slot *slot = find_slot (set, m);

    if (slot->place)
        return slot->place - 1;
    if (set->count == set->size) {
        set->size = set->size ? set->size * 2 : 1024;
        set->list = realloc (set->list, set->size * sizeof (*m));
        set->flags = realloc (set->flags, set->size);
        assert_non_null (set->list);
        assert_non_null (set->flags);
    }
    set->list[set->count] = *m;
    set->flags[set->count] = 0;
    slot->place = ++set->count;
    if (set->count * 2 > set->nslots)
        set_grow (set);
    return set->count - 1;
}

static void visit (const struct model *m, void *arg)
{
    set_add (arg, m);
}

#define PATH_MAX_STEPS 300

/* Follow a state to its end, or to a state that is known to get there.
 */
static void follow (struct set *set, size_t start, enum model_world world,
                    struct model_check *check)
{
    size_t path[PATH_MAX_STEPS];
    size_t count = 0;
    size_t index = start;

    while (!check->failure && !(set->flags[index] & (1 << world))) {
        struct model m = set->list[index];

        path[count++] = index;
        if (model_over (&m) && m.maybe)
            check->failure = "nodes stay drained";
        if (model_over (&m))
            break;
        if (count == PATH_MAX_STEPS || !model_settle (&m, world, check)) {
            check->failure = "the job does not end";
            check->end = m;
            break;
        }
        index = set_add (set, &m);
    }
    if (check->failure)
        return;
    while (count > 0)
        set->flags[path[--count]] |= 1 << world;
}

static void dump (const struct model *m)
{
    print_message ("phase=%s known=%d ran=%d exception=%d teardown=%d "
                   "raised=%d hand=%d tolerance=%d patient=%d lag=%d excluded=%d "
                   "late=%d unmount=%d let_go=%d released=%d reported=%d "
                   "recalled=%d abandoned=%d maybe=%d drained=%d missing=%d "
                   "alone=%d kept=%d given=%d progress=%d "
                   "keeps=%d failed=%d retry=%d recorded=%d recording=%d "
                   "lost=%d left_out=%d only_waived=%d shrunk=%d "
                   "first=%d want_first=%d no_room=%d contended=%d remade=%d "
                   "busy=%02x%08x\n",
                   dws_phase_name (m->phase), m->known, m->ran, m->exception,
                   m->teardown, m->raised, m->hand, m->tolerance,
                   m->patient, m->lag,
                   m->excluded, m->late, m->unmount, m->let_go, m->released,
                   m->reported, m->recalled, m->abandoned, m->maybe,
                   m->drained, m->missing, m->alone, m->kept,
                   m->undrained, m->progress, m->keeps, m->seen.failed,
                   m->seen.retry, m->recorded, m->recording, m->lost, m->left_out,
                   m->only_waived, m->shrunk, m->data_first, m->want_first,
                   m->no_room, m->contended, m->remade,
                   m->busy[4],
                   m->busy[0] | m->busy[1] << 8 | m->busy[2] << 16
                   | (unsigned int)m->busy[3] << 24);
    for (int i = 0; i < 2; i++) {
        const struct model_workflow *wf = i ? &m->seen : &m->real;
        print_message ("%s: exists=%d desired=%s state=%s ready=%d status=%d "
                       "deleting=%d finalizer=%d first=%d hidden=%d "
                       "doubted=%d absent=%d\n", i ? "seen" : "real",
                       wf->exists, dws_state_name (wf->desired),
                       dws_state_name (wf->state), wf->ready, wf->status,
                       wf->deleting, wf->finalizer, wf->data_first, wf->hidden,
                       wf->doubted, m->absent);
    }
}

static void add_starts (struct set *set, int unmount)
{
    struct model start = model_start (0, 0, unmount);
    struct model tolerant = model_start (1, 0, unmount);
    struct model patient = model_start (0, 1, unmount);
    struct model again = model_start_again (unmount);

    set_add (set, &start);
    /* With failing nodes or slow copies there is trouble enough. */
    tolerant.hand = 1;
    set_add (set, &tolerant);
    patient.hand = 1;
    set_add (set, &patient);
    set_add (set, &again);
}

/* From 'start' on, if that is given. Returns the number of states, or 0 at the first
 * failure.
 */
static size_t explore (struct model_check *check, int unmount,
                       const struct model *start, bool verbose)
{
    struct set set;
    size_t count;
    size_t i;

    set_init (&set);
    if (start)
        set_add (&set, start);
    else
        add_starts (&set, unmount);
    for (i = 0; i < set.count && !check->failure; i++) {
        struct model from = set.list[i];
        model_steps (&from, check, visit, &set);
        for (int world = 0; world < WORLD_COUNT; world++)
            follow (&set, i, world, check);
    }
    count = check->failure ? 0 : set.count;
    if (check->failure && verbose) {
        print_message ("after %zu states: %s\n", i, check->failure);
        dump (&set.list[i - 1]);
        print_message ("where it led to:\n");
        dump (&check->end);
    }
    set_free (&set);
    return count;
}

static void every_state (int unmount)
{
    struct model_check check = { .skip = -1 };
    size_t count = explore (&check, unmount, NULL, true);

    assert_null (check.failure);
    print_message ("%s: %zu states visited\n",
                   unmount ? "released when unmounted"
                           : "released when torn down", count);
}

static void test_every_state (void **state)
{
    every_state (0);
}

static void test_every_state_unmounted (void **state)
{
    every_state (1);
}

/* Those of a job whose stage-out may be tried again when it has failed.
 */
static void test_every_state_kept (void **state)
{
    for (int unmount = 0; unmount < 2; unmount++) {
        struct model_check check = { .skip = -1 };
        struct model kept = model_start_kept (unmount);
        size_t count = explore (&check, unmount, &kept, true);

        assert_null (check.failure);
        print_message ("%s, stage-out tried again: %zu states visited\n",
                       unmount ? "released when unmounted"
                               : "released when torn down", count);
    }
}

/* Those of a job that is to have its data before it has nodes.
 */
static void test_every_state_first (void **state)
{
    for (int tolerance = 0; tolerance < 2; tolerance++) {
        struct model_check check = { .skip = -1 };
        struct model first = model_start_first (tolerance, 0);
        size_t count;

        first.hand = tolerance;     // with failing nodes there is trouble enough
        count = explore (&check, 0, &first, true);
        assert_null (check.failure);
        print_message ("data first%s: %zu states visited\n",
                       tolerance ? ", nodes may fail" : "", count);
    }
}

/* Its nodes are idle while file systems are mounted, and no longer.
 */
static void test_course_first (void **state)
{
    struct model_check check = { .skip = -1 };
    struct model m = model_start_first (0, 0);
    uint8_t reached = DWS_STATE_NONE;

    for (int i = 0; i < PATH_MAX_STEPS && !model_over (&m); i++) {
        if (m.phase < DWS_PHASE_PROLOG)
            reached = m.real.state;
        assert_true (model_settle (&m, WORLD_WELL, &check));
        assert_null (check.failure);
        assert_false (m.exception);
    }
    assert_true (model_over (&m));
    assert_int_equal (reached, DWS_STATE_DATAIN);
}

/* Rows that no other job gets to.
 */
static bool is_about_first (const char *row)
{
    return strstr (row, "FIRST") || strstr (row, "STAGED")
        || strstr (row, "BACK") || strstr (row, "UNSTAGED");
}

static void test_every_row_is_needed (void **state)
{
    for (size_t row = 0; row < reconcile_rows (); row++) {
        struct model_check check = { .skip = row };
        struct model first = model_start_first (0, 0);

        if (is_about_first (reconcile_row_name (row)))
            explore (&check, 0, &first, false);
        /* Nearly all of them are needed there: the other is a long walk. */
        for (int unmount = 1; unmount >= 0 && !check.failure; unmount--)
            explore (&check, unmount, NULL, false);
        if (!check.failure)
            fail_msg ("not needed: %s", reconcile_row_name (row));
        print_message ("without %s: %s\n", reconcile_row_name (row),
                       check.failure);
    }
}

/* Without faults a job runs through all states and nothing is raised.
 */
static void test_ordinary_course (void **state)
{
    struct model_check check = { .skip = -1 };
    struct model m = model_start (0, 0, 0);
    uint8_t last = DWS_STATE_NONE;
    int states = 0;

    for (int i = 0; i < PATH_MAX_STEPS && !model_over (&m); i++) {
        assert_true (model_settle (&m, WORLD_WELL, &check));
        assert_null (check.failure);
        assert_false (m.exception);
        if (m.real.exists && m.real.state != last) {
            assert_int_equal (m.real.state, last + 1);
            last = m.real.state;
            states++;
        }
    }
    assert_true (model_over (&m));
    assert_int_equal (states, 7);
}

/* One node that fails in Setup and again in PreRun does not keep a job that can
 * do without it from running.
 */
static void test_tolerant_job_runs (void **state)
{
    struct model_check check = { .skip = -1 };
    struct model m = model_start (1, 0, 0);
    int i;

    for (i = 0; i < PATH_MAX_STEPS && m.phase < DWS_PHASE_RUNNING; i++) {
        assert_true (model_settle (&m, WORLD_STUCK, &check));
        assert_null (check.failure);
        assert_false (m.exception);
    }
    assert_int_equal (m.phase, DWS_PHASE_RUNNING);
}

/* Data whose stage-in takes longer than the prolog may, and advances, is waited for. A
 * stage-in that does not advance fails the job.
 */
static void test_data_on_the_move (void **state)
{
    struct model_check check = { .skip = -1 };

    for (int world = WORLD_STUCK; world <= WORLD_MOVING; world += 2) {
        struct model m = model_start (0, 1, 0);
        bool ran = false;
        bool raised = false;

        m.phase = DWS_PHASE_PROLOG;
        m.hosts = 1;
        m.real = (struct model_workflow){
            .exists = 1,
            .desired = DWS_STATE_DATAIN,
            .state = DWS_STATE_DATAIN,
            .finalizer = 1,
        };
        for (int i = 0; i < PATH_MAX_STEPS && !model_over (&m); i++) {
            ran |= m.phase == DWS_PHASE_RUNNING;
            raised |= m.exception;
            assert_true (model_settle (&m, world, &check));
            assert_null (check.failure);
        }
        assert_true (model_over (&m));
        assert_int_equal (raised, world == WORLD_STUCK);
        assert_int_equal (ran, world == WORLD_MOVING);
    }
}

/* The two long walks are processes of their own, which run side by side.
 */
int main (int argc, char **argv)
{
    const char *part = argc > 1 ? argv[1] : "";
    const struct CMUnitTest torn_down[] = {
        cmocka_unit_test (test_every_state),
    };
    const struct CMUnitTest unmounted[] = {
        cmocka_unit_test (test_every_state_unmounted),
    };
    const struct CMUnitTest others[] = {
        cmocka_unit_test (test_ordinary_course),
        cmocka_unit_test (test_tolerant_job_runs),
        cmocka_unit_test (test_data_on_the_move),
        cmocka_unit_test (test_course_first),
        cmocka_unit_test (test_every_state_kept),
        cmocka_unit_test (test_every_state_first),
        cmocka_unit_test (test_every_row_is_needed),
    };

    // Not real time: on a busy machine a walk takes several times as long. It fails
    // where the limit is lower already.
    (void)setrlimit (RLIMIT_CPU, &(struct rlimit){ 1800, 1800 });
    if (!strcmp (part, "torn-down"))
        return cmocka_run_group_tests_name (part, torn_down, NULL, NULL);
    if (!strcmp (part, "unmounted"))
        return cmocka_run_group_tests_name (part, unmounted, NULL, NULL);
    return cmocka_run_group_tests_name ("explore", others, NULL, NULL);
}
