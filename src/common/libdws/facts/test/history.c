/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of history.c.
 */

#include "libdws/facts/history.h"
#include "libdws/test/util.h"

#define EXCEPTION(type, severity) \
    "{\"timestamp\":2,\"name\":\"exception\",\"context\":" \
    "{\"type\":\"" type "\",\"severity\":" severity ",\"userid\":100}}\n"
#define BY_GUEST(type) \
    "{\"timestamp\":2,\"name\":\"exception\",\"context\":" \
    "{\"type\":\"" type "\",\"severity\":0,\"userid\":42}}\n"
#define OWNER 100
#define EPILOG(description) \
    "{\"timestamp\":1,\"name\":\"epilog-start\",\"context\":" \
    "{\"description\":\"" description "\"}}\n"

#define FINISH \
    "{\"timestamp\":3,\"name\":\"epilog-finish\",\"context\":" \
    "{\"description\":\"dws-epilog\",\"status\":0}}\n"
#define FAILED \
    "{\"timestamp\":3,\"name\":\"epilog-finish\",\"context\":" \
    "{\"description\":\"dws-epilog\",\"status\":1}}\n"
#define START "{\"timestamp\":1,\"name\":\"start\"}\n"
#define CLEAN "{\"timestamp\":4,\"name\":\"clean\"}\n"
#define SUBMIT "{\"timestamp\":1,\"name\":\"submit\",\"context\":" \
    "{\"userid\":42,\"urgency\":16,\"flags\":0,\"version\":1}}\n"

/* Only the exception of its own epilog lets a job go early.
 */
static void test_recall (void **state)
{
    static const struct {
        const char *eventlog;
        bool abandoned;
        bool released;
    } tab[] = {
        { NULL, false, false },
        { "", false, false },
        { "not JSON\n{}\n[]", false, false },
        { EPILOG ("dws-epilog") EXCEPTION ("dws-epilog-timeout", "0"),
          true, false },
        { "{}\n" EPILOG ("dws-epilog") EXCEPTION ("cancel", "0")
          EXCEPTION ("dws-epilog-timeout", "0") "{}", true, false },
        { EPILOG ("dws-epilog") EXCEPTION ("dws-epilog-timeout", "1"),
          false, false },
        { EPILOG ("dws-epilog") BY_GUEST ("dws-epilog-timeout"),
          false, false },
        { EPILOG ("dws-epilog") EXCEPTION ("cancel", "0"), false, false },
        { EXCEPTION ("dws-epilog-timeout", "0") EPILOG ("dws-epilog"),
          false, false },
        { EPILOG ("other") EXCEPTION ("dws-epilog-timeout", "0"),
          false, false },
        { EPILOG ("dws-epilog") FINISH, false, true },
        { EPILOG ("dws-epilog") EXCEPTION ("cancel", "0") FINISH,
          false, true },
        { EPILOG ("dws-epilog") EXCEPTION ("dws-epilog-timeout", "0") FINISH,
          true, false },
        { EPILOG ("dws-epilog") FINISH EXCEPTION ("dws-epilog-timeout", "0"),
          false, true },
        { FINISH, false, false },
    };

    for (size_t i = 0; i < sizeof (tab) / sizeof (tab[0]); i++) {
        struct dws_job job = { .id = 1 };

        dws_job_recall (&job, tab[i].eventlog, OWNER);
        assert_true (job.recalled);
        assert_int_equal (job.abandoned, tab[i].abandoned);
        assert_int_equal (job.released, tab[i].released);
    }
}

/* A job that has run ends with an epilog, unless the plugin was away.
 */
static void test_stranded (void **state)
{
    static const struct {
        const char *eventlog;
        bool ran;
        bool stranded;
    } tab[] = {
        { NULL, false, false },
        { SUBMIT CLEAN, false, false },
        { SUBMIT START CLEAN, true, true },
        { SUBMIT START EXCEPTION ("dws-epilog-timeout", "0") CLEAN,
          true, true },
        { SUBMIT START EPILOG ("other") CLEAN, true, true },
        { SUBMIT START EPILOG ("dws-epilog") FINISH CLEAN, true, false },
        { SUBMIT START EPILOG ("dws-epilog") CLEAN, true, false },
        { SUBMIT START EPILOG ("dws-epilog") FAILED CLEAN, true, true },
        { SUBMIT EPILOG ("dws-epilog") FAILED CLEAN, false, false },
        { SUBMIT START EPILOG ("dws-epilog")
          EXCEPTION ("dws-epilog-timeout", "0") FAILED CLEAN, true, false },
    };

    for (size_t i = 0; i < sizeof (tab) / sizeof (tab[0]); i++) {
        struct dws_job job = { .id = 1, .t_gone = 7. };

        dws_job_recall (&job, tab[i].eventlog, OWNER);
        assert_int_equal (job.run_started, tab[i].ran);
        assert_int_equal (job.stranded, tab[i].stranded);
        if (job.stranded) {
            assert_true (job.released);
            assert_true (job.t_epilog == 7.);
        }
    }
}

/* What time limits and the record of a loss go by.
 */
static void test_recall_owner (void **state)
{
    struct dws_job job = { .id = 1 };

    dws_job_recall (&job, SUBMIT EPILOG ("dws-epilog") FINISH, OWNER);
    assert_int_equal (job.userid, 42);
    assert_true (job.remembered);
    assert_true (job.t_epilog == 1.);
    job = (struct dws_job){ .id = 1 };
    dws_job_recall (&job, NULL, OWNER);
    assert_false (job.remembered);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_recall),
        cmocka_unit_test (test_stranded),
        cmocka_unit_test (test_recall_owner),
    };

    return cmocka_run_group_tests_name ("history", tests, NULL, NULL);
}
