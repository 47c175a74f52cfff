/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of persistent.c.
 */

#include "libdws/tell/persistent.h"
#include "libdws/test/util.h"

static void test_describe (void **state)
{
    json_t *object = J (
        "{'metadata': {'name': 'keep', 'uid': 'a-b', 'namespace': 'default',"
        " 'creationTimestamp': '2026-11-23T12:00:00Z',"
        " 'ownerReferences': [{'kind': 'DirectiveBreakdown',"
        "                      'name': 'fluxjob-9-00c0ffee-0'}]},"
        " 'spec': {'name': 'keep', 'fsType': 'lustre', 'userID': 1001,"
        " 'dwDirective': '#DW create_persistent name=keep',"
        " 'state': 'Active', 'consumerReferences': ["
        "   {'name': 'fluxjob-42-0'}, {'name': 'fluxjob-7-00c0ffee-1'},"
        "   {'name': 'other-thing-1'}, {}, 5]},"
        " 'status': {'state': 'Active'}}");
    json_t *o = dws_persistent_describe (object);

    assert_json (o, "{'name': 'keep', 'uid': 'a-b', 'namespace': 'default',"
                 " 'type': 'lustre', 'userid': 1001, 'state': 'Active',"
                 " 'created': 1795435200.0, 'maker': 'fluxjob-9-00c0ffee',"
                 " 'directive': '#DW create_persistent name=keep',"
                 " 'users': [{'workflow': 'fluxjob-42', 'jobid': 42},"
                 " {'workflow': 'fluxjob-7-00c0ffee', 'jobid': 7},"
                 " {'workflow': 'other-thing'}]}");
    json_decref (o);
    json_decref (object);
}

/* What has just been made, or is not what it should be.
 */
static void test_bare (void **state)
{
    static const char *const objects[] = {
        "{}", "5", "{'metadata': {}, 'spec': {}, 'status': {}}",
        "{'metadata': 1, 'spec': 'x', 'status': []}",
        "{'metadata': {'ownerReferences': []}}",
        "{'metadata': {'ownerReferences': [{}, 5]}}",
    };

    for (size_t i = 0; i < sizeof (objects) / sizeof (objects[0]); i++) {
        json_t *object = J (objects[i]);
        json_t *o = dws_persistent_describe (object);

        assert_json (o, "{'name': '', 'uid': '', 'namespace': '', 'type': '',"
                     " 'userid': -1, 'state': '', 'created': 0.0,"
                     " 'users': []}");
        json_decref (o);
        json_decref (object);
    }
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_describe),
        cmocka_unit_test (test_bare),
    };

    return cmocka_run_group_tests_name ("persistent", tests, NULL, NULL);
}
