/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of explain.c.
 */

#include "libdws/tell/explain.h"
#include "libdws/test/util.h"

static void test_faults (void **state)
{
    static const struct {
        enum dws_state state;
        const char *text;
        const char *fault;
        const char *advice;
    } tab[] = {
        { DWS_STATE_PROPOSAL, "w-0, set raw: needs storage on rabbit rabbit2,"
          " which is not Ready", "storage", "submit again" },
        { DWS_STATE_PROPOSAL, "w-0, set xfs: 2 x 11 GiB are needed on rabbit"
          " rabbit0, 3 GiB are left", "site", "ask for less" },
        { DWS_STATE_PROPOSAL, "w-0, set ost: 2 allocations of 9 GiB on 1 of 2"
          " rabbits: 1 fit; rabbit0 is Disabled", "storage", "submit again" },
        { DWS_STATE_PROPOSAL, "w-0, set mgt: 1 allocation of 9 GiB (exclusive,"
          " one a rabbit) on 0 of 1 rabbits: 0 fit; rabbit0 has exclusive"
          " 'lustre-mgt' of persistent storage 'lus'", "site",
          "ask for nodes of other rabbits, or have that destroyed" },
        { DWS_STATE_PROPOSAL, "workflow error in Proposal: "
          "User error: 'capacity' must be a non-zero value",
          "user", "correct the directive" },
        { DWS_STATE_NONE, "admission webhook \"v\" denied the request: x",
          "user", "correct the directive" },
        { DWS_STATE_SETUP, "workflow error in Setup: WLM "
          "error: rabbit0: insufficient capacity available",
          "site", "ask for less" },
        { DWS_STATE_SETUP, "workflow error in Setup: WLM "
          "error: label missing", "site", "tell the administrators" },
        { DWS_STATE_PRERUN, "workflow error in PreRun: "
          "Internal error: mount failed", "storage", "submit again" },
        { DWS_STATE_PRERUN, "mounting file systems took longer than 5s",
          "storage", "submit again" },
        /* nothing is known but that it failed, or was not through */
        { DWS_STATE_DATAOUT, "data movement took longer than 5s, skipping it",
          "not known", "submit again" },
        { DWS_STATE_DATAIN, "staging data in took longer than 5s, and does not"
          " get on", "not known", "submit again" },
        { DWS_STATE_PRERUN, "mounting file systems took longer than 5s: pending"
          " container start for job 'f1'", "not known", "rabbit_container_log" },
        { DWS_STATE_PROPOSAL, "file systems were not mounted within 1800s: the"
          " job waited for the directives to be read", "not known",
          "submit again" },
        { DWS_STATE_NONE, "there was no workflow within 1800s: the job waited"
          " for one to be made", "not known", "submit again" },
        { DWS_STATE_PRERUN, "workflow error in PreRun: something of another"
          " driver", "not known", "submit again" },
        { DWS_STATE_PRERUN, "the workflow was deleted in PreRun", "not known",
          "submit again" },
        { DWS_STATE_DATAOUT, "stage-out was ended by an exception, and this is"
          " not copied out: x", "not known", "cancel only what may be lost" },
        { DWS_STATE_DATAOUT, "workflow error in DataOut: Internal error: "
          "data movement failed", "not known", "source and destination" },
        { DWS_STATE_DATAOUT, "workflow error in DataOut: Internal error: "
          "data movement failed (data movement: dcp: Permission denied)", "user",
          "source and destination" },
        { DWS_STATE_SETUP, "workflow error in Setup: Internal error: could not"
          " get NnfStorage: default/f1-0: NnfStorage \"f1-0\" not found",
          "storage", "submit again" },
        { DWS_STATE_SETUP, "workflow error in Setup: WLM error: Allocation"
          " request does not meet directive requirements", "storage",
          "submit again" },
        { DWS_STATE_PRERUN, "workflow error in PreRun: Internal error: user"
          " container(s) failed to start after 60 seconds", "not known",
          "rabbit_container_log" },
        { DWS_STATE_DATAIN, "workflow error in DataIn: Internal error: "
          "data movement failed: dcp: No space left on device", "user",
          "make room" },
        { DWS_STATE_SETUP, "workflow error in Setup: Internal error: "
          "No space left on device", "storage", "submit again" },
        { DWS_STATE_POSTRUN, "workflow error in PostRun: Internal error: "
          "data movement failed", "storage", "submit again" },
        { DWS_STATE_TEARDOWN, "User error: persistent storage cannot be deleted"
          " while in use", "user", "wait for the jobs" },
        { DWS_STATE_PROPOSAL, "User error: User ID does not match existing"
          " persistent storage", "user", "ask the administrators to open it" },
        { DWS_STATE_TEARDOWN, "User error: user ID does not match existing"
          " persistent storage", "user", "only a job of the user who made it" },
        { DWS_STATE_PROPOSAL, "User error: Persistent storage instance 'a' is"
          " deleting", "user", "create it anew" },
        { DWS_STATE_PROPOSAL, "Internal error: no valid container profile"
          " found", "user", "correct the directive" },
        { DWS_STATE_PROPOSAL, "Internal error: Unable to find a default"
          " NnfStorageProfile to use", "site", "tell the administrators" },
        { DWS_STATE_SETUP, "Internal error: storage directive requirements were"
          " not satisfied", "site", "tell the administrators" },
        { DWS_STATE_PRERUN, "User error: user container(s) failed to run",
          "user", "rabbit_container_log" },
        { DWS_STATE_PROPOSAL, "there is no persistent file system 'a'",
          "user", "see flux rabbit persistent" },
        { DWS_STATE_PROPOSAL, "persistent file system 'a' belongs to user 5",
          "user", "name one of your own" },
        { DWS_STATE_PROPOSAL, "dw_near: there is no persistent file system 'a'",
          "user", "name a job or a persistent file system" },
        { DWS_STATE_PROPOSAL, "dw_near: persistent file system 'a' belongs to"
          " user 5", "user", "name a job or a persistent file system" },
        { DWS_STATE_PROPOSAL, "dw_near: job f1: none of its nodes has a rabbit",
          "user", "name a job or a persistent file system" },
        { DWS_STATE_PROPOSAL, "dw_group: hpc: there is no such group",
          "user", "a group that you are in" },
        { DWS_STATE_PROPOSAL, "dw_group: bob is not a member of hpc",
          "user", "a group that you are in" },
        { DWS_STATE_PROPOSAL, "the nodes next to rabbit0 are 2, the job needs 3",
          "user", "fewer nodes" },
        { DWS_STATE_PROPOSAL, "User error: global Lustre file system containing"
          " '/home/me' not found", "user", "correct the directive" },
        { DWS_STATE_NONE, "user 5 is not known on this system",
          "site", "tell the administrators" },
        /* the texts of NNF that are not what their kind says */
        { DWS_STATE_PROPOSAL, "Internal error: 'capacity' must be a non-zero"
          " value", "user", "correct the directive" },
        { DWS_STATE_PROPOSAL, "Internal error: no valid container profile"
          " found (NnfContainerProfile.nnf.cray.hpe.com \"no\" not found)",
          "user", "correct the directive" },
        { DWS_STATE_PROPOSAL, "Internal error: the administrator must"
          " configure the user container TLS secret for the system: Secret"
          " \"s\" not found", "site", "tell the administrators" },
        { DWS_STATE_PROPOSAL, "Internal error: invalid allocationPadding value"
          " (invalid capacity string, lots)", "site", "administrators" },
        { DWS_STATE_PROPOSAL, "Internal error: invalid capacityScalingFactor"
          " for gfs2 allocation", "site", "administrators" },
        { DWS_STATE_SETUP, "WLM error: storage directive requirements were not"
          " satisfied (allocation set xfs specified insufficient capacity)",
          "site", "tell the administrators" },
        { DWS_STATE_SETUP, "Internal error: storage directive requirements were"
          " not satisfied (Storage \"r9\" not found)", "site",
          "tell the administrators" },
        { DWS_STATE_SETUP, "Internal error: could not create allocation"
          " (spec.allocationSets[0].nodes: Required value)", "site",
          "tell the administrators" },
        { DWS_STATE_SETUP, "Internal error: could not allocate storage (r2:"
          " NnfNodeBlockStorage has not been reconciled after 300 seconds)",
          "storage", "submit again" },
        { DWS_STATE_SETUP, "Internal error: could not request ports for"
          " container workflow: InsufficientResources", "site",
          "no port is free, or the site has none" },
        { DWS_STATE_SETUP, "User error: could not request ports for container"
          " workflow: Invalid NnfPortManager configuration", "site",
          "tell the administrators" },
        { DWS_STATE_POSTRUN, "workflow error in PostRun: Internal error:"
          " container job FailureTarget (BackoffLimitExceeded): Job has reached"
          " the specified backoff limit", "user", "rabbit_container_log" },
        { DWS_STATE_POSTRUN, "workflow error in PostRun: Internal error: user"
          " container(s) failed to run successfully after 3 attempts (container"
          " MPIJob Failed (BackoffLimitExceeded): x)", "user",
          "rabbit_container_log" },
        { DWS_STATE_PRERUN, "Internal error: unable to mount file system on"
          " client nodes (namespaces \"n9\" not found)", "storage",
          "submit again" },
        { DWS_STATE_PROPOSAL, "storage was made for fewer nodes: 1 can mount it,"
          " the job has 2", "user", "fewer nodes" },
        { DWS_STATE_NONE, "persistent file system 'a' is just being created by"
          " job f1", "user", "when that has ended" },
        { DWS_STATE_PROPOSAL, "no rabbit has more than 32768 GiB (32 TiB)",
          "user", "ask for less" },
        { DWS_STATE_PROPOSAL, "no compute node has physical access",
          "not known", "submit again" },
    };

    for (size_t i = 0; i < sizeof (tab) / sizeof (tab[0]); i++) {
        struct dws_workflow wf = { .state = tab[i].state };
        char buf[DWS_EXPLAIN_SIZE];
        char who[32];

        snprintf (who, sizeof (who), "[fault: %s;", tab[i].fault);
        dws_explain (&wf, NULL, tab[i].text, buf);
        assert_int_equal (strncmp (buf, tab[i].text, strlen (tab[i].text)), 0);
        assert_contains (buf + strlen (tab[i].text), tab[i].advice);
        assert_contains (buf, who);
    }
}

/* What came from outside can neither begin a line of its own nor write over what
 * stands before it, and says who is to blame only in its own place.
 */
static void test_clean (void **state)
{
    struct dws_details details = { .hosts = "n1\033[2K", .movement = "a\nb" };
    char buf[DWS_EXPLAIN_SIZE];

    assert_string_equal (dws_explain (NULL, &details,
                                      "it\nfailed \xe2\x80\xae" "dna", buf),
                         "it failed \xef\xbf\xbd" "dna"
                         " (not ready: n1\xef\xbf\xbd[2K)"
                         " (data movement: a b)"
                         " [fault: not known; submit again, and if it"
                         " fails again tell the administrators]");
}

static void test_details (void **state)
{
    struct dws_workflow wf = { .state = DWS_STATE_PRERUN };
    struct dws_details details = {
        .hosts = "node[3-4]",
        .movement = "no space",
    };
    char buf[DWS_EXPLAIN_SIZE];
    char large[2 * DWS_EXPLAIN_SIZE];
    json_t *s;

    assert_string_equal (dws_explain (&wf, &details, "it failed", buf),
                         "it failed (not ready: node[3-4])"
                         " (data movement: no space)"
                         " [fault: not known; submit again, and if it"
                         " fails again tell the administrators]");
    /* what a movement says tells more than that it failed */
    wf.state = DWS_STATE_DATAOUT;
    details = (struct dws_details){
        .movement = "Failed (fluxjob-1-0-0): dcp: Disk quota exceeded",
    };
    dws_explain (&wf, &details, "data movement failed", buf);
    assert_contains (buf, "[fault: user; make room at the destination");
    /* what the text has already is not said twice */
    details = (struct dws_details){
        .movement = "Failed (fluxjob-1-0-0): no space",
        .hosts = "",
    };
    assert_string_equal (dws_explain (NULL, &details, "dcp: no space", buf),
                         "dcp: no space [fault: not known; submit again, and"
                         " if it fails again tell the administrators]");
    for (size_t i = 0; i + 3 <= sizeof (large); i += 2)
        memcpy (large + i, "\xc3\xa9", 3);
    assert_non_null ((s = json_string (dws_explain (NULL, NULL, large, buf))));
    json_decref (s);
}

static void test_kind (void **state)
{
    struct dws_workflow wf = {
        .state = DWS_STATE_PRERUN,
        .desired = DWS_STATE_PRERUN,
    };

    assert_null (dws_explain_kind (NULL));
    assert_string_equal (dws_explain_kind (&wf), "clientmounts");
    wf.ready = true;
    assert_null (dws_explain_kind (&wf));
    wf.ready = false;
    wf.desired = DWS_STATE_TEARDOWN;
    assert_null (dws_explain_kind (&wf));
    wf.state = wf.desired = DWS_STATE_DATAOUT;
    assert_string_equal (dws_explain_kind (&wf), "nnfdatamovements");
    wf.state = wf.desired = DWS_STATE_SETUP;
    assert_string_equal (dws_explain_kind (&wf), "servers");
    wf.state = wf.desired = DWS_STATE_PROPOSAL;
    assert_null (dws_explain_kind (&wf));
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_faults),
        cmocka_unit_test (test_clean),
        cmocka_unit_test (test_details),
        cmocka_unit_test (test_kind),
    };

    return cmocka_run_group_tests_name ("explain", tests, NULL, NULL);
}
