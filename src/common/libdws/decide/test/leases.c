/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of leases.c.
 */

#include "libdws/decide/leases.h"
#include "libdws/test/util.h"

#define NOW 1000.
#define NOTICE 100.

static enum dws_lease_action decide (struct dws_lease lease)
{
    dws_leases_decide (&lease, 1, NOTICE, 1, NOW);
    return lease.action;
}

static void test_no_workflow (void **state)
{
    struct dws_lease l = { .there = true };

    assert_int_equal (decide (l), DWS_LEASE_NOTHING);
    l.expires = NOW + NOTICE + 1;
    assert_int_equal (decide (l), DWS_LEASE_NOTHING);
    l.expires = NOW + NOTICE;
    assert_int_equal (decide (l), DWS_LEASE_NOTICE);
    l.told = l.expires;
    assert_int_equal (decide (l), DWS_LEASE_NOTHING);
    l.expires = NOW + 1;                        // it was changed since
    assert_int_equal (decide (l), DWS_LEASE_NOTICE);
    l.told = l.expires = NOW;
    assert_int_equal (decide (l), DWS_LEASE_BEGIN);
    l.wanted = true;
    assert_int_equal (decide (l), DWS_LEASE_NOTHING);
    l.wanted = false;
    l.there = false;
    assert_int_equal (decide (l), DWS_LEASE_NOTHING);
}

/* Nothing is destroyed before it was told of, also if it has expired while Flux was away.
 */
static void test_notice_first (void **state)
{
    struct dws_lease l = { .there = true, .expires = NOW - 5 };

    assert_int_equal (decide (l), DWS_LEASE_NOTICE);
    l.told = l.expires;
    assert_int_equal (decide (l), DWS_LEASE_BEGIN);
}

/* Nothing is decided about a workflow that no watch shows, whatever its state was.
 */
static void test_out_of_sight (void **state)
{
    struct dws_lease l = {
        .there = true, .expires = NOW, .told = NOW, .has_workflow = true,
        .desired = DWS_STATE_TEARDOWN, .ready = true, .deleting = true,
        .doubted = true, .unlabelled = true,
    };

    assert_int_equal (decide (l), DWS_LEASE_LOOK);
    l.doubted = false;
    assert_int_equal (decide (l), DWS_LEASE_LABEL);
}

static void test_proposal (void **state)
{
    struct dws_lease l = {
        .there = true, .expires = NOW, .told = NOW, .has_workflow = true,
        .desired = DWS_STATE_PROPOSAL,
    };

    assert_int_equal (decide (l), DWS_LEASE_NOTHING);
    l.ready = true;
    assert_int_equal (decide (l), DWS_LEASE_DESTROY);
    l.wanted = true;
    assert_int_equal (decide (l), DWS_LEASE_SPARE);
    l.wanted = false;
    l.expires = NOW + 1;
    assert_int_equal (decide (l), DWS_LEASE_SPARE);
    l.expires = 0;                              // nobody knows of it
    assert_int_equal (decide (l), DWS_LEASE_SPARE);
    l.expires = NOW;
    l.there = false;
    assert_int_equal (decide (l), DWS_LEASE_SPARE);
    l.there = true;
    l.ready = false;
    l.failed = true;
    assert_int_equal (decide (l), DWS_LEASE_SPARE);
    l.deleting = true;
    assert_int_equal (decide (l), DWS_LEASE_NOTHING);
}

static void test_teardown (void **state)
{
    struct dws_lease l = {
        .there = true, .expires = NOW, .told = NOW, .has_workflow = true,
        .desired = DWS_STATE_TEARDOWN,
    };

    assert_true (dws_lease_is_doomed (&l));
    assert_int_equal (decide (l), DWS_LEASE_NOTHING);
    l.wanted = true;                            // too late
    assert_int_equal (decide (l), DWS_LEASE_NOTHING);
    l.failed = true;                            // in time
    assert_false (dws_lease_is_doomed (&l));
    assert_int_equal (decide (l), DWS_LEASE_SPARE);
    l.wanted = false;
    assert_int_equal (decide (l), DWS_LEASE_NOTHING);
    l.failed = false;
    l.ready = true;
    l.there = false;
    assert_int_equal (decide (l), DWS_LEASE_END);
    l.deleting = true;
    assert_int_equal (decide (l), DWS_LEASE_NOTHING);
}

static void test_bounded (void **state)
{
    struct dws_lease l[5] = { { 0 } };

    for (size_t i = 0; i < 5; i++) {
        l[i].there = true;
        l[i].expires = l[i].told = NOW - (i + 1);
    }
    l[4].has_workflow = true;
    l[4].desired = DWS_STATE_TEARDOWN;
    dws_leases_decide (l, 5, NOTICE, 3, NOW);
    assert_int_equal (l[0].action, DWS_LEASE_NOTHING);
    assert_int_equal (l[1].action, DWS_LEASE_NOTHING);
    assert_int_equal (l[2].action, DWS_LEASE_BEGIN);
    assert_int_equal (l[3].action, DWS_LEASE_BEGIN);
    assert_int_equal (l[4].action, DWS_LEASE_NOTHING);
}

static void test_wake (void **state)
{
    struct dws_lease l[3] = {
        { .there = true, .expires = NOW + 500 },
        { .there = true, .expires = NOW + 50, .told = NOW + 50 },
        { .there = false, .expires = NOW + 1 },
    };

    assert_true (dws_leases_decide (l, 1, NOTICE, 1, NOW) == NOW + 400);
    assert_true (dws_leases_decide (l, 3, NOTICE, 1, NOW) == NOW + 50);
    assert_true (dws_leases_decide (l, 0, NOTICE, 1, NOW) == 0.);
    l[0].expires = 0;
    assert_true (dws_leases_decide (l, 1, NOTICE, 1, NOW) == 0.);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_no_workflow),
        cmocka_unit_test (test_notice_first),
        cmocka_unit_test (test_out_of_sight),
        cmocka_unit_test (test_proposal),
        cmocka_unit_test (test_teardown),
        cmocka_unit_test (test_bounded),
        cmocka_unit_test (test_wake),
    };

    return cmocka_run_group_tests (tests, NULL, NULL);
}
