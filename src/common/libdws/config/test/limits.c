/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of limits.c.
 */

#include "libdws/config/limits.h"
#include "libdws/directive/capacity.h"
#include "libdws/test/util.h"

#define TIB (INT64_C (1) << 40)

static struct dws_limits *make (const char *text)
{
    json_t *table = J (text);
    dws_error_t e = { "" };
    struct dws_limits *limits = dws_limits_create (table, &e);

    if (!limits)
        fail_msg ("%s: %s", text, e.text);
    json_decref (table);
    return limits;
}

static const struct {
    const char *table;
    const char *error;
} bad[] = {
    { "[]", "rabbit.limits: expected a table, got []" },
    { "{'contact': ''}", "rabbit.limits.contact: expected a text" },
    { "{'contact': {'job': '1TiB'}}", "rabbit.limits.contact: expected" },
    { "{'a': 5}", "rabbit.limits.a: expected a table, got 5" },
    { "{'a': {}}", "rabbit.limits.a: one of allow, job, node and total" },
    { "{'a': {'user': 'u'}}", "rabbit.limits.a: one of allow, job, node" },
    { "{'a': {'jobs': '1TiB'}}", "rabbit.limits.a.jobs: unknown key" },
    { "{'a': {'job': 5}}", "rabbit.limits.a.job: expected a size such as "
      "\"20TiB\", or \"unlimited\", got 5" },
    { "{'a': {'node': '1.5TiB'}}", "rabbit.limits.a.node: expected a size" },
    { "{'a': {'total': '-1TiB'}}", "rabbit.limits.a.total: expected a size" },
    { "{'a': {'allow': 0}}", "rabbit.limits.a.allow: expected true or false" },
    { "{'a': {'user': 5, 'allow': false}}",
      "rabbit.limits.a.user: expected a name, got 5" },
    { "{'a': {'queue': '', 'allow': false}}",
      "rabbit.limits.a.queue: expected a name" },
    { "{'a': {'job': '1TiB', 'per': 'bank'}}",
      "rabbit.limits.a.per: the rule has no total" },
    { "{'a': {'total': '1TiB', 'per': 'group'}}",
      "rabbit.limits.a.per: expected \"user\" or \"bank\", got \"group\"" },
    { "{'b': {'job': '1TiB'}, 'a': {'job': ''}}", "rabbit.limits.a.job: " },
};

static void test_faults (void **state)
{
    for (size_t i = 0; i < sizeof (bad) / sizeof (bad[0]); i++) {
        json_t *table = J (bad[i].table);
        dws_error_t e = { "" };

        errno = 0;
        assert_null (dws_limits_create (table, &e));
        assert_int_equal (errno, EINVAL);
        assert_contains (e.text, bad[i].error);
        json_decref (table);
    }
}

static void test_none (void **state)
{
    dws_error_t e;
    struct dws_limits *limits = dws_limits_create (NULL, &e);
    struct dws_subject subject = { .userid = 1 };
    struct dws_applying applying;
    struct dws_sizes sizes = { { INT64_MAX, INT64_MAX },
                               { INT64_MAX, INT64_MAX } };

    assert_false (dws_limits_any (NULL));
    assert_false (dws_limits_have (NULL, DWS_LIMIT_USER));
    assert_false (dws_limits_any (limits));
    assert_true (dws_limits_find (NULL, &subject, &applying));
    assert_true (dws_limits_find (limits, &subject, &applying));
    assert_int_equal (dws_limits_check (limits, &applying, &sizes, &e), 0);
    assert_int_equal (dws_limits_bytes (&applying, DWS_LIMIT_USER), -1);
    dws_limits_destroy (limits);
}

static enum dws_known student (const char *group, void *arg)
{
    return strcmp (group, "students") == 0 ? DWS_KNOWN_YES : DWS_KNOWN_NO;
}

static enum dws_known slow (const char *group, void *arg)
{
    return DWS_KNOWN_NOT;
}

/* Does the rule apply to alice (7), in bank physics and queue batch?
 */
static const struct {
    const char *conditions;
    bool applies;
} whom[] = {
    { "", true },
    { "'user': 'alice',", true },
    { "'user': '7',", true },
    { "'user': 'bob',", false },
    { "'user': '8',", false },
    { "'bank': 'physics',", true },
    { "'bank': 'chemistry',", false },
    { "'queue': 'batch',", true },
    { "'queue': 'debug',", false },
    { "'group': 'students',", true },
    { "'group': 'staff',", false },
    { "'user': 'alice', 'queue': 'batch', 'group': 'students',", true },
    { "'user': 'alice', 'queue': 'debug',", false },
    { "'user': 'alice', 'group': 'staff',", false },
};

static void test_whom (void **state)
{
    struct dws_subject subject = {
        .userid = 7, .user = "alice", .bank = "physics", .queue = "batch",
        .member = student,
    };

    for (size_t i = 0; i < sizeof (whom) / sizeof (whom[0]); i++) {
        struct dws_sizes sizes = { { 2, 2 }, { 1, 1 } };
        struct dws_applying applying;
        struct dws_limits *limits;
        dws_error_t e = { "" };
        char text[256];

        snprintf (text, sizeof (text), "{'a': {%s 'allow': false}}",
                  whom[i].conditions);
        limits = make (text);
        assert_true (dws_limits_find (limits, &subject, &applying));
        errno = 0;
        if (whom[i].applies) {
            assert_int_equal (dws_limits_check (limits, &applying, &sizes, &e),
                              -1);
            assert_int_equal (errno, EPERM);
            assert_string_equal (e.text, "rabbit storage is not allowed for "
                                 "this job by rabbit.limits.a.allow; ask the "
                                 "admins of this machine");
        }
        else
            assert_int_equal (dws_limits_check (limits, &applying, &sizes, &e),
                              0);
        dws_limits_destroy (limits);
    }
}

/* The first rule that fits and has the key: one that lacks it does not count.
 */
static void test_first (void **state)
{
    struct dws_limits *limits = make (
        "{'z': {'node': '1TiB'},"
        " 'ops': {'user': 'alice', 'job': 'unlimited', 'allow': true},"
        " 'all': {'job': '2TiB', 'allow': false},"
        " 'bank': {'total': '3TiB', 'per': 'bank'},"
        " 'user': {'total': '4TiB', 'per': 'user'},"
        " 'last': {'total': '5TiB'}}");
    struct dws_subject alice = { .userid = 7, .user = "alice" };
    struct dws_subject bob = { .userid = 8, .user = "bob", .bank = "b" };
    struct dws_sizes sizes = { { 4 * TIB, 4 * TIB }, { TIB, TIB } };
    struct dws_applying applying;
    dws_error_t e = { "" };

    assert_true (dws_limits_any (limits));
    assert_true (dws_limits_have (limits, DWS_LIMIT_BANK));
    assert_true (dws_limits_find (limits, &alice, &applying));
    assert_int_equal (dws_limits_bytes (&applying, DWS_LIMIT_JOB), -1);
    assert_int_equal (dws_limits_bytes (&applying, DWS_LIMIT_NODE), TIB);
    assert_int_equal (dws_limits_bytes (&applying, DWS_LIMIT_USER), 4 * TIB);
    assert_int_equal (dws_limits_bytes (&applying, DWS_LIMIT_BANK), -1);
    assert_int_equal (dws_limits_check (limits, &applying, &sizes, &e), 0);
    sizes.node.asked = sizes.node.taken = TIB + 1;
    assert_int_equal (dws_limits_check (limits, &applying, &sizes, &e), -1);
    assert_contains (e.text, "of rabbit storage per node is more than the 1 TiB "
                     "that a job may have per node by rabbit.limits.z.node;");
    sizes = (struct dws_sizes){ { 5 * TIB, 5 * TIB }, { TIB, TIB } };
    assert_int_equal (dws_limits_check (limits, &applying, &sizes, &e), -1);
    assert_contains (e.text, "5 TiB of rabbit storage is more than the 4 TiB "
                     "that a user may have at one time by "
                     "rabbit.limits.user.total; ask");
    assert_true (dws_limits_find (limits, &bob, &applying));
    assert_int_equal (dws_limits_bytes (&applying, DWS_LIMIT_JOB), 2 * TIB);
    assert_int_equal (dws_limits_bytes (&applying, DWS_LIMIT_BANK), 3 * TIB);
    assert_int_equal (dws_limits_check (limits, &applying, &sizes, &e), -1);
    assert_contains (e.text, "rabbit.limits.all.allow");
    dws_limits_destroy (limits);
}

static void test_describe (void **state)
{
    struct dws_limits *limits = make ("{'u': {'user': '7', 'job': 'unlimited'},"
                                      " 'all': {'allow': false, 'job': '1TiB',"
                                      "         'total': '3TiB'},"
                                      " 'b': {'per': 'bank', 'total': '4TiB'}}");
    struct dws_subject subject = { .userid = 7, .bank = "x" };
    struct dws_applying applying;
    json_t *is;

    assert_true (dws_limits_find (limits, &subject, &applying));
    assert_non_null (is = dws_limits_describe (&applying));
    assert_json (is, "{'allow': {'rule': 'all', 'value': false},"
                 " 'job': {'rule': 'u', 'value': null},"
                 " 'user': {'rule': 'all', 'value': 3298534883328},"
                 " 'bank': {'rule': 'b', 'value': 4398046511104}}");
    json_decref (is);
    dws_limits_destroy (limits);
}

static void test_sizes (void **state)
{
    struct dws_limits *limits = make ("{'contact': 'the storage desk',"
                                      " 'a': {'job': '20TiB'}}");
    struct dws_subject subject = { .userid = 7 };
    struct dws_applying applying;
    struct dws_sizes sizes = { { 20 * TIB, 20 * TIB }, { TIB, TIB } };
    dws_error_t e = { "" };

    assert_true (dws_limits_find (limits, &subject, &applying));
    assert_int_equal (dws_limits_check (limits, &applying, &sizes, &e), 0);
    sizes.job.asked = sizes.job.taken = 30 * TIB;
    assert_int_equal (dws_limits_check (limits, &applying, &sizes, &e), -1);
    assert_string_equal (e.text, "30 TiB of rabbit storage is more than the 20 "
                         "TiB that a job may have by rabbit.limits.a.job; ask "
                         "the storage desk");
    sizes.job.asked = 20 * TIB;
    sizes.job.taken = 20 * TIB + (300 << 20);
    assert_int_equal (dws_limits_check (limits, &applying, &sizes, &e), -1);
    assert_string_equal (e.text, "20 TiB of rabbit storage, and 300 MiB of NNF's "
                         "own: more than the 20 TiB that a job may have by "
                         "rabbit.limits.a.job; ask the storage desk");
    dws_limits_destroy (limits);
}

/* What is not known leaves open what it decides, and that alone.
 */
static void test_open (void **state)
{
    struct dws_limits *limits = make (
        "{'u': {'user': 'alice', 'job': '1TiB'},"
        " 'g': {'group': 'students', 'queue': 'debug', 'node': '1TiB'},"
        " 'b': {'bank': 'physics', 'total': '1TiB'},"
        " 'any': {'job': '2TiB', 'node': '2TiB', 'total': '2TiB'}}");
    struct dws_subject subject = { .userid = 7, .queue = "batch" };
    struct dws_sizes sizes = { { 3 * TIB, 3 * TIB }, { 3 * TIB, 3 * TIB } };
    struct dws_applying applying;
    dws_error_t e = { "" };

    assert_false (dws_limits_find (limits, &subject, &applying));
    assert_true (applying.open[DWS_LIMIT_JOB]);
    assert_false (applying.open[DWS_LIMIT_NODE]);
    assert_false (applying.open[DWS_LIMIT_USER]);
    assert_int_equal (dws_limits_bytes (&applying, DWS_LIMIT_JOB), -1);
    assert_int_equal (dws_limits_check (limits, &applying, &sizes, &e), -1);
    assert_contains (e.text, "rabbit.limits.any.node");
    subject.queue = "debug";
    subject.bank_open = true;
    assert_false (dws_limits_find (limits, &subject, &applying));
    assert_true (applying.open[DWS_LIMIT_NODE]);
    assert_true (applying.open[DWS_LIMIT_USER]);
    assert_int_equal (dws_limits_check (limits, &applying, &sizes, &e), 0);
    subject.user = "bob";
    subject.member = slow;
    subject.bank_open = false;
    assert_false (dws_limits_find (limits, &subject, &applying));
    assert_true (applying.open[DWS_LIMIT_NODE]);
    assert_int_equal (dws_limits_bytes (&applying, DWS_LIMIT_JOB), 2 * TIB);
    subject.member = student;
    assert_true (dws_limits_find (limits, &subject, &applying));
    dws_limits_destroy (limits);
}

static void test_text (void **state)
{
    struct dws_limits *limits = make ("{'a': {'total': '16TiB'},"
                                      " 'b': {'total': '1TiB', 'per': 'bank'}}");
    struct dws_subject subject = { .userid = 7, .bank = "physics" };
    struct dws_in_use use = { .bytes = 14 * TIB, .jobs = 3 };
    struct dws_applying applying;
    struct dws_size size = { 4 * TIB, 4 * TIB };
    char buf[DWS_LIMITS_TEXT_SIZE];

    assert_true (dws_limits_find (limits, &subject, &applying));
    assert_string_equal (dws_limits_text (&applying, DWS_LIMIT_USER, NULL, &use,
                                          &size, buf),
                         "4 TiB: 14 TiB of the 16 TiB that its user may have "
                         "are in use by 3 jobs (rabbit.limits.a.total)");
    use = (struct dws_in_use){ .bytes = TIB, .jobs = 1, .persistent = 2 };
    size = (struct dws_size){ TIB / 2, TIB / 2 + (300 << 20) };
    assert_string_equal (dws_limits_text (&applying, DWS_LIMIT_BANK, "physics",
                                          &use, &size, buf),
                         "512 GiB, and 300 MiB of NNF's own: 1 TiB of the "
                         "1 TiB that bank physics may have are in use by 1 "
                         "job and 2 persistent file systems "
                         "(rabbit.limits.b.total)");
    dws_limits_destroy (limits);
}

static const struct {
    int64_t bytes;
    const char *text;
} sizes[] = {
    { 0, "0 TiB" },
    { TIB, "1 TiB" },
    { TIB + (TIB >> 10), "1025 GiB" },
    { INT64_C (10000000000000), "10 TB" },
    { INT64_C (3000000000), "3 GB" },
    { 1024, "1 KiB" },
    { 1001, "0.9775 KiB" },
    { TIB + 1, "1 TiB" },
    { INT64_MAX, "8.389e+06 TiB" },
};

static void test_capacity_text (void **state)
{
    char buf[DWS_CAPACITY_TEXT_SIZE];

    for (size_t i = 0; i < sizeof (sizes) / sizeof (sizes[0]); i++)
        assert_string_equal (dws_capacity_text (sizes[i].bytes, buf),
                             sizes[i].text);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_faults),
        cmocka_unit_test (test_none),
        cmocka_unit_test (test_whom),
        cmocka_unit_test (test_first),
        cmocka_unit_test (test_describe),
        cmocka_unit_test (test_sizes),
        cmocka_unit_test (test_open),
        cmocka_unit_test (test_text),
        cmocka_unit_test (test_capacity_text),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
